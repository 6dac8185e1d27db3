"""The programs `fractal up` starts: begun together, watched, and ended together. None outlives this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Final

from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.lifeline import VARIABLE
from fractal_cloud.cli.private_files import open_private

_GRACE_SECONDS: Final = 10.0
_LAST_LINES: Final = 15


class Ended(Exception):
    """Somebody asked this process to end."""


@dataclass(frozen=True, slots=True)
class Child:
    """One program: its name for people, its process, and where its output goes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_lines(self) -> list[str]:
        """The end of what it wrote."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]


class Children:
    """All programs started by this process; use it as a context manager, which ends them.

    ``asked_to_end`` is set by SIGINT, SIGTERM and SIGHUP.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: list[Child] = []
        self.asked_to_end = Event()
        self._read_end, self._write_end = os.pipe()

    def __enter__(self) -> Children:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
                signal.signal(number, lambda *_: self.asked_to_end.set())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def start(self, name: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        """Start a command of this program as a child."""
        log = self._logs / f"{name.replace(' ', '-')}.log"
        with open_private(log) as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "fractal_cloud.cli", *arguments],
                env={**env, VARIABLE: str(self._read_end), "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[self._read_end],
            )
        self._children.append(Child(name, process, log))

    def check(self) -> None:
        """Raise ``Ended`` if this process was asked to end, or say which child ended by itself."""
        if self.asked_to_end.is_set():
            raise Ended
        for child in self._children:
            code = child.process.poll()
            if code is not None:
                raise CommandError(
                    f"the {child.name} ended unexpectedly with {_exit_text(code)}; its last lines:",
                    details=child.last_lines() or ["(nothing)"],
                    advice=f"All of its output is in {child.log}.",
                )

    def wait_for(self, what: str, is_ready: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait until something is ready, watching the children meanwhile."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            self.check()
            if time.monotonic() > deadline:
                raise CommandError(f"the {what} is not ready after {seconds:g} s", advice=f"See {self._logs}.")
            self.asked_to_end.wait(0.1)

    def watch(self) -> None:
        """Watch the children until this process is asked to end or one of them ends."""
        while True:
            self.check()
            self.asked_to_end.wait(0.5)

    def _stop(self) -> None:
        """End all children, the last started first; whoever does not end in time is killed."""
        for child in reversed(self._children):
            if child.process.poll() is None:
                child.process.terminate()
        deadline = time.monotonic() + _GRACE_SECONDS
        for child in self._children:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
        os.close(self._write_end)
        os.close(self._read_end)


def _exit_text(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
