"""Agents that wait for approval are shown at the dashboard, with a button that approves them (A2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import TOKEN, Api, make_client
from tests.dashboard.conftest import Visitor


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    """A control plane in whose environment prod an agent waits."""
    with make_client(tmp_path) as client:
        made = Api(client)
        assert client.put("/environments/prod", json={"approveAgents": True}).status_code == 200
        made.register("a1", environment="prod")
        yield made


def _visitor(api: Api, token: str = TOKEN) -> Visitor:
    return Visitor(api.client.app, token)  # type: ignore[arg-type]  # it is the app that create_app() made


@pytest.mark.rule("A2")
def test_who_waits_is_shown_and_approved_by_a_button(api: Api) -> None:
    visitor = _visitor(api)
    assert 'href="/ui/agents"' in visitor.page("/ui")
    page = visitor.page("/ui/agents")
    assert "Waiting for approval" in page
    assert 'name="agent" value="a1"' in page
    sent = visitor.send("/ui/agents", agent="a1")
    assert (sent.status_code, sent.headers["location"]) == (303, "/ui/agents")
    assert "Waiting for approval" not in visitor.page("/ui/agents")
    assert api.get("/approvals")["items"] == []
    (event,) = [event for event in api.get("/events")["items"] if event["kind"] == "AgentApproved"]
    assert event["by"] == "admin"


@pytest.mark.rule("A2")
def test_a_form_without_the_visitors_own_word_approves_nobody(api: Api) -> None:
    visitor = _visitor(api)
    assert visitor.client.post("/ui/agents", data={"word": "forged", "agent": "a1"}).status_code == 403
    assert len(api.get("/approvals")["items"]) == 1


@pytest.mark.rule("A2")
def test_an_operator_of_another_environment_neither_sees_nor_approves(api: Api) -> None:
    body = {"name": "lab-operator", "role": "operator", "environments": ["lab"]}
    token = api.client.post("/tokens", json=body).json()["token"]
    visitor = _visitor(api, token)
    assert "a1" not in visitor.page("/ui/agents")
    assert "no agent &#39;a1&#39; waits for approval" in visitor.send("/ui/agents", agent="a1").text
    assert len(api.get("/approvals")["items"]) == 1
