"""A backup of the control plane's database is restored: what it remembers is no truth (C9)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.agent.client import ControlPlaneRefuses, LeaseLost
from tests.sharing.looking import has_dns, is_there
from tests.world import World, vpc


def _cycle(world: World, times: int = 1) -> None:
    """Cycles of an agent that registers anew where it is refused, as its own loop does."""
    for _ in range(times):
        try:
            world.cycle()
        except (LeaseLost, ControlPlaneRefuses):
            world.agent._registered = False
            world.cycle()


def _change_by_hand(world: World, vpc_id: str) -> None:
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})


def _writes(world: World) -> list[str]:
    return [call.operation for call in world.sandbox.aws.calls.find(actor="agent", writes_only=True) if call.effect]


def _override_that_only_memory_knows(world: World) -> str:
    """A person broke the glass, changed the VPC, and put managed-by back without the handshake (S11)."""
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.backup()
    world.person.break_glass(vpc_id)
    _change_by_hand(world, vpc_id)
    world.cycle()
    world.person.tag(vpc_id, managed_by="fractal-cloud")
    world.settle()
    assert world.status("ls-a", "net") == "ManualOverride"
    world.sandbox.aws.calls.clear()
    return vpc_id


@pytest.mark.rule("C9", "S11")
def test_an_override_that_only_memory_knew_is_not_reverted_after_a_restore(world: World) -> None:
    vpc_id = _override_that_only_memory_knows(world)
    world.restore()
    _cycle(world, 4)
    assert _writes(world) == []
    assert not has_dns(world, vpc_id)
    shown: dict[str, Any] = world.component("ls-a", "net")
    assert "restored from a backup" in shown["message"]
    assert shown["outputFields"]["drift"] == {"enableDnsHostnames": {"declared": True, "actual": False}}
    world.assert_safe()


@pytest.mark.rule("C9", "O10")
def test_what_was_deployed_again_is_not_deleted_by_a_backup_taken_during_its_deletion(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.delete("ls-a")
    world.backup()
    world.settle()
    world.deploy("ls-a", vpc())
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    world.sandbox.aws.calls.clear()
    world.restore()
    _cycle(world, 4)
    assert is_there(world, vpc_id)
    assert _writes(world) == []
    world.assert_safe()
