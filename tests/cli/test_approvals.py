"""`fractal agent list` and `approve`, `fractal environment`, `fractal types`: what they print and send (A2, A4)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane

KEY = "0123456789abcdef0123456789abcdef"
WAITING: dict[str, Any] = {
    "id": f"prod/aws/123456789012/prod-aws/{KEY}",
    "agentId": "a2",
    "environment": "prod",
    "provider": "aws",
    "realm": "123456789012",
    "token": "prod-aws",
    "key": KEY,
    "since": "2026-11-15T12:00:00Z",
}
AGENT: dict[str, Any] = {
    "id": "a1",
    "environment": "prod",
    "token": "prod-aws",
    "key": KEY,
    "reaches": [{"provider": "aws", "realm": "123456789012", "name": ""}],
    "waiting": [],
    "cycleSeconds": 60.0,
    "lastSeen": "2026-11-15T12:00:00Z",
    "alive": True,
}


def _page(*items: dict[str, Any]) -> dict[str, Any]:
    return {"items": list(items), "cursor": None}


@pytest.mark.rule("A2")
def test_agents_are_listed_with_those_that_wait(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/agents", _page(AGENT))
    control.on("GET", "/approvals", _page(WAITING))
    ran = fractal("agent", "list")
    assert ran.code == 0, ran.err
    assert "a1 prod prod-aws 0123456789ab yes aws 123456789012" in ran.words
    assert "a2 prod prod-aws 0123456789ab aws 123456789012" in ran.words
    control.on("GET", "/agents", _page(AGENT))
    control.on("GET", "/approvals", _page(WAITING))
    assert json.loads(fractal("agent", "list", "-o", "json").out) == {"agents": [AGENT], "waiting": [WAITING]}


@pytest.mark.rule("A2")
def test_an_agent_is_approved_by_name_or_key(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/approvals", {"approved": [WAITING]})
    ran = fractal("agent", "approve", KEY)
    assert ran.code == 0, ran.err
    assert control.last().body == {"agent": KEY}
    assert "a2 (token prod-aws) is approved at aws 123456789012 in prod." in ran.words


@pytest.mark.rule("A2")
@pytest.mark.parametrize(("flag", "wanted"), [("--approve-agents", True), ("--no-approve-agents", False)])
def test_an_environment_is_set(fractal: Fractal, control: FakeControlPlane, flag: str, wanted: bool) -> None:
    let_in = [] if wanted else [WAITING]
    control.on("PUT", "/environments/prod", {"name": "prod", "approveAgents": wanted, "approved": let_in})
    ran = fractal("environment", "set", "prod", flag)
    assert ran.code == 0, ran.err
    assert control.last().body == {"approveAgents": wanted}
    assert ("a2 (token prod-aws) is let in at aws 123456789012." in ran.words) is not wanted


@pytest.mark.rule("A4")
def test_a_type_is_moved_to_another_token(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/tokens/prod-acme/types", {"type": "Acme.Db", "before": "old", "owner": "prod-acme"})
    ran = fractal("types", "move", "Acme.Db", "--to", "prod-acme")
    assert ran.code == 0, ran.err
    assert control.last().body == {"type": "Acme.Db"}
    assert "Acme.Db belongs to token prod-acme from now on; it belonged to token old." in ran.words


@pytest.mark.rule("A4")
def test_types_are_listed_with_their_owners(fractal: Fractal, control: FakeControlPlane) -> None:
    installed = {"type": "A.Vpc", "provider": "aws", "installed": True, "owner": None}
    brought = {"type": "Acme.Db", "provider": "acme", "installed": False, "owner": "prod-acme"}
    control.on("GET", "/types", _page(installed, brought))
    ran = fractal("types", "list")
    assert ran.code == 0, ran.err
    assert "A.Vpc aws installed package Acme.Db acme token prod-acme" in ran.words
