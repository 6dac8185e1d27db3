"""What happened, newest first or from a number on; appended by the transactions themselves (C4)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.records import ComponentRecord, Json
from fractal_cloud.control.store.schema import events
from fractal_cloud.model.event import EventKind


def list_page(tx: Tx, live_system_id: str | None, limit: int, before: int | None) -> list[Json]:
    """Events, newest first, those before the given number."""
    query = select(events).order_by(events.c.seq.desc()).limit(limit)
    if live_system_id is not None:
        query = query.where(events.c.live_system_id == live_system_id)
    if before is not None:
        query = query.where(events.c.seq < before)
    return [_described(row) for row in tx.connection.execute(query)]


def since(tx: Tx, live_system_id: str | None, after: int, limit: int) -> list[Json]:
    """Events after the given number, oldest first: what a live stream goes on with."""
    query = select(events).where(events.c.seq > after).order_by(events.c.seq).limit(limit)
    if live_system_id is not None:
        query = query.where(events.c.live_system_id == live_system_id)
    return [_described(row) for row in tx.connection.execute(query)]


def newest(tx: Tx) -> int:
    """The number of the newest event."""
    return int(tx.connection.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one())


def has_any(tx: Tx, live_system_id: str) -> bool:
    """Whether anything ever happened to a LiveSystem of that id."""
    query = select(events.c.seq).where(events.c.live_system_id == live_system_id).limit(1)
    return tx.connection.execute(query).first() is not None


def _described(row: Any) -> Json:
    return {
        "seq": row.seq,
        "at": row.at,
        "liveSystemId": row.live_system_id,
        "componentId": row.component_id,
        "kind": row.kind,
        "by": row.by,
        "message": row.message,
        "before": row.before,
        "after": row.after,
    }


def status_changed(record: ComponentRecord, by: str, before: str) -> PendingEvent:
    """The event of a component's new status."""
    return PendingEvent(
        record.live_system_id,
        EventKind.STATUS_CHANGED,
        by,
        record.component_id,
        record.message,
        before,
        record.status,
    )
