"""The database itself: one schema by one history, started by many, written by many, with one order of events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, select

from fractal_cloud.control.store import agents, open_store, schema
from fractal_cloud.model.status import Status
from tests.store.playing import CATALOG, World, box, component, net


def test_the_history_leads_to_the_schema(world: World) -> None:
    with world.store.read() as tx:
        assert compare_metadata(MigrationContext.configure(tx.connection), schema.metadata) == []


def test_many_may_start_on_one_empty_database_at_once(database_url: str) -> None:
    failures: list[BaseException] = []

    def start() -> None:
        try:
            open_store(database_url, types_here=CATALOG).close()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test must see it
            failures.append(error)

    _at_once([start] * 3)
    assert failures == []


def test_moments_come_back_as_they_were_written_and_in_utc(world: World) -> None:
    written = datetime(2026, 11, 15, 13, 0, 0, 123456, tzinfo=timezone(timedelta(hours=1)))
    with world.store.write() as tx:
        row = {"type": "x", "provider": "x", "facts": {"text": "é \U0001f600"}}
        tx.connection.execute(insert(schema.types), [row])
        tx.connection.execute(
            insert(schema.tokens).values(id="1", hash="h", name="n", role="r", providers=[], created_at=written)
        )
    with world.store.read() as tx:
        assert tx.connection.execute(select(schema.tokens.c.created_at)).scalar_one() == written
        assert tx.connection.execute(select(schema.tokens.c.created_at)).scalar_one().tzinfo is UTC
        assert tx.connection.execute(select(schema.types.c.facts)).scalar_one() == row["facts"]


def test_a_transaction_that_fails_leaves_nothing_and_wakes_nobody(world: World) -> None:
    def fail() -> None:
        with world.store.write() as tx:
            row = {"id": "1", "hash": "h", "name": "n", "role": "r", "providers": [], "created_at": tx.now}
            tx.connection.execute(insert(schema.tokens), [row])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with world.store.read() as tx:
        assert tx.connection.execute(select(schema.tokens.c.id)).first() is None


@pytest.mark.rule("O2", "C4")
def test_many_writers_at_once_lose_nothing_and_never_block_each_other_for_good(world: World) -> None:
    """Deploys, reports across scopes, and heartbeats of two agents, all at the same time."""
    linked = net(links=[{"target": "thing"}])
    thing = component("thing", "Other.Thing", {}, links=[{"target": "net"}])
    for name in ("ls-a", "ls-b"):
        world.deploy(name, linked | {"parameters": {"region": "north", "name": name}}, thing)
    here, there = world.agent("a1", cycle=600), world.agent("a2", providers=("other",), cycle=600)
    here.claim()
    there.claim()

    def reports(player_is_here: bool) -> Callable[[], None]:
        player, part = (here, "net") if player_is_here else (there, "thing")

        def run() -> None:
            for index in range(8):
                fields = {"count": index}
                player.report(*(player.says(name, part, output_fields=fields) for name in ("ls-a", "ls-b")))

        return run

    def deploys() -> None:
        for index in range(5):
            world.deploy(f"ls-{index}", box(f"box-{index}"))

    _at_once([reports(True), reports(False), deploys, deploys])
    numbers = [event["seq"] for event in world.events()]
    assert numbers == list(range(1, len(numbers) + 1))
    for name in ("ls-a", "ls-b"):
        assert world.component(name, "net")["outputFields"] == {"count": 7}
        assert world.component(name, "thing")["outputFields"] == {"count": 7}
        assert world.live_system(name)["status"] == Status.ACTIVE.value
        mutation = world.live_system(name)["mutationId"]
        assert world.mutation(name, mutation)["status"] == "Completed"
    assert world.live_system("ls-0")["generation"] == 2


def test_a_free_scope_is_taken_by_one_of_many(world: World) -> None:
    world.deploy("ls-a", *(net(f"n{index}", region=f"r{index}") for index in range(10)))
    players = [world.agent(f"a{index}", cycle=600) for index in range(3)]
    _at_once([player.claim for player in players])
    held = [key for player in players for key in player.tokens]
    assert len(held) == len(set(held)) == 10


def _at_once(runs: list[Callable[[], object]]) -> None:
    failures: list[BaseException] = []

    def guarded(run: Callable[[], object]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test must see it
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert failures == []


@pytest.mark.soak
def test_ten_thousand_components_are_claimed_and_five_hundred_reported_in_moments(world: World) -> None:
    world.deploy("ls-a", *(net(f"n{index}", region=f"r{index % 20}") for index in range(10_000)))
    agent = world.agent(cycle=600)
    started = time.perf_counter()
    claimed = agent.claim()
    claiming = time.perf_counter() - started
    assert sum(len(lease.work.components) for lease in claimed.leases if lease.work is not None) == 10_000
    changes = [agent.says("ls-a", f"n{index}", output_fields={"netId": "n"}) for index in range(0, 10_000, 20)]
    started = time.perf_counter()
    agent.report(*changes)
    reporting = time.perf_counter() - started
    # Both take a fraction of a second on an idle machine; the bounds only catch a cost per component.
    assert claiming < 15
    assert reporting < 10


@pytest.mark.rule("S20")
def test_a_settled_cycle_is_one_heartbeat(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    agent.claim()
    before = _dump(world)
    with world.store.read() as tx:
        assert agents.get(tx, agent.id).deadline > tx.now
    world.clock.advance(1)
    agent.claim()
    agent.beat()
    after = _dump(world)
    assert {name for name in before if before[name] != after[name]} == {"agents"}


def _dump(world: World) -> dict[str, list[object]]:
    with world.store.read() as tx:
        return {
            table.name: [tuple(row) for row in tx.connection.execute(select(table))]
            for table in schema.metadata.sorted_tables
        }
