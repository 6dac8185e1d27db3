"""What an error of a driver means, so that ``failures`` can decide what to do about it."""

from __future__ import annotations

import sqlite3
from enum import Enum, auto
from typing import Final

from sqlalchemy.exc import DBAPIError


class Cause(Enum):
    """Why a statement or a commit failed."""

    DISCONNECTED = auto()
    CONFLICT = auto()
    """Deadlock or serialisation failure: PostgreSQL rolled it back."""
    LOCK_TIMEOUT = auto()
    STATEMENT_TIMEOUT = auto()
    TOO_MANY_CONNECTIONS = auto()
    DISK_FULL = auto()
    """No space is left where the database lies, or a write to it failed."""
    DAMAGED = auto()
    """The file is no database, or not a whole one."""
    NOT_WRITABLE = auto()
    OTHER = auto()
    """The error is in the statement or its values."""


_SQLSTATES: Final = {
    "40001": Cause.CONFLICT,
    "40P01": Cause.CONFLICT,
    "55P03": Cause.LOCK_TIMEOUT,
    "57014": Cause.STATEMENT_TIMEOUT,
    "53300": Cause.TOO_MANY_CONNECTIONS,
    "53100": Cause.DISK_FULL,
    "XX001": Cause.DAMAGED,
    "XX002": Cause.DAMAGED,
}
_SQLITE: Final = {
    sqlite3.SQLITE_BUSY: Cause.LOCK_TIMEOUT,
    sqlite3.SQLITE_FULL: Cause.DISK_FULL,
    sqlite3.SQLITE_IOERR: Cause.DISK_FULL,
    sqlite3.SQLITE_CORRUPT: Cause.DAMAGED,
    sqlite3.SQLITE_NOTADB: Cause.DAMAGED,
    sqlite3.SQLITE_READONLY: Cause.NOT_WRITABLE,
    sqlite3.SQLITE_CANTOPEN: Cause.NOT_WRITABLE,
    sqlite3.SQLITE_PERM: Cause.NOT_WRITABLE,
}
_DISCONNECTED: Final = ("08", "57P0", "25P0")


def cause_of(error: DBAPIError) -> Cause:
    """Classify an error by its SQLSTATE, or by SQLite's error code."""
    state: str = getattr(error.orig, "sqlstate", None) or ""
    if error.connection_invalidated or state.startswith(_DISCONNECTED):
        return Cause.DISCONNECTED
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE.get(code & 0xFF, Cause.OTHER)  # the rest of the code says more precisely which
    return _SQLSTATES.get(state, Cause.OTHER)
