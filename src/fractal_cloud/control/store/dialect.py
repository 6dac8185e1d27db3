"""The place that knows which database it is: how to connect, begin and lock, and whose time it is.

All else but ``bulk`` is written once, in SQLAlchemy's language, for SQLite and PostgreSQL alike.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import stamina
from pydantic_core import from_json, to_json
from sqlalchemy import URL, Connection, DateTime, Dialect, Engine, create_engine, event, make_url, select, text
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

from fractal_cloud.control.store.limits import DEFAULT_LIMITS, Limits

WRITING = "fractal_writing"
TRIED_AFTER_SECONDS = 1.0
BUSY_SECONDS = 30
CHUNK = 500
# Any numbers will do, as long as every process takes the same.
_MIGRATION_LOCK = 0x46524143
_HOUSEKEEPING_LOCK = 0x46524144
PATIENCE: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""How soon a PostgreSQL that is gone without a word is noticed."""


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC, aware of its zone on both databases."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """SQLite keeps no zone: what is stored there is UTC."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """What comes back is always aware."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def connect(url: str, limits: Limits = DEFAULT_LIMITS) -> Engine:
    """An engine for either database; a SQLite file's folder is made if it is not there."""
    parsed = parse(url)
    return _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed, limits)


def parse(url: str) -> URL:
    """A database's address, with the driver it is spoken with."""
    return make_url(_with_driver(url))


def _sqlite(url: URL) -> Engine:
    if url.database:
        Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        json_serializer=_dump,
        json_deserializer=from_json,
        pool_size=20,
        max_overflow=30,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _postgresql(url: URL, limits: Limits) -> Engine:
    engine = create_engine(
        url,
        json_serializer=_dump,
        json_deserializer=from_json,
        isolation_level="READ COMMITTED",
        pool_size=limits.connections,
        max_overflow=0,
        pool_timeout=limits.wait_seconds,
        pool_use_lifo=True,  # the one used last has its plans at hand, and need not be tried
        connect_args=dict(PATIENCE),
    )

    def prepare(connection: Any, _record: Any) -> None:
        with connection.cursor() as cursor:
            for name, value in limits.session.items():
                cursor.execute("SELECT set_config(%s, %s, false)", (name, value))
        connection.commit()

    event.listen(engine, "connect", prepare)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", _try_if_idle)
    return engine


def reading(engine: Engine) -> Engine:
    """The engine for transactions that only read.

    On PostgreSQL every statement sees the newest anyway (READ COMMITTED), so they need no transaction, and save two
    round trips; SQLite's transaction is what makes them see one state.
    """
    return engine.execution_options(isolation_level="AUTOCOMMIT") if engine.dialect.name == "postgresql" else engine


def _note_use(_connection: Any, record: Any) -> None:
    record.info["used"] = time.monotonic()


def _try_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Try a connection before it is used, unless it was used just now: the database may have been restarted since."""
    if time.monotonic() - record.info.get("used", 0.0) < TRIED_AFTER_SECONDS:
        return
    from psycopg import Error

    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except Error as error:
        raise InvalidatePoolError from error


def _with_driver(url: str) -> str:
    """PostgreSQL is spoken with psycopg 3, however the address is spelled."""
    for prefix in ("postgresql://", "postgres://"):
        if url.startswith(prefix):
            return "postgresql+psycopg://" + url.removeprefix(prefix)
    return url


def _dump(value: Any) -> str:
    return to_json(value, inf_nan_mode="null").decode()


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late for BEGIN IMMEDIATE
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={BUSY_SECONDS * 1000}", "synchronous=NORMAL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    # SQLite does not wait here while another process opens the same new file: it is asked again.
    for attempt in stamina.retry_context(
        on=sqlite3.OperationalError, attempts=None, timeout=BUSY_SECONDS, wait_initial=0.02, wait_max=0.5
    ):
        with attempt:
            cursor.execute("PRAGMA journal_mode=WAL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later would fail with «database is locked» instead of waiting.
    writing = connection.get_execution_options().get(WRITING)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


class WriteGate:
    """Lets SQLite's writers queue in the process rather than poll the file; PostgreSQL needs no gate."""

    def __init__(self, engine: Engine) -> None:
        self._lock = threading.Lock() if engine.dialect.name == "sqlite" else None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Hold the gate for one writing transaction."""
        with self._lock or nullcontext():
            yield


@contextmanager
def in_one_go(connection: Connection, is_more: bool) -> Iterator[None]:
    """Send what is executed here, and the commit that ends it, without waiting for answers in between: none is read.

    What is held last is held for the database's own time then, and not for that of the way here and back, on which a
    busy server is slow: events are counted by one transaction at a time. What goes wrong is told by the commit.
    """
    if not is_more or connection.dialect.name != "postgresql":
        yield
        return
    driver: Any = connection.connection.driver_connection
    try:
        with driver.pipeline():
            yield
    except BaseException:
        # A commit that fails has ended its transaction, SQLAlchemy thinks; this one may never have been reached.
        with suppress(connection.dialect.loaded_dbapi.Error):
            driver.rollback()
        raise


class Now(FunctionElement[datetime]):
    """The database's own time, the same for every process on it; NULL where it has none (SQLite)."""

    type = UtcTime()
    inherit_cache = True


@compiles(Now, "postgresql")
def _clock(_element: Now, _compiler: Any, **_how: Any) -> str:
    return "clock_timestamp()"


@compiles(Now)
def _no_clock(_element: Now, _compiler: Any, **_how: Any) -> str:
    return "NULL"


def has_clock(connection: Connection) -> bool:
    """Whether the database has a time of its own."""
    return connection.dialect.name == "postgresql"


def now(connection: Connection) -> datetime | None:
    """The database's own time, the same for every process on it; None where it has none (SQLite)."""
    return connection.execute(_NOW).scalar_one() if has_clock(connection) else None


_NOW: Final = select(Now())


def lock_for_migration(connection: Connection) -> None:
    """Let one process at a time migrate, however long it takes; on SQLite the writing transaction is that lock."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})


def is_only_housekeeper(connection: Connection) -> bool:
    """Let one process at a time keep house, until the transaction ends; the others leave it to that one."""
    if connection.dialect.name != "postgresql":
        return True
    query = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(connection.execute(query, {"key": _HOUSEKEEPING_LOCK}).scalar_one())


def chunks(values: Iterable[str]) -> Iterator[list[str]]:
    """Values in lists short enough for one IN clause."""
    items = list(values)
    for start in range(0, len(items), CHUNK):
        yield items[start : start + CHUNK]
