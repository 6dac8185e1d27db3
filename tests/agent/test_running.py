"""The agent as a process: woken at once, stopped cleanly, bounded, patient with one service at a time, and fenced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fractal_cloud.agent.client import ControlPlaneRefuses
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.model.wire import Registration
from fractal_cloud.offers.aws.cloud import AwsSession
from fractal_cloud.offers.aws.vpc import AwsVpc, AwsVpcOffer
from fractal_cloud.offers.offer import Provider
from fractal_cloud.offers.registry import Registry
from fractal_sandbox import Sandbox
from tests.sharing.aws_state import vpcs
from tests.world import World, security_group, subnet, vpc
from tests.world import world as make_world

SLEEPY = 60.0


@pytest.fixture
def sleepy(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A world whose cycles are a minute apart: whatever happens sooner was woken."""
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=SLEEPY) as made:
        yield made


@contextmanager
def _running(agent: Agent) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=agent.run, name="agent", daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        agent.stop()
        thread.join(30)


def _wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def _another(world: World, **settings: Any) -> Agent:
    plane = world.plane()
    common = {"providers": ("aws",), "token": world.agent_token, "cycle_seconds": world.cycle_seconds}
    return Agent(AgentSettings(**{**common, **settings}), plane)


def _is(world: World, status: str, component: str = "net") -> Callable[[], bool]:
    return lambda: bool(world.status("ls-a", component) == status)


def _has_reached(world: World, generation: int) -> Callable[[], bool]:
    return lambda: bool(world.component("ls-a", "net")["observedGeneration"] == generation)


@pytest.mark.rule("C5")
def test_a_deploy_wakes_the_agent_at_once(sleepy: World) -> None:
    with _running(sleepy.agent):
        sleepy.deploy("ls-a", vpc(enableDnsHostnames=False))
        _wait_for(_has_reached(sleepy, 1))
        sleepy.deploy("ls-a", vpc(enableDnsHostnames=True))
        _wait_for(_has_reached(sleepy, 2))
    assert sleepy.status("ls-a", "net") == "Active"


@pytest.mark.rule("C5", "G10", "G13")
def test_an_operators_request_wakes_the_agent_at_once(sleepy: World) -> None:
    with _running(sleepy.agent):
        sleepy.deploy("ls-a", vpc())
        _wait_for(_is(sleepy, "Active"))
        sleepy.glass("ls-a", "net", "break", reason="now")
        _wait_for(_is(sleepy, "ManualOverride"))
        _wait_for(lambda: "managed-by" not in sleepy.person.tags(sleepy.output("ls-a", "net", "vpcId")))
        _wait_for(lambda: sleepy.force_push("ls-a", "net").status_code == 202)
        _wait_for(_is(sleepy, "Active"))


@pytest.mark.rule("C5")
def test_an_agent_that_stops_ends_soon_and_gives_its_scopes_back(sleepy: World) -> None:
    with _running(sleepy.agent) as thread:
        sleepy.deploy("ls-a", vpc())
        _wait_for(_is(sleepy, "Active"))
        started = time.monotonic()
        sleepy.agent.stop()
        thread.join(30)
        assert not thread.is_alive()
        assert time.monotonic() - started < 20.0
    successor = _another(sleepy)
    successor.run_once()
    held = successor._leases.scopes
    successor.close()
    assert held, "another one takes the scope over at once, without waiting for a lease to run out"


@pytest.mark.rule("S16")
def test_a_stopped_agent_begins_no_new_write(world: World) -> None:
    world.sandbox.aws.knobs.before_call(
        lambda _: world.agent.stop(), times=1, actor="agent", operation="DescribeSubnets"
    )
    world.deploy("ls-a", vpc(), subnet())
    world.cycle()
    assert not world.sandbox.aws.calls.count(actor="agent", writes_only=True)


class _InFlight:
    """Counts the agent's calls that are under way at once; each takes a moment."""

    def __init__(self, world: World) -> None:
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0
        knobs = world.sandbox.aws.knobs
        knobs.before_call(self._begin, actor="agent")
        knobs.after_call(lambda _: self._count(-1), actor="agent")

    def _begin(self, _: object) -> None:
        self._count(1)
        time.sleep(0.05)

    def _count(self, change: int) -> None:
        with self._lock:
            self._now += change
            self.most = max(self.most, self._now)


@pytest.mark.rule("S23")
def test_no_more_calls_are_under_way_than_the_settings_allow(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make_world(session_sandbox, tmp_path, monkeypatch, concurrency=3) as world:
        names = [f"net-{n}" for n in range(9)]
        counted = _InFlight(world)
        world.deploy(
            "ls-a", *(vpc(name, cidrBlock=f"10.{n}.0.0/16", enableDnsHostnames=True) for n, name in enumerate(names))
        )
        world.settle()
        assert counted.most == 3, "as many as allowed, and not one more"
        assert {world.status("ls-a", name) for name in names} == {"Active"}


BUCKET = {
    "id": "store",
    "type": "Storage.PaaS.AwsS3",
    "provider": "aws",
    "parameters": {"region": "eu-west-1", "name": "a-store-of-mine"},
}


@pytest.mark.rule("S0", "S21")
def test_a_service_that_throttles_does_not_starve_the_others(world: World) -> None:
    world.sandbox.aws.knobs.throttle(rate=0.001, burst=1, service="s3", actor="agent")
    world.deploy("ls-a", vpc(), subnet(), security_group(), BUCKET)
    world.cycle(2)
    assert {world.status("ls-a", name) for name in ("net", "subnet", "group")} == {"Active"}
    waiting = world.component("ls-a", "store")
    assert waiting["status"] not in ("Active", "Missing")
    assert waiting["observedGeneration"] == 0
    backoffs = [leased.held.backoff.throttled_until for leased in world.agent._leases.scopes.values()]
    assert any(backoffs), "it is left alone for a while"
    for backoff in backoffs:
        backoff.update({service: until + timedelta(hours=1) for service, until in backoff.items()})  # on any machine
    asked = world.sandbox.aws.calls.count(service="s3", actor="agent")
    world.cycle(2)
    assert world.sandbox.aws.calls.count(service="s3", actor="agent") == asked
    world.assert_safe()


@pytest.mark.rule("S16", "O2")
def test_the_report_of_a_stale_holder_is_refused_as_a_whole_and_it_writes_nothing_more(world: World) -> None:
    world.deploy("ls-a", vpc())
    successor = _another(world)

    def lose_the_scope(_: object) -> None:
        world.release(world.agent)
        successor._register()
        successor._claim()

    world.sandbox.aws.knobs.before_call(lose_the_scope, times=1, actor="agent", operation="DescribeVpcs")
    world.cycle()
    assert not world.sandbox.aws.calls.count(actor="agent", writes_only=True), "its intent was refused"
    shown = world.component("ls-a", "net")
    assert (shown["observedGeneration"], shown["resourceId"]) == (0, None)
    successor.run_once()
    successor.close()
    assert world.status("ls-a", "net") == "Active"
    assert len(vpcs(world)) == 1
    world.assert_safe()


class _Net(AwsVpc):
    """A type of somebody else whose parent is no parameter."""

    type = "Test.Net"
    provider = "test"


class _NetOffer(AwsVpcOffer):
    component = _Net
    parent = "vpc"


@pytest.mark.rule("L16")
def test_an_agent_does_not_start_with_a_type_that_contradicts_itself(world: World) -> None:
    module = ModuleType("somebodys")
    _NetOffer.__module__ = module.__name__
    module.__dict__.update(offer=_NetOffer, provider=Provider("test", "Test", AwsSession))
    settings = AgentSettings(providers=("test",), token=world.agent_token)
    plane = world.plane()
    with pytest.raises(RegistrationError, match=r"types\[Test.Net\].parent: names 'vpc', which is no parameter"):
        Agent(settings, plane, Registry([module]))


@pytest.mark.rule("L16")
def test_a_refused_registration_is_logged_with_every_error(world: World) -> None:
    plane = world.plane()
    schema = {"type": "object", "properties": {"size": {"type": "big"}}}
    facts = TypeFacts(type="Test.Net", provider="test", title="Net", parameter_schema=schema)
    wanted = Registration(agent_id="a1", environment="default", reaches=[], types=[facts], cycle_seconds=1)
    with pytest.raises(ControlPlaneRefuses, match=r"types\[Test.Net\].*'big'"):
        plane.register(wanted)
