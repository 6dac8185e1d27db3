"""What time itself changes: agents that fell silent, overrides that are overdue, requests and plans nobody answered.

Each step is done where it is due, and by one process at a time: any number may run it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, or_, select, text, true, update

from fractal_cloud.control.store import agents as agent_store
from fractal_cloud.control.store import hosts, livesystems, plan_tasks, scopes
from fractal_cloud.control.store import realm_bindings as realm_store
from fractal_cloud.control.store.agents import Agent
from fractal_cloud.control.store.database import Database, PendingEvent, Tx
from fractal_cloud.control.store.events import status_changed
from fractal_cloud.control.store.hosted_components import BY, end_without_host, was_never_reconciled
from fractal_cloud.control.store.periodic import when_due
from fractal_cloud.control.store.placement import foreign_message, lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, records, select_records, update_records
from fractal_cloud.control.store.retention import forget_history
from fractal_cloud.control.store.schema import NOT_OVERDUE, agents, components, live_systems
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.host import host_of
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import RequestKind

# The agent itself refuses after two cycles and ten seconds, and has the first word.
REQUEST_GRACE = timedelta(seconds=15)
# In cycles: said soon enough to be read within two.
_PATIENCE = 1.5
FORGET_AGENTS_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Group:
    """Components that nobody serves, all for the same reason.

    ``is_final``: the agents had their time: what was never observed has failed, and the rest waits for a person.
    ``other``: the other realm that is reached where theirs was (S26).
    """

    environment: str
    provider: str
    name: str
    realm: str | None
    type: str
    words: str = ""
    is_final: bool = True
    other: str | None = None

    def said_of(self, record: ComponentRecord) -> str:
        """What a component of the group says."""
        return self.words if self.other is None else foreign_message(record, self.other)


@dataclass(frozen=True, slots=True)
class _Living:
    """The agents that are alive, by what they reach: there may be as many of them as there are groups."""

    by_realm: defaultdict[tuple[str, str], list[Agent]]
    by_name: defaultdict[tuple[str, str, str], list[Agent]]
    by_provider: defaultdict[tuple[str, str], list[Agent]]
    by_environment: defaultdict[str, list[Agent]]

    @classmethod
    def of(cls, agents: Iterable[Agent]) -> _Living:
        """Sort agents by realm, by environment with provider and name, with provider alone, and by environment."""
        living = cls(defaultdict(list), defaultdict(list), defaultdict(list), defaultdict(list))
        for agent in agents:
            living.by_environment[agent.environment].append(agent)
            for reach in agent.reaches:
                living.by_realm[reach].append(agent)
            for provider, name in agent.realms:
                living.by_name[agent.environment, provider, name].append(agent)
            for provider in {provider for provider, _ in agent.realms}:
                living.by_provider[agent.environment, provider].append(agent)
        return living

    def reaching(self, group: _Group) -> list[Agent]:
        """Those who reach the realm of a group; where it is not settled yet, those of its environment who name it."""
        if group.realm is not None:
            return self.by_realm[group.provider, group.realm]
        return self.by_name[group.environment, group.provider, group.name]

    def had_time(self, environment: str, registered: Mapping[str, datetime | None], until: datetime) -> bool:
        """Whether no agent of an environment runs, or one registered so long ago that the others should be there."""
        times = [registered.get(agent.id) for agent in self.by_environment[environment]]
        return not times or any(at is None or at <= until for at in times)


def keep_house(
    database: Database, cycle_seconds: float, *, judge_agents: bool = True, keep: timedelta | None = None
) -> None:
    """One round. ``judge_agents`` is off right after a start, when agents had no chance to be heard yet.

    ``keep``: how long what happened is kept; without it, for ever.
    """
    cycle = timedelta(seconds=cycle_seconds)
    if judge_agents:
        report_unserved(database, cycle)
    end_without_host(database)
    mark_overdue(database)
    expire_requests(database, cycle)
    forget_the_old(database)
    if keep is not None:
        forget_history(database, keep)


# --- S21: nobody serves it


def report_unserved(database: Database, cycle: timedelta) -> None:
    """Say of components that nobody serves what is missing: within two cycles, and once."""

    def report(tx: Tx) -> None:
        for group in _unserved(tx, cycle):
            _report(tx, _unsaid(tx, group, cycle), is_final=group.is_final)

    when_due(database, lambda tx: any(_unsaid(tx, group, cycle) for group in _unserved(tx, cycle)), report)


def _unserved(tx: Tx, cycle: timedelta) -> list[_Group]:
    c = components.c
    query = select(c.environment, c.provider, c.realm_name, c.realm, c.type).distinct()
    every = agent_store.all_agents(tx)
    alive = [agent for agent in every if agent.deadline > tx.now]
    known, registered = agent_store.types_known(tx), agent_store.registrations(tx)
    groups = [_Group(*row) for row in tx.connection.execute(query)]
    realms = agent_store.realms(tx, also={(group.environment, group.provider, group.name) for group in groups})
    entered = {agent.environment for agent in every} | {environment for environment, _, _ in agent_store.realms(tx)}
    living, others = _Living.of(alive), realm_store.others(tx)
    found = []
    for group in groups:
        reaching = living.reaching(group)
        name = (group.environment, group.provider, group.name)
        other = others.get(name) or realms.get(name)
        if not reaching and group.realm is not None and other is not None and other != group.realm:
            found.append(replace(group, other=other))
        elif not any(group.type in known.get(agent.id, ()) for agent in reaching):
            serving = living.by_provider[group.environment, group.provider]
            words = _words(group, reaching, is_served=bool(serving))
            if host_of(group.name) is not None and not reaching:
                can_reach_hosts = any(group.provider in agent.hosted for agent in serving)
                words = _words_of_host(tx, group, can_reach_hosts=can_reach_hosts)
            if words and group.environment not in entered:
                words = livesystems.never_served_message(group.provider, group.environment)
                found.append(replace(group, words=words, is_final=False))
            elif words:
                is_final = living.had_time(group.environment, registered, tx.now - _PATIENCE * cycle)
                found.append(replace(group, words=words, is_final=is_final))
    return found


def _words(group: _Group, reaching: Sequence[Agent], *, is_served: bool) -> str:
    if reaching:
        names = ", ".join(agent.id for agent in reaching)
        return (
            f"no running agent knows the type {group.type!r} ({names} serve {group.provider!r}): "
            "install its package where an agent runs"
        )
    return livesystems.unserved_message(group.provider, group.environment, group.name if is_served else "")


def _words_of_host(tx: Tx, group: _Group, *, can_reach_hosts: bool) -> str:
    """Why no agent reconciles what is in a host; empty where it only waits, or an agent says itself what is wrong."""
    host = host_of(group.name)
    if host is None or not can_reach_hosts:
        return livesystems.unserved_message(group.provider, group.environment)
    if group.realm is None:
        return ""
    known = hosts.states(tx, group.provider, [group.name]).get(group.name)
    if known is None or known.is_absent:
        return f"it is in {host.component_id!r}, which is gone: nothing is read or written until that is there again"
    return ""


def _unsaid(tx: Tx, group: _Group, cycle: timedelta) -> list[ComponentRecord]:
    """The components of a group of which it was not said yet, with the words in their message."""
    c = components.c
    query = (
        select_records()
        .join(live_systems, live_systems.c.id == c.live_system_id)
        .where(
            c.environment == group.environment,
            c.provider == group.provider,
            c.type == group.type,
            c.realm_name == group.name,
            c.realm.is_(None) if group.realm is None else c.realm == group.realm,
            or_(c.message != group.words, c.stuck != group.is_final) if group.other is None else true(),
            ~live_systems.c.in_recovery,
            live_systems.c.deployed_at <= tx.now - _PATIENCE * cycle,
        )
    )
    found = [(record, group.said_of(record)) for record in records(tx, query)]
    unsaid = [(record, said) for record, said in found if (record.message, record.stuck) != (said, group.is_final)]
    for record, said in unsaid:
        record.message, record.stuck = said, group.is_final
    return [record for record, _ in unsaid]


def _report(tx: Tx, unsaid: Sequence[ComponentRecord], *, is_final: bool) -> None:
    if not unsaid:
        return
    lock_live_systems(tx, (record.live_system_id for record in unsaid))
    versions = scopes.renew_work(tx, {r.scope_key for r in unsaid if r.scope_key is not None})
    for record in unsaid:
        record.last_updated = tx.now
        record.declared_in(versions.get(record.scope_key or "", 0))
        if is_final and was_never_reconciled(record):
            before, record.status = record.status, Status.FAILED.value
            record.dealt_generation = record.generation
            tx.record(status_changed(record, BY, before))
    columns = ("message", "status", "stuck", "dealt_generation", "last_updated", "work_version", "declared_version")
    update_records(tx, unsaid, columns)


# --- G13: the date has passed


def mark_overdue(database: Database) -> None:
    """Raise an event, once, for every override whose date has passed; it stays an override (G5)."""
    when_due(database, _overdue, _mark)


def _mark(tx: Tx) -> None:
    for uid, live_system_id, component_id, override in _overdue(tx):
        tx.connection.execute(
            update(components).where(components.c.uid == uid).values(overdue=True, last_updated=tx.now)
        )
        message = f"the override should have ended at {override['until']}: re-adopt it, or give it a new date"
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
    """Give up every Force Push that no agent carried out within two cycles."""
    when_due(database, lambda tx: _expired(tx, cycle), lambda tx: _give_up(tx, cycle))


def _give_up(tx: Tx, cycle: timedelta) -> None:
    lock_live_systems(tx, (record.live_system_id for record in _expired(tx, cycle)))
    expired = _expired(tx, cycle)
    versions = scopes.renew_work(tx, {r.scope_key for r in expired if r.scope_key is not None})
    for record in expired:
        record.request = None
        record.declared_in(versions.get(record.scope_key or "", 0))
        message = "it was not carried out within two cycles: ask once more"
        tx.record(PendingEvent(record.live_system_id, EventKind.FORCE_PUSH_REFUSED, BY, record.component_id, message))
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
        if request["kind"] == RequestKind.FORCE_PUSH.value and age > 2 * max(own, cycle) + REQUEST_GRACE:
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
