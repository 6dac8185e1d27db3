"""«Deleted» is a fact about the cloud: what stands is never called deleted, and nothing is deleted in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sharing.aws_state import is_there, writes
from tests.world import World, security_group, subnet, vpc


def _share(world: World) -> tuple[str, str]:
    """A platform's VPC, in which a team has a subnet of its own; returns the ids of both."""
    world.deploy("ls-platform", vpc())
    world.settle()
    world.deploy("ls-team-a", vpc(), subnet("own"))
    world.settle()
    return world.output("ls-platform", "net", "vpcId"), world.output("ls-team-a", "own", "subnetId")


def _occupy(world: World, subnet_id: str) -> Callable[[], None]:
    """Somebody's network interface in a subnet; returns what takes it away."""
    made = world.person.ec2.create_network_interface(SubnetId=subnet_id)["NetworkInterface"]["NetworkInterfaceId"]
    return lambda: world.person.ec2.delete_network_interface(NetworkInterfaceId=made)


def _delete_all(world: World) -> str:
    return str(world.delete("ls-team-a")["mutationId"])


def _remove_from_declaration(world: World) -> str:
    return world.deploy("ls-team-a", vpc("other", cidrBlock="10.9.0.0/16"))


def _ended(world: World, live_system: str, mutation: str) -> dict[str, Any]:
    record = world.mutation(live_system, mutation)
    assert record["status"] == "Completed", record
    components: dict[str, Any] = record["components"]
    return components


@pytest.mark.rule("O18", "O17", "S0")
@pytest.mark.parametrize("end", [_delete_all, _remove_from_declaration])
def test_a_child_keeps_its_imported_parent_until_its_own_end(world: World, end: Callable[[World], str]) -> None:
    vpc_id, subnet_id = _share(world)
    leave = _occupy(world, subnet_id)
    mutation = end(world)
    world.cycle(4)
    assert is_there(world, subnet_id)
    own = world.component("ls-team-a", "own")
    assert own["status"] == "Deleting", own
    assert world.mutation("ls-team-a", mutation)["status"] != "Completed"
    leave()
    world.settle()
    assert not is_there(world, subnet_id)
    assert is_there(world, vpc_id), "the platform's network is nobody else's to delete"
    assert "DeleteSubnet" in writes(world, "ls-team-a")
    ended = _ended(world, "ls-team-a", mutation)
    assert ended["own"]["message"] == "deleted"
    assert ended["net"]["message"].startswith("reference dropped")
    world.assert_safe()


@pytest.mark.rule("O18", "O17")
def test_a_delete_call_that_fails_once_is_no_deletion(world: World) -> None:
    _, subnet_id = _share(world)
    world.sandbox.aws.knobs.fail(code="InternalError", status=500, operation="DeleteSubnet", actor="agent", times=3)
    mutation = _delete_all(world)
    world.settle()
    assert not is_there(world, subnet_id)
    assert _ended(world, "ls-team-a", mutation)["own"]["message"] == "deleted"


@pytest.mark.rule("O18", "O10")
def test_a_parent_that_is_left_is_kept_until_its_child_is_gone(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    vpc_id, subnet_id = world.output("ls-a", "net", "vpcId"), world.output("ls-a", "subnet", "subnetId")
    world.person.break_glass(vpc_id)
    world.cycle()
    leave = _occupy(world, subnet_id)
    mutation = str(world.delete("ls-a")["mutationId"])
    world.cycle(4)
    assert world.api.get("/livesystems/ls-a").status_code == 200
    assert world.status("ls-a", "net") == "Deleting"
    leave()
    world.settle()
    assert not is_there(world, subnet_id)
    ended = _ended(world, "ls-a", mutation)
    assert ended["subnet"]["message"] == "deleted"
    assert ended["net"]["message"].startswith(f"left in the cloud: {vpc_id}")


@pytest.mark.rule("O17", "S0")
def test_a_renamed_network_is_left_and_named_and_what_is_in_it_is_deleted(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet(), security_group())
    world.settle()
    ids = {name: str(world.component("ls-a", name)["resourceId"]) for name in ("net", "subnet", "group")}
    world.person.tag(ids["net"], Name="renamed-by-hand")
    mutation = str(world.delete("ls-a")["mutationId"])
    world.settle()
    ended = _ended(world, "ls-a", mutation)
    assert is_there(world, ids["net"])
    assert not is_there(world, ids["subnet"])
    assert not is_there(world, ids["group"])
    assert {"DeleteSubnet", "DeleteSecurityGroup"} <= set(writes(world, "ls-a"))
    assert "DeleteVpc" not in writes(world, "ls-a")
    message = ended["net"]["message"]
    assert message.startswith("left in the cloud")
    assert ids["net"] in message
    assert "'renamed-by-hand'" in message
    assert "'net'" in message
    world.assert_safe()


@pytest.mark.rule("S0", "S19")
def test_what_is_in_a_renamed_network_is_still_read_and_reconciled(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet(mapPublicIpOnLaunch=False))
    world.settle()
    vpc_id, subnet_id = world.output("ls-a", "net", "vpcId"), world.output("ls-a", "subnet", "subnetId")
    world.person.tag(vpc_id, Name="renamed-by-hand")
    world.person.ec2.modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": True})
    world.settle()
    found = world.person.ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"][0]
    assert not found["MapPublicIpOnLaunch"]
    assert world.status("ls-a", "subnet") == "Active"
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "'renamed-by-hand'" in shown["message"]


@pytest.mark.rule("O19")
def test_a_deletion_leaves_what_took_the_name_of_the_resource_it_is_bound_to(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    first = world.output("ls-a", "net", "vpcId")
    other = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    mutation = str(world.delete("ls-a")["mutationId"])
    world.person.ec2.delete_vpc(VpcId=first)
    world.person.tag(other, Name="net", managed_by="fractal-cloud", fractal_cloud_owner="ls-a")
    world.settle()
    assert is_there(world, other)
    message = _ended(world, "ls-a", mutation)["net"]["message"]
    assert message.startswith("left in the cloud")
    assert other in message
    assert first in message
    assert "DeleteVpc" not in writes(world, "ls-a")


@pytest.mark.rule("O19", "S12a")
def test_a_deletion_without_a_published_id_is_bound_to_the_first_one_seen_that_this_livesystem_owns(
    world: World,
) -> None:
    made = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    world.person.tag(made, Name="net", managed_by="fractal-cloud", fractal_cloud_owner="ls-a")
    world.deploy("ls-a", vpc())
    world.delete("ls-a")
    world.settle()
    assert not is_there(world, made)
    assert world.api.get("/livesystems/ls-a").status_code == 404


@pytest.mark.rule("O17")
def test_a_direct_read_that_fails_proves_nothing(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    refused = world.sandbox.aws.knobs.fail(
        code="UnauthorizedOperation", status=403, operation="DescribeVpcs", actor="agent", resource=vpc_id, times=None
    )
    world.delete("ls-a")
    world.cycle(4)
    assert world.component("ls-a", "net")["deleting"]
    world.sandbox.aws.knobs.remove(refused)
    world.settle()
    assert world.api.get("/livesystems/ls-a").status_code == 404


@pytest.mark.rule("O18", "O17")
def test_a_machine_that_ends_slowly_holds_its_subnet_and_both_are_really_deleted(world: World) -> None:
    world.deploy("ls-platform", vpc())
    world.settle()
    machine = {
        "id": "machine",
        "type": "NetworkAndCompute.IaaS.AwsEc2Instance",
        "provider": "aws",
        "parameters": {"subnet": "own", "instanceType": "t3.micro", "imageId": "ami-12c6146b"},
    }
    world.deploy("ls-team-a", vpc(), subnet("own"), machine)
    world.settle(30)
    subnet_id = world.output("ls-team-a", "own", "subnetId")
    world.sandbox.aws.knobs.slow_deletion(reads=6, kind="instance")
    mutation = _delete_all(world)
    world.settle(40)
    assert not is_there(world, subnet_id)
    ended = _ended(world, "ls-team-a", mutation)
    assert {ended[name]["message"] for name in ("own", "machine")} == {"deleted"}
    assert {"TerminateInstances", "DeleteSubnet"} <= set(writes(world, "ls-team-a"))
