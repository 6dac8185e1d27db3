"""Programs that can be killed, paused, started again, and given a wrong time.

Every process works in one folder, which is how the keeper knows it. When the pipe to the test is closed, however that
came about, the keeper ends whatever still works in the folder, paused or not, and removes the folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.chaos import keeper, nursery

PATIENCE: Final = 120.0


def clocks() -> Path | None:
    """The library that gives a process a wrong time, if it is installed."""
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


class Keeper:
    """Ends all processes of a folder and removes it, at ``close`` or when this process is gone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fractal-chaos-"))
        self.folder.chmod(0o755)
        command = [sys.executable, "-I", "-S", str(keeper.__file__), str(self.folder)]
        # A group of its own: Ctrl-C at a terminal is not for it.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/", process_group=0)

    def close(self) -> None:
        """End everything, and wait until it is gone."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)


class Program(ABC):
    """One program of the stage: a process at a time, always started the same way.

    ``was_ended``: whether it was ended from here; one that is gone without that has ended by itself.
    """

    def __init__(self, name: str, folder: Path, env: Mapping[str, str]) -> None:
        self.name = name
        self._folder = folder
        self._clock = folder / f"{name}.clock"
        self.set_clock(0)
        self._env = {**env, **_clock_env(self._clock)}
        self.log = folder / f"{name}.log"
        self.pid = 0
        self.was_ended = True

    @abstractmethod
    def start(self) -> None:
        """Start it; its output is added to its log."""

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether its process is there."""

    def kill(self) -> None:
        """SIGKILL, to it and to all it started."""
        self.was_ended = True
        self._signal(signal.SIGKILL)
        wait_until(lambda: not self.is_running, f"{self.name} is dead")
        keeper.forget_clock(self.pid)

    def suspend(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def end(self, number: int) -> None:
        """Ask it to end, and wait for that."""
        self.was_ended = True
        os.kill(self.pid, number)
        wait_until(lambda: not self.is_running, f"{self.name} has ended")
        keeper.forget_clock(self.pid)

    def set_clock(self, seconds: int) -> None:
        """Let its wall clock jump so far from the true time, within a second; its steady clocks go on."""
        fresh = self._clock.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}\n")
        fresh.chmod(0o644)
        fresh.rename(self._clock)

    def _signal(self, number: int) -> None:
        for pid in [self.pid, *_children(self.pid)]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def last_lines(self, count: int = 40) -> str:
        """The end of what it wrote."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


class Command(Program):
    """A program of somebody else's."""

    def __init__(
        self, name: str, folder: Path, env: Mapping[str, str], command: Sequence[str], run_as: Mapping[str, Any]
    ) -> None:
        super().__init__(name, folder, env)
        self._command = list(command)
        self._run_as = dict(run_as)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it in a process group of its own."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._env,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                **self._run_as,
            )
        self.pid = self._process.pid
        self.was_ended = False

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return self._process is not None and self._process.poll() is None


class Nursery:
    """The process that the product's programs are forked from: see ``nursery.py``."""

    def __init__(self, folder: Path) -> None:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("FRACTAL_", "AWS_"))}
        clock = folder / "nursery.clock"
        clock.write_text("+0\n")
        self._process = subprocess.Popen(
            [sys.executable, str(nursery.__file__)],
            env={**env, "PYTHONUNBUFFERED": "1", **_clock_env(clock)},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
        )

    def start(self, arguments: Sequence[str], env: Mapping[str, str], log: Path) -> int:
        """Start `fractal` with these arguments; returns its process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = {"arguments": list(arguments), "env": dict(env), "log": str(log)}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """Start nothing more."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait(PATIENCE)
        keeper.forget_clock(self._process.pid)


class Fractal(Program):
    """A program of ours."""

    def __init__(self, name: str, nursery: Nursery, folder: Path, env: Mapping[str, str], *arguments: str) -> None:
        super().__init__(name, folder, env)
        self._nursery = nursery
        self._arguments = arguments

    def start(self) -> None:
        """Start it, as `fractal` in a shell would be."""
        self.pid = self._nursery.start(self._arguments, self._env, self.log)
        self.was_ended = False

    @property
    def is_running(self) -> bool:
        """Whether its process is there."""
        return Path(f"/proc/{self.pid}").exists()


def _clock_env(clock: Path) -> dict[str, str]:
    library = clocks()
    if library is None:
        return {}
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",
    }


def _children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(child) for child in listed.split()]


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    """Poll until something is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.05)
