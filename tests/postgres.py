"""A PostgreSQL server of the tests' own: from the installed binaries, as an unprivileged user, gone when they end."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlalchemy import make_url, text

from fractal_cloud.control.store.driver import connect
from tests.ports import free_port


def binaries() -> Path | None:
    """The folder with the newest PostgreSQL server on this machine, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


def run_as() -> dict[str, Any]:
    """As whom a server runs: it refuses to be root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def prepare(folder: Path, password: str = "") -> list[str]:
    """Make an empty cluster in a folder; returns the command that serves it, but for settings. It may be run again."""
    where = binaries()
    assert where is not None, "asked for a server where there is none"
    account = run_as()
    if account:
        os.chown(folder, account["user"], account["group"])
    data = f"{folder}/data"
    way = "scram-sha-256" if password else "trust"
    initdb = [str(where / "initdb"), "-D", data, "-U", "test", "-A", way, "-E", "UTF8", "--no-sync"]
    if password:
        Path(folder, "password").write_text(password)
        initdb.append(f"--pwfile={folder}/password")
    subprocess.run(initdb, check=True, cwd=folder, stdout=subprocess.DEVNULL, **account)
    return [str(where / "postgres"), "-D", data]


def settings(folder: Path, port: int, **more: str) -> list[str]:
    """The settings of a server on the loopback that need not survive a crash of the machine, as arguments."""
    chosen = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": str(folder),
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_connections": "200",
        **more,
    }
    return [f"--{name}={value}" for name, value in chosen.items()]


@contextmanager
def server(password: str = "", **changed: str) -> Iterator[str]:
    """Start a server on a free port of the loopback, without care for crashes; yields the address of its database.

    With a password, nobody gets in without one. ``changed``: settings that are to be others.
    """
    folder = Path(tempfile.mkdtemp(prefix="fractal-postgres-"))
    command = prepare(folder, password)
    port = free_port()
    command += settings(folder, port, **changed)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **run_as())
    try:
        _wait_until_it_answers(port, process, folder / "log")
        yield f"postgresql+psycopg://test{f':{password}' if password else ''}@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


def answers(port: int) -> bool:
    """Whether a server on a port of the loopback takes connections."""
    ready = [str((binaries() or Path()) / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port), "-U", "test"]
    return subprocess.run(ready, check=False).returncode == 0


@contextmanager
def database(server_url: str) -> Iterator[str]:
    """An empty database on a server, dropped at the end; yields its address."""
    name = f"test_{uuid4().hex}"
    _administer(server_url, f"CREATE DATABASE {name}")
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        _administer(server_url, f"DROP DATABASE {name} WITH (FORCE)")


def _administer(server_url: str, statement: str) -> None:
    """Run one statement outside of any transaction."""
    engine = connect(server_url).execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


def _wait_until_it_answers(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while not answers(port):
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
