"""What time itself changes: agents that fell silent, overrides that are overdue, requests and plans nobody answered.

Each step looks first and writes only where something is due, so any number of processes may run it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, select, update

from fractal_cloud.control.store import agents as agent_store
from fractal_cloud.control.store import livesystems, plans, scopes
from fractal_cloud.control.store.agents import Agent
from fractal_cloud.control.store.database import Database, Happening, Tx
from fractal_cloud.control.store.placement import foreign_message, lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, records, select_records, update_records
from fractal_cloud.control.store.schema import agents, components, live_systems
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import RequestKind

BY = "control plane"
# The agent itself refuses after two cycles and ten seconds, and has the first word.
REQUEST_GRACE = timedelta(seconds=15)
FORGET_AGENTS_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Group:
    """Components that are served, or not, all together."""

    environment: str
    provider: str
    realm: str | None
    type: str
    first_deployed: datetime


def keep_house(database: Database, cycle_seconds: float, *, judge_agents: bool = True) -> None:
    """One round. ``judge_agents`` is off right after a start, when agents had no chance to be heard yet."""
    cycle = timedelta(seconds=cycle_seconds)
    if judge_agents:
        tell_unserved(database, cycle)
    mark_overdue(database)
    expire_requests(database, cycle)
    with database.write() as tx:
        plans.forget_old(tx)
        _forget_agents(tx)


# --- S21: nobody serves it


def tell_unserved(database: Database, cycle: timedelta) -> None:
    """Say of components that nobody serves what is missing: within two cycles, and once."""
    with database.read() as tx:
        alive = [agent for agent in agent_store.all_agents(tx) if agent.deadline > tx.now]
        due = [g for g in _groups(tx) if not _is_served(g, alive) and tx.now - g.first_deployed >= 1.5 * cycle]
        if not any(_unsaid(tx, group, cycle) for group in due):
            return
    with database.write() as tx:
        for group in due:
            _tell(tx, _unsaid(tx, group, cycle))


def _groups(tx: Tx) -> list[_Group]:
    c = components.c
    query = (
        select(c.environment, c.provider, c.realm, c.type, func.min(live_systems.c.deployed_at))
        .join(live_systems, live_systems.c.id == c.live_system_id)
        .group_by(c.environment, c.provider, c.realm, c.type)
    )
    return [_Group(*row) for row in tx.connection.execute(query)]


def _is_served(group: _Group, alive: Iterable[Agent]) -> bool:
    for agent in alive:
        if group.realm is None:
            reaches = agent.environment == group.environment and any(p == group.provider for p, _ in agent.reaches)
        else:
            reaches = (group.provider, group.realm) in agent.reaches
        if reaches and group.type in agent.types:
            return True
    return False


def _unsaid(tx: Tx, group: _Group, cycle: timedelta) -> list[ComponentRecord]:
    """The components of a group of which it was not said yet, with the words in their message."""
    c = components.c
    realm_now = agent_store.realms(tx, [(group.environment, group.provider)]).get((group.environment, group.provider))
    query = (
        select_records()
        .join(live_systems, live_systems.c.id == c.live_system_id)
        .where(
            c.environment == group.environment,
            c.provider == group.provider,
            c.type == group.type,
            c.realm.is_(None) if group.realm is None else c.realm == group.realm,
            live_systems.c.deployed_at <= tx.now - 1.5 * cycle,
        )
    )
    unsaid = []
    for record in records(tx, query):
        message = _words(tx, record, realm_now)
        if record.message != message:
            record.message = message
            unsaid.append(record)
    return unsaid


def _words(tx: Tx, record: ComponentRecord, realm_now: str | None) -> str:
    if record.realm is not None and realm_now not in (None, record.realm):
        return foreign_message(record, str(realm_now))
    others = [
        agent.id
        for agent in agent_store.all_agents(tx)
        if agent.deadline > tx.now and record.provider in {provider for provider, _ in agent.reaches}
    ]
    if others and record.realm is None:
        return (
            f"no running agent knows the type {record.type!r} ({', '.join(others)} serve {record.provider!r}): "
            "install its package where an agent runs"
        )
    return livesystems.unserved_message(record.provider, record.environment)


def _tell(tx: Tx, unsaid: Sequence[ComponentRecord]) -> None:
    if not unsaid:
        return
    lock_live_systems(tx, (record.live_system_id for record in unsaid))
    versions = scopes.renew_work(tx, {r.scope_key for r in unsaid if r.scope_key is not None})
    for record in unsaid:
        record.last_updated = tx.now
        record.work_version = versions.get(record.scope_key or "", 0)
        if _was_never_dealt_with(record):
            before, record.status = record.status, Status.FAILED.value
            record.dealt_generation = record.generation
            tx.record(_status_changed(record, before))
    update_records(tx, unsaid, ("message", "status", "dealt_generation", "last_updated", "work_version"))
    for live_system_id in sorted({record.live_system_id for record in unsaid}):
        livesystems.end_if_gone(tx, live_system_id)


def _was_never_dealt_with(record: ComponentRecord) -> bool:
    return (
        record.stance == Stance.NONE.value
        and record.status == Status.INSTANTIATING.value
        and not record.established
        and not record.deleting
    )


def _status_changed(record: ComponentRecord, before: str) -> Happening:
    return Happening(
        record.live_system_id,
        EventKind.STATUS_CHANGED,
        BY,
        record.component_id,
        record.message,
        before,
        record.status,
    )


# --- G13: the date has passed


def mark_overdue(database: Database) -> None:
    """Raise an event, once, for every override whose date has passed; it stays an override (G5)."""
    with database.read() as tx:
        if not _overdue(tx):
            return
    with database.write() as tx:
        due = _overdue(tx)
        for uid, live_system_id, component_id, override in due:
            tx.connection.execute(
                update(components).where(components.c.uid == uid).values(overdue=True, last_updated=tx.now)
            )
            message = f"the override should have ended at {override['until']}: re-adopt it, or give it a new date"
            tx.record(Happening(live_system_id, EventKind.OVERRIDE_OVERDUE, BY, component_id, message, after=override))


def _overdue(tx: Tx) -> list[tuple[str, str, str, Any]]:
    c = components.c
    query = select(c.uid, c.live_system_id, c.component_id, c.override).where(c.override.is_not(None), ~c.overdue)
    return [
        (row.uid, row.live_system_id, row.component_id, row.override)
        for row in tx.connection.execute(query)
        if row.override["until"] is not None and datetime.fromisoformat(row.override["until"]) <= tx.now
    ]


# --- G10: asked too long ago


def expire_requests(database: Database, cycle: timedelta) -> None:
    """Give up every Force Push that no agent carried out within two cycles."""
    with database.read() as tx:
        if not _expired(tx, cycle):
            return
    with database.write() as tx:
        lock_live_systems(tx, (record.live_system_id for record in _expired(tx, cycle)))
        expired = _expired(tx, cycle)
        versions = scopes.renew_work(tx, {r.scope_key for r in expired if r.scope_key is not None})
        for record in expired:
            record.request = None
            record.work_version = versions.get(record.scope_key or "", 0)
            tx.record(
                Happening(
                    record.live_system_id,
                    EventKind.FORCE_PUSH_REFUSED,
                    BY,
                    record.component_id,
                    "it was not carried out within two cycles: ask once more",
                )
            )
        update_records(tx, expired, ("request", "work_version"))


def _expired(tx: Tx, cycle: timedelta) -> list[ComponentRecord]:
    cycles = {agent.id: timedelta(seconds=agent.cycle_seconds) for agent in agent_store.all_agents(tx)}
    holders = {row.key: row.holder for row in tx.connection.execute(select(scope_table.c.key, scope_table.c.holder))}
    found = []
    for record in records(tx, select_records().where(components.c.request.is_not(None))):
        request = record.request or {}
        own = cycles.get(holders.get(record.scope_key or "") or "", cycle)
        age = tx.now - datetime.fromisoformat(request["at"])
        if request["kind"] == RequestKind.FORCE_PUSH.value and age > 2 * max(own, cycle) + REQUEST_GRACE:
            found.append(record)
    return found


def _forget_agents(tx: Tx) -> None:
    held = select(scope_table.c.holder).where(scope_table.c.holder.is_not(None))
    tx.connection.execute(
        delete(agents).where(agents.c.deadline < tx.now - FORGET_AGENTS_AFTER, agents.c.id.not_in(held))
    )
