"""What operators ask for (Force Push, glass broken through the product): carried out once, or refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.sharing.aws_state import has_dns
from tests.world import World, vpc


def _in_override(world: World) -> str:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    assert world.status("ls-a", "net") == "ManualOverride"
    return vpc_id


def _refusals(world: World) -> list[str]:
    return [event["message"] for event in world.events("ls-a") if event["kind"] == "ForcePushRefused"]


def _tagged(world: World) -> int:
    return int(world.sandbox.aws.calls.count(operation="CreateTags", actor="agent"))


def _remove(world: World, vpc_id: str) -> None:
    world.person.ec2.delete_vpc(VpcId=vpc_id)


def _double(world: World, vpc_id: str) -> None:
    world.person.untag(vpc_id, "fractal-cloud-owner")
    twin = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    world.person.tag(twin, Name="net")


def _give_away(world: World, vpc_id: str) -> None:
    world.person.tag(vpc_id, fractal_cloud_owner="ls-other")


def _give_to_terraform(world: World, vpc_id: str) -> None:
    world.person.tag(vpc_id, managed_by="terraform")


REFUSED: dict[str, tuple[Callable[[World, str], None], str]] = {
    "absent": (_remove, "absent"),
    "several": (_double, "several resources are named 'net'"),
    "another owner": (_give_away, "'ls-other' owns it"),
    "another manager": (_give_to_terraform, "managed-by says 'terraform'"),
}


@pytest.mark.rule("G10", "S14", "S6", "T7")
@pytest.mark.parametrize("why", REFUSED)
def test_a_force_push_is_refused_when_the_agent_reads(world: World, why: str) -> None:
    act, words = REFUSED[why]
    vpc_id = _in_override(world)
    assert world.force_push("ls-a", "net").status_code == 202
    act(world, vpc_id)
    world.settle()
    assert _tagged(world) == 0
    (message,) = _refusals(world)
    assert words in message
    world.assert_safe()


@pytest.mark.rule("G10", "S14", "S6", "T7")
@pytest.mark.parametrize("why", REFUSED)
def test_a_force_push_is_refused_at_once_where_it_is_known_already(world: World, why: str) -> None:
    act, words = REFUSED[why]
    vpc_id = _in_override(world)
    act(world, vpc_id)
    world.settle()
    response = world.force_push("ls-a", "net")
    assert response.status_code == 409
    assert words in response.json()["detail"]
    assert _tagged(world) == 0


@pytest.mark.rule("G10")
def test_a_force_push_is_void_after_another_deploy(world: World) -> None:
    vpc_id = _in_override(world)
    world.force_push("ls-a", "net")
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    assert _tagged(world) == 0
    assert "deployed again since" in _refusals(world)[0]
    assert not has_dns(world, vpc_id)


@pytest.mark.rule("G10")
def test_a_force_push_is_void_for_another_resource_of_the_same_name(world: World) -> None:
    vpc_id = _in_override(world)
    world.force_push("ls-a", "net")
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    other = world.person.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    world.person.tag(other, Name="net")
    world.settle()
    assert world.person.tags(other) == {"Name": "net"}
    assert f"it was asked for {vpc_id}, but the name now finds {other}" in _refusals(world)[0]


@pytest.mark.rule("G10", "G1")
def test_a_force_push_is_void_once_managed_by_was_removed_after_it(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    assert world.force_push("ls-a", "net").status_code == 202
    world.person.break_glass(vpc_id)
    world.settle()
    assert world.status("ls-a", "net") == "ManualOverride"
    assert _tagged(world) == 0
    assert "removed after it was asked for" in _refusals(world)[0]


@pytest.mark.rule("G10", "S0")
def test_a_force_push_nothing_could_be_read_for_waits_and_is_then_carried_out(world: World) -> None:
    vpc_id = _in_override(world)
    world.sandbox.aws.knobs.fail(operation="DescribeVpcs", actor="agent", code="UnauthorizedOperation", status=403)
    world.force_push("ls-a", "net")
    world.cycle()
    assert _tagged(world) == 0
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert has_dns(world, vpc_id)


@pytest.mark.rule("G10", "S17")
def test_a_force_push_is_carried_out_at_most_once(world: World) -> None:
    vpc_id = _in_override(world)
    world.sandbox.aws.knobs.fail(operation="CreateTags", actor="agent", code="UnauthorizedOperation", status=403)
    world.force_push("ls-a", "net")
    world.settle()
    assert world.sandbox.aws.calls.count(operation="CreateTags", actor="agent") == 1, "what failed is asked for again"
    assert world.status("ls-a", "net") == "ManualOverride"
    assert "managed-by" not in world.person.tags(vpc_id)
    world.force_push("ls-a", "net")
    world.settle()
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.rule("G10", "T4")
def test_a_force_push_brings_the_owner_only_where_there_is_none(world: World) -> None:
    vpc_id = _in_override(world)
    world.person.untag(vpc_id, "fractal-cloud-owner")
    world.cycle()
    world.force_push("ls-a", "net")
    world.settle()
    assert world.person.tags(vpc_id) == {
        "Name": "net",
        "managed-by": "fractal-cloud",
        "fractal-cloud-owner": "ls-a",
    }
    assert world.status("ls-a", "net") == "Active"
    world.assert_safe()


# --- G13


def _override(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.component("ls-a", "net")["override"]
    return found


@pytest.mark.rule("G13", "S17")
def test_glass_broken_through_the_product_is_remembered_even_if_the_untagging_fails(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.sandbox.aws.knobs.fail(operation="DeleteTags", actor="agent", code="UnauthorizedOperation", status=403)
    assert world.glass("ls-a", "net", "break", reason="an incident").status_code == 202
    world.cycle()
    assert world.component("ls-a", "net")["stance"] == "override", "memory first, cloud last"
    world.settle()
    assert "managed-by" not in world.person.tags(vpc_id), "an open request is finished"
    assert world.status("ls-a", "net") == "ManualOverride"
    assert _override(world)["reason"] == "an incident"


@pytest.mark.rule("G13", "S17")
def test_glass_broken_through_the_product_is_finished_by_the_next_agent(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.glass("ls-a", "net", "break", reason="an incident")
    world.restart_agent()
    world.settle()
    assert "managed-by" not in world.person.tags(vpc_id)
    assert _override(world)["reason"] == "an incident"
    world.assert_safe()


@pytest.mark.rule("G13", "O10")
def test_glass_to_be_broken_comes_before_a_deletion(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    world.glass("ls-a", "net", "break", reason="keep it")
    mutation = world.delete("ls-a")["mutationId"]
    world.settle()
    assert world.person.tags(vpc_id)["fractal-cloud-owner"] == "ls-a"
    assert "left in the cloud" in world.mutation("ls-a", mutation)["components"]["net"]["message"]


@pytest.mark.rule("G13", "G5")
@pytest.mark.usefixtures("frequent_housekeeping")
def test_a_date_that_passes_raises_one_event_and_never_re_adopts(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = world.output("ls-a", "net", "vpcId")
    until = datetime.now(UTC) + timedelta(seconds=1)
    world.glass("ls-a", "net", "break", reason="an hour at most", until=until.isoformat())
    world.settle()
    deadline = datetime.now(UTC) + timedelta(seconds=20)
    while not world.component("ls-a", "net")["overdue"] and datetime.now(UTC) < deadline:
        world.cycle()
    world.cycle(2)
    overdue = [event for event in world.events("ls-a") if event["kind"] == "OverrideOverdue"]
    assert len(overdue) == 1
    assert world.status("ls-a", "net") == "ManualOverride"
    assert "managed-by" not in world.person.tags(vpc_id)
    shown = _override(world)
    assert shown["reason"] == "an hour at most"
    assert datetime.fromisoformat(shown["until"]) == until
    assert shown["by"]
    assert shown["since"]


@pytest.mark.rule("G13", "G1")
def test_an_override_found_on_the_cloud_says_that_nobody_is_known(world: World) -> None:
    _in_override(world)
    shown = _override(world)
    assert shown["since"]
    assert (shown["by"], shown["reason"], shown["until"]) == (None, None, None)
    broken = [event for event in world.events("ls-a") if event["kind"] == "GlassBroken"]
    assert [event["by"] for event in broken] == ["unknown"]


@pytest.mark.rule("G13", "S20")
def test_an_override_that_was_extended_and_handed_over_stays_so_through_cycles_and_agents(world: World) -> None:
    vpc_id = _in_override(world)
    assert _override(world)["by"] is None
    until = datetime.now(UTC) + timedelta(hours=4)
    assert world.glass("ls-a", "net", "extend", until=until.isoformat()).status_code == 200
    assert world.glass("ls-a", "net", "handOver", to="bea", reason="her shift").status_code == 200
    world.settle()
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    world.settle()
    world.restart_agent()
    world.settle()
    assert world.drift("ls-a", "net") is None, "the agent reported, and what it reported counts"
    found = _override(world)
    assert (found["by"], found["reason"]) == ("bea", "her shift")
    assert datetime.fromisoformat(found["until"]) == until
    assert _tagged(world) == 0
    world.assert_safe()
