"""Ends every process that works in a folder, and removes the folder, once nobody holds the other end of its input.

Run as a program of its own, with nothing but the standard library: it must outlive whoever started it.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from pathlib import Path

GRACE_SECONDS = 5.0


def working_in(folder: Path) -> list[int]:
    """The processes that work in a folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                where = (process / "cwd").readlink()
            except OSError:
                continue
            if where == folder or folder in where.parents:
                found.append(int(process.name))
    return found


def forget_clock(pid: int) -> None:
    """Remove what libfaketime leaves in shared memory of a process that is gone."""
    for name in (f"faketime_shm_{pid}", f"sem.faketime_sem_{pid}"):
        Path("/dev/shm", name).unlink(missing_ok=True)


def end_all(folder: Path) -> None:
    """Ask everybody to end, paused or not, and kill who does not; PostgreSQL gives its shared memory back that way."""
    deadline = time.monotonic() + GRACE_SECONDS
    found = working_in(folder)
    _send(found, signal.SIGINT, signal.SIGCONT)
    while (left := working_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    while left := working_in(folder):
        _send(left, signal.SIGKILL)
        time.sleep(0.02)
    for pid in found:
        forget_clock(pid)


def _send(pids: list[int], *numbers: int) -> None:
    for pid in pids:
        for number in numbers:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                break


if __name__ == "__main__":
    sys.stdin.read()
    end_all(Path(sys.argv[1]))
    shutil.rmtree(sys.argv[1], ignore_errors=True)
