"""Agents and their leases: who reaches what, who holds what, and what each receives."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fractal_cloud.control.store import agents, scopes
from fractal_cloud.control.store.errors import Forbidden, LeaseLost, NotFound
from fractal_cloud.control.store.outside import Needs, Source
from fractal_cloud.model.observed import Intent
from fractal_cloud.model.status import Status
from tests.store.playing import CATALOG, EVERYWHERE, World, box, component, net, sub

NORTH = "test/acct/north"
GLOBAL = "test/acct/global"


@pytest.mark.rule("S21")
def test_a_lease_lasts_two_cycles_and_never_less_than_seven_seconds(world: World) -> None:
    agent = world.agent()
    assert agent.register(cycle=180).lease_seconds == 360
    assert agent.register(cycle=1).lease_seconds == 7


def test_a_registration_settles_where_components_of_its_environment_are(world: World) -> None:
    world.deploy("ls-a", net(), box())
    assert world.component("ls-a", "net")["scope"] is None
    world.agent()
    assert world.component("ls-a", "net")["scope"] == NORTH
    assert world.component("ls-a", "box")["scope"] == GLOBAL


def test_components_of_another_environment_stay_unsettled(world: World) -> None:
    world.deploy("ls-a", net(), environment="live")
    world.agent()
    assert world.component("ls-a", "net")["scope"] is None


def test_a_deploy_after_the_registration_is_settled_at_once(world: World) -> None:
    world.agent()
    world.deploy("ls-a", net())
    assert world.component("ls-a", "net")["scope"] == NORTH


def test_two_environments_that_reach_one_account_share_its_scopes(world: World) -> None:
    world.deploy("ls-a", net("one"))
    world.deploy("ls-b", net("two"), environment="live")
    first = world.agent("a1")
    world.agent("a2", environment="live")
    first.claim()
    assert {part.live_system_id for part in first.work.values()} == {"ls-a", "ls-b"}


@pytest.mark.rule("S18", "S26")
def test_everything_stays_in_its_realm_when_the_agent_reaches_another(world: World) -> None:
    world.deploy("ls-a", net("old"))
    agent = world.agent(realm="acct")
    agent.settle()
    world.deploy("ls-a", net("old"), net("new"))
    agent.register(realm="elsewhere")
    old, new = world.component("ls-a", "old"), world.component("ls-a", "new")
    assert old["scope"] == NORTH
    assert "'acct'" in old["message"]
    assert "'elsewhere'" in old["message"]
    assert new["scope"] == NORTH, "nobody accepted the other one: nothing is made there"
    assert new["message"] == old["message"]


def test_a_second_agent_with_another_account_does_not_move_what_the_first_serves(world: World) -> None:
    world.agent("a1", realm="acct")
    world.agent("a2", realm="elsewhere")
    world.deploy("ls-a", net())
    assert world.component("ls-a", "net")["scope"] == NORTH


def test_a_claim_returns_free_scopes_with_all_their_work(world: World) -> None:
    world.deploy("ls-a", net(), sub(), box())
    agent = world.agent()
    claimed = agent.claim()
    assert [lease.scope for lease in claimed.leases] == [GLOBAL, NORTH]
    north = claimed.leases[1].work
    assert north is not None
    assert north.full
    assert [part.declaration.id for part in north.components] == ["net", "sub"]
    assert north.components[1].parent == "net"


def test_a_claim_returns_no_more_than_it_asks_for(world: World) -> None:
    world.deploy("ls-a", *(net(f"n{index}", region=f"r{index}") for index in range(5)))
    agent = world.agent()
    assert len(agent.claim(limit=2).leases) == 2
    assert len(agent.claim(limit=2).leases) == 4


def test_a_second_claim_brings_no_work_and_writes_nothing(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    assert [lease.work for lease in agent.claim().leases] == [None]


@pytest.mark.rule("C5")
def test_a_deploy_changes_the_wake_number_and_brings_only_what_changed(world: World) -> None:
    world.deploy("ls-a", net())
    world.deploy("ls-b", net("other"))
    agent = world.agent()
    before = agent.claim().wake
    world.deploy("ls-b", net("other"))
    claimed = agent.claim()
    assert claimed.wake != before
    work = claimed.leases[0].work
    assert work is not None
    assert not work.full
    assert [part.live_system_id for part in work.components] == ["ls-b"]


def test_an_agent_receives_which_components_are_gone_until_it_has_confirmed_it(world: World) -> None:
    world.deploy("ls-a", net("stays"), net("moves"))
    agent = world.agent()
    agent.claim()
    uid = agent.uid("ls-a", "moves")
    versions = dict(agent.versions)
    world.deploy("ls-a", net("stays"), net("moves", region="south"))
    for _ in range(2):  # an agent that is busy ignores the work and asks again
        agent.versions = dict(versions)
        claimed = agent.claim()
        gone = {lease.scope: lease.work.gone for lease in claimed.leases if lease.work is not None}
        assert gone[NORTH] == [uid]
    assert [lease.work for lease in agent.claim().leases] == [None, None]


def test_an_agent_that_lost_its_work_gets_all_of_it_again(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    agent.versions[NORTH] = -1
    work = agent.claim().leases[0].work
    assert work is not None
    assert work.full


def test_a_scope_without_components_is_no_longer_held(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    world.delete("ls-a")
    agent.claim()
    agent.report(agent.says("ls-a", "net", status=Status.DELETED, finished=True))
    assert agent.claim().leases == []


def test_a_scope_has_one_holder_until_the_deadline_has_passed(world: World) -> None:
    world.deploy("ls-a", net())
    first, second = world.agent("a1"), world.agent("a2")
    token = first.claim().leases[0].token
    assert second.claim().leases == []
    world.clock.advance(9)
    assert second.claim().leases == []
    second.beat()
    world.clock.advance(2)
    assert second.claim().leases[0].token == token + 1
    assert first.claim().leases == []


def test_a_heartbeat_keeps_leases_alive_and_says_which_are_lost(world: World) -> None:
    world.deploy("ls-a", net())
    first, second = world.agent("a1"), world.agent("a2")
    first.claim()
    world.clock.advance(8)
    assert first.beat({NORTH: world.clock.now}) == []
    second.beat()
    world.clock.advance(8)
    second.beat()
    assert second.claim().leases == []
    assert world.component("ls-a", "net")["lastRead"] is not None
    world.clock.advance(3)
    second.claim()
    assert first.beat({NORTH: world.clock.now}) == [NORTH]


def test_a_released_scope_is_free_at_once_and_wakes_the_others(world: World) -> None:
    world.deploy("ls-a", net())
    first, second = world.agent("a1"), world.agent("a2")
    first.claim()
    before = second.claim().wake
    with world.store.write() as tx:
        scopes.release(tx, first.id)
    claimed = second.claim()
    assert claimed.wake != before
    assert [lease.scope for lease in claimed.leases] == [NORTH]


def test_an_agent_that_was_silent_for_too_long_gets_nothing_until_it_is_heard(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    world.clock.advance(60)
    assert agent.claim().leases == []
    agent.beat()
    assert [lease.scope for lease in agent.claim().leases] == [NORTH]


def test_a_registration_fences_the_agents_former_life(world: World) -> None:
    world.deploy("ls-a", net())
    old = world.agent("a1")
    old.claim()
    new = world.agent("a1")
    new.claim()
    with pytest.raises(LeaseLost):
        old.report(old.says("ls-a", "net"))
    new.report(new.says("ls-a", "net"))


def test_an_unknown_agent_has_to_register(world: World) -> None:
    with world.store.read() as tx, pytest.raises(NotFound, match="register"):
        agents.get(tx, "nobody", EVERYWHERE)


def test_nobody_speaks_for_an_agent_with_another_token(world: World) -> None:
    agent, another = world.agent(), world.token("another")
    with world.store.read() as tx, pytest.raises(Forbidden):
        agents.get(tx, agent.id, another)
    with pytest.raises(Forbidden):
        agent.register(token=another.token_id)
    world.clock.advance(60)
    agent.register(token=another.token_id)


@pytest.mark.rule("L4", "A1")
def test_work_carries_of_what_is_published_in_other_scopes_only_what_is_referred_to(world: World) -> None:
    dependent = net(
        dependencies=["thing"], links=[{"target": "thing"}], parameters={"size": {"$output": "thing.address"}}
    )
    world.deploy("ls-a", dependent, box(dependencies=["net"]), component("thing", "Other.Thing", {}))
    agent, other = world.agent("a1"), world.agent("a2", providers=("other",))
    other.claim()
    published = {"address": "x", "other": "not referred to", "linkedCredentials.net.user": "not for everybody"}
    other.report(other.says("ls-a", "thing", output_fields=published))
    works = {lease.scope: lease.work for lease in agent.claim().leases}
    north, everywhere = works[NORTH], works[GLOBAL]
    assert north is not None
    assert everywhere is not None
    assert [(o.component_id, o.output_fields) for o in north.outside] == [("thing", {"address": "x"})]
    assert [(o.component_id, o.status) for o in everywhere.outside] == [("net", Status.INSTANTIATING)]


@pytest.mark.rule("A1")
def test_fields_are_referred_to_in_texts_by_parameters_and_by_all_components_of_the_scope(world: World) -> None:
    """Also where only one of them changed: what the others refer to is not lost."""
    first = net("first", dependencies=["thing"], parameters={"size": {"$output": "thing.deep.one"}})
    second = net("second", dependencies=["thing"], parameters={"size": "a ${thing.text} b"})
    inside = box(dependencies=["first"], parameters={"size": {"$output": "first.netId"}})
    given = {"first": first, "second": second, "box": inside}
    fields = {"address": "x", "deep": {"one": 1, "two": 2}, "text": "y"}

    def deploy() -> None:
        world.deploy("ls-a", *given.values(), component("thing", "Other.Thing", {}))

    deploy()
    agent, other = world.agent("a1"), world.agent("a2", providers=("other",))
    other.claim()
    other.report(other.says("ls-a", "thing", output_fields=fields))
    works = {lease.scope: lease.work for lease in agent.claim().leases}
    expected = [{"deep": {"one": 1, "two": 2}, "text": "y"}]
    assert [one.output_fields for one in works[NORTH].outside] == expected  # type: ignore[union-attr]
    agent.report(agent.says("ls-a", "first", output_fields={"netId": "net-1", "address": "z"}))
    given["first"] = net("first", dependencies=["thing"], parameters={"size": {"$output": "thing.deep.two"}})
    deploy()
    works = {lease.scope: lease.work for lease in agent.claim().leases}
    assert [one.output_fields for one in works[NORTH].outside] == expected  # type: ignore[union-attr]
    assert [one.output_fields for one in works[GLOBAL].outside] == [{"netId": "net-1"}]  # type: ignore[union-attr]
    with world.store.read() as tx:
        needs = Needs(tx, [Source("ls-a", "Test.Sub", {"net": "first"})])
    assert needs.of("ls-a", "first", {"netId": "net-1", "address": "z"}) == {"netId": "net-1"}, "the type says which"


@pytest.mark.rule("L11")
def test_a_publication_wakes_the_scope_that_refers_to_it(world: World) -> None:
    world.deploy("ls-a", net(links=[{"target": "thing"}]), component("thing", "Other.Thing", {}))
    agent, other = world.agent("a1"), world.agent("a2", providers=("other",))
    before = agent.claim().wake
    other.claim()
    other.report(other.says("ls-a", "thing", output_fields={"address": "x"}))
    claimed = agent.claim()
    assert claimed.wake != before
    work = claimed.leases[0].work
    assert work is not None
    assert [part.declaration.id for part in work.components] == ["net"]
    assert [link.outputs for link in work.components[0].links_out] == [{"address": "x"}]


@pytest.mark.rule("O10")
def test_a_deletion_is_held_by_dependents_in_other_scopes(world: World) -> None:
    world.deploy("ls-a", net(), box(dependencies=["net"]))
    agent = world.agent()
    agent.settle()
    world.delete("ls-a")
    agent.claim()
    assert agent.work[agent.uid("ls-a", "net")].held_by == ["box"]
    agent.report(agent.says("ls-a", "box", status=Status.DELETED, finished=True))
    agent.claim()
    assert agent.work[agent.uid("ls-a", "net")].held_by == []


@pytest.mark.rule("S17")
def test_an_intent_for_what_moved_away_is_refused_as_a_whole(world: World) -> None:
    world.deploy("ls-a", net("stays"), net("moves"))
    agent = world.agent()
    agent.claim()
    world.deploy("ls-a", net("stays"), net("moves", parameters={"name": "renamed"}))
    intent = Intent(id="i1", at=world.clock.now)
    changes = [agent.says("ls-a", "stays"), agent.says("ls-a", "moves", intent=intent, status=Status.INSTANTIATING)]
    with pytest.raises(LeaseLost, match="claim again"):
        agent.report(*changes)
    assert world.component("ls-a", "stays")["status"] == "Instantiating"


def test_types_of_agents_join_the_catalog(world: World) -> None:
    brought = CATALOG["Test.Net"].model_copy(update={"type": "Brought.Along"})
    world.agent(types=(brought,))
    with world.store.read() as tx:
        assert "Brought.Along" in world.store.catalog(tx)
        assert "Test.Net" in world.store.catalog(tx)


def test_the_wake_number_is_the_agents_own(world: World) -> None:
    agent, other = world.agent("a1"), world.agent("a2", providers=("other",))
    before = other.claim().wake
    world.deploy("ls-a", net())
    assert other.claim().wake == before
    world.clock.advance(timedelta(seconds=1).total_seconds())
    assert agent.claim().wake != 0
