"""The control plane's database is lost, and the same declarations are deployed again (C2)."""

from __future__ import annotations

import pytest

from tests.sharing.aws_state import has_dns, is_there, vpcs
from tests.world import Declaration, World, security_group, subnet, vpc


def _forget_everything(world: World) -> None:
    """Everything the control plane knew is gone; the cloud is as it was."""
    world.close()
    world.open_control_plane("after.db")
    world.sandbox.aws.calls.clear()


def _effects(world: World) -> list[str]:
    return [call.operation for call in world.sandbox.aws.calls.find(actor="agent", writes_only=True) if call.effect]


EVERYTHING: tuple[Declaration, ...] = (vpc(), subnet(), security_group())


@pytest.mark.rule("C2", "S12a")
def test_nothing_is_created_twice_nothing_deleted_and_all_is_as_it_was(world: World) -> None:
    world.deploy("ls-a", *EVERYTHING)
    world.settle()
    world.deploy("ls-b", vpc(), subnet("their-subnet", cidrBlock="10.0.7.0/24"))
    world.settle()
    world.person.break_glass(world.output("ls-a", "subnet", "subnetId"))
    world.cycle()
    wanted = {("ls-a", "net"), ("ls-a", "subnet"), ("ls-a", "group"), ("ls-b", "net"), ("ls-b", "their-subnet")}
    before = {(ls, name): _state(world, ls, name) for ls, name in wanted}
    _forget_everything(world)
    world.deploy("ls-b", vpc(), subnet("their-subnet", cidrBlock="10.0.7.0/24"))
    world.cycle()
    world.deploy("ls-a", *EVERYTHING)
    world.settle()
    assert {(ls, name): _state(world, ls, name) for ls, name in wanted} == before
    assert _effects(world) == []
    world.assert_safe()


def _state(world: World, live_system: str, component: str) -> tuple[str, str, str]:
    found = world.component(live_system, component)
    return found["status"], found["stance"], found["resourceId"]


@pytest.mark.rule("C2", "S7", "G5")
def test_an_override_on_the_cloud_is_an_override_again(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    _forget_everything(world)
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    assert world.status("ls-a", "net") == "ManualOverride"
    assert world.drift("ls-a", "net") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    assert _effects(world) == []


@pytest.mark.rule("C2", "S11", "S12a")
def test_half_a_handshake_becomes_a_notice_that_leaves_a_cycle_to_say_no(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    world.person.tag(vpc_id, managed_by="fractal-cloud")
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    _forget_everything(world)
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.cycle()
    assert world.status("ls-a", "net") == "Mutating"
    assert _effects(world) == []
    assert not has_dns(world, vpc_id)
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert has_dns(world, vpc_id)
    world.assert_safe()


@pytest.mark.rule("C2", "S2", "S3")
def test_what_only_memory_kept_from_being_created_is_created(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.person.break_glass(world.output("ls-a", "net", "vpcId"))
    world.cycle()
    world.person.ec2.delete_vpc(VpcId=world.output("ls-a", "net", "vpcId"))
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    _forget_everything(world)
    world.deploy("ls-a", vpc())
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert len(vpcs(world)) == 1


@pytest.mark.rule("C2", "S8a")
def test_what_lost_its_owner_goes_to_nobody_while_several_declare_it(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.untag(vpc_id, "fractal-cloud-owner")
    world.person.tag(vpc_id, fractal_cloud="reconcile")
    _forget_everything(world)
    world.deploy("ls-a", vpc())
    world.deploy("ls-b", vpc())
    world.settle()
    assert world.status("ls-a", "net") == world.status("ls-b", "net") == "ManualOverride"
    assert world.component("ls-a", "net")["message"].startswith("2 LiveSystems declare it")
    assert _effects(world) == []


@pytest.mark.rule("C2", "S9")
def test_a_handshake_that_was_under_way_is_finished(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.person.hand_back(vpc_id)
    _forget_everything(world)
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert has_dns(world, vpc_id)
    assert "fractal-cloud" not in world.person.tags(vpc_id)


@pytest.mark.rule("C2", "O10", "S12a")
def test_deleting_right_after_the_loss_still_waits_one_cycle(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    _forget_everything(world)
    world.agent.run_once()
    world.deploy("ls-a", vpc())
    world.delete("ls-a")
    world.agent.run_once()
    assert world.status("ls-a", "net") == "Deleting"
    assert is_there(world, vpc_id), "somebody may still say no"
    world.settle()
    assert not is_there(world, vpc_id)
    world.assert_safe()
