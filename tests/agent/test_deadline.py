"""The agent's own deadline: from before it asked, by clocks that do not stop; and scopes that are no longer its own."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from fractal_cloud.agent import deadline
from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.deadline import Deadline
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.control.store import Store
from fractal_cloud.model.wire import Beat, Heartbeat, Registered, Registration
from tests.world import World, vpc

REGIONS = ("eu-west-1", "eu-central-1", "us-east-1", "us-west-2")


class Clocks:
    """Both clocks, set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steady, self.wall = 100.0, 1_000_000.0
        monkeypatch.setattr(deadline, "steady", lambda: self.steady)
        monkeypatch.setattr(time, "time", lambda: self.wall)


def test_before_the_first_answer_nothing_may_be_written() -> None:
    assert Deadline().has_passed()


@pytest.mark.parametrize(
    ("steady", "wall", "reason"),
    [
        (11.0, 11.0, "time went by"),
        (11.0, 0.0, "the machine slept, and its wall clock was not set yet"),
        (0.0, 11.0, "the machine was frozen from outside, and its wall clock was set right again"),
        (11.0, -500.0, "somebody set the wall clock back"),
    ],
)
def test_whichever_clock_says_first_that_it_is_too_late_is_believed(
    steady: float, wall: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = Clocks(monkeypatch)
    mine = Deadline()
    mine.renew(deadline.moment(), 10.0)
    assert not mine.has_passed()
    clocks.steady += steady
    clocks.wall += wall
    assert mine.has_passed(), reason


def test_the_steady_clock_is_the_one_that_goes_on_while_the_machine_sleeps() -> None:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        pytest.skip("only Linux has such a clock")
    assert abs(deadline.steady() - time.clock_gettime(time.CLOCK_BOOTTIME)) < 1


class Slow(ControlPlane):
    """A control plane whose answers to registrations and heartbeats take longer than the lease they give."""

    def __init__(self, world: World, delay: Callable[[], None]) -> None:
        super().__init__("http://testserver", world.agent_token, client=world.api)
        self._delay = delay

    def register(self, registration: Registration) -> Registered:
        answer = super().register(registration)
        self._delay()
        return answer

    def heartbeat(self, beat: Heartbeat) -> Beat:
        answer = super().heartbeat(beat)
        self._delay()
        return answer


def test_the_lease_counts_from_before_the_registration_was_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)

    def delay() -> None:
        clocks.steady += 8.0

    agent = _agent(world, Slow(world, delay), "slow")
    agent._register()
    assert not agent._may_write(), "seven seconds, of which eight went by before the answer was there"
    agent.close()


def test_the_lease_counts_from_before_the_heartbeat_was_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks(monkeypatch)
    slowness = [0.0]

    def delay() -> None:
        clocks.steady += slowness[0]

    agent = _agent(world, Slow(world, delay), "slow")
    agent._register()
    agent._beat()
    assert agent._may_write()
    slowness[0] = 8.0
    agent._beat()
    assert not agent._may_write(), "seven seconds, of which eight went by before the answer was there"
    agent.close()


def test_what_is_known_of_a_scope_that_was_anothers_in_between_is_not_used_again(world: World) -> None:
    """Somebody took it over and gave it back: its work did not change, so the claim returns none of it, and no cycle
    saw the loss.
    """
    world.deploy("ls-a", vpc())
    world.settle()
    (before,) = world.agent._leases.scopes.values()
    with _store(world).write() as tx:
        tx.connection.exec_driver_sql("UPDATE scopes SET token = token + 1")
    world.agent._claim()
    assert before.held.is_lost
    assert not world.agent._leases.scopes, "all of its work is asked for in the next claim"
    world.agent._claim()
    (after,) = world.agent._leases.scopes.values()
    assert after.held is not before.held
    assert after.held.work.tracked
    world.settle()
    world.assert_safe()


def _agent(world: World, plane: ControlPlane, name: str) -> Agent:
    settings: dict[str, Any] = {"providers": ("aws",), "token": world.agent_token, "cycle_seconds": world.cycle_seconds}
    return Agent(AgentSettings(agent_id=name, **settings), plane)


def _another(world: World, name: str) -> Agent:
    return _agent(world, world.plane(), name)


def _store(world: World) -> Store:
    store: Store = world.app.state.store
    return store


def _held(agent: Agent) -> set[str]:
    return set(agent._leases.scopes)


def test_a_newcomer_gets_its_share_and_nothing_moves_after_that(world: World) -> None:
    world.deploy("ls-a", *(vpc(f"net-{region}", region=region) for region in REGIONS))
    world.settle()
    assert len(_held(world.agent)) == len(REGIONS)
    other = _another(world, "other")
    for _ in range(4):
        other.run_once()
        world.cycle()
    assert len(_held(other)) == len(_held(world.agent)) == 2
    assert not _held(other) & _held(world.agent)
    before = _held(other)
    for _ in range(2):
        other.run_once()
        world.cycle()
    assert _held(other) == before
    world.assert_safe()
    other.close()


def test_a_scope_in_the_middle_of_a_cycle_is_not_given_back(world: World) -> None:
    world.deploy("ls-a", *(vpc(f"net-{region}", region=region) for region in REGIONS))
    world.settle()
    agent = world.agent
    for leased in agent._leases.scopes.values():
        leased.running = agent._cycles.submit(lambda: None)  # type: ignore[arg-type,return-value]
    agent._give_back(sorted(_held(agent)))
    assert len(_held(agent)) == len(REGIONS)
    for leased in agent._leases.scopes.values():
        leased.running = None
    agent._give_back(sorted(_held(agent))[:1])
    assert len(_held(agent)) == len(REGIONS) - 1


def test_a_scope_lost_while_its_cycle_runs_is_not_written_to_though_the_agent_is_alive_again(world: World) -> None:
    """The heartbeat that renews the deadline also says what was lost, and that counts first."""
    world.deploy("ls-a", vpc())
    world.settle()
    (leased,) = world.agent._leases.scopes.values()
    world.agent._leases.deadline = Deadline()
    with _store(world).write() as tx:  # somebody else had it, for a moment
        tx.connection.exec_driver_sql("UPDATE scopes SET token = token + 1")
    world.agent._beat()
    assert world.agent._may_write(), "the agent itself is alive"
    assert leased.held.is_lost
    assert not world.agent._leases.scopes
