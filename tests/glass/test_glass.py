"""Taking a resource out of the agent's hands with nothing but a tag, and handing it back with two."""

from __future__ import annotations

import pytest

from tests.world import World, subnet, vpc


@pytest.mark.rule("G1", "G3", "G4", "S7")
def test_removing_managed_by_is_all_it_takes(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True), subnet())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    net = world.component("ls-a", "net")
    assert net["status"] == "ManualOverride"
    assert net["outputFields"]["drift"] == {"enableDnsHostnames": {"declared": True, "actual": False}}
    assert net["override"]["by"] is None
    assert world.status("ls-a", "subnet") == "Active"
    world.assert_safe()
