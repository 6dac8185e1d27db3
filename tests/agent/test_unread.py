"""What a cycle could not read, and what it called: an agent says so with the heartbeat it sends anyway (C11)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.wire import ScopeCycle, Unread
from tests.world import World, subnet, vpc

VPC = "NetworkAndCompute.IaaS.AwsVpc"
SUBNET = "NetworkAndCompute.IaaS.AwsSubnet"
DENIED: dict[str, Any] = {"code": "UnauthorizedOperation", "status": 403, "actor": "agent"}
pytestmark = pytest.mark.rule("C11")


def _at_rest(world: World) -> None:
    world.deploy("ls-a", vpc(), vpc("other", cidrBlock="10.9.0.0/16"), subnet())
    world.settle()
    world.cycle()


def _cycle(world: World) -> ScopeCycle:
    """What the agent's next heartbeat says of its only scope."""
    agent = world.agent
    beat = agent._leases.heartbeat(agent.settings.agent_id, agent._known_event())
    (said,) = beat.cycles.values()
    return said


def _unread(world: World) -> dict[str, Unread]:
    return dict(_cycle(world).unread)


def test_the_calls_of_a_cycle_are_those_that_the_cloud_received(world: World) -> None:
    _at_rest(world)
    world.sandbox.aws.calls.clear()
    world.cycle()
    said = _cycle(world)
    assert said.calls == world.sandbox.aws.calls.count() > 0
    assert (said.throttles, said.errors, said.unread, said.is_writing) == (0, 0, {}, False)
    assert said.seconds > 0


def test_the_calls_of_a_cycle_that_writes_are_counted_too(world: World) -> None:
    _at_rest(world)
    world.deploy("ls-b", vpc("third", cidrBlock="10.8.0.0/16"))
    world.sandbox.aws.calls.clear()
    (result,) = world.cycle()
    assert result.writes > 0
    assert _cycle(world).calls == world.sandbox.aws.calls.count() > 3


def test_what_is_throttled_and_what_fails_is_counted_apart(world: World) -> None:
    _at_rest(world)
    world.cloud.knobs.fail(operation="DescribeSubnets", times=None, **DENIED)
    world.cycle()
    said = _cycle(world)
    assert (said.throttles, said.errors) == (0, 1)
    world.cloud.knobs.reset()
    world.cloud.knobs.throttle(next_calls=100, operation="DescribeSubnets")
    world.cycle()
    said = _cycle(world)
    assert (said.throttles, said.errors) == (1, 0)


@pytest.mark.rule("S0")
def test_a_type_that_cannot_be_read_is_named_with_its_last_read(world: World) -> None:
    _at_rest(world)
    (leased,) = world.agent._leases.scopes.values()
    read_at = leased.held.observed.read_at
    world.cloud.knobs.fail(operation="DescribeSubnets", times=None, **DENIED)
    world.cycle(2)
    unread = _unread(world)
    assert unread.keys() == {SUBNET}
    assert unread[SUBNET].last_read == read_at
    assert leased.held.observed.read_at is not None
    assert leased.held.observed.read_at > unread[SUBNET].since, "the scope itself is read on"
    world.cloud.knobs.reset()
    world.cycle()
    assert _unread(world) == {}


@pytest.mark.rule("S0")
def test_what_is_in_an_unreadable_parent_is_unread_too(world: World) -> None:
    _at_rest(world)
    world.cloud.knobs.fail(operation="DescribeVpcs", times=None, **DENIED)
    world.cycle()
    assert _unread(world).keys() == {VPC, SUBNET}


@pytest.mark.rule("S0")
def test_a_type_that_could_never_be_read_has_no_last_read(world: World) -> None:
    world.cloud.knobs.fail(operation="DescribeVpcs", times=None, **DENIED)
    world.deploy("ls-a", vpc())
    world.cycle(2)
    assert _unread(world)[VPC].last_read is None


@pytest.mark.rule("S20")
def test_a_read_that_finds_everything_as_it_was_reports_nothing_more(world: World) -> None:
    _at_rest(world)
    (before,) = world.api.get("/scopes").json()["items"]
    world.cycle(2)
    (after,) = world.api.get("/scopes").json()["items"]
    assert after["version"] == before["version"]
    assert after["lastRead"] > before["lastRead"]
    assert after["lastCycle"]["calls"] > 0


def _is_awaited(world: World) -> bool:
    return world.agent._leases.has_awaited_read


def test_a_read_that_the_control_plane_waits_for_is_reported_with_a_heartbeat_of_its_own(world: World) -> None:
    """A cycle may be minutes long: nobody waits so long to see that somebody reads again."""
    world.deploy("ls-a", vpc())
    agent = world.agent
    world.cycle()
    assert _is_awaited(world), "its first read"
    agent._beat()
    assert not _is_awaited(world)
    world.cycle()
    assert not _is_awaited(world), "every further read waits for the heartbeat that is due anyway"
    beat = agent._leases.heartbeat(agent.settings.agent_id, agent._known_event())
    agent._leases.note_reported(beat, has_stale=True)
    assert not _is_awaited(world), "it has read nothing since"
    (leased,) = agent._leases.scopes.values()
    leased.held.observed.read_at = agent._clock.now()
    assert _is_awaited(world)
