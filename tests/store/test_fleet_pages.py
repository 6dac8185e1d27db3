"""Scopes, environments, and what is held by hand, as pages list them: what needs people comes first (C11, G13)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fractal_cloud.control.store import components, housekeeping, overrides, unread_scopes, visibility
from fractal_cloud.control.store import scopes as scope_store
from fractal_cloud.control.store.listing import Filters, Overridden, Page, Place
from fractal_cloud.control.store.overrides import Terms
from fractal_cloud.control.store.scopes import ScopeFilters
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import ScopeCycle
from tests.store.playing import Player, World, net

CYCLE = timedelta(seconds=5)


def read_all(world: World, agent: Player) -> None:
    """An agent says that it has read everything it holds just now."""
    cycles = dict.fromkeys(agent.tokens, ScopeCycle(seconds=2.5, calls=7, throttles=1, errors=3))
    agent.beat(dict.fromkeys(agent.tokens, world.clock.now), agent.tokens, cycles)


def two_regions(world: World) -> Player:
    world.deploy("ls-a", net("a", "north"), net("b", "south"))
    world.deploy("ls-b", net("c", "north"), environment="default")
    agent = world.agent()
    agent.settle()
    read_all(world, agent)
    return agent


def scopes(
    world: World, place: Place | None = None, filters: ScopeFilters | None = None, sees: frozenset[str] | None = None
) -> Page:
    with world.store.read() as tx:
        return scope_store.find(tx, place or Place(10), filters or ScopeFilters(), sees)


@pytest.mark.rule("C11")
def test_a_scope_says_who_reads_it_and_what_that_took(world: World) -> None:
    two_regions(world)
    north, south = scopes(world).items
    assert (north["realm"], north["place"], north["components"]) == ("acct", "north", 2)
    assert (north["holder"], north["stale"], north["lastRead"]) == ("a1", False, world.clock.now)
    assert north["lastCycle"] == {"seconds": 2.5, "calls": 7, "throttles": 1, "errors": 3}
    assert south["components"] == 1


@pytest.mark.rule("C11")
def test_scopes_that_nobody_reads_come_first_and_are_counted(world: World) -> None:
    agent = two_regions(world)
    (south,) = [key for key in agent.tokens if "south" in key]
    north = [key for key in agent.tokens if key != south]
    for _ in range(4):
        world.clock.advance(4)
        agent.beat(dict.fromkeys(north, world.clock.now), agent.tokens)
    unread_scopes.mark_unread(world.store.database, CYCLE)
    found = scopes(world)
    assert [one["place"] for one in found.items] == ["south", "north"]
    assert [one["stale"] for one in found.items] == [True, False]
    only = scopes(world, filters=ScopeFilters(stale=True))
    assert ([one["place"] for one in only.items], only.total) == (["south"], 1)


def test_scopes_come_in_pages_and_are_searched(world: World) -> None:
    two_regions(world)
    first = scopes(world, Place(1))
    assert (len(first.items), first.next is not None, first.total) == (1, True, 2)
    last = scopes(world, Place(1, offset=1))
    assert ([one["place"] for one in last.items], last.next) == (["south"], None)
    assert [one["place"] for one in scopes(world, filters=ScopeFilters(search="sou")).items] == ["south"]
    assert scopes(world, filters=ScopeFilters(search="a1")).total == 2
    assert scopes(world, filters=ScopeFilters(search="%")).total == 0


@pytest.mark.rule("A1")
def test_nobody_sees_scopes_or_environments_of_others(world: World) -> None:
    two_regions(world)
    world.deploy("ls-c", net("d", "west"), environment="stage")
    other = world.agent("a2", environment="stage")
    other.settle()
    sees = frozenset({"stage"})
    assert [one["place"] for one in scopes(world, sees=sees).items] == ["west"]
    assert {one["place"] for one in scopes(world).items} == {"north", "south", "west"}
    with world.store.read() as tx:
        assert visibility.environments(tx, sees, 50) == ["stage"]
        assert visibility.environments(tx, None, 50) == ["default", "stage"]
        assert visibility.environments(tx, None, 1) == [], "too many to choose from"


@pytest.mark.rule("G13")
def test_overrides_come_overdue_first_and_then_the_oldest(world: World) -> None:
    world.deploy("ls-a", *(net(name) for name in "abcd"))
    agent = world.agent()
    agent.settle()
    for name in "dcba":
        said = {"stance": Stance.OVERRIDE, "status": Status.MANUAL_OVERRIDE, "overridden": True}
        agent.report(agent.says("ls-a", name, **said))
        world.clock.advance(2)
    with world.store.write() as tx:
        terms = Terms("bea", to="bea", until=world.clock.now + timedelta(seconds=1))
        overrides.hand_over(tx, "ls-a", "b", terms)
    world.clock.advance(2)
    housekeeping.mark_overdue(world.store.database)

    def found(place: Place, filters: Filters | None = None) -> tuple[list[str], int | None, bool]:
        with world.store.read() as tx:
            page = components.list_overrides(tx, place, filters or Filters())
        return [one["componentId"] for one in page.items], page.total, page.next is not None

    assert found(Place(10)) == (["b", "d", "c", "a"], 4, False)
    assert found(Place(2)) == (["b", "d"], 4, True)
    assert found(Place(2, offset=2)) == (["c", "a"], 4, False)
    assert found(Place(10), Filters(by=("bea",))) == (["b"], 1, False)
    assert found(Place(10), Filters(override=(Overridden.OVERDUE,))) == (["b"], 1, False)
    assert found(Place(10), Filters(search="ls-none")) == ([], 0, False)
