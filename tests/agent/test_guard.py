"""Between the agent's list and its write somebody takes the resource over, for every kind of write there is (S16)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.sharing.aws_state import has_dns, is_there, vpcs
from tests.world import World, vpc


@dataclass(frozen=True)
class Write:
    """One kind of write: how the world is brought right before it, which call it is, and how a person stops it."""

    operation: str
    prepare: Callable[[World, str], None]
    stop: Callable[[World, str], None]


def _remove_tag(world: World, vpc_id: str) -> None:
    world.person.break_glass(vpc_id)


def _claim_for_terraform(world: World, vpc_id: str) -> None:
    world.person.tag(vpc_id, managed_by="terraform")


def _drift(world: World, vpc_id: str) -> None:
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})


def _ask_with_no_owner(world: World, vpc_id: str) -> None:
    world.person.untag(vpc_id, "managed-by", "fractal-cloud-owner")
    world.cycle()
    world.person.hand_back(vpc_id)


def _ask_with_nothing_to_do(world: World, vpc_id: str) -> None:
    world.person.break_glass(vpc_id)
    world.cycle()
    world.person.hand_back(vpc_id)


def _force_push(world: World, vpc_id: str) -> None:
    world.person.break_glass(vpc_id)
    world.cycle()
    assert world.force_push("ls-a", "net").status_code == 202


def _break_through_the_product(world: World, _: str) -> None:
    assert world.glass("ls-a", "net", "break", reason="night shift").status_code == 202


def _delete(world: World, _: str) -> None:
    world.delete("ls-a")


WRITES = {
    "update": Write("ModifyVpcAttribute", _drift, _remove_tag),
    "stamp the owner": Write("CreateTags", _ask_with_no_owner, _remove_tag),
    "remove reconcile": Write("DeleteTags", _ask_with_nothing_to_do, _remove_tag),
    "force push": Write("CreateTags", _force_push, _claim_for_terraform),
    "break the glass": Write("DeleteTags", _break_through_the_product, _remove_tag),
    "delete": Write("DeleteVpc", _delete, _remove_tag),
}


def _owned(world: World) -> str:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.sandbox.aws.calls.clear()
    return vpc_id


def _taken_over_before(world: World, operation: str, vpc_id: str, write: Write) -> None:
    """Somebody acts right before the next such call of the agent about this VPC."""

    def act(_: object) -> None:
        write.stop(world, vpc_id)

    world.sandbox.aws.knobs.before_call(act, times=1, actor="agent", operation=operation, resource=vpc_id)


def _kinds(world: World) -> list[str]:
    return [event["kind"] for event in world.events("ls-a")]


@pytest.mark.rule("S16", "G1")
@pytest.mark.parametrize("name", WRITES)
def test_a_takeover_before_the_last_read_always_wins(world: World, name: str) -> None:
    write = WRITES[name]
    vpc_id = _owned(world)
    write.prepare(world, vpc_id)
    _taken_over_before(world, "DescribeVpcs", vpc_id, write)
    world.settle()
    assert not world.sandbox.aws.calls.count(operation=write.operation, actor="agent"), "the call was never sent"
    assert is_there(world, vpc_id)
    if name != "delete":
        assert world.status("ls-a", "net") == "ManualOverride"
    assert not world.sandbox.aws.monitor.lost_races
    world.assert_safe()


@pytest.mark.rule("S16", "C4")
@pytest.mark.parametrize("name", ["update", "stamp the owner", "remove reconcile"])
def test_a_race_lost_within_the_one_call_is_read_afterwards_and_reported(world: World, name: str) -> None:
    write = WRITES[name]
    world.sandbox.aws.lift_limits()
    vpc_id = _owned(world)
    write.prepare(world, vpc_id)
    _taken_over_before(world, write.operation, vpc_id, write)
    world.settle()
    assert len(world.sandbox.aws.monitor.lost_races) == 1
    assert _kinds(world).count("RaceLost") == 1
    assert world.status("ls-a", "net") == "ManualOverride"
    world.assert_safe()


@pytest.mark.rule("S16", "S21", "S7")
@pytest.mark.parametrize("name", ["update", "delete"])
def test_with_the_condition_on_tags_no_race_is_ever_lost(world: World, name: str) -> None:
    write = WRITES[name]
    vpc_id = _owned(world)
    write.prepare(world, vpc_id)
    _taken_over_before(world, write.operation, vpc_id, write)
    world.settle()
    assert is_there(world, vpc_id)
    assert not has_dns(world, vpc_id) or name == "delete"
    if name == "update":
        assert world.status("ls-a", "net") == "ManualOverride", "a refusal to what was taken over is no failure"
    assert not world.sandbox.aws.monitor.lost_races
    assert "RaceLost" not in _kinds(world)
    world.assert_safe()


@pytest.mark.rule("S16", "S12a", "O8")
@pytest.mark.parametrize("name", ["update", "remove reconcile", "delete"])
def test_who_moves_ownership_before_the_last_read_wins_too(world: World, name: str) -> None:
    write = Write(
        WRITES[name].operation,
        WRITES[name].prepare,
        lambda world, vpc_id: world.person.tag(vpc_id, fractal_cloud_owner="ls-other"),
    )
    vpc_id = _owned(world)
    write.prepare(world, vpc_id)
    _taken_over_before(world, "DescribeVpcs", vpc_id, write)
    world.settle()
    assert not world.sandbox.aws.calls.count(operation=write.operation, actor="agent")
    assert is_there(world, vpc_id)
    world.assert_safe()


@pytest.mark.rule("S9", "S16")
def test_taking_the_reconcile_tag_back_aborts_a_handover(world: World) -> None:
    vpc_id = _owned(world)
    world.person.break_glass(vpc_id)
    _drift(world, vpc_id)
    world.cycle()
    world.person.hand_back(vpc_id)

    def revoke(_: object) -> None:
        world.person.untag(vpc_id, "fractal-cloud")

    world.sandbox.aws.knobs.before_call(revoke, times=1, actor="agent", operation="DescribeVpcs", resource=vpc_id)
    world.settle()
    assert world.status("ls-a", "net") == "ManualOverride"
    assert not has_dns(world, vpc_id)
    world.assert_safe()


@pytest.mark.rule("S16", "S18")
def test_what_is_renamed_before_the_last_read_is_no_longer_what_the_component_names(world: World) -> None:
    vpc_id = _owned(world)
    _drift(world, vpc_id)

    def rename(_: object) -> None:
        world.person.tag(vpc_id, Name="somebody-elses")

    world.sandbox.aws.knobs.before_call(rename, times=1, actor="agent", operation="DescribeVpcs", resource=vpc_id)
    world.cycle(3)
    assert not world.sandbox.aws.calls.count(operation="ModifyVpcAttribute", actor="agent")
    assert world.status("ls-a", "net") == "Failed"
    assert not vpcs(world), "and no second one is made"
    world.assert_safe()


@pytest.mark.rule("S14", "S16")
def test_a_namesake_made_between_list_and_create_is_never_touched(world: World) -> None:
    def make_namesake(_: object) -> None:
        made = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        world.person.tag(made, Name="net", team="blue")

    world.sandbox.aws.knobs.before_call(make_namesake, times=1, actor="agent", operation="CreateVpc")
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    mine = world.output("ls-a", "net", "vpcId")
    (theirs,) = [one for one in vpcs(world) if one != mine]
    assert world.status("ls-a", "net") == "Active", "of the two the one it owns is meant"
    assert world.person.tags(theirs) == {"Name": "net", "team": "blue"}
    assert not has_dns(world, theirs)
    world.assert_safe()
