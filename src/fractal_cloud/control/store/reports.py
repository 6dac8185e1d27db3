"""Applies what agents report: each report as a whole under valid leases and confined to them, or nothing of it.

An unchanged component costs no write. What follows from a change (events, news for other scopes) is written in the same
transaction. Reports that come at the same time share one: most of what a report costs is the statements, not the rows.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from fractal_cloud.control.store import (
    agents,
    confinement,
    incarnations,
    journal,
    livesystems,
    mutations,
    offers,
    resources,
    scopes,
    transfers,
)
from fractal_cloud.control.store.agents import realms
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.declaration_merge import mark_outdated
from fractal_cloud.control.store.errors import LeaseLost, ReportRefused, StoreError
from fractal_cloud.control.store.listeners import Heard, Speaking, listeners
from fractal_cloud.control.store.records import (
    ComponentRecord,
    Json,
    delete_records,
    iso,
    records_of,
    update_records,
    write_records,
)
from fractal_cloud.control.store.report_words import check_report
from fractal_cloud.control.store.reported_components import ReportedComponents, lock_components
from fractal_cloud.control.store.summaries import Adjustment
from fractal_cloud.model.event import BEING_DEPLOYED, EventKind
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.observed import BEGUN_ANEW, CARRIED, OBSERVED, STAMPED
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import (
    AgentEvent,
    ComponentChange,
    JournalEntry,
    Report,
    Reported,
    RequestKind,
    ScopeReport,
)
from fractal_cloud.rules.derived_events import DerivedEvent, Published, derive_events
from fractal_cloud.rules.hiding import Hiding

# Versions of work are not in it: another LiveSystem's report may just have put a newer one on the row (L11).
_WRITTEN: Final = (*OBSERVED, "request", "dealt_generation", "overdue", "last_updated")
_written = operator.attrgetter(*_WRITTEN)
_MOVED: Final = (
    *("place", "name", "parent", "realm_name", "realm", "scope_key", "identity_key"),
    *("work_version", "declared_version"),
)


@dataclass(slots=True)
class _Changes:
    """What reports change, gathered before it is written; ``columns``: those in which any of the changed differs.

    ``gone``: the identities of resources whose deletion has ended. ``moved``: the scope each was in, its uid, and it.
    """

    changed: list[ComponentRecord] = field(default_factory=list)
    columns: set[str] = field(default_factory=set)
    finished: list[ComponentRecord] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    left: list[ComponentRecord] = field(default_factory=list)
    moved: list[tuple[str, str, ComponentRecord]] = field(default_factory=list)
    republished: list[ComponentRecord] = field(default_factory=list)

    @property
    def news(self) -> list[ComponentRecord]:
        """What others may have to hear of."""
        return [*self.republished, *self.finished]


@dataclass(frozen=True, slots=True)
class Sent:
    """A report, and the token of access with which it came, by its id and its name."""

    report: Report
    token_id: str
    token_name: str = ""

    @property
    def subjects(self) -> set[str]:
        """What it is about: reports that share a subject are applied one after the other."""
        return _uids(self.report) | _scope_keys(self.report)


def report(tx: Tx, sent: Report, token_id: str) -> Reported:
    """Apply a report as a whole, or raise ``LeaseLost`` or ``ReportRefused`` and apply nothing."""
    (outcome,) = apply(tx, [Sent(sent, token_id)])
    if isinstance(outcome, StoreError):
        raise outcome
    return outcome


def apply(tx: Tx, sent: Sequence[Sent]) -> list[Reported | StoreError]:
    """Apply reports of which no two share a subject; one that is refused changes nothing, and holds up no other."""
    unspeakable = [_unspeakable(one.report) for one in sent]  # before anything of it reaches the database
    locked = _lock(tx, [one for one, why in zip(sent, unspeakable, strict=True) if why is None])
    # all of them before anything is written
    refusals = [why or _refusal(tx, one, locked) for one, why in zip(sent, unspeakable, strict=True)]
    changes = _Changes()
    for one, refused in zip(sent, refusals, strict=True):
        if refused is None:
            _apply_one(tx, one.report, locked, changes)
    _settle_moves(tx, changes)
    _write(tx, changes, locked)
    _notify(tx, changes.news, locked)
    livesystems.end_if_gone(tx, {record.live_system_id for record in changes.finished})
    return [refused or Reported(at=tx.now) for refused in refusals]


@dataclass(frozen=True, slots=True)
class _Locked:
    """What reports are about, and who has to hear of it, locked until the transaction ends.

    ``entries``: what is stored of the journal entries in them.
    """

    components: ReportedComponents
    entries: journal.Entries
    scopes: Mapping[str, scopes.ScopeRow]
    speaking: Speaking
    heard: Heard


def _lock(tx: Tx, sent: Sequence[Sent]) -> _Locked:
    """Lock the LiveSystems of the reported components, then every scope that is reported, listens or is moved to."""
    components = lock_components(tx, {uid for one in sent for uid in _uids(one.report)})
    reported = {key for one in sent for key in _scope_keys(one.report)}
    own = {uid: record for uid, record in components.records.items() if record.scope_key in reported}
    speaking = _speaking([one.report for one in sent], own)
    heard = listeners(tx, speaking)
    destinations = _destinations(tx, own.values())
    held = scopes.lock_existing(tx, reported | heard.scope_keys | heard.host_scope_keys | destinations)
    entries = journal.stored(tx, (entry for one in sent for scope in one.report.scopes for entry in scope.journal))
    return _Locked(components, entries, held, speaking, heard)


def _unspeakable(sent: Report) -> StoreError | None:
    """Why the words of a report are refused, if that is so (A6)."""
    try:
        check_report(sent)
    except ReportRefused as error:
        return error
    return None


def _refusal(tx: Tx, sent: Sent, locked: _Locked) -> StoreError | None:
    """Why nothing of a report may be applied, if that is so."""
    seen = sent.report.last_seen
    try:
        incarnations.check(incarnations.current(tx, seen.event), seen)
        _check_leases(tx, sent.report, sent.token_id, locked.scopes)
        confinement.check(tx, sent.report, locked.components.records, locked.scopes, locked.entries)
        _check_is_current(sent.report.scopes, locked.components.records)
        _check_is_confirmed(sent.report.scopes, locked.components)
    except StoreError as error:
        return error
    return None


def _apply_one(tx: Tx, sent: Report, locked: _Locked, changes: _Changes) -> None:
    known = locked.components.records
    for scope in sent.scopes:
        transfers.end(tx, scope.journal, known)  # first: what came to nothing is no reason for a change of owner
        _apply_changes(tx, sent.agent_id, scope, locked.components, changes)
    for scope in sent.scopes:
        resources.write(tx, scope.scope, scope.resources)
        entries = [_hidden_entry(entry, locked.components) for entry in scope.journal]
        journal.write(tx, journal.Writer(sent.agent_id, scope.scope, known, locked.entries), entries)
    _record_races(tx, sent.agent_id, sent.scopes, known)


def _notify(tx: Tx, news: Sequence[ComponentRecord], locked: _Locked) -> None:
    """Notify those who have to hear of reported components."""
    if not news:
        return
    versions = {key: row.version for key, row in locked.scopes.items()}
    if not locked.heard.is_sure or not locked.components.versions.items() <= versions.items():
        # Read again, now that the scopes are locked: a link may have been declared since.
        locked.heard.listeners += listeners(tx, locked.speaking).listeners
    notify_listeners(tx, news, locked.heard)


def _speaking(sent: Iterable[Report], known: Mapping[str, ComponentRecord]) -> Speaking:
    changes = [change for one in sent for scope in one.scopes for change in scope.changes]
    return Speaking(
        known,
        owners={change.uid: change.owner for change in changes},
        finished={change.uid for change in changes if change.finished},
    )


def _uids(sent: Report) -> set[str]:
    found: set[str] = set()
    for scope in sent.scopes:
        found.update(change.uid for change in scope.changes)
        found.update(entry.uid for entry in scope.journal)
        found.update(event.uid for event in scope.events)
    return found


def _scope_keys(sent: Report) -> set[str]:
    return {scope.scope for scope in sent.scopes}


def _check_leases(tx: Tx, sent: Report, token_id: str, held: Mapping[str, scopes.ScopeRow]) -> None:
    """Refuse a report of somebody who is not the living holder of every scope in it."""
    speaker = sent.agent_id, token_id
    if sent.scopes and all(
        scope.scope in held and held[scope.scope].is_leased(scope.token, speaker, tx.now) for scope in sent.scopes
    ):
        _check_environments(tx, {scope.scope: held[scope.scope] for scope in sent.scopes})
        return
    agent = agents.of_token(tx, *speaker)
    for scope in sent.scopes:
        row = held.get(scope.scope)
        if row is None or row.holder != agent.id or row.token != scope.token:
            raise LeaseLost(f"the lease of scope {scope.scope!r} went to another holder: claim again")
    if agent.deadline <= tx.now:
        raise LeaseLost(f"agent {agent.id!r} was not heard of in time: send a heartbeat, then claim again")


def _check_environments(tx: Tx, leased: Mapping[str, scopes.ScopeRow]) -> None:
    """Refuse a report on a scope in which there is, by now, an environment that its holder may not serve (A1)."""
    beyond = scopes.beyond(tx, leased)
    if beyond:
        raise LeaseLost(f"scope {min(beyond)!r} has components of an environment that the token is not bound to")


def _check_is_current(sent: Sequence[ScopeReport], known: Mapping[str, ComponentRecord]) -> None:
    """Refuse intents judged from a declaration that has changed since, or for what is no longer in this scope.

    Nothing must be written for them: a component that was taken out and put back again is not deleted.
    """
    for scope in sent:
        about_to = {entry.uid for entry in scope.journal if entry.outcome is None and not entry.is_given_up}
        about_to |= {change.uid for change in scope.changes if change.intent is not None}
        for uid in about_to:
            if uid not in known or known[uid].scope_key != scope.scope:
                raise LeaseLost(f"component {uid!r} is no longer in scope {scope.scope!r}: claim again")
            if known[uid].declared_version > scope.version:
                raise LeaseLost(f"component {uid!r} was declared anew since version {scope.version}: claim again")


def _check_is_confirmed(sent: Sequence[ScopeReport], components: ReportedComponents) -> None:
    """Refuse what is about to be written, or to end, for a LiveSystem of a backup that nobody has confirmed (C9)."""
    for scope in sent:
        about_to = {entry.uid for entry in scope.journal if entry.outcome is None}
        about_to |= {c.uid for c in scope.changes if c.finished or (c.intent is not None and not c.intent.restored)}
        for uid in sorted(about_to & components.in_recovery):
            name = components.records[uid].live_system_id
            raise LeaseLost(f"LiveSystem {name!r} is in recovery, and nothing is written for it: claim again")


def _record_races(tx: Tx, agent_id: str, sent: Sequence[ScopeReport], known: Mapping[str, ComponentRecord]) -> None:
    """Record writes that were on their way when the glass was broken, where no tag could have stopped them (S16)."""
    written = [entry for scope in sent for entry in scope.journal]
    entries = [entry for entry in written if entry.outcome in ("done", "unknown") or entry.is_given_up]
    raced = [(entry, known[entry.uid]) for entry in entries if entry.uid in known and _is_broken(known[entry.uid])]
    frozen = offers.frozen(tx, {record.type for _, record in raced})
    for entry, record in raced:
        if record.type in frozen:
            text = f"the glass was broken while a write ({entry.reason}) was on its way: check the resource"
            tx.record(PendingEvent(record.live_system_id, EventKind.RACE_LOST, agent_id, record.component_id, text))


def _is_broken(record: ComponentRecord) -> bool:
    return record.request is not None and record.request["kind"] == RequestKind.BREAK.value


def _apply_changes(
    tx: Tx, agent_id: str, scope: ScopeReport, components: ReportedComponents, changes: _Changes
) -> None:
    """Gather what one scope's report changes, and record the events of it; what left the scope is ignored (A3)."""
    own = {uid: record for uid, record in components.records.items() if record.scope_key == scope.scope}
    moved = transfers.of(tx, _moved_keys(scope, own))
    for reported_change in scope.changes:
        before = own.get(reported_change.uid)
        if before is None:
            continue
        change = _hidden(reported_change, components.hidden[before.type])
        after = _after(before, change, scope.version, tx.now)
        _gather(changes, before, after, change, tx.now)
        transfers.begin(tx, before, change.used_request, scope.journal)
        events = _events(before, after, change, components.linked[before.type])
        tx.record(*_derived(agent_id, before, (transfers.attributed(tx, before, event, moved) for event in events)))
    tx.record(*(_agent_event(agent_id, event, own[event.uid]) for event in scope.events if event.uid in own))


def _moved_keys(scope: ScopeReport, own: Mapping[str, ComponentRecord]) -> set[str]:
    """The identities of resources of which another owner is reported than before."""
    changed = (
        own[change.uid] for change in scope.changes if change.uid in own and change.owner != own[change.uid].owner
    )
    return {
        record.identity_key for record in changed if record.identity_key is not None and record.resource_id is not None
    }


def _hidden(change: ComponentChange, hiding: Hiding) -> ComponentChange:
    """A change as it is stored: no agent, of whatever version, brings a text in that may hold a secret (A8)."""
    return replace(change, output_fields=hiding.published(change.output_fields)) if hiding.is_needed else change


def _hidden_entry(entry: JournalEntry, components: ReportedComponents) -> JournalEntry:
    """The same of an entry of the journal."""
    record = components.records.get(entry.uid)
    hiding = components.hidden.get(record.type) if record is not None else None
    if hiding is None or not hiding.is_needed:
        return entry
    before, after = hiding.published(entry.before), hiding.published(entry.after)
    return entry.model_copy(update={"before": before, "after": after})


def _after(before: ComponentRecord, change: ComponentChange, version: int, now: datetime) -> ComponentRecord:
    """The row after a change, which was judged from that version of the scope's work."""
    if change.finished and not before.deleting:
        return _begun_anew(before, change)
    is_current = before.declared_version <= version
    after = _applied(before, change, now, is_current=is_current)
    if is_current:
        after.dealt_generation = before.generation
        return after
    for name in BEGUN_ANEW:  # since this was judged
        setattr(after, name, getattr(before, name))
    if before.dealt_generation < before.generation:
        mark_outdated(after)  # judged from the declaration before
    return after


def _gather(
    changes: _Changes, before: ComponentRecord, after: ComponentRecord, change: ComponentChange, now: datetime
) -> None:
    """Add a changed row to what is to be written, ended or announced."""
    if change.finished and before.deleting:
        changes.finished.append(after)
        if change.absent and not change.left and before.identity_key is not None:
            changes.gone.append(before.identity_key)
        if change.left:
            changes.left.append(after)
    elif columns := _differing(before, after):
        after.last_updated = now
        changes.changed.append(after)
        changes.columns.update(columns)
    if _is_republished(before, after):
        changes.republished.append(after)


def _differing(before: ComponentRecord, after: ComponentRecord) -> list[str]:
    """The columns in which a row changes, with the time of it; none where it does not."""
    was, is_now = _written(before), _written(after)
    if was == is_now:
        return []
    pairs = zip(_WRITTEN, was, is_now, strict=True)
    return ["last_updated", *(name for name, old, new in pairs if old is not new and old != new)]


def _applied(
    before: ComponentRecord, change: ComponentChange, now: datetime, *, is_current: bool = True
) -> ComponentRecord:
    """The row with the observed half as reported, stamped with the time of this report where the report says so.

    ``is_current``: it was judged with all that operators have asked for.
    """
    after = before.copy()
    for name, stored in CARRIED.items():
        setattr(after, name, stored(getattr(change, name)))
    for since, flag in STAMPED.items():
        setattr(after, since, (getattr(before, since) or now) if getattr(change, flag) else None)
    after.restored = before.restored and change.restored
    after.override = _override(before, change, now, is_current=is_current)
    after.overdue = before.overdue and after.override is not None and _same_until(before, after)
    if before.request is not None and before.request["id"] == change.used_request:
        after.request = None
    return after


def _begun_anew(before: ComponentRecord, change: ComponentChange) -> ComponentRecord:
    """A component that was declared again while its deletion ended: it is there, and was never reconciled."""
    status = Status.INSTANTIATING.value
    fresh = ComponentChange(uid=change.uid, stance=Stance.NONE, status=Status.INSTANTIATING)
    return replace(_applied(before, fresh, before.last_updated), status=status, absent_since=None)


def _override(before: ComponentRecord, change: ComponentChange, now: datetime, *, is_current: bool) -> Json | None:
    """The override after a change. What operators extended or handed over since it was judged stays so (G13)."""
    if not change.overridden:
        return None
    until = None if change.override_until is None else iso(change.override_until)
    reported = {"by": change.override_by, "reason": change.override_reason, "until": until}
    stands = before.override
    terms = reported if is_current or stands is None else _terms_kept(before, stands, change)
    return {
        "since": iso(now) if stands is None else stands["since"],
        **terms,
        **({} if change.readopted_by is None else {"readoptedBy": change.readopted_by}),
    }


def _terms_kept(before: ComponentRecord, stands: Json, change: ComponentChange) -> Json:
    """Who, why and until when, where an agent did not know the newest: those of a request that it used up, as it is
    by now, else those that stand.
    """
    request = before.request
    named = change.override_by, change.override_reason
    is_applied = (
        request is not None
        and request["kind"] == RequestKind.BREAK.value
        and request["id"] == change.used_request
        and named == (request.get("by"), request.get("reason"))
    )
    kept = request if is_applied and request is not None else stands
    return {name: kept.get(name) for name in ("by", "reason", "until")}


def _same_until(before: ComponentRecord, after: ComponentRecord) -> bool:
    return _until(before) == _until(after)


def _until(record: ComponentRecord) -> datetime | None:
    until = (record.override or {}).get("until")
    return None if until is None else datetime.fromisoformat(until)


def _is_republished(before: ComponentRecord, after: ComponentRecord) -> bool:
    """Whether those who refer to it, or are linked with it, have to hear of it."""

    def visible(record: ComponentRecord) -> tuple[object, ...]:
        inbound = record.links.get("inbound", {}).items()
        failed = {other: state["waits"] for other, state in inbound if state.get("failed")}
        return record.output_fields, record.status, record.stance, record.owner, failed

    return visible(before) != visible(after)


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
        is_being_created=record.intent is not None,
    )


def _events(
    before: ComponentRecord, after: ComponentRecord, change: ComponentChange, linked: Collection[str]
) -> list[DerivedEvent]:
    deleting = before.deleting or change.finished
    published = _published(before), _published(after)
    return derive_events(*published, before.live_system_id, deleting=deleting, linked=linked)


def _derived(agent_id: str, before: ComponentRecord, events: Iterable[DerivedEvent]) -> Iterable[PendingEvent]:
    for event in events:
        is_deployed = event.kind is EventKind.DRIFT_FOUND and before.observed_generation < before.generation
        message = f"{event.message}{BEING_DEPLOYED}" if is_deployed else event.message
        about = before.component_id, message, event.before, event.after
        yield PendingEvent(before.live_system_id, event.kind, event.by or agent_id, *about)


def _agent_event(agent_id: str, event: AgentEvent, record: ComponentRecord) -> PendingEvent:
    return PendingEvent(
        record.live_system_id, event.kind, agent_id, record.component_id, event.message, event.before, event.after
    )


def _settle_moves(tx: Tx, changes: _Changes) -> None:
    """Move what is not established any more to where its declaration says."""
    moving = [r for r in changes.changed if not r.established and not r.is_where_declared and not r.deleting]
    if not moving:
        return
    reached = realms(tx, also=_names(moving))
    for record in moving:
        left = str(record.scope_key)
        realm = _declared_realm(record, reached)
        record.adopt_declared_identity()
        if realm is not None:
            record.settle_in(realm)
        else:
            record.unsettle()
        changes.moved.append((left, record.uid, record))


def _names(moving: Iterable[ComponentRecord]) -> set[tuple[str, str, str]]:
    return {(record.environment, record.provider, record.declared_realm_name) for record in moving}


def _declared_realm(record: ComponentRecord, reached: Mapping[tuple[str, str, str], str]) -> str | None:
    """Where its declaration says it is, as far as an agent has said; a name that did not change stays what it was."""
    here = record.realm if record.realm_name == record.declared_realm_name else None
    return reached.get((record.environment, record.provider, record.declared_realm_name), here)


def _write(tx: Tx, changes: _Changes, locked: _Locked) -> None:
    keys = {key for left, _, record in changes.moved for key in (left, record.scope_key) if key is not None}
    versions = scopes.renew_work(tx, keys) if keys else {}
    for _, _, record in changes.moved:
        record.declared_in(versions.get(record.scope_key or "", 0))
    write_records(tx, changes.changed, [name for name in _WRITTEN if name in changes.columns])
    _summarize(tx, changes.changed, locked.components)
    update_records(tx, [record for _, _, record in changes.moved], _MOVED)
    scopes.depart(tx, [(left, uid) for left, uid, r in changes.moved if left != r.scope_key], versions)
    if changes.finished:
        for name, mutation_id in mutations.newest_of(tx, {r.live_system_id for r in changes.finished}).items():
            mutations.keep(tx, mutation_id, [r for r in changes.finished if r.live_system_id == name])
        leave_what_they_need(tx, changes.left)
        delete_records(tx, changes.finished)
        ended = [(str(record.scope_key), record.uid) for record in changes.finished]
        scopes.depart(tx, ended, {key: locked.scopes[key].version for key, _ in ended})
        resources.forget_gone(tx, changes.gone)


def _summarize(tx: Tx, changed: Sequence[ComponentRecord], reported: ReportedComponents) -> None:
    """Keep the summaries of the LiveSystems right, by what changed."""
    adjustment = Adjustment(reported.kept)
    seen: set[str] = set()
    for after in changed:
        if after.uid in seen:  # reported twice: which of both is stored, only the database knows
            adjustment.recount.add(after.live_system_id)
        seen.add(after.uid)
        adjustment.add(reported.records[after.uid], after)
    adjustment.write(tx.connection)
    tx.recount |= adjustment.recount


def leave_what_they_need(tx: Tx, left: Sequence[ComponentRecord]) -> list[ComponentRecord]:
    """Note at what they depend on, in whatever scope, that components were left: that is left too (O10); returns it."""
    leaving = {record.uid for record in left}
    noted: dict[str, ComponentRecord] = {}
    for record in left:
        needed = [target for target, kind in record.references() if kind == "dependency"]
        for other in records_of(tx, record.live_system_id):
            if other.deleting and other.component_id in needed and other.uid not in leaving:
                kept = noted.setdefault(other.uid, other)
                kept.left_dependents = sorted({*(kept.left_dependents or ()), record.component_id})
    update_records(tx, list(noted.values()), ("left_dependents",))
    return list(noted.values())


def _destinations(tx: Tx, reported: Iterable[ComponentRecord]) -> set[str]:
    """The scopes to which reported components may move; made where they are missing."""
    moving = [record for record in reported if not record.is_where_declared]
    reached = realms(tx, also=_names(moving)) if moving else {}
    keys: set[str] = set()
    for record in moving:
        realm = _declared_realm(record, reached)
        if realm is not None:
            keys.add(Scope(record.provider, realm, record.declared_place).key)
    scopes.create_missing(tx, keys)
    return keys


def notify_listeners(tx: Tx, news: Sequence[ComponentRecord], heard: Heard) -> None:
    """Notify components that what they refer to, are linked with, or what depends on them, has changed (L11, O10)."""
    fresh = {record.uid for record in news}
    scopes.announce_in_held(tx, {one.uid: one.scope_key for one in heard.listeners if one.of in fresh})
    scopes.renew_held(tx, {key for key, of in heard.host_scopes if of in fresh})
