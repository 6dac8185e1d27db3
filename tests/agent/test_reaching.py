"""Several realms of one provider: an agent serves those it reaches, and tries the others again."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fractal_cloud.agent.client import ControlPlane, ControlPlaneUnreachable
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import Registered, Registration
from fractal_cloud.offers.offer import Cloud, Provider, Session
from fractal_cloud.offers.registry import Registry
from tests.world import World


class Clusters(Session):
    """A provider with several realms, of which some are down."""

    def __init__(self, **realms: str) -> None:
        self.all = realms
        self.down = set(realms)

    def realms(self) -> Mapping[str, str]:
        up = {name: realm for name, realm in self.all.items() if name not in self.down}
        if not up:
            raise Unreadable("no cluster answers")
        return up

    def missing(self) -> Mapping[str, str]:
        return dict.fromkeys(self.down, "it does not answer")

    def at(self, scope: Scope) -> Cloud:
        raise AssertionError(f"nobody has components in {scope.key}")


class OneProvider(Registry):
    def __init__(self, session: Session) -> None:
        super().__init__([])
        self._providers["clusters"] = Provider("clusters", "Clusters", lambda: session)


class LosesSecondRegistration(ControlPlane):
    """A control plane that does not answer the second registration."""

    registrations = 0

    def register(self, registration: Registration) -> Registered:
        self.registrations += 1
        if self.registrations == 2:
            raise ControlPlaneUnreachable("no answer")
        return super().register(registration)


@contextmanager
def running(world: World, session: Session, plane: ControlPlane | None = None) -> Iterator[None]:
    plane = plane or world.plane()
    settings = AgentSettings(providers=("clusters",), token=world.agent_token, cycle_seconds=0.05, agent_id="reaching")
    agent = Agent(settings, plane, OneProvider(session))
    thread = threading.Thread(target=agent.run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        agent.stop()
        thread.join(20)


def reached(world: World) -> dict[str, str]:
    agents: list[dict[str, Any]] = world.api.get("/agents").json()["items"]
    return {
        reach["name"]: reach["realm"] for agent in agents if agent["id"] == "reaching" for reach in agent["reaches"]
    }


def wait_for(world: World, expected: Mapping[str, str]) -> None:
    deadline = time.monotonic() + 20
    while reached(world) != expected:
        assert time.monotonic() < deadline, f"{reached(world)} instead of {expected}"
        time.sleep(0.02)


def test_a_cluster_that_is_down_keeps_nobody_from_the_others_and_is_tried_again(world: World) -> None:
    session = Clusters(blue="uid-blue", green="uid-green")
    session.down = {"green"}
    with running(world, session):
        wait_for(world, {"blue": "uid-blue"})
        session.down = {"blue"}  # what was reached once stays known
        wait_for(world, {"blue": "uid-blue", "green": "uid-green"})


def test_an_agent_that_reaches_nothing_yet_waits_until_it_does(world: World) -> None:
    session = Clusters(blue="uid-blue")
    with running(world, session):
        time.sleep(0.3)
        assert reached(world) == {}
        session.down = set()
        wait_for(world, {"blue": "uid-blue"})


def test_what_was_found_while_the_control_plane_did_not_answer_is_registered_later(world: World) -> None:
    session = Clusters(blue="uid-blue", green="uid-green")
    session.down = {"green"}
    plane = LosesSecondRegistration("http://testserver", world.agent_token, client=world.api)
    with running(world, session, plane):
        wait_for(world, {"blue": "uid-blue"})
        session.down = set()
        wait_for(world, {"blue": "uid-blue", "green": "uid-green"})
    assert plane.registrations == 3
