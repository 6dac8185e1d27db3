"""Scopes are spread evenly among the living agents that reach them; one holder each, whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, update

from fractal_cloud.control.store import agents, open_store, scopes
from fractal_cloud.control.store.balancing import Place, Pool, Reaching, asked_back, pools, to_give_back
from fractal_cloud.control.store.schema import agents as agent_table
from fractal_cloud.control.store.schema import scopes as scope_table
from tests.conftest import SOAK
from tests.store.playing import CATALOG, Clock, Player, World, net

PLACE = Place("test", "acct", "default")


# --- the arithmetic


@given(scopes_in_it=st.integers(0, 60), held=st.lists(st.integers(0, 40), min_size=1, max_size=7), data=st.data())
def test_rounds_of_giving_back_and_taking_end_even_within_one_and_then_nothing_moves(
    scopes_in_it: int, held: list[int], data: st.DataObject
) -> None:
    """LIVENESS: from any distribution, in any order of agents, a few rounds are enough; then it stands still."""
    names = [f"a{index}" for index in range(len(held))]
    pool = Pool(len(names), {PLACE}, scopes_in_it)
    left = scopes_in_it
    for name, many in zip(names, held, strict=True):
        pool.held[name] = min(many, left)
        left -= pool.held[name]
    for _ in range(12):
        before = dict(pool.held)
        for name in data.draw(st.permutations(names)):
            pool.held[name] -= to_give_back(pool.surplus(name))
            pool.held[name] += min(pool.capacity_for(name), scopes_in_it - sum(pool.held.values()))
        if before == dict(pool.held):
            break
    counts = [pool.held[name] for name in names]
    assert sum(counts) == scopes_in_it, "a scope is left to nobody"
    assert max(counts) - min(counts) <= 1
    assert all(pool.surplus(name) == 0 for name in names)


@given(st.integers(1, 50), st.integers(1, 8))
def test_who_gave_back_never_claims_the_same_again(scopes_in_it: int, others: int) -> None:
    pool = Pool(1 + others, {PLACE}, scopes_in_it, Counter(holder=scopes_in_it))
    while pool.surplus("holder"):
        pool.held["holder"] -= to_give_back(pool.surplus("holder"))
        assert pool.capacity_for("holder") == 0


def test_realms_that_the_same_agents_reach_are_one_pool() -> None:
    one, two, three = (Place("aws", realm, "prod") for realm in "123")
    every, some = (_reaching(places) for places in ((one, two, three), (one, two)))
    counts: list[tuple[Place, str | None, int]] = [(one, "a", 3), (two, None, 1), (three, None, 5)]
    found = pools(every, {every: 1, some: 1}, counts, {"prod": frozenset({"prod"})})
    assert {(pool.agents, pool.scopes, pool.free) for pool in found} == {(2, 4, 1), (1, 5, 5)}
    shared = next(pool for pool in found if pool.agents == 2)
    assert (shared.surplus("a"), shared.capacity_for("b")) == (1, 2)
    assert asked_back("a", found, {"aws/1/x": one, "aws/1/y": one, "aws/1/z": one}) == ["aws/1/z"]


@pytest.mark.rule("A1")
def test_scopes_of_another_environment_are_another_pool_and_no_share_of_it_is_kept_for_who_may_not_serve_it() -> None:
    prod, stage, both = (Place("aws", "1", label) for label in ("prod", "stage", "shared"))
    every, only_prod = _reaching((prod,)), _reaching((prod,), "prod")
    counts: list[tuple[Place, str | None, int]] = [(prod, None, 4), (stage, None, 2), (both, None, 3)]
    single: dict[str | None, frozenset[str]] = {name: frozenset({name}) for name in ("prod", "stage")}
    inside = {**single, "shared": frozenset({"prod", "stage"})}
    reaches = {every: 1, only_prod: 1}
    assert {(pool.agents, pool.scopes) for pool in pools(every, reaches, counts, inside)} == {(2, 4), (1, 5)}
    assert {(pool.agents, pool.scopes) for pool in pools(only_prod, reaches, counts, inside)} == {(2, 4)}


def _reaching(places: Iterable[Place], environments: str = "*") -> Reaching:
    return Reaching(frozenset((place.provider, place.realm) for place in places), frozenset({environments}))


# --- with a store


def _deploy(world: World, count: int) -> None:
    world.deploy("ls-a", *(net(f"n{index}", region=f"r{index:02}") for index in range(count)))


def _round(*players: Player) -> None:
    """Each lives, claims, and gives back what it is asked for, as an agent does in which no cycle runs."""
    for player in players:
        player.beat()
        asked = player.claim().asked_back
        if asked:
            with player.world.store.write() as tx:
                scopes.release(tx, player.id, asked)
            player.claim()


def _held(*players: Player) -> list[int]:
    for player in players:
        player.claim()
    return [len(player.tokens) for player in players]


def test_two_agents_have_half_each_whoever_comes_first(world: World) -> None:
    _deploy(world, 9)
    first, second = world.agent("a1"), world.agent("a2")
    assert len(first.claim().leases) == 5
    assert len(second.claim().leases) == 4


def test_a_newcomer_gets_its_share_in_a_few_rounds_and_then_nothing_moves(world: World) -> None:
    _deploy(world, 10)
    first = world.agent("a1")
    assert len(first.claim().leases) == 10
    second, third = world.agent("a2"), world.agent("a3")
    for _ in range(4):
        _round(first, second, third)
    assert sorted(_held(first, second, third)) == [3, 3, 4]
    tokens = {**first.tokens, **second.tokens, **third.tokens}
    for _ in range(3):
        _round(third, first, second)
    _held(first, second, third)
    assert {**first.tokens, **second.tokens, **third.tokens} == tokens


def test_a_dead_agents_share_goes_to_the_living(world: World) -> None:
    _deploy(world, 6)
    first, second = world.agent("a1"), world.agent("a2")
    _round(first, second)
    world.clock.advance(8)
    second.beat()
    assert len(second.claim().leases) == 3
    world.clock.advance(3)
    assert len(second.claim().leases) == 6


def test_who_stops_leaves_no_share_behind(world: World) -> None:
    _deploy(world, 4)
    first, second = world.agent("a1"), world.agent("a2")
    _round(first, second)
    before = second.claim().wake
    with world.store.write() as tx:
        agents.leave(tx, first.id)
    claimed = second.claim()
    assert claimed.wake != before
    assert len(claimed.leases) == 4


def test_scopes_that_only_one_agent_reaches_are_all_its_own(world: World) -> None:
    _deploy(world, 3)
    here = world.agent("a1")
    world.agent("a2", providers=("other",))
    assert len(here.claim().leases) == 3
    assert here.claim().asked_back == []


def test_a_lease_that_was_lost_and_won_again_is_reported_as_lost(world: World) -> None:
    """The holder's memory is from before somebody else worked in the scope."""
    _deploy(world, 1)
    first, second = world.agent("a1"), world.agent("a2")
    first.claim()
    old = dict(first.tokens)
    world.clock.advance(11)
    second.beat()
    second.claim()
    with world.store.write() as tx:
        scopes.release(tx, second.id)
    first.beat()
    first.claim()
    (key,) = first.tokens
    assert first.tokens[key] == old[key] + 2
    assert first.beat(held=old) == [key]
    assert first.beat(held=first.tokens) == []


def test_a_heartbeat_that_overlaps_a_takeover_saves_the_lease(postgres_database: str) -> None:
    """Both transactions began before either ended: never do both believe that they hold the scope."""
    clock = Clock()
    store = open_store(postgres_database, types_here=CATALOG, clock=clock)
    world = World(store, clock)
    _deploy(world, 1)
    first, second = world.agent("a1"), world.agent("a2")
    first.claim()
    clock.advance(8)
    second.beat()
    clock.advance(3)  # the first one's deadline has passed
    own = agent_table.c.id == first.id
    with store.write() as beating:
        beating.connection.execute(select(agent_table).where(own).with_for_update()).one()
        assert second.claim().leases == [], "taken from under a heartbeat that was being written"
        later = beating.now.replace(year=2030)
        beating.connection.execute(update(agent_table).where(own).values(deadline=later))
    assert second.claim().leases == []
    store.close()


# --- SAFETY and LIVENESS of whole histories


@dataclass
class History:
    """Agents that come, claim, give back, fall silent, wake up and leave, with what must never be seen."""

    world: World
    mark: str
    players: dict[str, Player] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)

    def act(self, name: str, action: str) -> None:
        """One thing one agent does, or time passing."""
        if name not in self.players:
            self.players[name] = self.world.agent(f"{name}-{self.mark}", realm=self.mark, environment=self.mark)
        player = self.players[name]
        if action == "claim":
            player.claim(limit=3)
        elif action == "round":
            _round(player)
        elif action == "beat":
            player.beat(held=player.tokens)
        elif action == "leave":
            with self.world.store.write() as tx:
                agents.leave(tx, player.id)
        else:
            self.world.clock.advance(6)
        self.check()

    def check(self) -> None:
        """Fencing tokens only grow, and change whenever a scope gets a holder; the living agree on who holds what."""
        with self.world.store.read() as tx:
            rows = list(tx.connection.execute(select(scope_table.c.key, scope_table.c.holder, scope_table.c.token)))
        for row in rows:
            assert row.token >= self.tokens.get(row.key, 0)
            self.tokens[row.key] = row.token
        current = {(row.key, row.token): row.holder for row in rows}
        believed = Counter(
            (key, token)
            for player in self.players.values()
            for key, token in player.tokens.items()
            if current.get((key, token)) == player.id
        )
        assert all(count == 1 for count in believed.values())

    def settle(self) -> list[int]:
        """All agents live and go round a few times; how much each holds then."""
        for player in self.players.values():
            player.register(self.mark, environment=self.mark)
        for _ in range(6):
            _round(*self.players.values())
            self.check()
        return _held(*self.players.values())


ACTIONS = st.tuples(
    st.sampled_from(["a1", "a2", "a3", "a4"]), st.sampled_from(["claim", "round", "beat", "leave", "time passes"])
)


@settings(max_examples=300 if SOAK else 8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(count=st.integers(1, 9), actions=st.lists(ACTIONS, min_size=1, max_size=14))
def test_any_history_has_one_holder_per_scope_growing_tokens_and_ends_even(
    world: World, count: int, actions: list[tuple[str, str]]
) -> None:
    world.clock.advance(1_000)  # nobody of the last history is alive
    mark = uuid4().hex[:8]  # an account, an environment and agents of this history's own
    history = History(world, mark)
    parts = (net(f"n{index}", region=f"r{index:02}") for index in range(count))
    world.deploy(f"ls-{mark}", *parts, environment=mark)
    for name, action in actions:
        history.act(name, action)
    held = history.settle()
    assert sum(held) == count, "a scope is starved"
    assert max(held) - min(held) <= 1
