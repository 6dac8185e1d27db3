"""A write that does not stick is not a fight to win: a script that sets a value back each time (S27)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.agent.settings import AgentSettings
from fractal_sandbox import Sandbox
from tests.manual_clock import ManualClock
from tests.sharing.aws_state import has_dns
from tests.world import World, vpc
from tests.world import world as make_world

pytestmark = pytest.mark.rule("S27")
MINUTE = 60.0


@pytest.fixture
def world(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> Iterator[World]:
    """A world with a cycle of a minute."""
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=MINUTE) as made:
        clock.drive(made)
        yield made


def _cycles(world: World, clock: ManualClock, many: int) -> None:
    for _ in range(many):
        clock.advance(MINUTE)
        world.agent.run_once()


def _owned(world: World) -> str:
    world.deploy("ls-a", vpc(enableDnsHostnames=True, enableDnsSupport=True))
    world.agent.run_once()
    world.sandbox.aws.calls.clear()
    return str(world.output("ls-a", "net", "vpcId"))


def _script(world: World, vpc_id: str) -> None:
    """What somebody's cron job does."""
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})


def _fight(world: World, clock: ManualClock, vpc_id: str, cycles: int = 8) -> None:
    for _ in range(cycles):
        _script(world, vpc_id)
        _cycles(world, clock, 1)


def _corrections(world: World) -> int:
    return int(world.sandbox.aws.calls.count(operation="ModifyVpcAttribute", actor="agent"))


def test_a_script_that_sets_a_value_back_is_given_up_after_three_corrections(world: World, clock: ManualClock) -> None:
    vpc_id = _owned(world)
    _fight(world, clock, vpc_id)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "enableDnsHostnames was set back" in shown["message"]
    assert "somebody or something outside Fractal Cloud" in shown["message"]
    assert "or break the glass" in shown["message"]
    assert _corrections(world) <= 3
    before = _corrections(world)
    world.restart_agent()
    _fight(world, clock, vpc_id, cycles=15)
    assert _corrections(world) == before
    world.person.tag(vpc_id, note="x")
    _cycles(world, clock, 1)
    assert world.status("ls-a", "net") == "Failed"
    world.assert_safe()


def test_it_ends_when_the_value_has_stood_for_ten_cycles(world: World, clock: ManualClock) -> None:
    vpc_id = _owned(world)
    _fight(world, clock, vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    _cycles(world, clock, 9)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "it has been as declared since" in shown["message"]
    _cycles(world, clock, 2)
    assert world.status("ls-a", "net") == "Active"
    _script(world, vpc_id)
    _cycles(world, clock, 1)
    assert has_dns(world, vpc_id), "corrected again"


@pytest.mark.parametrize("way", ["deploy", "handshake", "force push"])
def test_it_ends_with_a_new_declaration_a_handshake_or_a_force_push(world: World, clock: ManualClock, way: str) -> None:
    vpc_id = _owned(world)
    _fight(world, clock, vpc_id)
    assert world.status("ls-a", "net") == "Failed"
    match way:
        case "deploy":
            world.deploy("ls-a", vpc(enableDnsHostnames=True, enableDnsSupport=True))
        case "handshake":
            world.person.hand_back(vpc_id)
        case _:
            assert world.force_push("ls-a", "net").status_code == 202
    _cycles(world, clock, 1)
    assert has_dns(world, vpc_id)
    assert world.status("ls-a", "net") == "Active"


def test_breaking_the_glass_ends_it_too_and_the_drift_shows(world: World, clock: ManualClock) -> None:
    vpc_id = _owned(world)
    _fight(world, clock, vpc_id)
    world.person.break_glass(vpc_id)
    _cycles(world, clock, 1)
    assert world.status("ls-a", "net") == "ManualOverride"
    assert world.drift("ls-a", "net") == {"enableDnsHostnames": {"declared": True, "actual": False}}


def test_an_agent_with_long_cycles_counts_as_many_of_them_as_one_that_is_quick() -> None:
    settings = AgentSettings(cycle_seconds=MINUTE, visibility_seconds=MINUTE)
    quick, slow = settings.limits(), settings.limits(4 * MINUTE)
    assert quick.span.total_seconds() == settings.setback_cycles * MINUTE
    assert slow.span.total_seconds() == settings.setback_cycles * 5 * MINUTE
    assert slow.window == quick.window
