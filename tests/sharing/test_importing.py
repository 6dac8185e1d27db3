"""Who comes second imports: it reads, anew in every cycle, and never writes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sharing.aws_state import kinds, vpcs, writes
from tests.world import World, security_group, subnet, vpc


def _share(world: World, **imported: Any) -> str:
    """One VPC that ls-a made and ls-b declares too; returns its id."""
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    world.deploy("ls-b", vpc("their-net", name="net", **imported))
    world.settle()
    return str(world.output("ls-a", "net", "vpcId"))


@pytest.mark.rule("O1", "S6", "T2")
def test_the_creator_owns_and_the_second_imports(world: World) -> None:
    vpc_id = _share(world)
    assert world.person.tags(vpc_id) == {
        "Name": "net",
        "managed-by": "fractal-cloud",
        "fractal-cloud-owner": "ls-a",
    }
    theirs = world.component("ls-b", "their-net")
    assert (theirs["status"], theirs["stance"], theirs["owner"]) == ("ExternallyManaged", "imported", "ls-a")
    assert theirs["outputFields"]["vpcId"] == vpc_id
    assert world.status("ls-a", "net") == "Active"
    assert vpcs(world) == [vpc_id]
    world.assert_safe()


@pytest.mark.rule("O2")
@pytest.mark.parametrize("first", ["ls-a", "ls-b"])
def test_of_two_deployed_at_the_same_moment_one_creates_and_one_imports(world: World, first: str) -> None:
    second = "ls-b" if first == "ls-a" else "ls-a"
    for live_system in (first, second):
        world.deploy(live_system, vpc(), subnet(), security_group())
    world.settle()
    for component in ("net", "subnet", "group"):
        assert world.status(first, component) == "Active"
        assert world.status(second, component) == "ExternallyManaged"
    assert len(vpcs(world)) == 1
    assert not writes(world, second)
    calls = world.sandbox.aws.calls
    made = [calls.count(operation=f"Create{kind}", actor="agent") for kind in ("Vpc", "Subnet", "SecurityGroup")]
    assert made == [1, 1, 1]
    world.assert_safe()


@pytest.mark.rule("O2", "S17")
def test_nobody_creates_it_again_while_the_first_creation_is_not_visible_yet(world: World) -> None:
    world.sandbox.aws.knobs.late_visibility(seconds=2 * world.cycle_seconds, kind="vpc")
    world.deploy("ls-a", vpc())
    world.cycle()
    world.deploy("ls-b", vpc())
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.status("ls-b", "net") == "ExternallyManaged"
    assert len(vpcs(world)) == 1
    world.assert_safe()


@pytest.mark.rule("O3", "S6")
def test_an_importer_never_changes_what_it_declares_differently(world: World) -> None:
    vpc_id = _share(world, enableDnsHostnames=False)
    world.person.tag(vpc_id, fractal_cloud="reconcile")
    world.settle()
    assert "fractal-cloud" not in world.person.tags(vpc_id), "its owner reconciles, and only its owner"
    assert world.drift("ls-b", "their-net") == {"enableDnsHostnames": {"declared": False, "actual": True}}
    assert not writes(world, "ls-b")
    world.assert_safe()


@pytest.mark.rule("O3", "T3", "T4", "S7")
def test_an_importer_neither_restores_nor_claims_tags(world: World) -> None:
    vpc_id = _share(world)
    world.person.untag(vpc_id, "managed-by", "fractal-cloud-owner")
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    theirs = world.component("ls-b", "their-net")
    assert (theirs["status"], theirs["stance"]) == ("ManualOverride", "imported")
    world.person.hand_back(vpc_id)
    world.settle()
    assert world.person.tags(vpc_id)["fractal-cloud-owner"] == "ls-a", "the heir takes it back, not the importer"
    assert world.status("ls-b", "their-net") == "ExternallyManaged"
    assert not writes(world, "ls-b")
    world.assert_safe()


@pytest.mark.rule("S8", "O3")
def test_an_importer_only_reads_what_lost_its_owner_while_the_heir_cannot_act(world: World) -> None:
    vpc_id = _share(world)
    world.person.untag(vpc_id, "fractal-cloud-owner")
    world.person.tag(vpc_id, fractal_cloud="reconcile")
    world.sandbox.aws.knobs.fail(operation="CreateTags", code="UnauthorizedOperation", status=403, times=None)
    world.cycle(2)
    assert world.status("ls-b", "their-net") == "ExternallyManaged"
    assert "'ls-a' has the claim" in world.component("ls-b", "their-net")["message"]
    assert world.status("ls-a", "net") == "Failed"
    assert not writes(world, "ls-b")


@pytest.mark.rule("O3", "O10")
def test_deleting_an_importer_only_drops_its_reference(world: World) -> None:
    vpc_id = _share(world)
    before = world.person.tags(vpc_id)
    mutation = world.delete("ls-b")["mutationId"]
    world.settle()
    assert world.api.get("/livesystems/ls-b").status_code == 404
    ended = world.mutation("ls-b", mutation)["components"]["their-net"]
    assert ended["status"] == "Deleted"
    assert ended["message"] == "reference dropped, nothing deleted: 'ls-a' owns it"
    assert world.person.tags(vpc_id) == before
    assert world.status("ls-a", "net") == "Active"
    assert not writes(world, "ls-b")


@pytest.mark.rule("O4")
def test_an_importer_reads_anew_in_every_cycle(world: World) -> None:
    vpc_id = _share(world, enableDnsHostnames=True)
    world.person.break_glass(vpc_id)
    for value in (False, True, False):
        world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": value})
        world.cycle()
        assert world.output("ls-b", "their-net", "enableDnsHostnames") is value


@pytest.mark.rule("O5")
def test_an_importers_difference_shows_but_raises_no_event(world: World) -> None:
    vpc_id = _share(world, enableDnsHostnames=True)
    assert world.drift("ls-b", "their-net") is None
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    assert world.drift("ls-b", "their-net") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    world.cycle()
    assert world.drift("ls-b", "their-net") is None
    assert not kinds(world, "ls-b") & {"DriftFound", "DriftCorrected"}
    assert {"DriftFound", "DriftCorrected"} <= kinds(world, "ls-a")


@pytest.mark.rule("O5", "O6", "S3")
def test_what_an_importer_misses_raises_an_event(world: World) -> None:
    _share(world)
    world.delete("ls-a")
    world.settle()
    assert world.status("ls-b", "their-net") == "Missing"
    lost = [event for event in world.events("ls-b") if event["kind"] == "ResourceLost"]
    assert [event["componentId"] for event in lost] == ["their-net"]


@pytest.mark.rule("O12", "S1")
def test_import_only_is_never_created(world: World) -> None:
    world.deploy("ls-b", {**vpc(), "importOnly": True})
    world.settle()
    assert world.status("ls-b", "net") == "Missing"
    world.deploy("ls-b", {**vpc(), "importOnly": True})
    world.settle()
    assert world.status("ls-b", "net") == "Missing", "a deploy after that does not create it either"
    assert not vpcs(world)


@pytest.mark.rule("O12", "S5", "O9")
def test_import_only_is_never_claimed_or_changed_even_with_every_tag_in_its_favour(world: World) -> None:
    vpc_id = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    world.person.tag(vpc_id, Name="net", fractal_cloud_owner="ls-b")
    world.person.hand_back(vpc_id)
    before = world.person.tags(vpc_id)
    world.deploy("ls-b", {**vpc(enableDnsHostnames=True), "importOnly": True})
    world.settle()
    assert world.status("ls-b", "net") == "ExternallyManaged"
    assert world.drift("ls-b", "net") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    assert world.force_push("ls-b", "net").status_code == 409
    world.delete("ls-b")
    world.settle()
    assert world.person.tags(vpc_id) == before
    assert not writes(world, "ls-b")


@pytest.mark.rule("O12", "O2")
def test_who_is_import_only_counts_as_no_claimant(world: World) -> None:
    world.deploy("ls-b", {**vpc(), "importOnly": True})
    world.cycle()
    world.deploy("ls-a", vpc())
    world.settle()
    assert world.status("ls-a", "net") == "Active", "the other one creates it, although it came second"
    assert world.status("ls-b", "net") == "ExternallyManaged"
