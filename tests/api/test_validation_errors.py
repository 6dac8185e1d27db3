"""A body that cannot be taken is refused with where, why and what to send, never in the words of a library."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Api, vpc

GLASS = "/livesystems/ls-a/components/net/glass"
ASKED_FOR = "a JSON object with action (and if you like reason, until, to), with Content-Type: application/json"
NEW_TOKEN = (
    "a JSON object with name, role (and if you like providers, environments, realms, expiresAt), "
    "with Content-Type: application/json"
)
GOOD = b'{"action": "break"}'
JSON = "application/json"
# Every route of the public API that takes a body: a declaration, or a model of its own.
DECLARED = (("POST", "/livesystems"), ("PUT", "/livesystems/ls-a"), ("POST", "/livesystems/ls-a/plan"))
MODELLED = (("POST", GLASS), ("POST", "/tokens"))


def _refused(api: Api, method: str, path: str, **sent: Any) -> list[dict[str, str]]:
    answer = api.client.request(method, path, **sent)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    errors: list[dict[str, str]] = answer.json()["errors"]
    return errors


@pytest.mark.parametrize(
    ("body", "content_type", "why"),
    [
        (GOOD, "text/plain", "came as 'text/plain'"),
        (GOOD, "application/x-www-form-urlencoded", "came as 'application/x-www-form-urlencoded'"),
        (GOOD, None, "came without a Content-Type"),
        (b"", JSON, "is missing"),
        (b"", None, "is missing"),
        (b"[]", JSON, "is an empty list"),
        (b'"break"', JSON, "is 'break'"),
        (b"null", JSON, "is null"),
    ],
)
@pytest.mark.rule("C1", "G13")
def test_a_glass_request_that_cannot_be_read_is_answered_with_what_to_send(
    api: Api, body: bytes, content_type: str | None, why: str
) -> None:
    api.put("ls-a", vpc())
    headers = {} if content_type is None else {"content-type": content_type}
    errors = _refused(api, "POST", GLASS, content=body, headers=headers)
    assert errors == [{"path": "body", "message": f"{why}: send {ASKED_FOR}"}]


@pytest.mark.parametrize(("method", "path"), [*DECLARED, *MODELLED])
@pytest.mark.rule("C1")
def test_a_broken_body_is_answered_with_where_it_breaks_and_what_to_send(api: Api, method: str, path: str) -> None:
    api.put("ls-a", vpc())
    (error,) = _refused(api, method, path, content=b'{"id": ', headers={"content-type": JSON})
    assert error["path"] == "body"
    assert error["message"].startswith("is not JSON: EOF while parsing a value at line 1 column 7: send a ")
    assert "Content-Type: application/json" in error["message"]


@pytest.mark.parametrize(("method", "path"), DECLARED[:2])
@pytest.mark.rule("C1")
def test_a_deploy_without_a_declaration_is_refused_as_such(api: Api, method: str, path: str) -> None:
    assert _refused(api, method, path) == [
        {"path": "declaration", "message": "is missing: give an object with id and components"}
    ]


@pytest.mark.parametrize(
    ("path", "body", "fault", "message"),
    [
        (GLASS, {}, "action", "is missing: give one of 'break', 'readopt'"),
        (GLASS, {"action": "smash"}, "action", "is 'smash': must be one of 'break', 'readopt'"),
        (GLASS, {"action": "break", "resaon": "x"}, "resaon", "is no field: did you mean 'reason'?"),
        (
            GLASS,
            {"action": "break", "until": "tomorrow"},
            "until",
            "is 'tomorrow': must be a date and time with its zone like '2026-11-15T12:00:00Z'",
        ),
        (
            "/tokens",
            {"name": "ci", "role": "god"},
            "role",
            "is 'god': must be one of 'admin', 'operator', 'reader', 'agent'",
        ),
        ("/tokens", {"name": "ci", "role": "agent", "providers": "aws"}, "providers", "is 'aws': must be a list"),
        ("/tokens", "ci", "body", f"is 'ci': send {NEW_TOKEN}"),
    ],
)
@pytest.mark.rule("C1")
def test_an_error_in_a_body_is_named_with_its_path_and_what_to_do(
    api: Api, path: str, body: object, fault: str, message: str
) -> None:
    api.put("ls-a", vpc())
    errors = _refused(api, "POST", path, json=body)
    assert [error["path"] for error in errors] == [fault]
    assert errors[0]["message"].startswith(message)
