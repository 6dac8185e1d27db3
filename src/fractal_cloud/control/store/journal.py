"""Every write an agent makes to a cloud: its intent before, its outcome after (C7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import delete, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import among, insert_missing, update_rows
from fractal_cloud.control.store.records import ComponentRecord, Json
from fractal_cloud.control.store.schema import journal
from fractal_cloud.model.wire import JournalEntry

# A row is a tuple, and every tuple has a method of that name.
_MANY: Final = journal.c["count"].label("many")


def write(tx: Tx, agent_id: str, entries: Sequence[JournalEntry], known: Mapping[str, ComponentRecord]) -> None:
    """Store intents, and the outcomes of intents stored before; of components that are gone, only outcomes."""
    rows = [_row(tx, agent_id, entry, known[entry.uid]) for entry in entries if entry.uid in known]
    insert_missing(tx.connection, journal, rows)
    outcomes = [
        {
            "id": entry.id,
            "outcome": entry.outcome,
            "error": entry.error,
            "resource_id": entry.resource_id,
            "request_ids": entry.request_ids,
            "after": entry.after,
            "tags": entry.tags,
            "finished_at": tx.now,
        }
        for entry in entries
        if entry.outcome is not None
    ]
    update_rows(tx.connection, journal, outcomes)
    # What was given up stays open, and says so to whoever takes the scope over (S24).
    given_up = [{"id": entry.id, "error": entry.error} for entry in entries if entry.is_given_up]
    update_rows(tx.connection, journal, given_up)
    _count_repeated(tx, [entry for entry in entries if entry.repeats and entry.outcome is not None])


def _count_repeated(tx: Tx, entries: Sequence[JournalEntry]) -> None:
    """Count refusals in the entry of the equal one before them; where that was forgotten, each keeps its own (S21)."""
    if not entries:
        return
    table = journal.c
    repeated = select(table.id, table.uid, _MANY).where(among(table.id, [entry.repeats for entry in entries]))
    known = {row.id: row for row in tx.connection.execute(repeated)}
    counted = [entry for entry in entries if entry.repeats in known and known[entry.repeats].uid == entry.uid]
    rows = [
        {
            "id": entry.repeats,
            "count": known[entry.repeats].many + 1,
            "last_at": tx.now,
            "request_ids": entry.request_ids,
        }
        for entry in counted
    ]
    update_rows(tx.connection, journal, rows)
    tx.connection.execute(delete(journal).where(among(table.id, [entry.id for entry in counted])))


def _row(tx: Tx, agent_id: str, entry: JournalEntry, record: ComponentRecord) -> Json:
    return {
        "id": entry.id,
        "uid": entry.uid,
        "live_system_id": record.live_system_id,
        "component_id": record.component_id,
        "agent_id": agent_id,
        "generation": entry.generation,
        "verb": entry.verb,
        "reason": entry.reason,
        "resource_id": entry.resource_id,
        "before": entry.before,
        "after": entry.after,
        "tags": entry.tags,
        "request_ids": entry.request_ids,
        "outcome": entry.outcome,
        "error": entry.error,
        "at": tx.now,
        "finished_at": None if entry.outcome is None else tx.now,
    }


def list_of(tx: Tx, live_system_id: str, component_id: str, limit: int, before: str | None) -> list[Json]:
    """The writes made for a component, newest first; ``before`` is the id of the last one already seen."""
    table = journal.c
    query = select(journal, _MANY).where(table.live_system_id == live_system_id, table.component_id == component_id)
    if before is not None:
        seen = select(table.at).where(table.id == before).scalar_subquery()
        query = query.where((table.at < seen) | ((table.at == seen) & (table.id < before)))
    query = query.order_by(table.at.desc(), table.id.desc()).limit(limit)
    return [_described(row) for row in tx.connection.execute(query)]


def has_any(tx: Tx, live_system_id: str, component_id: str) -> bool:
    """Whether anything was ever written for a component of that id."""
    table = journal.c
    query = select(table.id).where(table.live_system_id == live_system_id, table.component_id == component_id)
    return tx.connection.execute(query.limit(1)).first() is not None


def _described(row: Any) -> Json:
    """An intent without outcome shows as unknown: the next read shows whether it had an effect."""
    return {
        "id": row.id,
        "liveSystemId": row.live_system_id,
        "componentId": row.component_id,
        "agentId": row.agent_id,
        "generation": row.generation,
        "verb": row.verb,
        "reason": row.reason,
        "resourceId": row.resource_id,
        "before": row.before,
        "after": row.after,
        "tags": row.tags,
        "requestIds": row.request_ids,
        "outcome": row.outcome or "unknown",
        "error": row.error,
        "at": row.at,
        "finishedAt": row.finished_at,
        "count": row.many,
        "lastAt": row.last_at,
    }
