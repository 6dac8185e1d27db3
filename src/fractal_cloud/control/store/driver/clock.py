"""Moments in UTC, and the database's own time, which is the same for every process on it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, DateTime, Dialect, FunctionElement, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.types import TypeDecorator


class UtcTime(TypeDecorator[datetime]):
    """A moment in UTC, aware of its zone on both databases."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Drop the zone for SQLite, which keeps none: what is stored there is UTC."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, _dialect: Dialect) -> datetime | None:
        """Return an aware moment, whatever the database kept."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Now(FunctionElement[datetime]):
    """The database's own time, as part of a statement; NULL where it has none (SQLite)."""

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
    """Read the database's own time; None where it has none (SQLite)."""
    return connection.execute(_NOW).scalar_one() if has_clock(connection) else None


_NOW: Final = select(Now())
