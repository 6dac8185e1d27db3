"""A refused write is not repeated at the pace of wakes: when it is tried again, what is said, who remembers it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.moments import Moments
from tests.world import World, vpc
from tests.world import world as make_world

MINUTE = 60.0
DENIED: dict[str, Any] = {"code": "UnauthorizedOperation", "status": 403, "actor": "agent"}
QUOTA: dict[str, Any] = {"code": "VpcLimitExceeded", "status": 400, "actor": "agent"}


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    """Time passes when the test says so."""
    return Moments(monkeypatch)


@pytest.fixture
def world(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moments: Moments
) -> Iterator[World]:
    """A world with a cycle of a minute."""
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=MINUTE) as made:
        moments.rule(made)
        yield made


def _tries(world: World, operation: str = "CreateVpc") -> int:
    return int(world.sandbox.aws.calls.count(operation=operation, actor="agent"))


def _journal(world: World, component: str = "net") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = world.api.get(f"/livesystems/ls-a/components/{component}/journal").json()["items"]
    return items


def _wake(world: World, moments: Moments, times: int, seconds: float = 1.0) -> None:
    """Something else changes again and again, and wakes the agent."""
    for _ in range(times):
        moments.pass_by(seconds)
        world.agent.run_once()


@pytest.mark.rule("S21")
def test_a_quota_error_is_not_repeated_at_the_pace_of_wakes(world: World, moments: Moments) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", times=None, **QUOTA)
    world.deploy("ls-a", vpc())
    _wake(world, moments, 25)
    assert world.status("ls-a", "net") == "Failed"
    assert _tries(world) <= 5, "at worst after 1 s, 2 s, 4 s and 8 s"
    assert len(_journal(world)) == 1
