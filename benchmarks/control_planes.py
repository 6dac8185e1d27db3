"""The control plane as a benchmark needs it: `fractal serve` in processes of its own, on a database that was filled.

What is measured is the CPU time of those processes, and of PostgreSQL's, as the kernel counts it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import text

from fractal_cloud.control.store.driver import connect
from tests import postgres

TOKEN: Final = "benchmark"
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Planes:
    """Some servers on one database."""

    urls: tuple[str, ...]
    database_url: str
    pids: tuple[int, ...]

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is a file."""
        return self.database_url.startswith("sqlite")

    def cpu_seconds(self) -> tuple[float, float]:
        """What the servers have used so far, and what PostgreSQL has."""
        return sum(map(_cpu_of, self.pids)), 0.0 if self.is_sqlite else _postgres_cpu(self.database_url)


def _cpu_of(pid: int, *, with_ended: bool = False) -> float:
    """CPU time of a process; ``with_ended``: with that of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if with_ended else 13])) / _TICKS


def _postgres_cpu(url: str) -> float:
    """CPU time of all processes of the server at that address."""
    port = url.rpartition(":")[2].partition("/")[0]
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"/postgres") and f"--port={port}".encode() in words:
            main = int(path.parent.name)
            children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
            return _cpu_of(main, with_ended=True) + sum(_cpu_of(int(child)) for child in children)
    return 0.0


def rows_written(url: str) -> int:
    """How many rows were ever written to a PostgreSQL database, as it counts them; asked while nobody is connected.

    Without ``counters``, in which a server notes its own turns at keeping house.
    """
    engine = connect(url)
    with engine.connect() as connection:
        counted = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE relname <> 'counters'"
        written = int(connection.execute(text(counted)).scalar_one())
    engine.dispose()
    return written


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """An empty database, «sqlite» or «postgresql»; PostgreSQL waits for its disk at every commit, as in operation."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'control.db'}"
        return
    with postgres.server(
        fsync="on", synchronous_commit="on", full_page_writes="on", shared_buffers="1GB", max_wal_size="4GB"
    ) as url:
        yield url


@contextmanager
def serving(database_url: str, processes: int, folder: Path) -> Iterator[Planes]:
    """So many servers on a database."""
    with ExitStack() as running:
        started = [running.enter_context(_one(database_url, folder, index)) for index in range(processes)]
        yield Planes(tuple(url for url, _ in started), database_url, tuple(pid for _, pid in started))


@contextmanager
def _one(database_url: str, folder: Path, index: int) -> Iterator[tuple[str, int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "fractal_cloud.cli", "serve", "--port", str(port), "--data-dir", str(folder)]
    variables = {**os.environ, "FRACTAL_DATABASE_URL": database_url, "FRACTAL_TOKEN": TOKEN}
    with (folder / f"serve-{index}.log").open("wb") as log:
        process = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            assert process.poll() is None, "the control plane ended at its start"
            assert time.monotonic() < deadline, "the control plane did not get ready"
            time.sleep(0.1)
