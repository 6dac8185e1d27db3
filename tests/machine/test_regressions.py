"""Histories that once went wrong, each as plain steps so that it never does again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.machine import rest
from tests.offers.suites import suites
from tests.sharing.aws_state import is_there
from tests.world import World, subnet, vpc


def _changes(world: World, component: str) -> list[tuple[str, str]]:
    """The status changes of a component of ls-a, oldest first."""
    events = [e for e in world.events("ls-a") if e["kind"] == "StatusChanged" and e["componentId"] == component]
    return [(event["before"], event["after"]) for event in reversed(events)]


def _subnets(world: World, name: str) -> list[str]:
    named = [{"Name": "tag:Name", "Values": [name]}]
    return [one["SubnetId"] for one in world.person.ec2.describe_subnets(Filters=named)["Subnets"]]


@pytest.mark.rule("S12a", "O10", "S20")
def test_a_deletion_that_was_shown_for_a_cycle_is_then_carried_out(world: World) -> None:
    """The guard forgot that it had been shown, and showed it again in every cycle."""
    world.deploy("ls-a", vpc())
    world.settle()
    world.deploy("ls-b", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.person.tag(vpc_id, fractal_cloud_owner="ls-b")
    world.delete("ls-b")
    world.cycle()
    assert is_there(world, vpc_id)
    world.cycle(2)
    assert not is_there(world, vpc_id)
    world.assert_safe()


def _block_a_creation(world: World) -> str:
    """The answer to a subnet's creation is lost, and somebody renames and disowns it: its block is taken now."""
    world.deploy("ls-a", vpc())
    world.settle()
    world.sandbox.aws.knobs.fail(when="after", cut=True, operation="CreateSubnet", actor="agent")
    world.deploy("ls-a", vpc(), subnet())
    world.cycle()
    (blocker,) = _subnets(world, "subnet")
    world.person.tag(blocker, Name="renamed")
    world.person.untag(blocker, "fractal-cloud-owner")
    world.cycle(5)
    return blocker


@pytest.mark.rule("S17", "S13", "C4")
def test_a_creation_that_is_refused_stays_failed_however_often_it_is_tried_again(world: World) -> None:
    """It fell back to Instantiating, as if the answer had been lost once more, and to Failed again, for ever."""
    _block_a_creation(world)
    for _ in range(4):
        world.cycle()
        assert world.status("ls-a", "subnet") == "Failed"
        assert "conflicts with another subnet" in world.component("ls-a", "subnet")["message"]
    assert _changes(world, "subnet") == [("Instantiating", "Failed")]


@pytest.mark.rule("S17", "S21")
def test_a_refused_creation_goes_through_once_nothing_is_in_its_way(world: World) -> None:
    blocker = _block_a_creation(world)
    world.person.ec2.delete_subnet(SubnetId=blocker)
    world.settle()
    assert world.status("ls-a", "subnet") == "Active"
    assert len(_subnets(world, "subnet")) == 1
    assert _changes(world, "subnet") == [("Instantiating", "Failed"), ("Failed", "Active")]
    world.assert_safe()


@pytest.mark.rule("S13", "C4", "C8")
def test_an_update_that_is_refused_stays_failed_until_it_goes_through(world: World) -> None:
    """Each try called it Mutating for a moment, and sent everybody two events."""
    world.deploy("ls-a", vpc(enableDnsHostnames=False))
    world.settle()
    before = len(_changes(world, "net"))
    refused = world.sandbox.aws.knobs.fail(
        operation="ModifyVpcAttribute", actor="agent", code="IncorrectState", status=400, times=None
    )
    mutation = world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.cycle(4)
    assert world.status("ls-a", "net") == "Failed"
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    assert [after for _, after in _changes(world, "net")[before:]][-1:] == ["Failed"]
    assert len(_changes(world, "net")) <= before + 2
    world.sandbox.aws.knobs.remove(refused)
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


@pytest.mark.rule("S21", "S20")
def test_a_refusal_that_is_tried_again_in_the_last_cycle_moves_nothing_but_its_next_try(
    session_sandbox: Sandbox, tmp_path: Path
) -> None:
    """The histories took it for unrest whenever that try fell into another second than the one before."""
    suite = suites()["hetzner"]
    with suite.stage(session_sandbox, tmp_path, suite.kinds()[suite.machine]) as stage:
        world, declared = stage.world, stage.example.under_name("same")
        declared["parameters"]["deleteProtection"] = True
        world.deploy("ls-a", declared)
        world.settle()
        world.delete("ls-a")
        world.cycle(2)
        first = world.component("ls-a", "same")["message"]
        assert "next try at" in first
        time.sleep(1.1)  # it is due by then, and the next try is shown in seconds
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rest, "AT_MOST", 0)
            rest.come_to_rest(world)
        assert world.component("ls-a", "same")["message"] != first, "it was tried again"
