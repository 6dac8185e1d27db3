"""Messages that people act on are true: what they say will happen is what happens."""

from __future__ import annotations

import pytest

from tests.sharing.aws_state import is_there
from tests.world import World, subnet, vpc


@pytest.mark.rule("O10", "S12a")
def test_a_parent_that_was_left_for_its_child_is_not_in_override_when_it_is_declared_again(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    vpc_id, subnet_id = world.output("ls-a", "net", "vpcId"), world.output("ls-a", "subnet", "subnetId")
    world.person.break_glass(subnet_id)
    world.cycle()
    world.delete("ls-a")
    world.settle()
    assert is_there(world, vpc_id)
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    assert (world.status("ls-a", "net"), world.status("ls-a", "subnet")) == ("Active", "ManualOverride")
    assert world.component("ls-a", "net")["override"] is None, "nobody broke its glass"
    world.assert_safe()


@pytest.mark.rule("O10", "S11")
def test_a_child_that_was_left_in_override_stays_so_when_managed_by_comes_back_alone(world: World) -> None:
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    subnet_id = world.output("ls-a", "subnet", "subnetId")
    world.person.break_glass(subnet_id)
    world.delete("ls-a")  # in the very cycle in which it is noticed
    world.settle()
    world.person.tag(subnet_id, managed_by="fractal-cloud")
    world.deploy("ls-a", vpc(), subnet())
    world.settle()
    assert world.status("ls-a", "subnet") == "ManualOverride"


@pytest.mark.rule("S2", "S19", "G9")
def test_what_was_renamed_in_override_is_not_called_gone(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.cycle()
    world.person.tag(vpc_id, Name="other")
    world.cycle(2)
    said = f"name is 'other' on {vpc_id} and 'net' in the declaration: name it back, or declare a new component"
    found = world.component("ls-a", "net")
    assert (found["status"], found["message"]) == ("ManualOverride", said)
    world.deploy("ls-a", vpc())
    world.cycle(2)
    assert world.component("ls-a", "net")["message"] == said, "a deploy does not contradict it"
    world.assert_safe()


@pytest.mark.rule("S3", "S19")
def test_what_was_renamed_by_its_owner_is_not_called_gone_by_an_importer(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.deploy("ls-b", {**vpc()})
    world.settle()
    world.person.tag(vpc_id, Name="other")
    world.cycle(2)
    assert f"name is 'other' on {vpc_id}" in world.component("ls-b", "net")["message"]


@pytest.mark.rule("S18")
@pytest.mark.parametrize("is_overridden", [False, True])
def test_a_child_of_a_parent_that_cannot_move_waits_for_it(world: World, is_overridden: bool) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    if is_overridden:
        world.person.break_glass(world.output("ls-a", "net", "vpcId"))
        world.cycle()
    mutation = world.deploy("ls-a", vpc(region="us-east-1"), subnet())
    world.cycle(4)
    assert world.cloud.calls.count(operation="CreateSubnet", actor="agent") == 0
    child = world.component("ls-a", "subnet")
    assert (child["status"], child["waitsFor"]) == ("Instantiating", ["net"])
    assert child["message"].startswith("waits for net")
    parent = world.component("ls-a", "net")
    assert 'place is "eu-west-1" and cannot become "us-east-1" in place' in parent["message"]
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    world.assert_safe()
