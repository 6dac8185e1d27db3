"""`fractal up` on this machine: everything comes up, the sample is deployed, and everything ends together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.test_program import is_alive
from tests.ports import free_port

TOKEN = "token-of-the-test"
pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
    pytest.mark.xdist_group("up"),
    pytest.mark.timeout(300),
]


class Up:
    """A running `fractal up`, with what it printed so far."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.port = free_port()
        self._printed = folder / "printed"
        env = {
            **os.environ,
            "FRACTAL_TOKEN": TOKEN,
            "FRACTAL_PORT": str(self.port),
            "FRACTAL_SANDBOX_PORT": str(free_port()),
            "FRACTAL_DATA_DIR": str(self.data),
            "FRACTAL_CYCLE_SECONDS": "0.5",
        }
        with self._printed.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "fractal_cloud.cli", "up"], env=env, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def printed(self) -> str:
        return self._printed.read_text()

    def children(self) -> list[int]:
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in found.split()]

    def wait_for(self, is_so: Callable[[], bool], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not is_so():
            assert time.monotonic() < deadline, self.printed
            time.sleep(0.05)


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    running = Up(tmp_path)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def test_everything_comes_up_with_the_sample_and_all_of_it_ends(up: Up) -> None:
    up.wait_for(lambda: "is deployed: 7 Active." in up.printed)
    for word in (f"http://127.0.0.1:{up.port}/ui", TOKEN, "sandbox env", "status sample", "Ctrl-C ends it"):
        assert word in up.printed
    assert {path.name for path in up.data.glob("*.log")} == {"control-plane.log", "sandbox.log", "agent.log"}
    children = up.children()
    assert len(children) == 3
    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(20) == 0
    assert not any(is_alive(child) for child in children)


def test_when_one_ends_all_end_and_its_name_is_printed(up: Up) -> None:
    up.wait_for(lambda: "Ctrl-C ends it" in up.printed)
    up.wait_for(lambda: len(up.children()) == 3)
    children = up.children()
    os.kill(children[2], signal.SIGKILL)
    assert up.process.wait(20) == 1
    assert "the agent ended unexpectedly with signal SIGKILL" in up.printed
    assert not any(is_alive(child) for child in children)
