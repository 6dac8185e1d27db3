"""A claim reads one snapshot: it is what the store says, and where nothing is new nothing else is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from alembic import command
from sqlalchemy import delete, select

from fractal_cloud.control.store import agents, claims, hosts, open_store, plan_tasks, scopes
from fractal_cloud.control.store.claim_snapshot import ClaimSnapshot, read_snapshot
from fractal_cloud.control.store.driver import observe_statements
from fractal_cloud.control.store.housekeeping import FORGET_AGENTS_AFTER, forget_the_old
from fractal_cloud.control.store.migrate import config
from fractal_cloud.control.store.schema import agent_reaches
from fractal_cloud.control.store.work import empty_work
from fractal_cloud.model.host import ANY_HOST
from fractal_cloud.model.wire import Claim, Claimed, Heartbeat, Reach, Registration
from tests.last_seen import last_seen
from tests.store.playing import CATALOG, EVERYWHERE, Clock, World, net


@contextmanager
def _statements() -> Iterator[list[str]]:
    """What the database is asked meanwhile."""
    asked: list[str] = []
    with observe_statements(asked.append):
        yield asked


def _begins(statement: str) -> bool:
    return statement.startswith("BEGIN")


def _seen(world: World, agent_id: str = "a1") -> ClaimSnapshot:
    with world.store.read() as tx:
        return read_snapshot(tx, agent_id, last_seen(world.store), EVERYWHERE)


def _reached(world: World) -> set[tuple[str, str, str]]:
    with world.store.read() as tx:
        return {tuple(row) for row in tx.connection.execute(select(agent_reaches))}


def _forget_reaches(world: World) -> None:
    """As if a server had registered all agents that does not know of the rows by realm yet."""
    with world.store.write() as tx:
        tx.connection.execute(delete(agent_reaches))


@pytest.mark.rule("S20")
def test_a_claim_without_news_is_one_statement(world: World) -> None:
    world.deploy("ls-a", net(), net("b", region="south"))
    agent = world.agent()
    agent.settle()
    agent.claim()
    with _statements() as asked:
        claimed = agent.claim()
    assert [lease.work for lease in claimed.leases] == [None, None]
    assert len([statement for statement in asked if not _begins(statement)]) == 1, asked


def test_a_poll_is_one_statement_and_a_heartbeat_three(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    with _statements() as asked, world.store.read() as tx:
        agents.wake_number(tx, "a1", EVERYWHERE)
    assert len([statement for statement in asked if not _begins(statement)]) == 1, asked
    with _statements() as asked:
        agent.beat()
    assert len([statement for statement in asked if not _begins(statement)]) == 3, asked


def test_a_snapshot_is_what_the_store_says(world: World) -> None:
    world.deploy("ls-a", net(), net("b", region="south"))
    world.deploy("ls-b", net("c", region="west"))
    agent, _other = world.agent(clusters={"one": "c-1", ANY_HOST: ""}), world.agent("a2", realm="elsewhere")
    agent.claim()
    with world.store.write() as tx:
        scopes.renew_work(tx, [hosts.host_scope_key("many", "default"), hosts.host_scope_key("many", "another")])
    key, version = next(iter(agent.versions.items()))
    with world.store.write() as tx:
        scopes.depart(tx, [(key, "one")], {key: version + 2})
        scopes.depart(tx, [(key, "two")], {key: version + 1})
    seen = _seen(world)
    with world.store.read() as tx:
        known = agents.get(tx, "a1", EVERYWHERE)
        assert seen.agent == known
        assert seen.held == scopes.held_by(tx, "a1")
        assert seen.wake == scopes.wake_number(tx, known.reaches) > 0
        assert seen.hosts == hosts.number(tx, "default", known.hosted) == 1
        assert agents.wake_number(tx, "a1", EVERYWHERE) == (seen.wake, known.reaches)
    assert seen.is_noted
    assert [(pool.agents, pool.scopes, pool.free, dict(pool.held)) for pool in seen.pools] == [(1, 3, 0, {"a1": 3})]
    assert seen.departures == {key: version + 1}
    assert seen.has_heard({key: version + 1})
    assert not seen.has_heard({key: version})


def test_only_those_who_reach_a_realm_have_a_share_of_it(world: World) -> None:
    world.deploy("ls-a", *(net(f"n{index}", region=f"r{index}") for index in range(6)))
    first = world.agent("a1", clusters={ANY_HOST: ""})
    world.agent("a2", realm="elsewhere", clusters={ANY_HOST: ""})
    assert len(first.claim().leases) == 6
    third = world.agent("a3", clusters={"one": "c-1"})
    assert len(first.claim().asked_back) == 2
    with world.store.write() as tx:
        scopes.release(tx, "a1", first.claim().asked_back)
    assert len(third.claim().leases) == 2
    world.clock.advance(60)
    first.beat()
    assert [(pool.agents, pool.free) for pool in _seen(world).pools] == [(1, 2)], "the dead have no share"


def test_of_an_agent_that_is_not_alive_no_share_is_seen(world: World) -> None:
    world.deploy("ls-a", net())
    world.agent()
    world.clock.advance(60)
    assert _seen(world).pools == []


@pytest.mark.rule("C6")
def test_a_plan_is_seen_until_it_was_handed_out_and_again_when_nobody_answered(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent(cycle=600)
    [lease] = agent.claim().leases
    with world.store.write() as tx:
        task = {"id": "t1", "work": empty_work(lease.scope, 1, full=True), "liveSystemId": "ls-a"}
        plan_tasks.store_tasks(tx, "p1", [task])
    assert _seen(world).is_plan_waiting
    with world.store.write() as tx:
        assert plan_tasks.hand_out(tx, agents.get(tx, "a1")) == [task]
    assert not _seen(world).is_plan_waiting
    world.clock.advance(plan_tasks.HANDED_AGAIN_AFTER.total_seconds())
    assert _seen(world).is_plan_waiting
    world.clock.advance(plan_tasks.KEPT_FOR.total_seconds())
    assert not _seen(world).is_plan_waiting


@pytest.mark.rule("C5")
def test_an_agent_whose_reaches_nobody_noted_misses_nothing_and_is_noted_by_its_claim(world: World) -> None:
    world.deploy("ls-a", net(), net("b", region="south"))
    agent = world.agent()
    _forget_reaches(world)
    with world.store.read() as tx:
        assert agents.wake_number(tx, "a1", EVERYWHERE) == (
            scopes.wake_number(tx, {("test", "acct")}),
            frozenset({("test", "acct")}),
        )
    claimed = agent.claim()
    assert len(claimed.leases) == 2
    assert _reached(world) == {("a1", "test", "acct")}
    with world.store.read() as tx:
        assert claimed.wake == scopes.wake_number(tx, {("test", "acct")}) > 0
    with _statements() as asked:
        agent.claim()
    assert len([statement for statement in asked if not _begins(statement)]) == 1, asked


def test_what_agents_reach_is_what_they_last_said_and_goes_with_them(world: World) -> None:
    agent = world.agent(clusters={"one": "c-1", "two": "c-1", ANY_HOST: ""})
    assert _reached(world) == {("a1", "test", "acct"), ("a1", "many", "c-1"), ("a1", "many", "")}
    agent.register("another")
    assert _reached(world) == {("a1", "test", "another")}
    world.clock.advance(FORGET_AGENTS_AFTER.total_seconds() + 60)
    forget_the_old(world.store.database)
    assert _reached(world) == set()


def test_what_agents_reached_before_the_rows_were_there_is_noted(world: World) -> None:
    world.agent(clusters={"one": "c-1", "two": "c-1"})
    before = _reached(world)
    with world.store.write() as tx:
        made = config(tx.connection)
        command.downgrade(made, "0004")
        command.upgrade(made, "head")
    assert _reached(world) == before == {("a1", "test", "acct"), ("a1", "many", "c-1")}


@pytest.mark.rule("S20")
def test_the_time_is_the_databases_own_where_it_has_one(postgres_database: str) -> None:
    store = open_store(postgres_database, types_here=CATALOG)
    try:
        world = World(store, Clock())
        world.deploy("ls-a", net())
        reach = Reach(provider="test", realm="acct")
        wanted = Registration(agent_id="a1", environment="default", reaches=[reach], cycle_seconds=60)
        with store.write() as tx:
            registered = agents.register(tx, wanted, EVERYWHERE)
        seen = registered.last_seen
        with _statements() as asked:
            claimed = Claimed.model_validate(
                claims.claim(store.database, Claim(agent_id="a1", last_seen=seen), EVERYWHERE)
            )
        assert len(claimed.leases) == 1
        assert claimed.now >= registered.now
        held = {lease.scope: lease.work.version for lease in claimed.leases if lease.work is not None}
        with _statements() as asked:
            later = Claimed.model_validate(
                claims.claim(store.database, Claim(agent_id="a1", last_seen=seen, held=held), EVERYWHERE)
            )
        assert len(asked) == 1, asked
        assert later.now > claimed.now
        with _statements() as asked, store.write() as tx:
            beat = agents.heartbeat(tx, Heartbeat(agent_id="a1", last_seen=seen), EVERYWHERE).beat
        assert len(asked) == 3, asked
        assert beat.now > later.now
    finally:
        store.close()
