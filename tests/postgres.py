"""A PostgreSQL server of the tests' own: from the installed binaries, as an unprivileged user, gone when they end."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from sqlalchemy import make_url, text

from fractal_cloud.control.store.dialect import connect


def binaries() -> Path | None:
    """The folder with the newest PostgreSQL server on this machine, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).resolve().parent if on_path else None


@contextmanager
def server(password: str = "", **changed: object) -> Iterator[str]:
    """Start a server on a free port of the loopback, without care for crashes; yields the address of its database.

    With a password, nobody gets in without one. ``changed``: settings that are to be others.
    """
    where = binaries()
    assert where is not None, "asked for a server where there is none"
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    folder = tempfile.mkdtemp(prefix="fractal-postgres-")
    os.chown(folder, user.pw_uid, user.pw_gid)
    run_as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    data = f"{folder}/data"
    way = "scram-sha-256" if password else "trust"
    initdb = [str(where / "initdb"), "-D", data, "-U", "test", "-A", way, "-E", "UTF8", "--no-sync"]
    if password:
        Path(folder, "password").write_text(password)
        initdb.append(f"--pwfile={folder}/password")
    subprocess.run(initdb, check=True, cwd=folder, stdout=subprocess.DEVNULL, **run_as)  # type: ignore[call-overload]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": port,
        "unix_socket_directories": folder,
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
        "max_connections": 200,
        **changed,
    }
    command = [str(where / "postgres"), "-D", data, *(f"--{name}={value}" for name, value in settings.items())]
    with Path(folder, "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **run_as)  # type: ignore[call-overload]
    try:
        _wait_until_it_answers(port, process, Path(folder, "log"))
        yield f"postgresql+psycopg://test{f':{password}' if password else ''}@127.0.0.1:{port}/postgres"
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)


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
    ready = [str((binaries() or Path()) / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
    deadline = time.monotonic() + 60
    while subprocess.run(ready, check=False).returncode != 0:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
