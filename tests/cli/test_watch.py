"""`fractal agents`, `fractal scopes`, and what `fractal status` says of what nobody reads (C11)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane
from tests.cli.test_reading import component

pytestmark = pytest.mark.rule("C11")


def _ago(minutes: float) -> str:
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat()


def agent(name: str, **more: Any) -> dict[str, Any]:
    reaches = [{"provider": "aws", "name": "", "realm": "123456789012"}]
    found: dict[str, Any] = {
        "id": name,
        "environment": "prod",
        "environments": ["prod"],
        "token": "t",
        "key": "",
        "version": "1.2",
    }
    found |= {"reaches": reaches, "waiting": [], "scopes": 2, "staleScopes": 0, "alive": True, "stale": False}
    return {**found, "lastSeen": _ago(0), "lastCycle": _ago(0), "cycleSeconds": 180.0, **more}


def scope(place: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"key": f"aws/1/{place}", "provider": "aws", "realm": "1", "place": place, "holder": "a1"}
    found |= {"lastHolder": "a1", "components": 3, "lastRead": _ago(0), "stale": False, "cycleSeconds": 180.0}
    cycle = {"seconds": 1.25, "calls": 12, "throttles": 0, "errors": 0}
    return {**found, "version": 1, "lastCycle": cycle, "unread": [], **more}


def test_the_dead_and_the_stale_are_named_as_such(fractal: Fractal, control: FakeControlPlane) -> None:
    dead = agent("a1", alive=False, stale=True, lastSeen=_ago(12.5), lastCycle=_ago(13.5), staleScopes=2)
    control.on("GET", "/agents", {"items": [dead, agent("a2")], "cursor": None})
    ran = fractal("agents")
    assert ran.code == 0, ran.err
    for words in (
        "dead: last seen 12 min ago a1",
        "2 scopes, 2 stale",
        "last cycle 13 min ago",
        "alive a2",
        "1.2",
        "aws 123456789012",
    ):
        assert words in ran.words
    assert fractal("agents", "--stale", "-o", "json").code == 0


def test_scopes_show_account_place_holder_last_read_and_the_last_cycle(
    fractal: Fractal, control: FakeControlPlane
) -> None:
    busy = {"seconds": 3.0, "calls": 40, "throttles": 2, "errors": 1}
    silent = scope("eu-west-1", stale=True, lastRead=_ago(12.5), holder=None)
    partly = scope("eu-west-2", lastCycle=busy, unread=["NetworkAndCompute.IaaS.AwsSubnet"])
    never = scope("eu-west-3", stale=True, lastRead=None, lastCycle=None, holder=None, lastHolder=None)
    control.on("GET", "/scopes", {"items": [silent, never, partly], "cursor": None})
    ran = fractal("scopes", "-o", "json")
    assert [one["place"] for one in json.loads(ran.out)] == ["eu-west-1", "eu-west-3", "eu-west-2"]
    control.on("GET", "/scopes", {"items": [silent, never, partly], "cursor": None})
    shown = fractal("scopes").words
    for words in (
        *("stale: last read 12 min ago aws 1 eu-west-1", "held by a1, which is dead", "3 components"),
        *("stale: no read reported aws 1 eu-west-3", "held by nobody", "read 0 s ago aws 1 eu-west-2", "held by a1;"),
        *("last cycle 3.0 s, 40 calls, 2 throttles, 1 error", "not read: AwsSubnet"),
    ):
        assert words in shown


def test_status_never_shows_what_is_stale_as_plain_green(
    fractal: Fractal, control: FakeControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    old = {"stale": True, "lastRead": _ago(12.5)}
    whole: dict[str, Any] = {"id": "ls-abc", "environment": "default", "status": "Active", "counts": {"Active": 1}}
    whole |= {"staleComponents": 1, **old}
    one = {**component("net"), **old}
    for path, found in (
        ("/livesystems", {"items": [whole], "cursor": None}),
        ("/livesystems/ls-abc", {**whole, "components": []}),
        ("/livesystems/ls-abc/components", {"items": [one], "cursor": None}),
        ("/livesystems/ls-abc/components/net", one),
    ):
        control.on("GET", path, found)
    for arguments in ((), ("ls-abc",), ("ls-abc", "net")):
        ran = fractal("status", *arguments)
        assert ran.code == 0, ran.err
        assert "\x1b[32m" not in ran.out, "that is green"
        plain = "".join(char for char in ran.words if char.isalnum() or char in ": ")
        assert "stale" in plain
        assert "last read" in plain
