"""Which life of the database this is: agents say which one they know, and up to which event (C9).

A database that was restored from a backup lacks events that agents have seen, or has others in their place. What
follows from that stands in ``recovery``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, bindparam, cast, func, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement
from fractal_cloud.control.store.errors import LeaseLost
from fractal_cloud.control.store.records import Json, iso
from fractal_cloud.control.store.schema import counters, events, incarnations
from fractal_cloud.model.wire import LastSeen

COLUMNS: Final = ("incarnation", "last_event", "last_event_id", "seen_event_id", "proof_key")
SEEN: Final = "seen_event"
"""The parameter with the number of the event that an agent has seen last."""

_LAST: Final = select(counters.c.value).where(counters.c.name == "events").scalar_subquery()


def columns() -> dict[str, ColumnElement[Any]]:
    """What a statement asks besides, for ``check`` and ``last_seen``; none of it depends on the statement's rows."""
    newest = select(incarnations.c.id).order_by(incarnations.c.number.desc()).limit(1)
    last_id = select(events.c.id).where(events.c.seq == _LAST)
    seen_id = select(events.c.id).where(events.c.seq == cast(bindparam(SEEN), BigInteger))
    return {
        "incarnation": newest.scalar_subquery(),
        "last_event": cast(func.coalesce(_LAST, 0), BigInteger),
        "last_event_id": last_id.scalar_subquery(),
        "seen_event_id": seen_id.scalar_subquery(),
        "proof_key": select(incarnations.c.proof_key).where(incarnations.c.number == 1).scalar_subquery(),
    }


_CURRENT: Final = PreparedStatement(select(*(column.label(name) for name, column in columns().items())))


def current(tx: Tx, seen_event: int = 0) -> Any:
    """The life the database is in, its newest event, and the id it has for the event of that number."""
    return _CURRENT.rows(tx.connection, {SEEN: seen_event})[0]


def is_here(found: Any, seen: LastSeen) -> bool:
    """Whether this is the database an agent knows, and has the event that it has seen last.

    An event that is not kept any more is known by its number: it was here if there is a later one.
    """
    has_other = bool(seen.event_id and found.seen_event_id) and seen.event_id != found.seen_event_id
    return found.incarnation == seen.incarnation and found.last_event >= seen.event and not has_other


def check(found: Any, seen: LastSeen) -> None:
    """Refuse whoever knows another life of the database, or an event that it does not have."""
    if not is_here(found, seen):
        raise LeaseLost(
            f"the control plane does not have event {seen.event} of incarnation {seen.incarnation!r}: its database was "
            "restored from a backup, or is another one; register again"
        )


def newest(tx: Tx) -> LastSeen:
    """What an agent is to keep that registers now."""
    return LastSeen.model_validate(last_seen(current(tx), tx))


def last_seen(found: Any, tx: Tx) -> Json:
    """What an agent is to keep, as ``LastSeen`` spells it."""
    event_id, at = found.last_event_id or "", iso(tx.now)
    return {
        "incarnation": found.incarnation,
        "event": found.last_event,
        "eventId": event_id,
        "at": at,
        "proof": proof(found.proof_key, found.incarnation, found.last_event, event_id, at),
    }


def installation(tx: Tx) -> str:
    """By what others know this database from its first start on, through every recovery; nothing follows from it."""
    first = tx.connection.execute(select(incarnations.c.id).where(incarnations.c.number == 1)).scalar_one()
    return hashlib.sha256(f"installation {first}".encode()).hexdigest()[:32]


def is_proven(found: Any, seen: LastSeen) -> bool:
    """Whether this database, in this life or one that was lost by a restore, said what an agent remembers."""
    made = proof(found.proof_key, seen.incarnation, seen.event, seen.event_id, iso(seen.at))
    return hmac.compare_digest(made.encode(), seen.proof.encode())


def proof(key: str, incarnation: str, event: int, event_id: str, at: str) -> str:
    """By which the database recognises what it said; nobody without its key can make one for anything else."""
    said = json.dumps([incarnation, event, event_id, at])
    return hmac.new(bytes.fromhex(key), said.encode(), hashlib.sha256).hexdigest()
