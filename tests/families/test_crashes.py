"""The agent dies at every one of its calls, with references and lookups under way: nothing is made twice, or half."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.families import toys
from tests.families.world import World, alarm, queue, world
from tests.links.clouds import Thing

pytestmark = pytest.mark.rule("S17", "C12")


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def _exists(made: World, name: str) -> None:
    made.cloud.things[name] = Thing(name, toys.ALARM, name, {"tier": "private"}, {"Threshold": 1}, place="north")


def _deploy(made: World) -> None:
    lookup = {"$find": {"type": toys.ALARM, "tags": {"tier": "private"}}}
    policy = {"deadLetterTargetArn": "${dead.Arn}", "maxReceiveCount": 3}
    made.deploy(queue("dead"), queue("jobs", RedrivePolicy=policy, All=lookup), alarm(QueueArn="${jobs.Arn}"))


def _dies_at(number: int) -> Callable[..., None]:
    """Kill whoever calls for the n-th time, and nobody afterwards."""
    numbers = count(1)

    def die(*_: Any) -> None:
        if next(numbers) == number:
            raise KeyboardInterrupt

    return die


def _live_on(made: World) -> None:
    """Another agent takes over, and finishes what was begun."""
    made.cloud.before.clear()
    made.restart_agent()
    made.settle(30)
    names = sorted(thing.name for thing in made.cloud.things.values())
    assert names == ["a", "dead", "jobs", "loud"], "each was made once"
    jobs = made.cloud.named("jobs")
    assert jobs.actual["RedrivePolicy"]["deadLetterTargetArn"] == f"toy:{made.cloud.named('dead').id}"
    assert jobs.actual["All"] == ["a"]
    assert made.cloud.named("loud").actual["QueueArn"] == f"toy:{jobs.id}"
    assert {made.status("shop", name) for name in ("dead", "jobs", "loud")} == {"Active"}


def _some(most: int) -> list[Any]:
    """Every third one in each run of the tests, and all in the long one."""
    return [pytest.param(one, marks=[] if one % 3 == 1 else [pytest.mark.soak]) for one in range(1, most + 1)]


@pytest.mark.parametrize("number", _some(16))
def test_killed_at_a_call_to_the_cloud(toy_world: World, number: int) -> None:
    _exists(toy_world, "a")
    _deploy(toy_world)
    toy_world.cloud.before.append(_dies_at(number))
    with contextlib.suppress(KeyboardInterrupt):
        toy_world.cycle(2)
    _live_on(toy_world)


@pytest.mark.parametrize("number", _some(5))
@pytest.mark.parametrize("is_sent", [False, True], ids=["before", "after"])
def test_killed_at_a_report(toy_world: World, monkeypatch: pytest.MonkeyPatch, number: int, *, is_sent: bool) -> None:
    _exists(toy_world, "a")
    _deploy(toy_world)
    control, die = toy_world.agent._control, _dies_at(number)
    send = control.report

    def report(said: Any) -> Any:
        if not is_sent:
            die()
        answer = send(said)
        if is_sent:
            die()
        return answer

    monkeypatch.setattr(control, "report", report)
    with contextlib.suppress(KeyboardInterrupt):
        toy_world.cycle(2)
    _live_on(toy_world)


def test_there_are_so_many_calls_to_die_at(toy_world: World) -> None:
    _exists(toy_world, "a")
    _deploy(toy_world)
    before = toy_world.cloud.calls.total()
    toy_world.cycle(2)
    assert toy_world.cloud.calls.total() - before >= 10
