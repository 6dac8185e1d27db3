"""What the agent does not do: create beside a renamed resource, hammer a refusal, or read more than its budget."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.sharing.aws_state import has_dns, is_there, vpcs
from tests.world import World, vpc
from tests.world import world as make_world

DENIED: dict[str, Any] = {"code": "UnauthorizedOperation", "status": 403, "actor": "agent"}


def _owned(world: World, **parameters: Any) -> str:
    world.deploy("ls-a", vpc(**parameters))
    world.settle()
    return str(world.output("ls-a", "net", "vpcId"))


@pytest.mark.rule("S19", "S18", "S15")
def test_what_was_renamed_is_not_gone_and_gets_no_second_beside_it(world: World) -> None:
    vpc_id = _owned(world)
    world.person.tag(vpc_id, Name="renamed")
    world.cycle(3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "'renamed'" in shown["message"]
    assert "'net'" in shown["message"]
    assert vpc_id in shown["message"]
    assert not vpcs(world)
    world.person.tag(vpc_id, Name="net")
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.output("ls-a", "net", "vpcId") == vpc_id
    world.assert_safe()


@pytest.mark.rule("S19", "S18")
def test_what_was_renamed_and_lost_its_owner_is_still_known_by_its_id(world: World) -> None:
    vpc_id = _owned(world)
    world.person.tag(vpc_id, Name="renamed")
    world.person.untag(vpc_id, "fractal-cloud-owner")
    world.cycle(3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert f"name is 'renamed' on {vpc_id} and 'net' in the declaration" in shown["message"]
    assert not vpcs(world)


@pytest.mark.rule("S17")
def test_a_clock_that_jumps_does_not_end_the_window_of_a_lost_creation(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control plane's clock goes forward by an hour while nobody knows yet whether the VPC was made."""
    with make_world(session_sandbox, tmp_path, monkeypatch, visibility_seconds=60.0) as world:
        knobs = session_sandbox.aws.knobs
        knobs.late_visibility(reads=8, kind="vpc")
        knobs.fail(when="after", cut=True, operation="CreateVpc", actor="agent")
        world.deploy("ls-a", vpc())
        world.cycle(2)
        ahead = timedelta(hours=1)
        monkeypatch.setattr(world.app.state.store.database, "_clock", lambda: datetime.now(UTC) + ahead)
        for _ in range(12):
            world.cycle()
        assert world.status("ls-a", "net") == "Active"
        assert len(vpcs(world)) == 1
        assert not session_sandbox.aws.monitor.lost_races


@pytest.mark.rule("S15", "C2")
def test_after_the_memory_is_lost_a_renamed_resource_still_keeps_its_place(world: World) -> None:
    vpc_id = _owned(world)
    world.person.tag(vpc_id, Name="renamed")
    world.close()
    world.open_control_plane("after.db")
    world.deploy("ls-a", vpc())
    world.cycle(3)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert vpc_id in shown["message"]
    assert "'renamed'" in shown["message"]
    assert "remove its fractal-cloud-owner tag" in shown["message"]
    assert not vpcs(world)
    world.person.untag(vpc_id, "fractal-cloud-owner")
    world.settle()
    assert world.status("ls-a", "net") == "Active", "the way out that the message names"
    assert is_there(world, vpc_id)
    assert len(vpcs(world)) == 1


@pytest.mark.rule("S15", "S7")
@pytest.mark.parametrize("removed", [("managed-by",), ("managed-by", "fractal-cloud-owner")])
def test_a_missing_tag_never_leads_to_a_second_resource(world: World, removed: tuple[str, ...]) -> None:
    vpc_id = _owned(world)
    world.person.untag(vpc_id, *removed)
    for _ in range(2):
        world.deploy("ls-a", vpc())
        world.settle()
        assert world.status("ls-a", "net") == "ManualOverride"
        assert vpcs(world) == [vpc_id]


@pytest.mark.rule("S19", "S4")
def test_what_vanished_is_confirmed_gone_by_its_id_before_it_is_created_again(world: World) -> None:
    vpc_id = _owned(world)
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    world.sandbox.aws.calls.clear()
    world.settle()
    calls = [call for call in world.sandbox.aws.calls if call.actor == "agent"]
    confirmed = next(n for n, call in enumerate(calls) if vpc_id in call.resource_ids)
    created = next(n for n, call in enumerate(calls) if call.operation == "CreateVpc")
    assert confirmed < created
    assert world.status("ls-a", "net") == "Active"
    assert world.output("ls-a", "net", "vpcId") != vpc_id


@pytest.mark.rule("S19", "S0")
def test_nothing_is_created_while_its_going_cannot_be_confirmed(world: World) -> None:
    vpc_id = _owned(world)
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    refused = world.sandbox.aws.knobs.fail(operation="DescribeVpcs", resource=vpc_id, times=None, **DENIED)
    world.cycle(3)
    assert not vpcs(world)
    assert "cannot be read" in world.component("ls-a", "net")["message"]
    world.sandbox.aws.knobs.remove(refused)
    world.settle()
    assert len(vpcs(world)) == 1


@pytest.mark.rule("S19", "S12a")
def test_what_reappears_after_it_was_missed_is_shown_for_a_cycle_before_it_is_changed(world: World) -> None:
    vpc_id = _owned(world, enableDnsHostnames=True)
    world.person.tag(vpc_id, Name="away")
    world.cycle(2)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.person.tag(vpc_id, Name="net")
    world.cycle()
    assert world.status("ls-a", "net") == "Mutating"
    assert not has_dns(world, vpc_id)
    world.settle()
    assert has_dns(world, vpc_id)


@pytest.mark.rule("S21", "S22")
def test_a_denied_write_is_not_hammered_and_starts_again_on_a_new_declaration(world: World) -> None:
    world.sandbox.aws.knobs.fail(operation="CreateVpc", times=None, **DENIED)
    world.deploy("ls-a", vpc())
    world.cycle(8)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "UnauthorizedOperation" in shown["message"]
    assert shown["observedGeneration"] == 0
    tried = world.sandbox.aws.calls.count(operation="CreateVpc")
    assert 1 < tried <= 5, "each pause is twice as long as the one before"
    world.deploy("ls-a", vpc())
    world.cycle()
    assert world.sandbox.aws.calls.count(operation="CreateVpc") == tried + 1
    world.sandbox.aws.knobs.reset()
    world.deploy("ls-a", vpc())
    world.settle()
    assert world.component("ls-a", "net")["observedGeneration"] == 3


@pytest.mark.rule("S21", "S7", "S13")
def test_after_a_denied_write_the_tag_decides_whether_it_is_a_failure(world: World) -> None:
    vpc_id = _owned(world, enableDnsHostnames=True)
    world.sandbox.aws.knobs.fail(operation="ModifyVpcAttribute", times=1, **DENIED)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.cycle()
    assert world.status("ls-a", "net") == "Failed", "it is ours, and could not be reconciled"
    world.settle()
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.rule("S21")
@pytest.mark.usefixtures("frequent_housekeeping")
def test_what_no_agent_serves_is_said_so_within_two_cycles_and_goes_on_once_one_does(world: World) -> None:
    world.agent.run_once()
    world.agent.close()
    world.release(world.agent)
    mutation = world.deploy("ls-a", vpc())
    time.sleep(2 * world.cycle_seconds)
    _wait_until(lambda: world.status("ls-a", "net") == "Failed")
    assert "no running agent serves 'aws' in environment 'default'" in world.component("ls-a", "net")["message"]
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    world.start_agent()
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


def _wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.rule("S21", "C8")
@pytest.mark.usefixtures("frequent_housekeeping")
def test_a_deploy_before_the_first_agent_waits_and_completes_once_it_comes(world: World) -> None:
    mutation = world.deploy("ls-a", vpc())
    _wait_until(lambda: world.component("ls-a", "net")["message"].startswith("waits for an agent: none has registered"))
    assert world.status("ls-a", "net") == "Instantiating"
    assert world.mutation("ls-a", mutation)["status"] == "InProgress"
    world.settle()
    assert world.mutation("ls-a", mutation)["status"] == "Completed"


@pytest.mark.rule("G9", "S2", "S4")
def test_only_a_deploy_after_its_loss_was_reported_creates_what_was_in_override(world: World) -> None:
    vpc_id = _owned(world)
    world.person.break_glass(vpc_id)
    world.cycle()
    world.person.ec2.delete_vpc(VpcId=vpc_id)
    world.deploy("ls-a", vpc())
    world.settle()
    shown = world.component("ls-a", "net")
    assert shown["status"] == "ManualOverride", "whoever deployed could not know yet"
    assert "the resource is gone" in shown["message"]
    assert not vpcs(world)
    world.deploy("ls-a", vpc())
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert len(vpcs(world)) == 1


@pytest.mark.rule("S22", "S0")
def test_observed_generation_waits_for_the_outcome(world: World) -> None:
    vpc_id = _owned(world, enableDnsHostnames=False)
    world.sandbox.aws.knobs.fail(operation="DescribeVpcs", times=1, **DENIED)
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.cycle()
    shown = world.component("ls-a", "net")
    assert (shown["generation"], shown["observedGeneration"]) == (2, 1), "not on what cannot be read"
    world.sandbox.aws.knobs.fail(operation="ModifyVpcAttribute", times=1, **DENIED)
    world.cycle()
    assert world.component("ls-a", "net")["observedGeneration"] == 1, "not on a failed write"
    world.settle()
    assert world.component("ls-a", "net")["observedGeneration"] == 2
    assert has_dns(world, vpc_id)


@pytest.mark.rule("S22", "S18")
def test_what_cannot_be_changed_in_place_fails_while_the_rest_is_reconciled(world: World) -> None:
    vpc_id = _owned(world, enableDnsHostnames=False)
    world.deploy("ls-a", vpc(cidrBlock="10.99.0.0/16", enableDnsHostnames=True))
    world.settle()
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert 'cidrBlock is "10.0.0.0/16" and cannot become "10.99.0.0/16" in place' in shown["message"]
    assert has_dns(world, vpc_id)


# --- S23


@pytest.fixture
def thrifty(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose agent may make two calls per service and cycle to sweep."""
    with make_world(session_sandbox, tmp_path, monkeypatch, sweep_budget=2) as made:
        yield made


def _several(world: World, many: int) -> list[str]:
    names = [f"net-{n}" for n in range(many)]
    declared = [vpc(name, cidrBlock=f"10.{n}.0.0/16", enableDnsHostnames=False) for n, name in enumerate(names)]
    world.deploy("ls-a", *declared)
    world.settle()
    return names


def _attribute_reads(world: World) -> int:
    return int(world.sandbox.aws.calls.count(operation="DescribeVpcAttribute", actor="agent"))


@pytest.mark.rule("S23", "S20")
def test_a_sweep_keeps_its_budget_and_still_comes_round(thrifty: World) -> None:
    names = [f"net-{n}" for n in range(5)]
    thrifty.deploy(
        "ls-a", *(vpc(name, cidrBlock=f"10.{n}.0.0/16", enableDnsHostnames=False) for n, name in enumerate(names))
    )
    thrifty.settle()
    thrifty.sandbox.aws.calls.clear()
    thrifty.cycle()
    assert _attribute_reads(thrifty) == 2
    last = thrifty.output("ls-a", names[-1], "vpcId")
    thrifty.person.ec2.modify_vpc_attribute(VpcId=last, EnableDnsHostnames={"Value": True})
    thrifty.cycle(3)
    assert not has_dns(thrifty, last), "found when its turn came"


@pytest.mark.rule("S23", "G3")
def test_what_is_in_override_is_read_whole_in_every_cycle_whatever_the_budget(thrifty: World) -> None:
    names = [f"net-{n}" for n in range(4)]
    thrifty.deploy(
        "ls-a", *(vpc(name, cidrBlock=f"10.{n}.0.0/16", enableDnsHostnames=False) for n, name in enumerate(names))
    )
    thrifty.settle()
    ids = [thrifty.output("ls-a", name, "vpcId") for name in names]
    for one in ids:
        thrifty.person.break_glass(one)
    thrifty.cycle()
    for one in ids:
        thrifty.person.ec2.modify_vpc_attribute(VpcId=one, EnableDnsHostnames={"Value": True})
    thrifty.sandbox.aws.calls.clear()
    thrifty.cycle()
    assert _attribute_reads(thrifty) == len(ids)
    for name in names:
        assert thrifty.drift("ls-a", name) == {"enableDnsHostnames": {"declared": False, "actual": True}}


@pytest.mark.rule("S23", "G1")
def test_tags_are_never_swept(thrifty: World) -> None:
    names = [f"net-{n}" for n in range(4)]
    thrifty.deploy(
        "ls-a", *(vpc(name, cidrBlock=f"10.{n}.0.0/16", enableDnsHostnames=False) for n, name in enumerate(names))
    )
    thrifty.settle()
    for name in names:
        thrifty.person.break_glass(thrifty.output("ls-a", name, "vpcId"))
    thrifty.cycle()
    assert {thrifty.status("ls-a", name) for name in names} == {"ManualOverride"}
