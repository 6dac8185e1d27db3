"""The only agent freezes: pages, API, command and metrics say so; it goes on, and they stop (C11)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.cli.test_up import TOKEN, Up

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
    pytest.mark.xdist_group("up"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = Up(tmp_path)
    try:
        yield running
    finally:
        for pid in running.children():
            os.kill(pid, signal.SIGCONT)
        running.process.kill()
        running.process.wait()


def _status(up: Up, *arguments: str) -> str:
    env = {**os.environ, "FRACTAL_URL": f"http://127.0.0.1:{up.port}", "FRACTAL_TOKEN": TOKEN, "COLUMNS": "200"}
    command = [sys.executable, "-m", "fractal_cloud.cli", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.rule("C11")
def test_a_frozen_agent_is_seen_everywhere_and_its_return_too(up: Up) -> None:
    up.wait_for(lambda: "is deployed: 7 Active." in up.printed)
    agent = up.children()[2]
    with httpx2.Client(base_url=f"http://127.0.0.1:{up.port}", follow_redirects=True) as client:
        client.post("/ui/login", data={"token": TOKEN})
        api = {"Authorization": f"Bearer {TOKEN}"}

        def pages() -> list[bool]:
            """Of the fleet, the LiveSystem and a component: whether the page says that it is stale."""
            name = client.get("/livesystems/sample/components", headers=api).json()["items"][0]["componentId"]
            paths = ("/ui", "/ui/livesystems/sample", f"/ui/livesystems/sample/components/{name}")
            return ["stale: last read" in client.get(path).text for path in paths]

        def answers() -> list[bool]:
            """Of the LiveSystem and each component, of the scopes and the agent: whether they are stale."""
            items = client.get("/livesystems/sample/components", headers=api).json()["items"]
            for path in ("/scopes", "/agents"):
                items += client.get(path, headers=api).json()["items"]
            items.append(client.get("/livesystems/sample", headers=api).json())
            return [one["stale"] for one in items]

        def reads() -> list[str | None]:
            """When each component, and each scope, was last read."""
            paths = ("/livesystems/sample/components", "/scopes")
            return [one["lastRead"] for path in paths for one in client.get(path, headers=api).json()["items"]]

        def metric() -> float:
            lines = client.get("/metrics", headers=api).text.splitlines()
            (line,) = [line for line in lines if line.startswith("fractal_components_stale ")]
            return float(line.split()[1])

        def kinds() -> list[str]:
            return [event["kind"] for event in client.get("/events?limit=200", headers=api).json()["items"]]

        # The sample's link is written after its workload was Active: until then a freeze may leave it Mutating.
        up.wait_for(lambda: "LinkChangeApplied" in kinds())
        # The first read of a scope is known with the heartbeat that follows it.
        up.wait_for(lambda: not any(answers()) and all(reads()))
        os.kill(agent, signal.SIGSTOP)
        up.wait_for(lambda: all(answers()))
        assert all(pages())
        assert metric() == 7
        assert "stale: last read" in _status(up, "status", "sample")
        assert "stale: last read" in _status(up, "status")
        assert "stale: last read" in _status(up, "scopes")
        up.wait_for(lambda: "dead: last seen" in _status(up, "agents"))
        components = client.get("/livesystems/sample/components", headers=api).json()["items"]
        assert {one["status"] for one in components} == {"Active"}, "a status does not change because nobody reads"
        os.kill(agent, signal.SIGCONT)
        up.wait_for(lambda: not any(answers()) and not any(pages()) and metric() == 0)
        assert "stale" not in _status(up, "status", "sample")
        assert {"ScopeUnread", "ScopeRead"} <= set(kinds())
