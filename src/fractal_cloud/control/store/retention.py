"""Forgets what happened long ago: events and journal entries that are older than they are to be kept.

Never forgotten: the newest status event of a component that is still there, and writes whose outcome nobody reported.
What is forgotten goes in small batches, each a transaction of its own, so that nobody waits for it.

Events are gone through by number, one pass a day; the counters say how far a pass has come (``PASSED``), when the last
one ended (``RESTED``), and up to which number events have been forgotten (``FORGOTTEN``).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import and_, bindparam, delete, exists, func, not_, select, text

from fractal_cloud.control.store.database import Database, Tx
from fractal_cloud.control.store.driver import among, is_only_housekeeper, upsert
from fractal_cloud.control.store.schema import STATUS_EVENTS, components, counters, events, journal

PASSED: Final = "events passed"
RESTED: Final = "events rested"
FORGOTTEN: Final = "events forgotten"
PASS_EVERY: Final = timedelta(days=1)
AT_ONCE: Final = 2_000
MOST_BATCHES: Final = 25
"""In one round of housekeeping: others want to be served, too."""


def forget_history(database: Database, keep: timedelta, at_once: int = AT_ONCE) -> None:
    """Forget what is older than ``keep``, some batches of it; what is left comes in the next round."""
    with database.read() as tx:
        is_due = _is_pass_due(tx)
        is_old = tx.connection.execute(_OLD_ENTRIES.limit(1), {"before": tx.now - keep}).first() is not None
    for _ in range(MOST_BATCHES):
        if not is_due and not is_old:
            return
        with database.write() as tx:
            if not is_only_housekeeper(tx.connection):
                return
            is_due = is_due and _forget_events(tx, tx.now - keep, at_once)
            is_old = is_old and _forget_entries(tx, tx.now - keep, at_once)


# --- events

_later = events.alias("later")
_is_status = text(f"events.{STATUS_EVENTS}")
_IS_NEWEST: Final = and_(
    _is_status,
    exists().where(
        components.c.live_system_id == events.c.live_system_id, components.c.component_id == events.c.component_id
    ),
    ~exists().where(
        _later.c.live_system_id == events.c.live_system_id,
        _later.c.component_id == events.c.component_id,
        _later.c.seq > events.c.seq,
        text(f"later.{STATUS_EVENTS}"),
    ),
)
_WINDOW: Final = (
    select(events.c.seq)
    .where(events.c.seq > bindparam("after"), events.c.at < bindparam("before", type_=events.c.at.type))
    .order_by(events.c.seq)
    .limit(bindparam("most"))
).subquery()
_WINDOW_END: Final = select(func.count(), func.max(_WINDOW.c.seq))
_FORGET: Final = delete(events).where(
    events.c.seq > bindparam("after"),
    events.c.seq <= bindparam("upto"),
    events.c.at < bindparam("before", type_=events.c.at.type),
    not_(_IS_NEWEST),
)


def forgotten_up_to(tx: Tx) -> int:
    """The number of the newest event that was forgotten; after it, there is no gap."""
    return _counters(tx).get(FORGOTTEN, 0)


def _counters(tx: Tx) -> dict[str, int]:
    return {row.name: row.value for row in tx.connection.execute(select(counters))}


def _is_pass_due(tx: Tx) -> bool:
    rested = _counters(tx).get(RESTED, 0)
    return tx.now.timestamp() - rested >= PASS_EVERY.total_seconds()


def _forget_events(tx: Tx, before: datetime, at_once: int) -> bool:
    """One batch; False at the end of the pass."""
    known = _counters(tx)
    asked = {"after": known.get(PASSED, 0), "before": before}
    seen, upto = tx.connection.execute(_WINDOW_END, {**asked, "most": at_once}).one()
    is_end = seen < at_once
    changed = {PASSED: 0 if is_end else upto}
    if seen and tx.connection.execute(_FORGET, {**asked, "upto": upto}).rowcount:
        changed[FORGOTTEN] = max(upto, known.get(FORGOTTEN, 0))
    if is_end:
        changed[RESTED] = int(tx.now.timestamp())
    upsert(tx.connection, counters, [{"name": name, "value": value} for name, value in changed.items()])
    return not is_end


# --- the journal

_OLD_ENTRIES: Final = (
    select(journal.c.id)
    .where(journal.c.at < bindparam("before", type_=journal.c.at.type), journal.c.outcome.is_not(None))
    .order_by(journal.c.at)
)


def _forget_entries(tx: Tx, before: datetime, at_once: int) -> bool:
    """One batch; False where nothing more is old."""
    old = list(tx.connection.execute(_OLD_ENTRIES.limit(at_once), {"before": before}).scalars())
    tx.connection.execute(delete(journal).where(among(journal.c.id, old)))
    return len(old) == at_once
