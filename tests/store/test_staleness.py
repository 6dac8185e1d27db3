"""What nobody has read for two cycles is stale, and says so everywhere; its status does not change (C11)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from fractal_cloud.control.store import agents, components, livesystems, staleness
from fractal_cloud.control.store.housekeeping import keep_house
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import components as component_table
from fractal_cloud.control.store.schema import live_systems, scope_reads
from fractal_cloud.model.wire import ScopeCycle, Unread
from tests.store.playing import CATALOG, Player, World, net, sub

CYCLE = 5.0
NORTH = "test/acct/north"
pytestmark = pytest.mark.rule("C11")


def _keep(world: World) -> None:
    keep_house(world.store.database, CYCLE)


def _stale(world: World) -> dict[str, bool]:
    """The components of ``ls-a``, in three ways that must agree: as a list, as a condition, and one by one."""
    with world.store.read() as tx:
        listed = {one["componentId"]: one["stale"] for one in components.list_page(tx, "ls-a", 100, None)}
        c = component_table.c
        found = set(tx.connection.execute(select(c.component_id).where(staleness.component_is_stale())).scalars())
        whole = livesystems.get(tx, "ls-a")
        chosen = list(
            tx.connection.execute(select(live_systems.c.id).where(staleness.live_system_is_stale())).scalars()
        )
        assert staleness.count(tx) == len(found)
    assert found == {name for name, is_stale in listed.items() if is_stale}
    assert (whole["stale"], whole["staleComponents"]) == (bool(found), len(found))
    assert chosen == (["ls-a"] if found else [])
    return listed


def _scope_events(world: World) -> list[Json]:
    return [event for event in world.events() if event["kind"] in ("ScopeUnread", "ScopeRead")]


def _read(world: World, agent: Player, **cycle: Unread) -> None:
    agent.beat({NORTH: world.clock.now}, cycles={NORTH: ScopeCycle(unread=dict(cycle))})


@pytest.fixture
def agent(world: World) -> Player:
    """An agent that has read the two components of ``ls-a``, which are Active."""
    world.deploy("ls-a", net(), sub())
    agent = world.agent(cycle=CYCLE)
    agent.claim()
    agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "sub"))
    _read(world, agent)
    return agent


def test_a_scope_whose_agent_falls_silent_is_stale_after_two_cycles_and_not_before(world: World, agent: Player) -> None:
    read_at = world.clock.now
    world.clock.advance(2 * CYCLE)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    world.clock.advance(1)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}
    found = world.component("ls-a", "net")
    assert (found["status"], found["lastRead"]) == ("Active", read_at)
    (event,) = _scope_events(world)
    assert event["kind"] == "ScopeUnread"
    assert event["after"]["lastRead"] == read_at.isoformat().replace("+00:00", "Z")
    assert (event["after"]["scope"], event["after"]["components"]) == (NORTH, 2)
    assert event["after"]["environments"] == ["default"]
    _keep(world)
    assert len(_scope_events(world)) == 1


def test_it_ends_with_the_heartbeat_that_reports_the_first_read(world: World, agent: Player) -> None:
    world.clock.advance(2 * CYCLE + 1)
    _keep(world)
    agent.beat()
    assert _stale(world) == {"net": True, "sub": True}, "it lives, and has read nothing yet"
    _read(world, agent)
    assert _stale(world) == {"net": False, "sub": False}
    assert [event["kind"] for event in _scope_events(world)] == ["ScopeUnread", "ScopeRead"]
    _keep(world)
    assert len(_scope_events(world)) == 2


def test_an_agent_that_lives_and_reads_nothing_is_no_comfort(world: World, agent: Player) -> None:
    for _ in range(5):
        world.clock.advance(CYCLE / 2)
        agent.beat()
        _keep(world)
    assert _stale(world) == {"net": True, "sub": True}


def test_a_healthy_agent_is_never_taken_for_silent_between_two_heartbeats(world: World, agent: Player) -> None:
    """Heartbeats come between the reads: what was read since the last one is not known yet."""
    read_at = world.clock.now
    for _ in range(10):
        world.clock.advance(0.3 * CYCLE)
        agent.beat({NORTH: read_at})
        read_at = world.clock.now  # right after the heartbeat
        world.clock.advance(0.9 * CYCLE)
        _keep(world)
        assert _stale(world) == {"net": False, "sub": False}


def test_a_cycle_that_still_writes_what_it_has_read_is_not_stale(world: World, agent: Player) -> None:
    read_at = world.clock.now
    for _ in range(4):
        world.clock.advance(CYCLE)
        agent.beat({NORTH: read_at}, cycles={NORTH: ScopeCycle(is_writing=True)})
        _keep(world)
        assert _stale(world) == {"net": False, "sub": False}
    world.clock.advance(2 * CYCLE + 1)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}, "it wrote, and then it fell silent"


def test_the_next_holder_ends_it_with_its_own_first_read(world: World, agent: Player) -> None:
    read_at = world.clock.now
    world.clock.advance(2 * CYCLE + 1)
    _keep(world)
    other = world.agent("a2", cycle=CYCLE)
    assert [lease.scope for lease in other.claim().leases] == [NORTH]
    assert _stale(world) == {"net": True, "sub": True}
    assert world.component("ls-a", "net")["lastRead"] == read_at, "what the first one said is not forgotten"
    _keep(world)
    _read(world, other)
    assert _stale(world) == {"net": False, "sub": False}
    assert world.component("ls-a", "net")["lastRead"] == world.clock.now


def test_an_agent_that_stops_leaves_its_last_read_behind(world: World, agent: Player) -> None:
    read_at = world.clock.now
    with world.store.write() as tx:
        agents.leave(tx, agent.id)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    assert world.component("ls-a", "net")["lastRead"] == read_at
    world.clock.advance(2 * CYCLE + 1)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}
    assert "no agent holds it" in _scope_events(world)[0]["message"]


def test_an_agent_that_restarts_within_two_cycles_makes_nothing_stale(world: World, agent: Player) -> None:
    world.clock.advance(CYCLE)
    agent.register(cycle=CYCLE)
    agent.claim()
    world.clock.advance(CYCLE - 1)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    _read(world, agent)
    _keep(world)
    assert _scope_events(world) == []


def test_the_cycle_of_its_own_agent_counts(world: World) -> None:
    world.deploy("ls-a", net(), sub())
    agent = world.agent(cycle=10 * CYCLE)
    agent.claim()
    _read(world, agent)
    world.clock.advance(19 * CYCLE)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    world.clock.advance(2 * CYCLE)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}


def test_a_scope_that_was_never_read_is_stale_after_its_first_two_cycles(world: World) -> None:
    world.agent(cycle=CYCLE)  # it reaches the realm, and leases nothing
    world.deploy("ls-a", net(), sub())
    _keep(world)
    world.clock.advance(2 * CYCLE - 1)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    world.clock.advance(2)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}
    assert world.component("ls-a", "net")["lastRead"] is None
    assert "has no read reported" in _scope_events(world)[0]["message"]


def test_what_no_agent_ever_reached_is_stale_too_until_somebody_reads_it(world: World) -> None:
    world.deploy("ls-a", net(), sub())
    world.clock.advance(2 * CYCLE - 1)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    world.clock.advance(2)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}
    agent = world.agent(cycle=CYCLE)
    agent.claim()
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}
    _read(world, agent)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}


def test_a_redeploy_makes_nothing_fresh(world: World, agent: Player) -> None:
    world.clock.advance(2 * CYCLE + 1)
    _keep(world)
    world.deploy("ls-a", net(), sub())
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}


def test_a_type_that_cannot_be_read_makes_its_components_stale_though_the_scope_is_read(
    world: World, agent: Player
) -> None:
    read_at, kind = world.clock.now, sub()["type"]
    unread = Unread(since=read_at + timedelta(seconds=CYCLE), last_read=read_at)
    world.clock.advance(CYCLE)
    _read(world, agent, **{kind: unread})
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    assert world.component("ls-a", "sub")["lastRead"] == read_at
    assert world.component("ls-a", "net")["lastRead"] == world.clock.now
    world.clock.advance(CYCLE + 1)
    _read(world, agent, **{kind: unread})
    _keep(world)
    assert _stale(world) == {"net": False, "sub": True}
    assert world.component("ls-a", "sub")["lastRead"] == read_at
    _read(world, agent)
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}
    assert world.component("ls-a", "sub")["lastRead"] == world.clock.now
    assert _scope_events(world) == []


def test_one_component_that_cannot_be_read_is_stale_alone(world: World, agent: Player) -> None:
    world.deploy("ls-a", net(), sub(), sub("other"))
    agent.claim()
    read_at = world.clock.now
    _read(world, agent)
    for _ in range(3):
        world.clock.advance(CYCLE)
        _read(world, agent, **{agent.uid("ls-a", "other"): Unread(since=world.clock.now, last_read=read_at)})
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False, "other": True}


def test_an_unreadable_type_stays_stale_with_the_next_holder(world: World, agent: Player) -> None:
    read_at, kind = world.clock.now, sub()["type"]
    for _ in range(3):
        world.clock.advance(CYCLE)
        _read(world, agent, **{kind: Unread(since=world.clock.now, last_read=read_at)})
    _keep(world)
    world.clock.advance(2 * CYCLE + 1)
    other = world.agent("a2", cycle=CYCLE)
    other.claim()
    _keep(world)
    assert _stale(world)["sub"] is True
    _read(world, other, **{kind: Unread(since=world.clock.now)})
    _keep(world)
    assert _stale(world) == {"net": False, "sub": True}
    assert world.component("ls-a", "sub")["lastRead"] == read_at


def test_a_scope_that_was_emptied_long_ago_begins_anew(world: World, agent: Player) -> None:
    world.delete("ls-a")
    agent.claim()
    agent.report(*(agent.says("ls-a", name, finished=True) for name in ("sub", "net")))
    agent.claim()
    world.clock.advance(100 * CYCLE)
    _keep(world)
    assert _scope_events(world) == []
    world.deploy("ls-a", net(), sub())
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}


def test_nobody_has_read_anything_in_the_future(world: World, agent: Player) -> None:
    """An agent that lies, or whose clock is wrong, is not fresh for ever (A3)."""
    agent.beat({NORTH: datetime(9999, 1, 1, tzinfo=UTC)})
    assert world.component("ls-a", "net")["lastRead"] == world.clock.now
    world.clock.advance(2 * CYCLE + 1)
    _keep(world)
    assert _stale(world) == {"net": True, "sub": True}


def test_what_an_agent_says_of_anothers_scope_changes_nothing(world: World, agent: Player) -> None:
    """Confined to its own leases (A3)."""
    other = world.agent("a2", realm="elsewhere", cycle=CYCLE)
    kinds = {name: Unread(since=datetime(2000, 1, 1, tzinfo=UTC)) for name in CATALOG}
    other.beat({NORTH: world.clock.now}, cycles={NORTH: ScopeCycle(unread=kinds)})
    _keep(world)
    assert _stale(world) == {"net": False, "sub": False}


@pytest.mark.rule("S20")
def test_nothing_is_written_while_everything_is_read(world: World, agent: Player) -> None:
    _keep(world)
    before = world.events()
    for _ in range(5):
        world.clock.advance(CYCLE)
        _read(world, agent)
        _keep(world)
    with world.store.read() as tx:
        assert tx.connection.execute(select(scope_reads)).all() == []
    assert world.events() == before
