"""The toy family's cloud, an agent that serves it, and a control plane: all real, but for the cloud.

The type's name is all that a declaration says: the control plane and the agent make what they need of the family.
"""

from __future__ import annotations

import threading
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
from tests.families import toys
from tests.links.clouds import Store
from tests.live_systems import LiveSystems

ADMIN_TOKEN = "test-admin-token"
CYCLE = 0.01

Declaration = dict[str, Any]
Wrap = Callable[[ControlPlane], ControlPlane]


def _unwrapped(plane: ControlPlane) -> ControlPlane:
    return plane


class World(LiveSystems):
    """One control plane and one agent at a time, for a vendor whose types have no classes."""

    def __init__(self, folder: Path, **agent: Any) -> None:
        toys.empty()
        self.folder = folder
        self._settings = {"secrets_file": folder / "secrets.yaml", "state_dir": folder / "state", **agent}
        self.open_control_plane()

    # --- the processes

    def open_control_plane(self) -> None:
        """Start a control plane on a database file, and the agent with it."""
        url = library_caches.database(self.folder / "control.db")
        settings = ControlSettings(database_url=url, admin_token=ADMIN_TOKEN, cycle_seconds=CYCLE)
        self.app = create_app(settings, registry=Registry([toys.another("control_plane")]))
        self.api = InProcessClient(self.app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self.api.__enter__()
        self.token = agent_token(self.api, "toys-agent", providers=["toys"])
        self.start_agent()

    def start_agent(self, wrap: Wrap = _unwrapped) -> Agent:
        """A new agent, with nothing kept of any other but its folder; it registers at once."""
        settings = AgentSettings(
            providers=("toys",),
            cycle_seconds=CYCLE,
            token=self.token,
            visibility_seconds=3 * CYCLE,
            concurrency=2,
            **self._settings,
        )
        plane = wrap(ControlPlane("http://testserver", self.token, client=self.api))
        self.agent = Agent(settings, plane, Registry([toys.another("agent")]))
        self.agent._register()
        return self.agent

    def restart_agent(self, wrap: Wrap = _unwrapped) -> Agent:
        """The agent dies without a word, and another one takes its place."""
        self.agent.close()
        body = {"agentId": self.agent.settings.agent_id}
        self.api.post("/agent/release", json=body, headers={"Authorization": f"Bearer {self.token}"})
        return self.start_agent(wrap)

    def close(self) -> None:
        """End all of it."""
        self.agent.close()
        self.api.__exit__(None, None, None)

    @property
    def cloud(self) -> Store:
        """The vendor's world."""
        return toys.STORES["toys"]

    # --- what people do

    def put(self, live_system: str, *components: Mapping[str, Any], **more: Any) -> Any:
        """Deploy a LiveSystem; returns the response, whatever it is."""
        body = {"id": live_system, "components": list(components), **more}
        return self.api.put(f"/livesystems/{live_system}", json=body)

    def deploy(self, *components: Mapping[str, Any], live_system: str = "shop", **more: Any) -> str:
        """Deploy a LiveSystem; returns the mutation's id."""
        response = self.put(live_system, *components, **more)
        assert response.status_code == 202, response.text
        return str(response.json()["mutationId"])

    def delete(self, live_system: str = "shop") -> None:
        """Delete a LiveSystem."""
        response = self.api.delete(f"/livesystems/{live_system}")
        assert response.status_code == 202, response.text

    # --- what the agent does

    def cycle(self, times: int = 1) -> list[CycleResult]:
        """One cycle after the other."""
        results: list[CycleResult] = []
        for _ in range(times):
            time.sleep(CYCLE * 1.05)
            results = self.agent.run_once()
        return results

    def settle(self, at_most: int = 15) -> int:
        """Cycles until one does nothing and nothing is left to do; returns how many it took."""
        for times in range(1, at_most + 1):
            results = self.cycle()
            if all(result.settled and not result.writes and not result.changes for result in results):
                return times
        raise AssertionError(f"not settled after {at_most} cycles: {self.cycle()}")

    # --- what can be seen

    def fields(self, component: str, live_system: str = "shop") -> dict[str, Any]:
        """The output fields of one component."""
        found: dict[str, Any] = self.component(live_system, component)["outputFields"]
        return found

    def message(self, component: str, live_system: str = "shop") -> str:
        """The message of one component."""
        return str(self.component(live_system, component)["message"])


@contextmanager
def world(folder: Path, **agent: Any) -> Iterator[World]:
    """A world with an empty cloud and an empty database."""
    made = World(folder, **agent)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def running(made: World) -> Iterator[None]:
    """Let the agent work beside what is done here."""
    ended = threading.Event()

    def work() -> None:
        while not ended.is_set():
            made.cycle()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def queue(component_id: str = "jobs", **values: Any) -> Declaration:
    """A queue as people declare it."""
    return declared(toys.QUEUE, component_id, Delay=values.pop("Delay", 5), **values)


def alarm(component_id: str = "loud", **values: Any) -> Declaration:
    """An alarm as people declare it."""
    return declared(toys.ALARM, component_id, **values)


def declared(component_type: str, component_id: str, **values: Any) -> Declaration:
    """A component of any type of the vendor; ``dependencies`` are its own."""
    more: Declaration = {
        name: values.pop(name) for name in ("dependencies", "ignoreDrift", "importOnly", "createOnce") if name in values
    }
    values.setdefault("region", "north")
    return {"id": component_id, "type": component_type, "provider": "toys", "parameters": values, **more}
