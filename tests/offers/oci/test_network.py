"""What is peculiar to VCNs and subnets: blocks one by one, blocks that cannot move, compartments."""

from __future__ import annotations

import pytest

from tests.offers.oci.declaring import instance, subnet, vcn
from tests.offers.oci.person import CORE
from tests.offers.oci.worlds import OciWorld

FIVE = [f"10.{number}.0.0/16" for number in range(5)]


def operations(world: OciWorld) -> list[str]:
    return [write.operation for write in world.writes()]


@pytest.mark.rule("S12", "S16")
def test_blocks_come_before_others_go_one_call_each(world: OciWorld) -> None:
    world.deploy("ls-a", vcn(cidrBlocks=["10.0.0.0/16", "10.1.0.0/16"]))
    world.settle()
    before = len(world.writes())
    world.deploy("ls-a", vcn(cidrBlocks=["10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"]))
    world.settle()
    assert operations(world)[before:] == ["core:addVcnCidr", "core:addVcnCidr", "core:removeVcnCidr"]
    assert world.status("ls-a", "net") == "Active"
    world.assert_safe()


def test_a_vcn_that_is_full_gives_a_block_away_first(world: OciWorld) -> None:
    world.deploy("ls-a", vcn(cidrBlocks=FIVE))
    world.settle()
    before = len(world.writes())
    world.deploy("ls-a", vcn(cidrBlocks=[*FIVE[:4], "10.9.0.0/16"]))
    world.settle()
    assert operations(world)[before:] == ["core:removeVcnCidr", "core:addVcnCidr"]
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.rule("S18")
def test_a_block_that_begins_elsewhere_destroys_nothing_and_holds_nothing_else_up(world: OciWorld) -> None:
    world.deploy("ls-a", vcn(), subnet())
    world.settle()
    table = world.oci.create("routeTables", vcnId=world.output("ls-a", "net", "vcnId"), routeRules=[])["id"]
    world.deploy("ls-a", vcn(), subnet(cidrBlock="10.0.9.0/24", routeTableId=table))
    world.cycle(6)
    shown = world.component("ls-a", "part")
    assert shown["status"] == "Failed"
    assert all(word in shown["message"] for word in ("cidrBlock", "10.0.1.0/24", "10.0.9.0/24", "declare a new subnet"))
    found = world.oci.get(f"{CORE}/subnets/{shown['resourceId']}")
    assert found is not None
    assert (found["routeTableId"], found["cidrBlock"]) == (table, "10.0.1.0/24")


@pytest.mark.rule("S19", "S18")
def test_what_was_moved_to_another_compartment_is_named_and_not_made_again(world: OciWorld) -> None:
    world.deploy("ls-a", vcn())
    world.settle()
    resource_id = world.output("ls-a", "net", "vcnId")
    [(_, body)] = world.cloud.resources("vcn")
    with world.cloud.lock:
        draft = world.cloud.store.draft()
        other = "ocid1.compartment.oc1..sandboxnetwork"
        draft.put("vcn", resource_id, {**body, "compartmentId": other})
        world.cloud.store.carry_out(draft.changes())
    before = len(world.writes())
    world.cycle(3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert other in shown["message"]
    assert len(world.writes()) == before
    world.assert_safe()


@pytest.mark.rule("O2", "C2")
def test_a_compartment_is_the_same_by_its_path_and_by_its_id(world: OciWorld) -> None:
    world.deploy("ls-a", vcn())
    world.deploy("ls-b", vcn(compartment="ocid1.compartment.oc1..sandboxteam"))
    world.survive()
    assert sorted(world.status(one, "net") for one in ("ls-a", "ls-b")) == ["Active", "ExternallyManaged"]
    assert len(world.cloud.resources("vcn")) == 1


def test_a_machine_and_its_network_may_lie_in_two_compartments(world: OciWorld) -> None:
    world.deploy("ls-a", vcn(compartment="team/network"), subnet(), instance(compartment="team"))
    world.survive()
    assert world.status("ls-a", "machine") == "Active"
    assert world.output("ls-a", "machine", "compartmentId") == "ocid1.compartment.oc1..sandboxteam"
    assert world.output("ls-a", "part", "compartmentId") == "ocid1.compartment.oc1..sandboxnetwork"
