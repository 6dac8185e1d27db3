"""Deploys and deletes in the store: generations, rows, identities, mutations."""

from __future__ import annotations

import pytest

from fractal_cloud.control.store.errors import NotFound, Refused, Stale
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import KnownResource
from tests.store.playing import World, box, component, net, sub


@pytest.mark.rule("C1")
def test_a_component_can_be_read_as_soon_as_its_deploy_was_taken(world: World) -> None:
    world.deploy("ls-a", net())
    found = world.component("ls-a", "net")
    assert found["id"] == "ls-a/blueprint/net"
    assert (found["status"], found["generation"], found["observedGeneration"]) == ("Instantiating", 1, 0)


@pytest.mark.rule("C1")
def test_every_deploy_is_a_new_generation_and_keeps_the_last_status(world: World) -> None:
    world.deploy("ls-a", net())
    world.agent().settle()
    world.deploy("ls-a", net())
    found = world.component("ls-a", "net")
    assert (found["status"], found["generation"], found["observedGeneration"]) == ("Active", 2, 1)
    assert world.live_system("ls-a")["generation"] == 2


def test_post_refuses_an_id_that_exists(world: World) -> None:
    world.deploy("ls-a", net())
    with pytest.raises(Refused, match="exists"):
        world.deploy("ls-a", net(), must_be_new=True)


def test_if_match_refuses_another_generation_than_the_one_that_stands(world: World) -> None:
    world.deploy("ls-a", net())
    world.deploy("ls-a", net(), expected=frozenset({"1"}))
    with pytest.raises(Stale, match="generation 2"):
        world.deploy("ls-a", net(), expected=frozenset({"1"}))
    with pytest.raises(Stale, match="no LiveSystem"):
        world.deploy("ls-new", net(), expected=frozenset({"*"}))


@pytest.mark.rule("C3", "C8")
def test_a_newer_mutation_cancels_the_older_one_and_freezes_what_it_showed(world: World) -> None:
    first = world.deploy("ls-a", net(), box())
    agent = world.agent()
    agent.claim()
    agent.report(agent.says("ls-a", "net", output_fields={"netId": "n-1"}))
    second = world.deploy("ls-a", net())
    agent.claim()
    agent.report(agent.says("ls-a", "net", output_fields={"netId": "n-2"}))
    old, new = world.mutation("ls-a", first), world.mutation("ls-a", second)
    assert old["status"] == "Cancelled"
    assert old["components"]["net"]["outputFields"] == {"netId": "n-1"}
    assert old["components"]["box"]["status"] == "Instantiating"
    assert new["components"]["net"]["outputFields"] == {"netId": "n-2"}


@pytest.mark.rule("C8")
def test_a_mutation_is_completed_when_every_component_reached_its_generation(world: World) -> None:
    mutation = world.deploy("ls-a", net(), box())
    agent = world.agent()
    agent.claim()
    agent.report(agent.says("ls-a", "net"))
    assert world.mutation("ls-a", mutation)["status"] == "InProgress"
    agent.report(agent.says("ls-a", "box", stance=Stance.OVERRIDE, status=Status.MANUAL_OVERRIDE, overridden=True))
    found = world.mutation("ls-a", mutation)
    assert (found["status"], found["heldByOverride"]) == ("Completed", ["box"])


@pytest.mark.rule("C8")
def test_a_failure_of_the_generation_before_does_not_fail_the_new_mutation(world: World) -> None:
    world.deploy("ls-a", net(), box())
    agent = world.agent()
    agent.claim()
    failed = {"status": Status.FAILED, "message": "denied", "observed_generation": 0}
    agent.report(agent.says("ls-a", "net", **failed), agent.says("ls-a", "box"))
    second = world.deploy("ls-a", net(), box())
    agent.claim()
    agent.report(agent.says("ls-a", "box"))
    assert world.mutation("ls-a", second)["status"] == "InProgress"
    agent.report(agent.says("ls-a", "net", **failed))
    assert world.mutation("ls-a", second)["status"] == "Failed"


@pytest.mark.rule("C8")
def test_a_report_on_work_from_before_a_deploy_does_not_count_for_it(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.claim()
    second = world.deploy("ls-a", net())
    agent.report(agent.says("ls-a", "net", status=Status.FAILED, message="denied", observed_generation=0))
    assert world.mutation("ls-a", second)["status"] == "InProgress"


@pytest.mark.rule("C8")
def test_a_live_system_without_components_is_completed_at_once(world: World) -> None:
    mutation = world.deploy("ls-a")
    assert world.mutation("ls-a", mutation)["status"] == "Completed"
    assert world.live_system("ls-a")["status"] == "Active"


@pytest.mark.rule("O10")
def test_a_component_taken_out_is_being_deleted_until_the_agent_is_done_with_it(world: World) -> None:
    world.deploy("ls-a", net(), box())
    agent = world.agent()
    agent.settle()
    mutation = world.deploy("ls-a", net())
    agent.claim()
    assert agent.work[agent.uid("ls-a", "box")].deleting
    assert [part["id"] for part in world.live_system("ls-a")["components"]] == ["net"]
    agent.report(agent.says("ls-a", "net"))
    agent.report(agent.says("ls-a", "box", status=Status.DELETED, message="left", finished=True))
    found = world.mutation("ls-a", mutation)
    assert found["status"] == "Completed"
    assert found["components"]["box"]["message"] == "left"
    with pytest.raises(NotFound):
        world.component("ls-a", "box")


def test_a_component_declared_again_before_it_was_gone_goes_on(world: World) -> None:
    world.deploy("ls-a", net(), box())
    agent = world.agent()
    agent.settle()
    uid = agent.uid("ls-a", "box")
    world.deploy("ls-a", net())
    world.deploy("ls-a", net(), box())
    agent.claim()
    assert agent.uid("ls-a", "box") == uid
    assert not agent.work[uid].deleting


@pytest.mark.rule("O16")
def test_a_component_that_changes_its_id_is_handed_over_with_its_row(world: World) -> None:
    world.deploy("ls-a", net("old", parameters={"name": "shared"}))
    agent = world.agent()
    agent.settle()
    uid = agent.uid("ls-a", "old")
    world.deploy("ls-a", net("new", parameters={"name": "shared"}))
    agent.claim()
    assert agent.uid("ls-a", "new") == uid
    assert not agent.work[uid].deleting
    assert world.component("ls-a", "new")["resourceId"] == "id-old"


@pytest.mark.rule("O16")
def test_ids_may_be_handed_on_in_a_chain(world: World) -> None:
    world.deploy("ls-a", net("a", parameters={"name": "x"}), net("b", parameters={"name": "y"}))
    agent = world.agent()
    agent.settle()
    first, second = agent.uid("ls-a", "a"), agent.uid("ls-a", "b")
    world.deploy("ls-a", net("b", parameters={"name": "x"}), net("c", parameters={"name": "y"}))
    agent.claim()
    assert (agent.uid("ls-a", "b"), agent.uid("ls-a", "c")) == (first, second)


@pytest.mark.rule("S18")
def test_an_established_component_stays_under_its_identity_when_its_name_changes(world: World) -> None:
    world.deploy("ls-a", net(parameters={"name": "one"}))
    agent = world.agent()
    agent.settle()
    world.deploy("ls-a", net(parameters={"name": "two"}))
    agent.claim()
    part = agent.work[agent.uid("ls-a", "net")]
    assert (part.name, part.declared_name) == ("one", "two")


@pytest.mark.rule("S18")
def test_a_component_that_is_not_established_moves_with_its_declaration_under_a_new_uid(world: World) -> None:
    world.deploy("ls-a", net(region="north"))
    agent = world.agent()
    agent.claim()
    uid = agent.uid("ls-a", "net")
    world.deploy("ls-a", net(region="south"))
    claimed = agent.claim()
    assert {lease.scope for lease in claimed.leases} == {"test/acct/south"}
    assert agent.uid("ls-a", "net") != uid


@pytest.mark.rule("S18")
def test_once_nothing_is_established_any_more_the_identity_follows_the_declaration(world: World) -> None:
    world.deploy("ls-a", net(region="north"))
    agent = world.agent()
    agent.settle()
    world.deploy("ls-a", net(region="south"))
    agent.claim()
    assert set(agent.tokens) == {"test/acct/north"}
    agent.report(agent.says("ls-a", "net", established=False, resource_id=None, status=Status.INSTANTIATING))
    agent.claim()
    assert set(agent.tokens) == {"test/acct/south"}


def test_the_type_of_an_established_component_cannot_change_under_its_id(world: World) -> None:
    world.deploy("ls-a", box("thing"))
    world.agent().settle()
    with pytest.raises(DeclarationError, match="another id"):
        world.deploy("ls-a", net("thing"))
    assert world.live_system("ls-a")["generation"] == 1


@pytest.mark.rule("O10")
def test_what_was_left_in_override_begins_in_override_when_it_is_declared_again(world: World) -> None:
    world.deploy("ls-a", net())
    agent = world.agent()
    agent.settle()
    world.delete("ls-a")
    agent.claim()
    identity = "Test.Net:test/acct/north:net"
    left = KnownResource(identity=identity, owner="ls-a", resource_id="id-net", left_by="ls-a", overridden=True)
    agent.report(agent.says("ls-a", "net", status=Status.DELETED, finished=True), resources=[left])
    world.deploy("ls-b", net())
    assert world.component("ls-b", "net")["stance"] == "none"
    world.deploy("ls-a", net())
    assert world.component("ls-a", "net")["stance"] == "override"


@pytest.mark.rule("C3")
def test_a_deleted_live_system_is_gone_once_every_component_is_done_with(world: World) -> None:
    world.deploy("ls-a", net(), sub())
    agent = world.agent()
    agent.settle()
    mutation = world.delete("ls-a")
    assert world.delete("ls-a") == mutation
    assert world.live_system("ls-a")["status"] == "Deleting"
    with pytest.raises(Refused, match="being deleted"):
        world.deploy("ls-a", net())
    agent.claim()
    agent.report(agent.says("ls-a", "sub", status=Status.DELETED, finished=True))
    agent.report(agent.says("ls-a", "net", status=Status.DELETED, finished=True))
    with pytest.raises(NotFound):
        world.live_system("ls-a")
    assert world.mutation("ls-a", mutation)["status"] == "Completed"
    assert set(world.mutation("ls-a", mutation)["components"]) == {"net", "sub"}
    assert world.kinds("ls-a")[-1] == "Deleted"


def test_a_live_system_without_components_is_deleted_at_once(world: World) -> None:
    world.deploy("ls-a")
    mutation = world.delete("ls-a")
    assert world.mutation("ls-a", mutation)["status"] == "Completed"
    with pytest.raises(NotFound):
        world.live_system("ls-a")


def test_the_status_of_a_live_system_is_its_gravest_components(world: World) -> None:
    world.deploy("ls-a", net(), box())
    agent = world.agent()
    agent.claim()
    agent.report(agent.says("ls-a", "net"), agent.says("ls-a", "box", status=Status.MISSING))
    found = world.live_system("ls-a")
    assert (found["status"], found["counts"]) == ("Missing", {"Active": 1, "Missing": 1})


def test_links_and_dependencies_are_kept_as_they_were_declared(world: World) -> None:
    linked = component("net", "Test.Net", {"region": "north"}, links=[{"target": "box", "settings": {"port": 80}}])
    world.deploy("ls-a", linked, box())
    assert world.live_system("ls-a")["components"][0]["links"] == [{"target": "box", "settings": {"port": 80}}]
