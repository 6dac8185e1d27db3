"""A mutation ends: where only a person can go on, it is Failed and says why, and it may still become Completed (C8)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.world import World, subnet, vpc

pytestmark = pytest.mark.rule("C8")


def _make_vpc(world: World, name: str = "net") -> str:
    """A VPC that a person makes by hand."""
    tags = [{"ResourceType": "vpc", "Tags": [{"Key": "Name", "Value": name}]}]
    made = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tags)
    return str(made["Vpc"]["VpcId"])


def _cycle_until(world: World, live_system: str, mutation: str, status: str, at_most: int = 60) -> dict[str, Any]:
    for _ in range(at_most):
        world.cycle()
        found = world.mutation(live_system, mutation)
        if found["status"] == status:
            return found
    raise AssertionError(f"not {status} after {at_most} cycles: {world.mutation(live_system, mutation)}")


@pytest.mark.rule("S14", "S0")
def test_children_of_two_parents_of_one_name_do_not_keep_a_mutation_waiting(world: World) -> None:
    one, two = _make_vpc(world), _make_vpc(world)
    mutation = world.deploy("ls-a", vpc(), subnet())
    world.cycle(3)
    found = world.mutation("ls-a", mutation)
    assert found["status"] == "Failed"
    assert any(one in reason and two in reason for reason in found["reasons"]), found["reasons"]
    assert found["components"]["subnet"]["status"] == "Instantiating"
    world.person.ec2.delete_vpc(VpcId=two)
    world.person.tag(one, managed_by="fractal-cloud", fractal_cloud="reconcile")
    found = _cycle_until(world, "ls-a", mutation, "Completed")
    assert found["reasons"] == []
    world.assert_safe()


@pytest.mark.rule("S19", "S0")
def test_children_of_a_renamed_parent_do_not_keep_a_mutation_waiting(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.tag(vpc_id, Name="other")
    world.cycle()
    mutation = world.deploy("ls-a", vpc(), subnet())
    world.cycle(3)
    found = world.mutation("ls-a", mutation)
    assert found["status"] == "Failed"
    assert any("'other'" in reason for reason in found["reasons"]), found["reasons"]
    world.person.tag(vpc_id, Name="net")
    _cycle_until(world, "ls-a", mutation, "Completed")
    world.assert_safe()


@pytest.mark.rule("S14", "S22")
def test_several_of_one_name_fail_a_mutation_also_in_manual_override(world: World) -> None:
    _make_vpc(world)
    first = world.deploy("ls-a", vpc())
    world.settle()
    assert world.mutation("ls-a", first)["status"] == "Completed"
    two = _make_vpc(world)
    mutation = world.deploy("ls-a", vpc())
    world.cycle(3)
    found = world.mutation("ls-a", mutation)
    assert (found["status"], found["components"]["net"]["status"]) == ("Failed", "ManualOverride")
    assert found["components"]["net"]["observedGeneration"] < found["generation"]
    assert any(two in reason for reason in found["reasons"]), found["reasons"]
    world.person.ec2.delete_vpc(VpcId=two)
    _cycle_until(world, "ls-a", mutation, "Completed")


@pytest.mark.rule("S0")
@pytest.mark.parametrize(
    ("code", "status", "expected"), [("UnauthorizedOperation", 403, "Failed"), ("InternalError", 500, "InProgress")]
)
def test_denied_reads_wait_for_a_person_and_transient_errors_do_not(
    world: World, code: str, status: int, expected: str
) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    failure = world.cloud.knobs.fail(times=None, operation="DescribeVpcs", actor="agent", code=code, status=status)
    mutation = world.deploy("ls-a", vpc(enableDnsHostnames=True), subnet())
    world.cycle(3)
    found = world.mutation("ls-a", mutation)
    assert found["status"] == expected
    assert bool(found["reasons"]) == (expected == "Failed")
    world.cloud.knobs.remove(failure)
    _cycle_until(world, "ls-a", mutation, "Completed")


def test_a_redeploy_is_in_progress_until_an_agent_has_read_again(world: World) -> None:
    failure = world.cloud.knobs.fail(
        times=None, operation="DescribeVpcs", actor="agent", code="UnauthorizedOperation", status=403
    )
    world.deploy("ls-a", vpc())
    world.cycle(2)
    mutation = world.deploy("ls-a", vpc())
    assert world.mutation("ls-a", mutation)["status"] == "InProgress"
    world.cycle(2)
    assert world.mutation("ls-a", mutation)["status"] == "Failed", "the same refusal, for the new generation"
    world.cloud.knobs.remove(failure)
    _cycle_until(world, "ls-a", mutation, "Completed")


@pytest.mark.rule("O6")
def test_a_deletion_blocked_by_what_is_not_part_of_it_fails_its_mutation_and_completes_it_later(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc(), subnet("their-subnet"))
    world.settle()
    blocker = world.output("ls-b", "their-subnet", "subnetId")
    mutation = str(world.delete("ls-a")["mutationId"])
    found = _cycle_until(world, "ls-a", mutation, "Failed")
    assert found["components"]["net"]["status"] == "Deleting"
    assert any(blocker in reason for reason in found["reasons"]), found["reasons"]
    world.restart_agent()
    world.cycle()
    assert world.mutation("ls-a", mutation)["status"] == "Failed", "another agent does not count from the beginning"
    world.deploy("ls-b", vpc())
    _cycle_until(world, "ls-a", mutation, "Completed")


@pytest.mark.rule("O6", "O10")
def test_what_waits_until_a_blocked_one_is_deleted_waits_on_it(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    subnet_id = world.output("ls-a", "subnet", "subnetId")
    blocker = world.person.ec2.create_network_interface(SubnetId=subnet_id)["NetworkInterface"]["NetworkInterfaceId"]
    mutation = str(world.delete("ls-a")["mutationId"])
    found = _cycle_until(world, "ls-a", mutation, "Failed")
    assert found["components"]["net"]["waitsFor"] == ["subnet"]
    world.person.ec2.delete_network_interface(NetworkInterfaceId=blocker)
    _cycle_until(world, "ls-a", mutation, "Completed")


@pytest.mark.rule("S2", "G9")
def test_what_waits_for_a_parent_that_is_gone_in_override_does_not_keep_a_mutation_waiting(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.cycle()
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    mutation = world.deploy("ls-a", vpc(), subnet())
    world.cycle(3)
    found = world.mutation("ls-a", mutation)
    assert found["components"]["net"]["status"] == "ManualOverride"
    assert found["status"] == "Failed"
    mutation = world.deploy("ls-a", vpc(), subnet())
    _cycle_until(world, "ls-a", mutation, "Completed")
