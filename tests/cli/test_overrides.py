"""`fractal overrides`: everything that is held by hand, for people in 80 columns and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane

DRIFT = {"enableDnsHostnames": {"declared": True, "actual": False}}


def held(live_system: str = "ls-shop", by: str | None = "anna", **more: Any) -> dict[str, Any]:
    """A component in override as the API lists it."""
    override = {"since": "2026-11-15T02:14:00Z", "by": by, "reason": "INC-4711", "until": "2026-11-15T06:00:00Z"}
    return {
        "liveSystemId": live_system,
        "componentId": "net",
        "environment": "prod",
        "status": "ManualOverride",
        "override": {**override, **more.pop("override", {})},
        "overdue": False,
        "outputFields": {"drift": DRIFT},
        **more,
    }


@pytest.mark.rule("G13", "C4")
def test_overrides_are_listed_as_the_control_plane_orders_them(fractal: Fractal, control: FakeControlPlane) -> None:
    unknown = held("ls-b", by=None, override={"reason": None, "until": None}, outputFields={})
    control.on("GET", "/components", {"items": [held(overdue=True), unknown], "next": None})
    ran = fractal("overrides")
    assert ran.code == 0
    assert control.last().query == {"sort": "override", "override": "true", "limit": "200"}
    for words in ("ls-shop/ net", "anna", "2026-11-15 02:14", "overdue", "INC-4711", "enableDnsHostnames"):
        assert all(word in ran.words for word in words.split()), words
    assert "unknown" in ran.words
    assert "no end" in ran.words
    assert "no reason given" in " ".join(ran.words.split())
    assert ran.words.index("ls-shop/") < ran.words.index("ls-b/")
    assert "fractal glass ls-shop net --readopt" in ran.words


@pytest.mark.rule("G13")
def test_overrides_fit_80_columns_whatever_they_are_called(
    fractal: Fractal, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = held("ls-" + "a" * 60, by="b" * 100, override={"reason": "why " * 100}, componentId="c" * 63)
    control.on("GET", "/components", {"items": [long], "next": None})
    lines = fractal("overrides").out.splitlines()[:-2]
    assert max(map(len, lines)) <= 80


@pytest.mark.rule("G13")
def test_only_the_overdue_and_only_ones_own(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/whoami", {"name": "anna", "role": "operator", "environments": []})
    control.on("GET", "/components", {"items": [], "next": None})
    ran = fractal("overrides", "--overdue", "--mine")
    assert control.last().query == {"sort": "override", "override": "overdue", "by": "anna", "limit": "200"}
    assert "Nothing is overdue in the name of anna." in ran.words
    assert "Nothing is in manual override." in fractal("overrides").words


@pytest.mark.rule("G13")
def test_overrides_for_programs(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/components", {"items": [held()], "next": None})
    (one,) = json.loads(fractal("overrides", "--output", "json").out)
    assert one == {
        "liveSystemId": "ls-shop",
        "componentId": "net",
        "environment": "prod",
        "status": "ManualOverride",
        "by": "anna",
        "since": "2026-11-15T02:14:00Z",
        "until": "2026-11-15T06:00:00Z",
        "reason": "INC-4711",
        "overdue": False,
        "drift": DRIFT,
    }


@pytest.mark.rule("O8")
def test_a_transfer_says_what_happens_now(fractal: Fractal, control: FakeControlPlane) -> None:
    answer = {"liveSystemId": "ls-a", "componentId": "net", "to": "ls-b", "toComponentId": "n", "resourceId": "vpc-1"}
    control.on("POST", "/livesystems/ls-a/components/net/transfer", answer, status=202)
    ran = fractal("transfer", "ls-a", "net", "--to", "ls-b", "--reason", "reorganised")
    assert control.last().body == {"to": "ls-b", "reason": "reorganised"}
    assert "the agent now writes fractal-cloud-owner: ls-b on vpc-1" in ran.words
    assert "fractal events ls-a" in ran.words
    assert fractal("transfer", "ls-a", "net").code == 2, "to whom?"
