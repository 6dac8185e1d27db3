"""What a steady cycle writes to the control plane: one heartbeat per agent, and nothing per component.

The control plane is the real one, on a SQLite file, over HTTP; its statements are counted where they are executed.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2 as httpx
import uvicorn

from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from benchmarks.stock import VPC, Declared
from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store.driver import observe_statements
from fractal_cloud.testing.tokens import agent_token, bearer

COUNT: Final = 1_000
CYCLES: Final = 5
TOKEN: Final = "benchmark"
_WRITES: Final = ("INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")


class Watched:
    """A control plane in this process that counts requests by path and writing statements."""

    def __init__(self, folder: str) -> None:
        settings = ControlSettings(database_url=f"sqlite:///{Path(folder) / 'control.db'}", admin_token=TOKEN)
        self._app = create_app(settings)
        self.requests: Counter[str] = Counter()
        self.statements: Counter[str] = Counter()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._server = uvicorn.Server(uvicorn.Config(self, port=port, log_level="error", lifespan="on"))
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._observing = ExitStack()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.requests[scope["path"]] += 1
        await self._app(scope, receive, send)

    def count(self, statement: str) -> None:
        """Count one statement."""
        verb = statement.split(None, 1)[0].upper()
        if verb in _WRITES:
            self.statements[verb] += 1

    def forget(self) -> None:
        """Begin to count anew."""
        self.requests.clear()
        self.statements.clear()

    def start(self) -> None:
        """Serve, and return when it does."""
        self._observing.enter_context(observe_statements(self.count))
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)

    def stop(self) -> None:
        """End it."""
        self._server.should_exit = True
        self._thread.join(10)
        self._observing.close()


@contextmanager
def watched() -> Iterator[Watched]:
    """A watched control plane that ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        plane = Watched(folder)
        plane.start()
        try:
            yield plane
        finally:
            plane.stop()


def agents_token(plane: Watched) -> str:
    """A token for an agent of the control plane."""
    with httpx.Client(base_url=plane.url, headers=bearer(TOKEN)) as client:
        return agent_token(client, providers=["aws"])


def _deploy(plane: Watched, count: int) -> None:
    with httpx.Client(base_url=plane.url, headers=bearer(TOKEN), timeout=60) as client:
        for live_system, components in Declared(VPC, count).declarations().items():
            body = {"id": live_system, "components": [component.to_json() for component in components]}
            response = client.put(f"/livesystems/{live_system}", json=body)
            assert response.status_code == 202, response.text


def measure(stage: Stage, count: int = COUNT, cycles: int = CYCLES) -> Iterator[Result]:
    """Deploy, come to rest, and count what some more cycles say and write."""
    stage.canned.stock([])
    with watched() as plane:
        token = agents_token(plane)
        settings = AgentSettings(url=plane.url, token=token, providers=("aws",))
        with ControlPlane(plane.url, token) as control:
            agent = Agent(settings, control)
            try:
                agent.run_once()
                _deploy(plane, count)
                _rest(agent)
                plane.forget()
                for _ in range(cycles):
                    agent.run_once()
            finally:
                agent.close()
        reports, beats = plane.requests["/agent/report"], plane.requests["/agent/heartbeat"]
        written = sum(plane.statements.values())
    bars = (
        Bar("no report", reports, 0, exact=True),
        Bar("one heartbeat a cycle", beats, cycles, exact=True),
        Bar("one row a cycle, the heartbeat's", written, cycles, exact=True),
    )
    figures = {"reports": reports, "heartbeats": beats, "rows written": written}
    yield Result("silence", f"one agent, {cycles} steady cycles", count, figures, bars)


def _rest(agent: Agent, at_most: int = 8) -> None:
    for _ in range(at_most):
        results = agent.run_once()
        if results and all(result.settled and not result.changes and not result.writes for result in results):
            return
    raise RuntimeError(f"not at rest after {at_most} cycles")


JOBS: Final = (Job("silence", "what a cycle in which nothing changed writes to the control plane", measure, 30),)
