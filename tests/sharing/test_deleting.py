"""The end of a LiveSystem, or of one component: what goes, what is left, what only loses a reference, in that order."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sharing.aws_state import has_dns, is_there, vpcs, writes
from tests.world import World, security_group, subnet, vpc


def _deploy_all(world: World) -> dict[str, str]:
    """A VPC with a subnet and a group; returns their ids by component."""
    world.deploy("ls-a", vpc(), subnet(), security_group())
    world.settle()
    return {name: str(world.component("ls-a", name)["resourceId"]) for name in ("net", "subnet", "group")}


def _ended(world: World, mutation: str, live_system: str = "ls-a") -> dict[str, Any]:
    """What the record of a deletion says of every component."""
    record = world.mutation(live_system, mutation)
    assert record["status"] == "Completed"
    components: dict[str, Any] = record["components"]
    return components


@pytest.mark.rule("O6", "O10", "S12")
def test_deleting_an_owner_deletes_what_it_owns_dependents_first(world: World) -> None:
    ids = _deploy_all(world)
    mutation = world.delete("ls-a")["mutationId"]
    world.settle()
    assert not any(is_there(world, one) for one in ids.values())
    deleted = [operation for operation in writes(world, "ls-a") if operation.startswith("Delete")]
    assert deleted[-1] == "DeleteVpc"
    assert {ended["status"] for ended in _ended(world, mutation).values()} == {"Deleted"}
    assert world.api.get("/livesystems/ls-a").status_code == 404
    world.assert_safe()


@pytest.mark.rule("O6", "S3")
def test_importers_show_missing_in_their_next_cycle(world: World) -> None:
    _deploy_all(world)
    world.deploy("ls-b", vpc())
    world.settle()
    world.delete("ls-a")
    world.cycle()
    shown = world.component("ls-b", "net")
    assert shown["status"] == "Missing"
    assert shown["message"] == "'net' is absent: its owner is gone; deploy the LiveSystem to create it"


@pytest.mark.rule("O6", "S13")
def test_what_blocks_a_deletion_is_named_and_it_goes_once_that_is_gone(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.deploy("ls-b", vpc(), subnet("their-subnet"))
    world.settle()
    blocker = world.output("ls-b", "their-subnet", "subnetId")
    mutation = world.delete("ls-a")["mutationId"]
    world.cycle(2)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Deleting"
    assert f"{blocker} 'their-subnet'" in shown["message"]
    assert world.mutation("ls-a", mutation)["status"] != "Completed"
    assert world.status("ls-b", "their-subnet") == "Active", "nobody else's is touched for it"
    world.deploy("ls-b", vpc())
    world.settle()
    assert not is_there(world, vpc_id)
    assert world.status("ls-b", "net") == "Missing"
    assert _ended(world, mutation)["net"]["status"] == "Deleted"


@pytest.mark.rule("O10", "S7", "G6")
def test_what_is_in_override_is_left_named_and_keeps_its_tags_and_so_does_what_it_needs(world: World) -> None:
    ids = _deploy_all(world)
    world.person.break_glass(ids["subnet"])
    world.cycle()
    before = {name: world.person.tags(one) for name, one in ids.items()}
    mutation = world.delete("ls-a")["mutationId"]
    world.settle()
    ended = _ended(world, mutation)
    assert ended["subnet"]["message"].startswith(f"left in the cloud: {ids['subnet']}: managed-by is absent")
    assert ended["net"]["message"] == f"left in the cloud: {ids['net']}: subnet, which was left, depends on it"
    assert ended["group"]["message"] == "deleted"
    assert is_there(world, ids["net"])
    assert not is_there(world, ids["group"]), "what it does not need goes"
    assert {name: world.person.tags(ids[name]) for name in ("net", "subnet")} == {
        name: before[name] for name in ("net", "subnet")
    }
    world.assert_safe()


@pytest.mark.rule("O10", "S11")
def test_an_override_left_behind_is_still_remembered_when_the_livesystem_comes_back(world: World) -> None:
    ids = _deploy_all(world)
    world.person.break_glass(ids["net"])
    world.cycle()
    world.delete("ls-a")
    world.settle()
    assert not is_there(world, ids["subnet"])
    world.person.tag(ids["net"], managed_by="fractal-cloud")
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    shown = world.component("ls-a", "net")
    assert (shown["status"], shown["stance"]) == ("ManualOverride", "override")
    assert shown["resourceId"] == ids["net"]
    assert not has_dns(world, ids["net"])
    world.person.hand_back(ids["net"])
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert has_dns(world, ids["net"])
    world.assert_safe()


@pytest.mark.rule("O10", "S15")
def test_what_was_left_behind_keeps_nobody_from_creating_something_else(world: World) -> None:
    ids = _deploy_all(world)
    world.person.break_glass(ids["net"])
    world.cycle()
    world.delete("ls-a")
    world.settle()
    world.deploy("ls-a", vpc("other", cidrBlock="10.1.0.0/16"))
    world.settle()
    assert world.status("ls-a", "other") == "Active"
    assert is_there(world, ids["net"])


@pytest.mark.rule("O10", "S10", "S11")
@pytest.mark.parametrize("missing", ["fractal-cloud", "fractal-cloud-owner"])
def test_half_a_handshake_is_no_permission_to_delete(world: World, missing: str) -> None:
    ids = _deploy_all(world)
    world.person.break_glass(ids["group"])
    world.cycle()
    world.person.tag(ids["group"], managed_by="fractal-cloud")
    if missing == "fractal-cloud-owner":
        world.person.untag(ids["group"], missing)
    mutation = world.delete("ls-a")["mutationId"]
    world.settle()
    assert is_there(world, ids["group"])
    assert _ended(world, mutation)["group"]["message"].startswith("left in the cloud")
    world.assert_safe()


@pytest.mark.rule("O10", "S9")
def test_a_completed_handshake_is_permission_to_delete(world: World) -> None:
    ids = _deploy_all(world)
    world.person.break_glass(ids["group"])
    world.cycle()
    world.person.hand_back(ids["group"])
    world.delete("ls-a")
    world.settle()
    assert not any(is_there(world, one) for one in ids.values())
    world.assert_safe()


@pytest.mark.rule("O10", "S14")
def test_where_several_fit_only_the_reference_is_dropped(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.untag(vpc_id, "fractal-cloud-owner")
    twin = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    world.person.tag(twin, Name="net")
    mutation = world.delete("ls-a")["mutationId"]
    world.settle()
    message = _ended(world, mutation)["net"]["message"]
    assert message.startswith("reference dropped, nothing deleted: ")
    assert vpc_id in message
    assert twin in message
    assert set(vpcs(world)) == {vpc_id, twin}


@pytest.mark.rule("O10", "T4")
def test_what_lost_its_owner_tag_is_nobodys_to_delete(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.untag(vpc_id, "fractal-cloud-owner")
    mutation = world.delete("ls-a")["mutationId"]
    world.settle()
    assert is_there(world, vpc_id)
    assert vpc_id in _ended(world, mutation)["net"]["message"]


@pytest.mark.rule("O10", "S0")
def test_what_cannot_be_read_stays_deleting(world: World) -> None:
    ids = _deploy_all(world)
    denied = world.sandbox.aws.knobs.fail(
        operation="DescribeSecurityGroups", actor="agent", code="UnauthorizedOperation", status=403, times=None
    )
    world.delete("ls-a")
    world.cycle(3)
    group = world.component("ls-a", "group")
    assert group["deleting"]
    assert "cannot be read" in group["message"]
    assert is_there(world, ids["net"]), "what it depends on waits for it"
    world.sandbox.aws.knobs.remove(denied)
    world.settle()
    assert not any(is_there(world, one) for one in ids.values())


@pytest.mark.rule("O10", "S17")
def test_a_creation_whose_answer_was_lost_is_waited_for_before_its_deletion_ends(world: World) -> None:
    world.sandbox.aws.knobs.late_visibility(seconds=2 * world.cycle_seconds, kind="vpc")
    world.sandbox.aws.knobs.fail(when="after", cut=True, operation="CreateVpc", actor="agent")
    world.deploy("ls-a", vpc())
    world.cycle()
    world.delete("ls-a")
    world.settle()
    assert not vpcs(world), "it was found after all, and deleted"
    assert world.api.get("/livesystems/ls-a").status_code == 404


@pytest.mark.rule("O10", "O16")
def test_a_component_taken_out_is_deleted_and_the_rest_stays(world: World) -> None:
    ids = _deploy_all(world)
    mutation = world.deploy("ls-a", vpc(), subnet())
    world.settle()
    assert not is_there(world, ids["group"])
    assert is_there(world, ids["subnet"])
    assert _ended(world, mutation)["group"]["status"] == "Deleted"
    assert world.api.get("/livesystems/ls-a/components/group").status_code == 404


@pytest.mark.rule("O11", "T3")
@pytest.mark.parametrize("end", ["delete", "take out"])
def test_managed_by_and_the_owner_tag_go_only_with_the_resource(world: World, end: str) -> None:
    ids = _deploy_all(world)
    world.person.tag(ids["subnet"], managed_by="terraform")
    world.cycle()
    if end == "delete":
        world.delete("ls-a")
    else:
        world.deploy("ls-a", vpc())
    world.settle()
    removed = world.sandbox.aws.calls.find(operation="DeleteTags", actor="agent")
    assert not removed
    assert world.person.tags(ids["subnet"])["fractal-cloud-owner"] == "ls-a"
    assert world.person.tags(ids["subnet"])["managed-by"] == "terraform"
    assert world.person.tags(ids["net"])["managed-by"] == "fractal-cloud"
