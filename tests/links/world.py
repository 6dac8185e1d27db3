"""Two clouds, two agents with tokens and keys of their own, and one control plane between them.

Nothing but the clouds is a double: the agents are the real ones, and the control plane is the real application on a
SQLite file. What one agent knows of the other's side came from the control plane.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.cycle import CycleResult
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.offers.registry import Registry
from fractal_cloud.testing.in_process import InProcessClient
from fractal_cloud.testing.tokens import agent_token
from tests import library_caches
from tests.links import clouds, east, west
from tests.links.clouds import Store
from tests.live_systems import LiveSystems

ADMIN_TOKEN = "test-admin-token"
CYCLE = 0.01
PROVIDERS = ("east", "west")
REGISTRY = Registry([east, west])

Declaration = dict[str, Any]
Wrap = Callable[[ControlPlane], ControlPlane]


def _unwrapped(plane: ControlPlane) -> ControlPlane:
    return plane


class World(LiveSystems):
    """One control plane, and one agent for each cloud."""

    def __init__(self, folder: Path, registry: Registry = REGISTRY, cycle_seconds: float = CYCLE) -> None:
        clouds.empty()
        self.cycle_seconds = cycle_seconds
        self.folder = folder
        self.registry = registry
        self.agents: dict[str, Agent] = {}
        self.open_control_plane()

    # --- the processes

    def open_control_plane(self, name: str = "control.db") -> None:
        """Start a control plane on a database file, and the agents with it."""
        settings = ControlSettings(
            database_url=library_caches.database(self.folder / name),
            admin_token=ADMIN_TOKEN,
            cycle_seconds=self.cycle_seconds,
        )
        self.app = create_app(settings)
        self.api = InProcessClient(self.app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self.api.__enter__()
        self.tokens = {name: self._token(name) for name in PROVIDERS}
        for provider in PROVIDERS:
            self.start_agent(provider)

    def _token(self, provider: str) -> str:
        return agent_token(self.api, f"{provider}-agent", providers=[provider])

    def start_agent(self, provider: str, wrap: Wrap = _unwrapped) -> Agent:
        """A new agent for one cloud, with nothing kept of any other; it registers at once."""
        token = self.tokens[provider]
        cycle = self.cycle_seconds
        settings = AgentSettings(
            providers=(provider,), cycle_seconds=cycle, token=token, visibility_seconds=3 * CYCLE, concurrency=2
        )
        agent = Agent(settings, wrap(ControlPlane("http://testserver", token, client=self.api)), self.registry)
        self.agents[provider] = agent
        agent._register()
        return agent

    def kill_agent(self, provider: str) -> None:
        """The agent dies without a word; its scopes are free at once, as if its lease had run out."""
        agent = self.agents[provider]
        agent.close()
        self.as_agent(provider, "/agent/release", {"agentId": agent.settings.agent_id})

    def restart_agent(self, provider: str, wrap: Wrap = _unwrapped) -> Agent:
        """The agent dies, and another one takes its place, with another key."""
        self.kill_agent(provider)
        return self.start_agent(provider, wrap)

    def close(self) -> None:
        """End all of it."""
        for agent in self.agents.values():
            agent.close()
        self.api.__exit__(None, None, None)

    def as_agent(self, provider: str, path: str, body: Mapping[str, Any]) -> Any:
        """Say something with the token of an agent; returns the response."""
        return self.api.post(path, json=dict(body), headers={"Authorization": f"Bearer {self.tokens[provider]}"})

    @property
    def east(self) -> Store:
        """The cloud in the east."""
        return clouds.STORES["east"]

    @property
    def west(self) -> Store:
        """The cloud in the west."""
        return clouds.STORES["west"]

    # --- what people do

    def put(self, live_system: str, *components: Mapping[str, Any], **more: Any) -> Any:
        """Deploy a LiveSystem; returns the response, whatever it is."""
        body = {"id": live_system, "components": list(components), **more}
        return self.api.put(f"/livesystems/{live_system}", json=body)

    def deploy(self, live_system: str, *components: Mapping[str, Any], **more: Any) -> str:
        """Deploy a LiveSystem; returns the mutation's id."""
        response = self.put(live_system, *components, **more)
        assert response.status_code == 202, response.text
        return str(response.json()["mutationId"])

    def delete(self, live_system: str) -> None:
        """Delete a LiveSystem."""
        response = self.api.delete(f"/livesystems/{live_system}")
        assert response.status_code == 202, response.text

    # --- what the agents do

    def cycle(self, *providers: str) -> list[CycleResult]:
        """One cycle of each of these agents (or of all), one after the other."""
        time.sleep(CYCLE * 1.05)
        return [result for provider in providers or PROVIDERS for result in self.agents[provider].run_once()]

    def settle(self, at_most: int = 15) -> int:
        """Cycles of both until one does nothing and nothing is left to do; returns how many it took."""
        for times in range(1, at_most + 1):
            results = self.cycle()
            if all(result.settled and not result.writes and not result.changes for result in results):
                return times
        raise AssertionError(f"not settled after {at_most} cycles: {self.cycle()}")

    # --- what can be seen

    def fields(self, live_system: str, component: str) -> dict[str, Any]:
        """The output fields of links of one component."""
        found = self.component(live_system, component)["outputFields"]
        return {name: value for name, value in found.items() if "." in name}

    def message(self, live_system: str, component: str) -> str:
        """The message of one component."""
        return str(self.component(live_system, component)["message"])

    def journal(self, live_system: str, component: str) -> list[dict[str, Any]]:
        """What the halves of one component's links journalled, newest first."""
        body = self.api.get(f"/livesystems/{live_system}/components/{component}/journal").json()
        return [entry for entry in body["items"] if entry["reason"] == "link" and "link" in entry["before"]]


@contextmanager
def world(folder: Path, registry: Registry = REGISTRY, cycle_seconds: float = CYCLE) -> Iterator[World]:
    """A world with empty clouds and an empty database."""
    made = World(folder, registry, cycle_seconds)
    try:
        yield made
    finally:
        made.close()


def link(target: str, **settings: Any) -> Declaration:
    """One link as people declare it."""
    return {"target": target, "settings": settings}


def workload(component_id: str = "app", *links: Declaration, at: str = "west", **more: Any) -> Declaration:
    """A workload as people declare it."""
    return _declared(component_id, "Workload", at, {"links": list(links), **more})


def database(component_id: str = "db", *, at: str = "east", **more: Any) -> Declaration:
    """A database as people declare it."""
    return _declared(component_id, "Database", at, more)


def gateway(component_id: str = "edge", *, at: str = "east", **more: Any) -> Declaration:
    """A gateway as people declare it."""
    return _declared(component_id, "Gateway", at, more)


def _declared(component_id: str, kind: str, at: str, more: Mapping[str, Any]) -> Declaration:
    return {"id": component_id, "type": f"Toy.{at.capitalize()}{kind}", "provider": at, "parameters": {}, **more}
