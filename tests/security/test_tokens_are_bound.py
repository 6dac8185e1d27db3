"""What an agent's token is bound to (A1): said when it is made, kept, and shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Api

BOUND = {"providers": ["aws"], "environments": ["prod", "stage-*"], "realms": ["123456789012"]}


def _asked(api: Api, **wanted: Any) -> Any:
    return api.client.post("/tokens", json={"name": "edge", "role": "agent", **wanted})


@pytest.mark.rule("A1")
def test_a_token_shows_what_it_is_bound_to_and_who_made_it(api: Api) -> None:
    made = _asked(api, **BOUND, expiresAt="2100-01-01T00:00:00Z")
    assert made.status_code == 201, made.text
    (listed,) = api.get("/tokens")["items"]
    assert {name: listed[name] for name in BOUND} == BOUND
    assert listed["createdBy"] == "admin"
    assert listed["expiresAt"].startswith("2100-01-01T00:00:00")
    assert listed["lastUsedAt"] is None
    assert made.json() == {**listed, "token": made.json()["token"]}


@pytest.mark.rule("A1")
@pytest.mark.parametrize("missing", sorted(BOUND))
def test_an_agents_token_is_refused_that_does_not_say_what_it_may_serve(api: Api, missing: str) -> None:
    refused = _asked(api, **{**BOUND, missing: []})
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["path"] == missing
    assert "is missing" in error["message"]
    assert api.get("/tokens")["items"] == []


@pytest.mark.rule("A1")
@pytest.mark.parametrize("given", ["providers", "realms"])
def test_a_bound_that_would_not_be_respected_is_refused(api: Api, given: str) -> None:
    refused = api.client.post("/tokens", json={"name": "ann", "role": "reader", given: ["x"]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == given


@pytest.mark.parametrize("pattern", ["", "a\nb", "\x1b[31m", "x" * 301])
def test_a_pattern_is_one_line_of_printable_text(api: Api, pattern: str) -> None:
    assert _asked(api, **{**BOUND, "realms": [pattern]}).status_code == 422


def test_a_token_that_would_have_expired_already_is_refused(api: Api) -> None:
    refused = _asked(api, **BOUND, expiresAt="2020-01-01T00:00:00Z")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "expiresAt"
