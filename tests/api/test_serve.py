"""The control plane as a process: it comes up, and ends at once with everything that waits on it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from fractal_cloud.testing.tokens import agent_token, bearer
from tests.api.conftest import TOKEN
from tests.ports import free_port

SERVE = """
import sys
from pathlib import Path
from fractal_cloud.control.serve import run
from fractal_cloud.control.settings import ControlSettings
run(ControlSettings(data_dir=Path(sys.argv[1]), admin_token=sys.argv[2], port=int(sys.argv[3])))
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """A control plane in a process of its own, and a client of it."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(tmp_path), TOKEN, str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as client:
        _await_ready(client)
        yield process, client
    if process.poll() is None:
        process.kill()
    process.communicate()


def _await_ready(client: httpx.Client) -> None:
    for _ in range(300):
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the control plane did not come up")


def test_sigterm_ends_it_at_once_with_its_long_polls_and_streams(
    served: tuple[subprocess.Popen[bytes], httpx.Client],
) -> None:
    process, client = served
    reach = {"provider": "aws", "realm": "1"}
    body = {"agentId": "a1", "environment": "default", "reaches": [reach], "cycleSeconds": 600}
    agent = bearer(agent_token(client))
    assert client.post("/agent/register", json=body, headers=agent).status_code == 200
    answers: list[str] = []
    poll = {"agentId": "a1", "wake": 0, "seconds": 50}

    def wait() -> None:
        answers.append(client.post("/agent/wait", json=poll, headers=agent).text)

    def follow() -> None:
        with client.stream("GET", "/events", headers={"Accept": "text/event-stream"}) as stream:
            answers.append("".join(stream.iter_text()))

    waiting = [threading.Thread(target=wait), threading.Thread(target=follow)]
    for thread in waiting:
        thread.start()
    time.sleep(1)
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - started < 10
    for thread in waiting:
        thread.join(10)
    assert sorted(answers) == [": connected\n\n", '{"wake":0,"woken":false}']
    assert (out, err) == (b"", b"")
