"""Takes in what an agent reports: all of it under valid leases, or nothing of it.

An unchanged component costs no write. What follows from a change (events, news for other scopes, how the mutation is
doing) is written in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, select

from fractal_cloud.control.store import agents, journal, links, livesystems, mutations, resources, scopes, types
from fractal_cloud.control.store.agents import realms
from fractal_cloud.control.store.database import Happening, Tx
from fractal_cloud.control.store.dialect import chunks
from fractal_cloud.control.store.errors import LeaseLost
from fractal_cloud.control.store.links import Listener
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import (
    ComponentRecord,
    Json,
    delete_records,
    iso,
    records_by_uid,
    update_records,
)
from fractal_cloud.control.store.schema import components, refers
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import AgentEvent, ComponentChange, Report, Reported, ScopeReport
from fractal_cloud.rules.happened import Happened, Published, happened

_OBSERVED: Final = (
    "stance",
    "status",
    "message",
    "owner",
    "resource_id",
    "output_fields",
    "observed_generation",
    "established",
    "absent_since",
    "noticed_since",
    "intent",
    "override",
    "waits_for",
    "links",
)
# Versions of work are not in it: another LiveSystem's report may just have put a newer one on the row (L11).
_WRITTEN: Final = (*_OBSERVED, "request", "dealt_generation", "overdue", "last_updated")
_MOVED: Final = (
    *("place", "name", "parent", "realm_name", "realm", "scope_key", "identity_key"),
    *("work_version", "declared_version"),
)


@dataclass(slots=True)
class _Taken:
    """What a report changes, gathered before it is written."""

    changed: list[ComponentRecord] = field(default_factory=list)
    finished: list[ComponentRecord] = field(default_factory=list)
    moved: list[tuple[str, str, ComponentRecord]] = field(default_factory=list)
    republished: list[ComponentRecord] = field(default_factory=list)

    @property
    def touched(self) -> list[ComponentRecord]:
        return [*self.changed, *self.finished]


def report(tx: Tx, sent: Report, token_id: str) -> Reported:
    """Apply a report as a whole, or raise ``LeaseLost`` and apply nothing."""
    agent = agents.get(tx, sent.agent_id, token_id)
    known = records_by_uid(tx, _uids(sent))
    lock_live_systems(tx, (record.live_system_id for record in known.values()))
    known = records_by_uid(tx, known)
    finished = {change.uid for scope in sent.scopes for change in scope.changes if change.finished}
    neighbours = _neighbours(tx, known.values(), finished)
    owners = {change.uid: change.owner for scope in sent.scopes for change in scope.changes}
    linked = links.listeners(tx, known.values(), owners)
    _check_leases(tx, agent, sent.scopes, also=_elsewhere(tx, known.values(), neighbours, linked))
    _check_is_current(sent.scopes, known)
    taken = _Taken()
    for scope in sent.scopes:
        _take_changes(tx, agent.id, scope, known, taken)
    for scope in sent.scopes:
        resources.write(tx, scope.scope, scope.resources)
        journal.write(tx, agent.id, scope.journal, known)
    _settle_moves(tx, taken)
    _write(tx, taken)
    news = [*taken.republished, *taken.finished]
    if news:
        # Asked again, now that the scopes are held: a link may have been declared since.
        linked += links.listeners(tx, [known[record.uid] for record in news], owners)
    _tell_neighbours(tx, news, neighbours, linked)
    for live_system_id in sorted({record.live_system_id for record in taken.touched}):
        livesystems.end_if_gone(tx, live_system_id)
    return Reported(at=tx.now)


def _uids(sent: Report) -> set[str]:
    found: set[str] = set()
    for scope in sent.scopes:
        found.update(change.uid for change in scope.changes)
        found.update(entry.uid for entry in scope.journal)
        found.update(event.uid for event in scope.events)
    return found


def _check_leases(tx: Tx, agent: agents.Agent, sent: Sequence[ScopeReport], also: set[str]) -> None:
    """Hold the scopes reported on, and with them those that may hear of it: all at once, in one order."""
    held = scopes.lock(tx, {scope.scope for scope in sent} | also)
    for scope in sent:
        row = held[scope.scope]
        if row.holder != agent.id or row.token != scope.token:
            raise LeaseLost(f"the lease of scope {scope.scope!r} went to another holder: claim again")
    if agent.deadline <= tx.now:
        raise LeaseLost(f"agent {agent.id!r} was not heard of in time: send a heartbeat, then claim again")


def _check_is_current(sent: Sequence[ScopeReport], known: Mapping[str, ComponentRecord]) -> None:
    """Refuse intents judged from a declaration that has changed since, or for what is no longer in this scope.

    Nothing must be written for them: a component that was taken out and put back again is not deleted.
    """
    for scope in sent:
        about_to = {entry.uid for entry in scope.journal if entry.outcome is None}
        about_to |= {change.uid for change in scope.changes if change.intent is not None}
        for uid in about_to:
            if uid not in known or known[uid].scope_key != scope.scope:
                raise LeaseLost(f"component {uid!r} is no longer in scope {scope.scope!r}: claim again")
            if known[uid].declared_version > scope.version:
                raise LeaseLost(f"component {uid!r} was declared anew since version {scope.version}: claim again")


def _take_changes(
    tx: Tx,
    agent_id: str,
    scope: ScopeReport,
    known: Mapping[str, ComponentRecord],
    taken: _Taken,
) -> None:
    told = _told(scope.events)
    linked = types.linked(tx, _differing(scope.changes, known))
    for change in scope.changes:
        before = known.get(change.uid)
        if before is None or before.scope_key != scope.scope:
            continue
        after = _applied(before, change, tx.now)
        if before.declared_version <= scope.version:
            after.dealt_generation = before.generation
        if change.finished and not before.deleting:
            after = _begun_anew(before, change)
        if change.finished and before.deleting:
            taken.finished.append(after)
        elif after != before:
            after.last_updated = tx.now
            taken.changed.append(after)
        if _is_republished(before, after):
            taken.republished.append(after)
        events = _events(before, after, change, linked.get(before.type, ()))
        tx.record(*_derived(agent_id, before, events, told.get(change.uid, frozenset())))
    tx.record(*(_agent_event(agent_id, event, known[event.uid]) for event in scope.events if event.uid in known))


def _told(events: Iterable[AgentEvent]) -> dict[str, frozenset[EventKind]]:
    found: dict[str, frozenset[EventKind]] = {}
    for event in events:
        found[event.uid] = found.get(event.uid, frozenset()) | {event.kind}
    return found


def _applied(before: ComponentRecord, change: ComponentChange, now: datetime) -> ComponentRecord:
    """The row with the observed half as reported, stamped with the time of this report where the report says so."""
    is_used = before.request is not None and before.request["id"] == change.used_request
    return replace(
        before,
        stance=change.stance.value,
        status=change.status.value,
        message=change.message,
        owner=change.owner,
        resource_id=change.resource_id,
        output_fields=change.output_fields,
        observed_generation=change.observed_generation,
        established=change.established,
        absent_since=(before.absent_since or now) if change.absent else None,
        noticed_since=(before.noticed_since or now) if change.noticed else None,
        intent=None if change.intent is None else change.intent.to_json(),
        override=_override(before.override, change, now),
        waits_for=change.waits_for,
        links=change.links.to_json(),
        request=None if is_used else before.request,
        overdue=before.overdue and change.overridden and _same_until(before, change),
    )


def _begun_anew(before: ComponentRecord, change: ComponentChange) -> ComponentRecord:
    """A component that was declared again while its deletion ended: it is there, and never dealt with."""
    status = Status.INSTANTIATING.value
    fresh = ComponentChange(uid=change.uid, stance=Stance.NONE, status=Status.INSTANTIATING)
    return replace(_applied(before, fresh, before.last_updated), status=status, absent_since=None)


def _override(before: Json | None, change: ComponentChange, now: datetime) -> Json | None:
    if not change.overridden:
        return None
    return {
        "since": iso(now) if before is None else before["since"],
        "by": change.override_by,
        "reason": change.override_reason,
        "until": None if change.override_until is None else iso(change.override_until),
    }


def _same_until(before: ComponentRecord, change: ComponentChange) -> bool:
    until = (before.override or {}).get("until")
    if until is None or change.override_until is None:
        return until is None and change.override_until is None
    return datetime.fromisoformat(until) == change.override_until


def _is_republished(before: ComponentRecord, after: ComponentRecord) -> bool:
    """Whether those who refer to it, or are linked with it, have to hear of it."""

    def told(record: ComponentRecord) -> tuple[object, ...]:
        inbound = record.links.get("inbound", {}).items()
        failed = {other: state["waits"] for other, state in inbound if state.get("failed")}
        return record.output_fields, record.status, record.stance, record.owner, failed

    return told(before) != told(after)


def _published(record: ComponentRecord) -> Published:
    override = record.override or {}
    return Published(
        stance=Stance(record.stance),
        status=Status(record.status),
        message=record.message,
        owner=record.owner,
        resource_id=record.resource_id,
        output_fields=record.output_fields,
        is_absent=record.absent_since is not None,
        override_by=override.get("by"),
        override_reason=override.get("reason"),
    )


def _differing(changes: Iterable[ComponentChange], known: Mapping[str, ComponentRecord]) -> set[str]:
    """The types of components of which a difference is told, or was until now."""
    both = ((known[change.uid], change) for change in changes if change.uid in known)
    return {old.type for old, new in both if "drift" in new.output_fields or "drift" in old.output_fields}


def _events(
    before: ComponentRecord, after: ComponentRecord, change: ComponentChange, linked: Collection[str]
) -> list[Happened]:
    deleting = before.deleting or change.finished
    told = _published(before), _published(after)
    return happened(*told, before.live_system_id, deleting=deleting, linked=linked)


def _derived(
    agent_id: str, before: ComponentRecord, events: Iterable[Happened], told: frozenset[EventKind]
) -> Iterable[Happening]:
    for event in events:
        if event.kind not in told:
            yield Happening(
                before.live_system_id,
                event.kind,
                event.by or agent_id,
                before.component_id,
                event.message,
                event.before,
                event.after,
            )


def _agent_event(agent_id: str, event: AgentEvent, record: ComponentRecord) -> Happening:
    return Happening(
        record.live_system_id, event.kind, agent_id, record.component_id, event.message, event.before, event.after
    )


def _settle_moves(tx: Tx, taken: _Taken) -> None:
    """What is not established any more is looked for where its declaration says."""
    moving = [r for r in taken.changed if not r.established and not r.is_where_declared and not r.deleting]
    if not moving:
        return
    reached = realms(tx)
    for record in moving:
        left = str(record.scope_key)
        realm = _declared_realm(record, reached)
        record.take_declared_identity()
        if realm is not None:
            record.settle_in(realm)
        else:
            record.unsettle()
        taken.moved.append((left, record.uid, record))


def _declared_realm(record: ComponentRecord, reached: Mapping[tuple[str, str, str], str]) -> str | None:
    """Where its declaration says it is, as far as an agent has said; a name that did not change stays what it was."""
    here = record.realm if record.realm_name == record.declared_realm_name else None
    return reached.get((record.environment, record.provider, record.declared_realm_name), here)


def _write(tx: Tx, taken: _Taken) -> None:
    keys = {key for left, _, record in taken.moved for key in (left, record.scope_key) if key is not None}
    versions = scopes.renew_work(tx, keys) if keys else {}
    for _, _, record in taken.moved:
        record.declared_in(versions.get(record.scope_key or "", 0))
    update_records(tx, taken.changed, _WRITTEN)
    update_records(tx, [record for _, _, record in taken.moved], _MOVED)
    scopes.depart(tx, [(left, uid) for left, uid, r in taken.moved if left != r.scope_key], versions)
    if taken.finished:
        for live_system_id in {record.live_system_id for record in taken.finished}:
            mutation_id = mutations.newest_id(tx, live_system_id)
            if mutation_id is not None:
                mutations.keep(tx, mutation_id, [r for r in taken.finished if r.live_system_id == live_system_id])
        delete_records(tx, (record.uid for record in taken.finished))


@dataclass(frozen=True, slots=True)
class _Neighbour:
    """A component in another scope that has to hear of a reported one (``of``): it refers to it, or stands under it."""

    uid: str
    scope_key: str
    live_system_id: str
    of: str


def _neighbours(tx: Tx, reported: Iterable[ComponentRecord], finished: set[str]) -> list[_Neighbour]:
    """Those who refer to a reported component, and those a finished one depended on: their deletion may go on (O10)."""
    by_live_system: dict[str, list[ComponentRecord]] = {}
    for record in reported:
        by_live_system.setdefault(record.live_system_id, []).append(record)
    found: list[_Neighbour] = []
    for live_system_id, group in by_live_system.items():
        here = {record.component_id: record.scope_key for record in group}
        ended = {record.component_id for record in group if record.uid in finished}
        for near, far, wanted in (
            (refers.c.target, refers.c.source, set(here)),
            (refers.c.source, refers.c.target, ended),
        ):
            for some in chunks(wanted):
                query = _joined(live_system_id, near, far, some)
                found.extend(
                    _Neighbour(row.uid, row.scope_key, live_system_id, row.near)
                    for row in tx.connection.execute(query)
                    if row.scope_key != here[row.near]
                )
    return found


def _joined(live_system_id: str, near: ColumnElement[str], far: ColumnElement[str], some: list[str]) -> Select[Any]:
    c = components.c
    return (
        select(c.uid, c.scope_key, near.label("near"))
        .join(refers, and_(refers.c.live_system_id == c.live_system_id, far == c.component_id))
        .where(refers.c.live_system_id == live_system_id, near.in_(some), c.scope_key.is_not(None))
    )


def _elsewhere(
    tx: Tx, reported: Iterable[ComponentRecord], neighbours: Iterable[_Neighbour], linked: Iterable[Listener]
) -> set[str]:
    """The scopes beside the reported ones that this report may touch."""
    keys = {neighbour.scope_key for neighbour in neighbours} | {listener.scope_key for listener in linked}
    moving = [record for record in reported if not record.is_where_declared]
    reached = realms(tx) if moving else {}
    for record in moving:
        realm = _declared_realm(record, reached)
        if realm is not None:
            keys.add(Scope(record.provider, realm, record.declared_place).key)
    return keys


def _tell_neighbours(
    tx: Tx, news: Sequence[ComponentRecord], neighbours: Sequence[_Neighbour], linked: Sequence[Listener]
) -> None:
    """Tell components that what they refer to, are linked with, or what depends on them, has changed (L11, O10)."""
    fresh = {(record.live_system_id, record.component_id) for record in news}
    uids = {record.uid for record in news}
    told = {n.uid: n.scope_key for n in neighbours if (n.live_system_id, n.of) in fresh}
    scopes.tell_news(tx, told | {listener.uid: listener.scope_key for listener in linked if listener.of in uids})
