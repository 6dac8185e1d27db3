"""Ownership is what the tag says: who made it, whom an operator named, and who inherits it."""

from __future__ import annotations

import pytest

from tests.sharing.aws_state import has_dns, is_there
from tests.world import World, vpc


def _share(world: World) -> str:
    """A VPC of ls-a that ls-b imports and declares differently; returns its id."""
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    world.deploy("ls-b", vpc(enableDnsHostnames=False))
    world.settle()
    return str(world.output("ls-a", "net", "vpcId"))


def _prepared(world: World, **tags: str) -> str:
    """A VPC somebody made by hand before any agent came by."""
    vpc_id = str(world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])
    world.person.tag(vpc_id, Name="net", **tags)
    return vpc_id


@pytest.mark.rule("O8", "S12a", "S6")
def test_ownership_moves_with_the_tag_and_the_new_owner_waits_one_cycle(world: World) -> None:
    vpc_id = _share(world)
    world.person.tag(vpc_id, fractal_cloud_owner="ls-b")
    world.cycle()
    assert world.status("ls-a", "net") == "ExternallyManaged"
    moved = world.component("ls-b", "net")
    assert (moved["status"], moved["owner"]) == ("Mutating", "ls-b")
    assert "will change enableDnsHostnames from true to false" in moved["message"]
    assert has_dns(world, vpc_id), "a person gets to see first what would change"
    world.settle()
    assert not has_dns(world, vpc_id)
    assert world.status("ls-b", "net") == "Active"
    assert world.drift("ls-a", "net") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    world.assert_safe()


@pytest.mark.rule("O8", "S12a", "S16")
def test_the_one_cycle_is_long_enough_to_say_no(world: World) -> None:
    vpc_id = _share(world)
    world.person.tag(vpc_id, fractal_cloud_owner="ls-b")
    world.cycle()
    world.person.break_glass(vpc_id)
    world.settle()
    assert world.status("ls-b", "net") == "ManualOverride"
    assert has_dns(world, vpc_id)
    world.assert_safe()


@pytest.mark.rule("O8", "C4")
def test_both_sides_get_an_event_that_ownership_moved(world: World) -> None:
    vpc_id = _share(world)
    world.person.tag(vpc_id, fractal_cloud_owner="ls-b")
    world.settle()
    for live_system in ("ls-a", "ls-b"):
        moved = [event for event in world.events(live_system) if event["kind"] == "OwnerChanged"]
        assert [(event["before"], event["after"]) for event in moved] == [("ls-a", "ls-b")]


@pytest.mark.rule("O8", "S12a", "O10")
def test_what_was_just_taken_over_is_deleted_only_a_cycle_later(world: World) -> None:
    vpc_id = _share(world)
    world.person.tag(vpc_id, fractal_cloud_owner="ls-b")
    world.delete("ls-b")
    world.cycle()
    assert world.status("ls-b", "net") == "Deleting"
    assert "will be deleted after one cycle" in world.component("ls-b", "net")["message"]
    assert is_there(world, vpc_id)
    world.settle()
    assert not is_there(world, vpc_id)
    assert world.status("ls-a", "net") == "Missing"


@pytest.mark.rule("O9", "S7")
def test_whom_an_operator_named_beforehand_sees_it_as_its_own_in_override(world: World) -> None:
    vpc_id = _prepared(world, fractal_cloud_owner="ls-b")
    world.deploy("ls-a", vpc())
    world.deploy("ls-b", vpc(enableDnsHostnames=True))
    world.settle()
    assert world.status("ls-a", "net") == "ExternallyManaged", "though it was deployed first"
    assert world.status("ls-b", "net") == "ManualOverride"
    assert world.drift("ls-b", "net") == {"enableDnsHostnames": {"declared": True, "actual": False}}
    world.person.hand_back(vpc_id)
    world.settle()
    assert world.status("ls-b", "net") == "Active"
    assert has_dns(world, vpc_id)
    assert world.status("ls-a", "net") == "ExternallyManaged"
    world.assert_safe()


@pytest.mark.rule("O9", "S12a")
def test_a_resource_stamped_with_both_tags_beforehand_is_shown_for_a_cycle_first(world: World) -> None:
    vpc_id = _prepared(world, fractal_cloud_owner="ls-b", managed_by="fractal-cloud")
    world.deploy("ls-b", vpc(enableDnsHostnames=True))
    world.cycle()
    assert world.status("ls-b", "net") == "Mutating"
    assert not has_dns(world, vpc_id)
    world.settle()
    assert world.status("ls-b", "net") == "Active"
    assert has_dns(world, vpc_id)


@pytest.mark.rule("S8a", "S10", "G10")
def test_what_several_declare_and_nobody_owned_is_contested_until_one_is_pushed(world: World) -> None:
    vpc_id = _prepared(world)
    for live_system in ("ls-a", "ls-b", "ls-c"):
        world.deploy(live_system, vpc())
    world.settle()
    world.person.hand_back(vpc_id)
    world.settle()
    for live_system in ("ls-a", "ls-b", "ls-c"):
        shown = world.component(live_system, "net")
        assert shown["status"] == "ManualOverride"
        assert shown["message"] == "3 LiveSystems declare it: stamp fractal-cloud-owner, or Force Push one"
    assert world.force_push("ls-b", "net").status_code == 202
    world.settle()
    assert world.status("ls-b", "net") == "Active"
    assert world.status("ls-a", "net") == world.status("ls-c", "net") == "ExternallyManaged"
    assert world.person.tags(vpc_id)["fractal-cloud-owner"] == "ls-b"
    world.assert_safe()


@pytest.mark.rule("S3", "S4", "O6")
def test_after_the_owner_is_gone_the_next_deploy_of_an_importer_creates_and_owns(world: World) -> None:
    first = _share(world)
    world.delete("ls-a")
    world.settle()
    assert world.status("ls-b", "net") == "Missing"
    world.deploy("ls-b", vpc(enableDnsHostnames=False))
    world.settle()
    assert world.status("ls-b", "net") == "Active"
    second = world.output("ls-b", "net", "vpcId")
    assert second != first
    assert world.person.tags(second)["fractal-cloud-owner"] == "ls-b"


@pytest.mark.rule("S3", "S19")
def test_what_vanished_is_created_again_by_its_owner_not_by_an_importer(world: World) -> None:
    vpc_id = _share(world)
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    world.deploy("ls-b", vpc(enableDnsHostnames=False))
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.status("ls-b", "net") == "ExternallyManaged"
    again = world.output("ls-a", "net", "vpcId")
    assert again != vpc_id
    assert world.person.tags(again)["fractal-cloud-owner"] == "ls-a"
    world.assert_safe()
