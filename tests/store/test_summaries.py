"""What is kept of LiveSystems is what their components say, whoever changes them, at whatever time.

Every test of the store ends with that comparison (``conftest.world``); here are those that provoke a difference.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import update

from fractal_cloud.control.store import housekeeping, summaries
from fractal_cloud.control.store.errors import StoreError
from fractal_cloud.control.store.failures import again
from fractal_cloud.control.store.schema import live_systems
from fractal_cloud.model.status import Stance, Status
from tests.store.playing import Player, World, net

REGIONS = ("north", "south", "east", "west")
HELD = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
DRIFT = {"output_fields": {"drift": {"size": {"declared": 1, "actual": 2}}}}
STATES: tuple[dict[str, Any], ...] = (
    {},
    {"status": Status.FAILED},
    {"status": Status.MUTATING, **DRIFT},
    {"status": Status.EXTERNALLY_MANAGED, "owner": "ls-other", "stance": Stance.IMPORTED},
    HELD,
    {**HELD, **DRIFT},
)


def _parts(each: int) -> list[dict[str, Any]]:
    return [net(f"{region}-{n}", region) for region in REGIONS for n in range(each)]


def _agents(world: World) -> list[Player]:
    """Four agents with one scope each: none reports on what another one has."""
    agents = [world.agent(f"a{number}") for number in range(len(REGIONS))]
    for agent in agents:
        agent.claim(limit=1)
        assert len(agent.tokens) == 1
    return agents


@pytest.mark.rule("C1", "C3")
def test_reports_of_several_agents_at_once_are_all_counted(world: World) -> None:
    world.deploy("ls-a", *_parts(3))
    agents = _agents(world)

    def work(number: int) -> None:
        agent, chance = agents[number], random.Random(number)
        for _ in range(12):
            parts = chance.sample(sorted(agent.work), 2)
            changes = [agent.says("ls-a", agent.work[uid].declaration.id, **chance.choice(STATES)) for uid in parts]
            again(lambda changes=changes: agent.report(*changes))  # type: ignore[misc]

    with ThreadPoolExecutor(len(agents)) as pool:
        list(pool.map(work, range(len(agents))))
    found = world.live_system("ls-a")
    assert sum(found["counts"].values()) == 12
    with world.store.read() as tx:
        assert summaries.differences(tx.connection) == []


@pytest.mark.rule("C1")
def test_a_random_life_is_counted_at_every_step(world: World) -> None:
    chance = random.Random(4711)
    agent = world.agent()
    for step in range(60):
        name = chance.choice(("ls-a", "ls-b"))
        act = chance.choice(("deploy", "report", "report", "report", "delete", "housekeeping"))
        with suppress(StoreError):  # what is refused changes nothing
            if act == "deploy":
                world.deploy(name, *chance.sample(_parts(2), chance.randint(0, 8)))
            elif act == "delete":
                world.delete(name)
            elif act == "housekeeping":
                housekeeping.mark_overdue(world.store.database)
            else:
                agent.claim()
                _report_some(agent, chance)
        with world.store.read() as tx:
            assert summaries.differences(tx.connection) == [], f"step {step}: {act}"


def _report_some(agent: Player, chance: random.Random) -> None:
    changes = []
    for uid in chance.sample(sorted(agent.work), min(3, len(agent.work))):
        part = agent.work[uid]
        state = dict(chance.choice(STATES))
        if part.deleting and chance.random() < 0.7:
            state = {"status": Status.DELETED, "finished": True, "absent": True}
        changes.append(agent.says(part.live_system_id, part.declaration.id, **state))
    if changes:
        agent.report(*changes)


@pytest.mark.rule("S20")
def test_a_report_without_change_leaves_the_summary_alone(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    before = world.live_system("ls-a")
    world.clock.advance(2)
    agent.report(agent.says("ls-a", "net"))
    assert world.live_system("ls-a") == before


@pytest.mark.rule("C1")
def test_the_time_of_the_last_change_is_that_of_the_newest_report(world: World) -> None:
    world.deploy("ls-a", net(), net("other", "south"))
    agent = world.agent()
    agent.settle()
    world.clock.advance(2)
    agent.report(agent.says("ls-a", "net", output_fields={"netId": "n-2"}))
    assert world.live_system("ls-a")["lastUpdated"] == world.clock.now
    world.clock.advance(60)
    assert world.live_system("ls-a")["lastUpdated"] == world.clock.now - timedelta(seconds=60)


@pytest.mark.rule("C1")
def test_a_wrong_summary_is_noticed(world: World) -> None:
    world.deploy("ls-a", net())
    with world.store.write() as tx:
        tx.connection.execute(update(live_systems).values(overrides=3))
    with world.store.read() as tx:
        assert summaries.differences(tx.connection) == ["ls-a: overrides is kept as 3, and counted as 0"]
    with world.store.write() as tx:
        tx.recount.add("ls-a")
