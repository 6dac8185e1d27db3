"""Agents as processes of their own, and what it takes to kill one with SIGKILL at exactly one of its effects.

The sandbox and the control plane are servers in the test's process, so that they know when an effect happens. Agents
are forked from a process that has imported them already: that makes them quick to start and shares nothing else.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, cast

import httpx2 as httpx
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store
from fractal_cloud.testing.in_process import InProcessClient
from fractal_cloud.testing.tokens import agent_token, bearer
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.calls import Call, RecordedCall
from tests import aws_rights, library_caches
from tests.faults.effects import Fault
from tests.faults.worlds import FaultyWorld
from tests.world import ADMIN_TOKEN, Person

CYCLE = 0.1
VISIBLE = 0.3
QUIET = 0.8
PATIENCE = 30.0
READS = 10
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["fractal_cloud.agent.main", "boto3", "tests.faults.processes"])


def run_agent(environment: dict[str, str], url: str, token: str, agent_id: str) -> None:
    """Be an agent, until killed."""
    from fractal_cloud.agent.main import AgentSettings, run

    os.environ.update(environment)
    run(
        AgentSettings(
            url=url,
            token=token,
            providers=("aws",),
            cycle_seconds=CYCLE,
            visibility_seconds=VISIBLE,
            agent_id=agent_id,
        )
    )


class Gun:
    """Counts the effects of the agent at work, and kills it at the armed one; answers go to nobody then."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._at: int | None = None
        self._fault: Fault | None = None
        self._shoot: Callable[[], None] = lambda: None
        self.occurred: list[str] = []
        self.last = time.monotonic()
        knobs = sandbox.aws.knobs
        knobs.before_call(self._before_write, actor="agent", writes_only=True)
        knobs.after_call(self._after_write, actor="agent", writes_only=True)

    def arm(self, at: int | None = None, fault: Fault | None = None) -> None:
        """Count from nought again; with a number, kill at that effect."""
        with self._lock:
            self._at, self._fault = at, fault
            self.occurred = []
            self.last = time.monotonic()

    def aim(self, shoot: Callable[[], None]) -> None:
        """Say how the agent at work is killed."""
        self._shoot = shoot

    def next(self, name: str) -> Fault | None:
        """Count one effect; what is to happen at it."""
        with self._lock:
            self.last = time.monotonic()
            number = len(self.occurred)
            self.occurred.append(name)
            if number != self._at:
                return None
            self._at = None
            return self._fault

    def shoot(self) -> None:
        """Kill the agent at work."""
        self._shoot()

    def _before_write(self, call: Call) -> None:
        fault = self.next(f"{call.service}:{call.operation}")
        if fault is Fault.KILLED_BEFORE:
            self.shoot()
            self._sandbox.aws.knobs.fail(when="before", cut=True, actor="agent", writes_only=True)
        elif fault is Fault.KILLED_AFTER:
            self._sandbox.aws.knobs.after_call(lambda _: self.shoot(), times=1, actor="agent", writes_only=True)

    def _after_write(self, recorded: RecordedCall) -> None:
        self.last = time.monotonic()


class Gated:
    """The control plane, with every report counted as an effect."""

    def __init__(self, app: ASGIApp, gun: Gun) -> None:
        self._app = app
        self._gun = gun
        self.refused = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != "/agent/report":
            await self._app(scope, receive, send)
            return
        fault = self._gun.next("report")
        if fault is Fault.KILLED_BEFORE:
            self._gun.shoot()
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        counted = self._counting(send)
        await self._app(scope, receive, self._killing(counted) if fault is Fault.KILLED_AFTER else counted)

    def _counting(self, send: Send) -> Send:
        async def count(message: Any) -> None:
            self.refused += message.get("status") == 409
            await send(message)

        return count

    def _killing(self, send: Send) -> Send:
        async def shoot_first(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._gun.shoot()
            await send(message)

        return shoot_first


class _Server(uvicorn.Server):
    """A server in a thread: signals are the main thread's business."""

    def install_signal_handlers(self) -> None: ...

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class KilledWorld(FaultyWorld):
    """The product as processes: one agent at work, another one waiting for its scopes."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox = sandbox
        self.cycle_seconds = CYCLE
        self._folder = folder
        self.person = Person(sandbox.url)
        self.gun = Gun(sandbox)
        self.effects = cast("Any", self.gun)
        self.kills = 0
        self.releases_leases = True
        self._started = 0
        self.open_control_plane()
        self._work = self._start()
        self._next = self._start()
        self.gun.aim(self._kill)

    # --- the processes

    def open_control_plane(self, name: str = "control.db") -> None:
        settings = ControlSettings(
            database_url=library_caches.database(self._folder / name), admin_token=ADMIN_TOKEN, cycle_seconds=CYCLE
        )
        self._app = create_app(settings)
        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._gate = Gated(self._app, self.gun)
        config = uvicorn.Config(self._gate, log_config=None, access_log=False, lifespan="on")
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
        self.api = cast("InProcessClient", httpx.Client(base_url=self.url, headers=headers, timeout=30.0))
        self._token = agent_token(self.api)

    def _start(self) -> tuple[BaseProcess, str]:
        self._started += 1
        agent_id = f"agent-{self._started}"
        process = _FORKS.Process(target=run_agent, args=self._arguments(agent_id), name=agent_id, daemon=True)
        process.start()
        return process, agent_id

    def _arguments(self, agent_id: str) -> tuple[dict[str, str], str, str, str]:
        return agent_env(self.sandbox.url), self.url, self._token, agent_id

    @property
    def store(self) -> Store:
        """What the control plane remembers."""
        store: Store = self._app.state.store
        return store

    @property
    def refused_reports(self) -> int:
        """How many reports were refused as a whole."""
        return self._gate.refused

    def pid_of(self, agent_id: str) -> int:
        """The process of an agent."""
        pids = {name: process.pid for process, name in (self._work, self._next)}
        pid = pids[agent_id]
        assert pid is not None
        return pid

    def _kill(self) -> None:
        process, _ = self._work
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        self.kills += 1

    def _bury(self) -> None:
        """Another agent takes over from the one that was killed, and a third one stands by."""
        process, agent_id = self._work
        process.join()
        assert process.exitcode == -signal.SIGKILL, process.exitcode
        if self.releases_leases:
            self.api.post("/agent/release", json={"agentId": agent_id}, headers=bearer(self._token))
        self._work = self._next
        self._next = self._start()
        self.gun.last = time.monotonic()

    def close(self) -> None:
        for process, _ in (self._work, self._next):
            process.kill()
            process.join()
        self.api.close()
        self._app.state.store.signals.close()
        self._server.should_exit = True
        self._thread.join()

    # --- what a life asks of its world

    def cycle(self, times: int = 1) -> list[Any]:
        for _ in range(times):
            self.survive()
        return []

    def survive(self, at_most: int = 30) -> int:
        """Wait until the agent at work has read several times and had no effect for longer than any window."""
        before = self.kills
        until = time.monotonic() + PATIENCE
        self.gun.last = time.monotonic()
        reads, since = self._reads(), self.gun.last
        while time.monotonic() < until:
            time.sleep(0.05)
            if not self._work[0].is_alive():
                self._bury()
            if self.gun.last != since:
                reads, since = self._reads(), self.gun.last
            has_read = self._reads() - reads >= READS
            if time.monotonic() - since > QUIET and (has_read or self._has_nothing_to_read()):
                return self.kills - before
        raise AssertionError(f"not quiet after {PATIENCE} s; effects: {self.gun.occurred}")

    def assert_silent(self) -> None:
        """It was silent for longer than a cycle already."""

    def _has_nothing_to_read(self) -> bool:
        return not self.api.get("/livesystems/ls-a/components").json()["items"]

    def _reads(self) -> int:
        calls = self.sandbox.aws.calls
        return int(calls.count(actor="agent") - calls.count(actor="agent", writes_only=True))


@contextmanager
def killed_world(sandbox: Sandbox, folder: Path) -> Iterator[KilledWorld]:
    """A world of processes over a sandbox that was reset."""
    sandbox.aws.reset()
    aws_rights.limit(sandbox)
    made = KilledWorld(sandbox, folder)
    try:
        yield made
    finally:
        made.close()
