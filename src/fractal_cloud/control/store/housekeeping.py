"""What time itself changes: agents that fell silent, overrides that are overdue, requests and plans nobody answered.

Each step is done where it is due, and by one process at a time: any number may run it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, select, text, update

from fractal_cloud.control.store import agents as agent_store
from fractal_cloud.control.store import approvals, plan_tasks, scopes, sessions, unread_scopes
from fractal_cloud.control.store.database import Database, PendingEvent, Tx
from fractal_cloud.control.store.hosted_components import BY, end_without_host
from fractal_cloud.control.store.periodic import when_due
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, records, select_records, update_records
from fractal_cloud.control.store.retention import forget_history
from fractal_cloud.control.store.schema import NOT_OVERDUE, agents, components
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.control.store.sessions import DEFAULT_ENDINGS, Endings
from fractal_cloud.control.store.unserved_components import report_unserved
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.wire import RequestKind, refused_event
from fractal_cloud.rules.status_words import dated_time

# The agent itself refuses after two cycles and ten seconds, and has the first word.
REQUEST_GRACE = timedelta(seconds=15)
FORGET_AGENTS_AFTER = timedelta(days=1)


def keep_house(
    database: Database,
    cycle_seconds: float,
    *,
    judge_agents: bool = True,
    keep: timedelta | None = None,
    session_endings: Endings = DEFAULT_ENDINGS,
) -> None:
    """One round. ``judge_agents`` is off right after a start, when agents had no chance to be heard yet.

    ``keep``: how long what happened is kept; without it, for ever.
    """
    cycle = timedelta(seconds=cycle_seconds)
    if judge_agents:
        report_unserved(database, cycle)
        unread_scopes.mark_unread(database, cycle)
    unread_scopes.end_read(database)
    end_without_host(database)
    mark_overdue(database)
    expire_requests(database, cycle)
    forget_the_old(database)
    when_due(
        database,
        lambda tx: sessions.has_ended(tx, session_endings),
        lambda tx: sessions.forget_ended(tx, session_endings),
    )
    if keep is not None:
        forget_history(database, keep)
        when_due(database, lambda tx: approvals.has_old(tx, keep), lambda tx: approvals.forget_old(tx, keep))


# --- G13: the date has passed


def mark_overdue(database: Database) -> None:
    """Raise an event, once, for every override whose date has passed; it stays an override (G5)."""
    when_due(database, _overdue, _mark)


def _mark(tx: Tx) -> None:
    # Read again once they are locked: somebody may be giving one of them another date right now.
    lock_live_systems(tx, {live_system_id for _, live_system_id, _, _ in _overdue(tx)})
    for uid, live_system_id, component_id, override in _overdue(tx):
        tx.connection.execute(
            update(components).where(components.c.uid == uid).values(overdue=True, last_updated=tx.now)
        )
        tx.recount.add(live_system_id)
        end = dated_time(override["until"])
        message = f"the override should have ended at {end}: re-adopt it, or give it a new end"
        tx.record(PendingEvent(live_system_id, EventKind.OVERRIDE_OVERDUE, BY, component_id, message, after=override))


def _overdue(tx: Tx) -> list[tuple[str, str, str, Any]]:
    c = components.c
    query = select(c.uid, c.live_system_id, c.component_id, c.override).where(text(NOT_OVERDUE))
    return [
        (row.uid, row.live_system_id, row.component_id, row.override)
        for row in tx.connection.execute(query)
        if row.override["until"] is not None and datetime.fromisoformat(row.override["until"]) <= tx.now
    ]


# --- G10: asked too long ago


def expire_requests(database: Database, cycle: timedelta) -> None:
    """Give up every Force Push and every transfer that no agent carried out within two cycles."""
    when_due(database, lambda tx: _expired(tx, cycle), lambda tx: _give_up(tx, cycle))


def _give_up(tx: Tx, cycle: timedelta) -> None:
    lock_live_systems(tx, (record.live_system_id for record in _expired(tx, cycle)))
    expired = _expired(tx, cycle)
    versions = scopes.renew_work(tx, {r.scope_key for r in expired if r.scope_key is not None})
    for record in expired:
        kind = refused_event(RequestKind((record.request or {})["kind"]))
        record.request = None
        record.declared_in(versions.get(record.scope_key or "", 0))
        message = "it was not carried out within two cycles: ask once more"
        tx.record(PendingEvent(record.live_system_id, kind, BY, record.component_id, message))
    update_records(tx, expired, ("request", "work_version", "declared_version"))


def _expired(tx: Tx, cycle: timedelta) -> list[ComponentRecord]:
    asked = records(tx, select_records().where(components.c.request.is_not(None)))
    if not asked:
        return []
    cycles = {agent.id: timedelta(seconds=agent.cycle_seconds) for agent in agent_store.all_agents(tx)}
    holders = {row.key: row.holder for row in tx.connection.execute(select(scope_table.c.key, scope_table.c.holder))}
    found = []
    for record in asked:
        request = record.request or {}
        own = cycles.get(holders.get(record.scope_key or "") or "", cycle)
        age = tx.now - datetime.fromisoformat(request["at"])
        if request["kind"] != RequestKind.BREAK.value and age > 2 * max(own, cycle) + REQUEST_GRACE:
            found.append(record)
    return found


# --- plans and agents of long ago


def forget_the_old(database: Database) -> None:
    """Drop plans whose asker is gone, and agents that were silent for a day and hold nothing."""
    when_due(database, _has_old, _forget_old)


def _has_old(tx: Tx) -> bool:
    return plan_tasks.has_old(tx) or tx.connection.execute(select(agents.c.id).where(_is_old(tx))).first() is not None


def _forget_old(tx: Tx) -> None:
    plan_tasks.forget_old(tx)
    tx.connection.execute(delete(agents).where(_is_old(tx)))


def _is_old(tx: Tx) -> ColumnElement[bool]:
    held = select(scope_table.c.holder).where(scope_table.c.holder.is_not(None))
    return and_(agents.c.deadline < tx.now - FORGET_AGENTS_AFTER, agents.c.id.not_in(held))
