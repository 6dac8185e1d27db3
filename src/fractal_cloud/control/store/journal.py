"""Every write an agent makes to a cloud: its intent before, its outcome after (C7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import delete, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import PreparedStatement, among, insert_missing, update_rows
from fractal_cloud.control.store.records import ComponentRecord, Json
from fractal_cloud.control.store.schema import journal
from fractal_cloud.model.wire import JournalEntry

# A row is a tuple, and every tuple has a method of that name.
_MANY: Final = journal.c["count"].label("many")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is stored of an entry, as far as a report may change it; ``many``: how many equal refusals it stands for."""

    uid: str
    agent_id: str
    outcome: str | None
    many: int


Entries = Mapping[str, Entry]
"""Entries by their ids."""


def stored(tx: Tx, of: Iterable[JournalEntry]) -> Entries:
    """The stored entries that these speak of, by their own ids or as those that they repeat."""
    ids = {entry_id for entry in of for entry_id in (entry.id, entry.repeats) if entry_id}
    if not ids:
        return {}
    return {row.id: Entry(*row[1:]) for row in _STORED.rows(tx.connection, {"ids": ids})}


_STORED: Final = PreparedStatement(
    select(*(journal.c.id, journal.c.uid, journal.c.agent_id, journal.c.outcome), _MANY).where(
        among(journal.c.id, "ids")
    )
)


@dataclass(frozen=True, slots=True)
class Writer:
    """Who reports on which scope; ``known``: the components it speaks of, ``entries``: the entries as stored."""

    agent_id: str
    scope_key: str
    known: Mapping[str, ComponentRecord]
    entries: Entries

    def is_here(self, entry: JournalEntry) -> bool:
        """Whether the component of an entry is in the scope now."""
        return entry.uid in self.known and self.known[entry.uid].scope_key == self.scope_key

    def may_change(self, entry: JournalEntry) -> bool:
        """Whether a stored entry is the reporter's to change; one that has its outcome is nobody's (A3).

        Of what is in its scope it closes what it intended itself, and what an agent before it left open (C7). Of what
        has left the scope it closes only what it intended itself.
        """
        before = self.entries.get(entry.id)
        if before is None or before.outcome is not None or before.uid != entry.uid:
            return False
        return self.is_here(entry) or before.agent_id == self.agent_id


def write(tx: Tx, writer: Writer, reported: Sequence[JournalEntry]) -> None:
    """Store intents, and the outcomes of intents stored before; of components that left the scope, only outcomes."""
    if not reported:
        return
    new = [entry for entry in reported if entry.id not in writer.entries and writer.is_here(entry)]
    insert_missing(tx.connection, journal, [_row(tx, writer.agent_id, e, writer.known[e.uid]) for e in new])
    changed = [entry for entry in reported if writer.may_change(entry)]
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
        for entry in changed
        if entry.outcome is not None
    ]
    update_rows(tx.connection, journal, outcomes)
    # What was given up or accepted stays open, and says so to whoever takes the scope over (S24, S13).
    still_open = [entry for entry in changed if entry.outcome is None and (entry.error or entry.request_ids)]
    update_rows(tx.connection, journal, [_as_far_as_known(entry) for entry in still_open])
    repeated = [entry for entry in (*new, *changed) if entry.repeats in writer.entries and entry.outcome is not None]
    _count_repeated(tx, repeated, writer.entries)


def _count_repeated(tx: Tx, repeated: Sequence[JournalEntry], entries: Entries) -> None:
    """Count refusals in the entry of the equal one before them; where that was forgotten, each keeps its own (S21)."""
    if not repeated:
        return
    rows = [
        {
            "id": entry.repeats,
            "count": entries[entry.repeats].many + 1,
            "last_at": tx.now,
            "request_ids": entry.request_ids,
        }
        for entry in repeated
    ]
    update_rows(tx.connection, journal, rows)
    tx.connection.execute(delete(journal).where(among(journal.c.id, [entry.id for entry in repeated])))


def _as_far_as_known(entry: JournalEntry) -> Json:
    """What an answer that is not the end of a write says of it."""
    said = {"error": entry.error, "resource_id": entry.resource_id, "request_ids": entry.request_ids}
    return {"id": entry.id, **said}


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
