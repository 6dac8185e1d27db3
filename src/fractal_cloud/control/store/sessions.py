"""Sessions of people at the dashboard: who logged in with which token, and when each session ends.

A browser keeps a random name, the store keeps its hash. A session is worth what its token is worth: with a token that
was revoked or has expired, its sessions have ended too. It also ends when nobody has used it for a while, and after a
fixed time in any case.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, delete, insert, or_, select, update

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.realm_bindings import NOBODYS
from fractal_cloud.control.store.schema import sessions
from fractal_cloud.control.store.tokens import hashed
from fractal_cloud.model.event import EventKind

NOTED_EVERY: Final = timedelta(seconds=60)
"""How exactly it is known when a session was last used: not every page costs a write."""


@dataclass(frozen=True, slots=True)
class Endings:
    """When sessions end: so long after the last use, and so long after they began."""

    idle: timedelta = timedelta(hours=2)
    absolute: timedelta = timedelta(hours=12)


DEFAULT_ENDINGS: Final = Endings()


@dataclass(frozen=True, slots=True)
class Session:
    """Somebody who is logged in. ``token_hash``: with which token; ``word`` makes their forms theirs."""

    id_hash: str
    token_hash: str
    word: str
    is_to_note: bool


def begin(tx: Tx, token_hash: str, by: str) -> str:
    """Begin a session, with an event; returns the name that the browser keeps."""
    name = secrets.token_urlsafe(32)
    row = {"id_hash": hashed(name), "token_hash": token_hash, "word": secrets.token_urlsafe(16)}
    tx.connection.execute(insert(sessions), [{**row, "by": by, "began_at": tx.now, "used_at": tx.now}])
    tx.record(PendingEvent(NOBODYS, EventKind.LOGGED_IN, by, None, f"{by!r} logged in at the dashboard"))
    return name


def find(tx: Tx, name: str, endings: Endings) -> Session | None:
    """The session of that name, if it has not ended."""
    query = select(sessions).where(sessions.c.id_hash == hashed(name), ~_has_ended(tx.now, endings))
    row: Any = tx.connection.execute(query).first()
    if row is None:
        return None
    return Session(row.id_hash, row.token_hash, row.word, row.used_at <= tx.now - NOTED_EVERY)


def note_use(tx: Tx, session: Session) -> None:
    """Store that a session was used now."""
    tx.connection.execute(update(sessions).where(sessions.c.id_hash == session.id_hash).values(used_at=tx.now))


def end(tx: Tx, session: Session, by: str) -> None:
    """End a session, with an event."""
    gone = tx.connection.execute(delete(sessions).where(sessions.c.id_hash == session.id_hash))
    if gone.rowcount:
        tx.record(PendingEvent(NOBODYS, EventKind.LOGGED_OUT, by, None, f"{by!r} logged out of the dashboard"))


def has_ended(tx: Tx, endings: Endings) -> bool:
    """Whether there is a session that nobody can use any more."""
    return tx.connection.execute(select(sessions.c.id_hash).where(_has_ended(tx.now, endings))).first() is not None


def forget_ended(tx: Tx, endings: Endings) -> None:
    """Drop the sessions that nobody can use any more."""
    tx.connection.execute(delete(sessions).where(_has_ended(tx.now, endings)))


def _has_ended(now: datetime, endings: Endings) -> ColumnElement[bool]:
    return or_(sessions.c.used_at <= now - endings.idle, sessions.c.began_at <= now - endings.absolute)
