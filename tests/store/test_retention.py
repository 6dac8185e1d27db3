"""What happened long ago is forgotten, in batches, and never what somebody still needs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fractal_cloud.control.store import journal
from fractal_cloud.control.store.housekeeping import keep_house
from fractal_cloud.control.store.retention import forget_history, forgotten_up_to
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import JournalEntry
from tests.store.playing import Player, World, box, net

KEEP = timedelta(days=400)
DAY = 86_400.0
FLIPS = 3


def _flip(world: World, agent: Player, times: int = FLIPS) -> None:
    """Let the status of the net change so many times."""
    for number in range(times):
        status = Status.FAILED if number % 2 == 0 else Status.ACTIVE
        agent.beat()
        agent.report(agent.says("ls-a", "net", status=status, message=f"flip {number}"))
        world.clock.advance(1)


@pytest.fixture
def agent(world: World) -> Player:
    """An agent that has settled ls-a: two components, each with one change of status."""
    world.deploy("ls-a", net(), box())
    player = world.agent()
    player.settle()
    return player


def _forget(world: World, at_once: int = 2_000) -> None:
    forget_history(world.store.database, KEEP, at_once)


@pytest.mark.rule("C4")
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_old_events_are_forgotten_but_for_the_newest_status_of_each_component(
    world: World, agent: Player, at_once: int
) -> None:
    _flip(world, agent)
    world.clock.advance(400 * DAY + 1)
    _forget(world, at_once)
    left = world.events()
    assert [(event["componentId"], event["after"]) for event in left] == [("box", "Active"), ("net", "Failed")]
    assert left[-1]["message"] == f"flip {FLIPS - 1}"


def test_nothing_is_forgotten_before_its_time(world: World, agent: Player) -> None:
    _flip(world, agent)
    before = world.events()
    world.clock.advance(399 * DAY)
    _forget(world)
    assert world.events() == before
    with world.store.read() as tx:
        assert forgotten_up_to(tx) == 0


def test_a_status_that_was_kept_goes_once_a_newer_one_is_there(world: World, agent: Player) -> None:
    world.clock.advance(400 * DAY + 1)
    _forget(world)
    agent.register()
    agent.claim()
    _flip(world, agent, times=1)
    world.clock.advance(2 * DAY)
    _forget(world)
    listed = [(event["componentId"], event["after"]) for event in world.events() if event["kind"] == "StatusChanged"]
    assert listed == [("box", "Active"), ("net", "Failed")]


def test_of_a_live_system_that_is_gone_nothing_is_kept_for_ever(world: World, agent: Player) -> None:
    world.delete("ls-a")
    agent.claim()
    agent.report(*(agent.says("ls-a", name, status=Status.DELETED, finished=True) for name in ("net", "box")))
    assert world.events()[-1]["kind"] == "Deleted"
    world.clock.advance(400 * DAY + 1)
    _forget(world)
    assert world.events() == []


def test_it_is_known_up_to_which_number_events_are_gone(world: World, agent: Player) -> None:
    newest = world.events()[-1]["seq"]
    world.clock.advance(400 * DAY + 1)
    _forget(world)
    world.deploy("ls-a", net(), box())
    with world.store.read() as tx:
        assert 0 < forgotten_up_to(tx) <= newest
    assert world.events()[-1]["seq"] == newest + 1, "numbers are never given twice"


def _entry(uid: str, number: int, outcome: str | None) -> JournalEntry:
    return JournalEntry.model_validate(
        {"id": f"{number:032}", "uid": uid, "generation": 1, "verb": "update", "reason": "drift", "outcome": outcome}
    )


@pytest.mark.rule("C7")
def test_old_writes_are_forgotten_but_not_those_whose_outcome_nobody_reported(world: World, agent: Player) -> None:
    uid = agent.uid("ls-a", "net")
    agent.report(
        agent.says("ls-a", "net"), journal=[_entry(uid, number, "done") for number in range(5)] + [_entry(uid, 9, None)]
    )
    world.clock.advance(400 * DAY + 1)
    _forget(world, at_once=2)
    with world.store.read() as tx:
        left = journal.list_of(tx, "ls-a", "net", 100, None)
    assert [(entry["id"], entry["outcome"]) for entry in left] == [(f"{9:032}", "unknown")]


def test_without_a_limit_everything_is_kept(world: World, agent: Player) -> None:
    before = world.events()
    world.clock.advance(4_000 * DAY)
    keep_house(world.store.database, 5.0, judge_agents=False)
    assert world.events() == before
    keep_house(world.store.database, 5.0, judge_agents=False, keep=KEEP)
    assert len(world.events()) < len(before)
