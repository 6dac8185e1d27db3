"""How to connect, begin, lock and commit on each database."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

import stamina
from pydantic_core import from_json, to_json
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import InvalidatePoolError

from fractal_cloud.control.store.driver.notifications import KEEPALIVE, PostgresSignals
from fractal_cloud.control.store.limits import DEFAULT_LIMITS, Limits
from fractal_cloud.control.store.signals import LocalSignals, Signals
from fractal_cloud.model.backoff import Backoff

_WRITING: Final = "fractal_writing"
_PROBED_AFTER_SECONDS: Final = 1.0
_BUSY_SECONDS: Final = 30
_OPENING: Final = Backoff.in_seconds(0.02, 0.5, jitter=1.0)
# Any numbers will do, as long as every process uses the same.
_MIGRATION_LOCK: Final = 0x46524143
_HOUSEKEEPING_LOCK: Final = 0x46524144


class Connections:
    """The connections of this process to one database."""

    def __init__(self, url: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._engine = connect(url, limits)
        self._is_postgresql = self._engine.dialect.name == "postgresql"
        # On PostgreSQL every statement sees the newest anyway (READ COMMITTED): what only reads needs no transaction,
        # and saves two round trips. SQLite's transaction is what makes its statements see one state.
        autocommit = {"isolation_level": "AUTOCOMMIT"}
        self._reader = self._engine.execution_options(**autocommit) if self._is_postgresql else self._engine
        self._writer = self._engine.execution_options(**{_WRITING: True})
        self._writers: AbstractContextManager[Any] = nullcontext() if self._is_postgresql else threading.Lock()

    def reading(self) -> Connection:
        """A connection for a transaction that only reads."""
        return self._reader.connect()

    def writing(self) -> Connection:
        """A connection for a transaction that writes."""
        return self._writer.connect()

    def turn_to_write(self) -> AbstractContextManager[Any]:
        """Let SQLite's writers queue in this process rather than poll the file; PostgreSQL's need not wait."""
        return self._writers

    def signals(self) -> Signals:
        """How commits on this database reach those who wait for them: in this process, or in all that are on it."""
        return PostgresSignals(self._engine.url) if self._is_postgresql else LocalSignals()

    def close(self) -> None:
        """Close every connection that is not in use."""
        self._engine.dispose()


def connect(url: str, limits: Limits = DEFAULT_LIMITS) -> Engine:
    """An engine for either database; a SQLite file's folder is made if it is not there."""
    parsed = make_url(_with_driver(url))
    return _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed, limits)


def shown_address(url: str) -> str:
    """A database's address as messages have it: without a password."""
    parsed = make_url(url)
    return repr(parsed.database) if parsed.get_backend_name() == "sqlite" else f"at {parsed.host or 'this machine'}"


def _with_driver(url: str) -> str:
    """PostgreSQL is reached by psycopg 3, however the address is spelled."""
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def _dump(value: Any) -> str:
    return to_json(value, inf_nan_mode="null").decode()


# --- SQLite


def _sqlite(url: URL) -> Engine:
    if url.database and url.database != ":memory:":
        file = Path(url.database)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _close_to_others(file)
    engine = create_engine(
        url,
        json_serializer=_dump,
        json_deserializer=from_json,
        pool_size=20,
        max_overflow=30,
        connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _close_to_others(file: Path) -> None:
    """Make the database its owner's alone, also one that is there; SQLite gives its other files the same mode.

    One that is there is not opened for it: closing any descriptor of a file drops all locks of this process on it, and
    with them those of its connections to the database.
    """
    if file.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
    with suppress(FileExistsError, PermissionError):  # whose it is says so when it is opened
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        with suppress(FileNotFoundError, PermissionError):
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)


def _is_passing(error: Exception) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return isinstance(error, sqlite3.OperationalError) and code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late for BEGIN IMMEDIATE
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={_BUSY_SECONDS * 1000}", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    # SQLite does not wait here while another process opens the same new file: it is asked again.
    for attempt in stamina.retry_context(
        on=_is_passing, attempts=None, timeout=_BUSY_SECONDS, **_OPENING.for_stamina()
    ):
        with attempt:
            cursor.execute("PRAGMA journal_mode=WAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later would fail with «database is locked» instead of waiting.
    writing = connection.get_execution_options().get(_WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


# --- PostgreSQL


def _postgresql(url: URL, limits: Limits) -> Engine:
    engine = create_engine(
        url,
        json_serializer=_dump,
        json_deserializer=from_json,
        isolation_level="READ COMMITTED",
        pool_size=limits.connections,
        max_overflow=0,
        pool_timeout=limits.wait_seconds,
        pool_use_lifo=True,  # the one used last has its plans at hand, and need not be probed
        connect_args=dict(KEEPALIVE),
    )

    def prepare(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            for name, value in _session_settings(limits).items():
                cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        connection.commit()

    event.listen(engine, "connect", prepare)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", _probe_if_idle)
    return engine


def _session_settings(limits: Limits) -> dict[str, str]:
    """The settings of every PostgreSQL session.

    Nearly every statement reads a few rows by their keys, which are in memory: ``random_page_cost`` says that an index
    costs no more than that. By its default, which is for turning disks, a table of some hundred rows is read whole.
    """
    return {
        "statement_timeout": f"{limits.statement_seconds * 1000:.0f}ms",
        "lock_timeout": f"{limits.lock_seconds * 1000:.0f}ms",
        "idle_in_transaction_session_timeout": f"{limits.idle_seconds * 1000:.0f}ms",
        "random_page_cost": "1.1",
    }


def _note_use(_connection: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _probe_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Probe a connection before it is used, unless it was used just now: the database may have restarted since."""
    if time.monotonic() - record.info.get("used", 0.0) < _PROBED_AFTER_SECONDS:
        return
    from psycopg import Error

    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except Error as error:
        raise InvalidatePoolError from error


# --- inside a transaction


@contextmanager
def sent_with_commit(connection: Connection) -> Iterator[None]:
    """Send what is executed here, and the commit that ends it, in one pipeline: no result is waited for or read.

    What is locked here is then held for the database's own time, and not for that of a busy server's round trips:
    events are counted by one transaction at a time. What fails is raised by the commit. SQLite has no round trips.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    driver: Any = connection.connection.driver_connection
    try:
        with driver.pipeline():
            yield
    except BaseException:
        # SQLAlchemy thinks that a commit that fails has ended its transaction; this one may never have been reached.
        with suppress(connection.dialect.loaded_dbapi.Error):
            driver.rollback()
        raise


def lock_for_migration(connection: Connection) -> None:
    """Let one process at a time migrate, however long it takes; on SQLite the writing transaction is that lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})


def is_only_housekeeper(connection: Connection) -> bool:
    """Let one process at a time do housekeeping, until the transaction ends; the others leave it to that one."""
    if connection.dialect.name != "postgresql":
        return True
    query = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(connection.execute(query, {"key": _HOUSEKEEPING_LOCK}).scalar_one())
