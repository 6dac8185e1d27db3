"""A database that was restored from a backup is no truth: what it remembers waits for a person (C9).

A recovery draws a new incarnation, so that every lease and report of before is refused. Each LiveSystem of the backup
is only read until it was deployed again, or somebody confirmed it who was shown what would be created, changed and
deleted.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import and_, delete, func, insert, or_, select, update

from fractal_cloud.control.store import incarnations, livesystems, scopes, tokens
from fractal_cloud.control.store.database import PendingEvent, Tx, new_incarnation
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, Json, iso, records, select_records, update_records
from fractal_cloud.control.store.schema import agents, components, counters, live_systems, plans
from fractal_cloud.control.store.schema import incarnations as incarnation_table
from fractal_cloud.control.store.schema import scopes as scope_table
from fractal_cloud.control.store.visibility import Environments, is_visible
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.wire import LastSeen, PlannedAction
from fractal_cloud.rules import words

SHOWN_FOR: Final = timedelta(hours=1)
"""How long what was shown may be confirmed: then it has to be shown again."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Who or what says that the database was restored.

    ``as_of``: what was deployed or made up to then stood in the backup; None for all of it. ``event``: the number of
    the newest event that anybody has seen, which no other event may bear.
    """

    by: str
    reason: str
    as_of: datetime | None = None
    event: int = 0


# --- beginning


def is_restored(tx: Tx, seen: LastSeen) -> bool:
    """Whether an agent has seen an event that this database does not have, and no recovery was begun for that yet.

    What an agent remembers of a former incarnation says nothing new: the recovery that ended it came after a restore.
    Nor does what it saw before the newest recovery began, which covers it, also of an incarnation that the backup does
    not know. Nor does what this database never said: a recovery stops all writing, and no agent begins one by a lie
    (A3).
    """
    found = incarnations.current(tx, seen.event)
    if not incarnations.is_proven(found, seen):
        return False
    if seen.incarnation == found.incarnation:
        return not incarnations.is_here(found, seen)
    i = incarnation_table.c
    covering = select(i.id).where(or_(i.id == seen.incarnation, and_(i.number > 1, i.began_at > seen.at)))
    return tx.connection.execute(covering).first() is None


def begin_if_restored(tx: Tx, seen: LastSeen, agent_id: str, by: str) -> bool:
    """Begin a recovery if the database does not have what an agent has seen; whether one was begun."""
    _hold_everything(tx)
    if not is_restored(tx, seen):
        return False
    reason = f"agent {agent_id!r} has seen event {seen.event}, which this database does not have"
    _begin(tx, Cause(by, reason, seen.at, seen.event))
    return True


def begin(tx: Tx, by: str, reason: str = "") -> Json:
    """Begin a recovery of everything, because a person says that the database was restored."""
    _hold_everything(tx)
    _begin(tx, Cause(by, reason or "fractal restored"))
    return status(tx)


def _hold_everything(tx: Tx) -> None:
    """Nobody deploys, claims or reports until this is committed."""
    lock_live_systems(tx, tx.connection.execute(select(live_systems.c.id)).scalars())
    scopes.lock_existing(tx, list(tx.connection.execute(select(scope_table.c.key)).scalars()))


def _begin(tx: Tx, cause: Cause) -> None:
    held = _of_backup(tx, cause)
    number = tx.connection.execute(select(func.max(incarnation_table.c.number))).scalar_one()
    found = incarnations.current(tx)
    row = {"id": new_incarnation(), "number": number + 1, "began_at": tx.now, "by": cause.by, "reason": cause.reason}
    tx.connection.execute(insert(incarnation_table).values(**row, first_event=found.last_event, as_of=cause.as_of))
    tx.connection.execute(update(agents).values(deadline=tx.now))
    tx.connection.execute(update(scope_table).values(holder=None, token=scope_table.c.token + 1))
    tx.connection.execute(delete(plans))
    waiting = tokens.have_wait(tx, cause.as_of)
    for live_system_id in held:
        _hold(tx, live_system_id)
    _distrust_memory(tx, cause)
    _renew(tx, components.c.scope_key.is_not(None))
    tx.record(
        PendingEvent("", EventKind.RECOVERY_BEGAN, cause.by, message=f"{cause.reason}; {_counted(held, waiting)}"),
        *(PendingEvent(name, EventKind.RECOVERY_BEGAN, cause.by, message=cause.reason) for name in held),
    )
    _count_on_from(tx, cause.event)


def _counted(held: list[str], waiting: list[str]) -> str:
    return f"LiveSystems that wait to be confirmed: {len(held)}, agents' tokens: {len(waiting)}"


def _of_backup(tx: Tx, cause: Cause) -> list[str]:
    """The LiveSystems that were not deployed since the restore."""
    query = select(live_systems.c.id).order_by(live_systems.c.id)
    if cause.as_of is not None:
        query = query.where(live_systems.c.deployed_at <= cause.as_of)
    return list(tx.connection.execute(query).scalars())


def _hold(tx: Tx, live_system_id: str) -> None:
    here = live_systems.c.id == live_system_id
    tx.connection.execute(update(live_systems).where(here).values(in_recovery=True, recovery_plan=None))
    tx.connection.execute(
        update(components)
        .where(components.c.live_system_id == live_system_id)
        .values(message=words.in_recovery(live_system_id), stuck=True, last_updated=tx.now)
    )
    tx.recount.add(live_system_id)


def _distrust_memory(tx: Tx, cause: Cause) -> None:
    """Of what the backup says, nothing leads to a write: what would change is shown first, as if the memory were lost.

    Requests of operators are void, whatever came of them since. Open creations only recognise what they made, and tags
    that they owe count as put on: who finds none cannot know whether somebody took them off.
    """
    tx.connection.execute(update(components).values(restored=True, noticed_since=None))
    c = components.c
    query = select_records().where(or_(c.request.is_not(None), c.intent.is_not(None), c.override.is_not(None)))
    changed = records(tx, query)
    for record in changed:
        _void_request(tx, record, cause)
        _only_recognise(record, cause)
        if record.override is not None:
            record.override = {name: value for name, value in record.override.items() if name != "readoptedBy"}
    update_records(tx, changed, ("request", "intent", "override"))


def _void_request(tx: Tx, record: ComponentRecord, cause: Cause) -> None:
    if record.request is None or not _is_of_backup(record.request["at"], cause):
        return
    kind, by = record.request["kind"], record.request["by"]
    record.request = None
    text = f"the {kind} that {by!r} asked for stood in a backup that was restored: ask once more"
    tx.record(PendingEvent(record.live_system_id, EventKind.REQUEST_VOIDED, cause.by, record.component_id, text))


def _only_recognise(record: ComponentRecord, cause: Cause) -> None:
    if record.intent is not None and _is_of_backup(record.intent["at"], cause):
        tagging = "begun" if record.intent.get("tagging") else ""
        record.intent = {**record.intent, "restored": True, "tagging": tagging}


def _is_of_backup(at: str, cause: Cause) -> bool:
    return cause.as_of is None or datetime.fromisoformat(at) <= cause.as_of


def _renew(tx: Tx, where: Any) -> None:
    """Notify the agents of these components, and refuse what they decided from the work before."""
    keys = set(tx.connection.execute(select(components.c.scope_key).where(where).distinct()).scalars())
    scopes.renew_work(tx, keys - {None})
    version = select(scope_table.c.version).where(scope_table.c.key == components.c.scope_key).scalar_subquery()
    here = update(components).where(where, components.c.scope_key.is_not(None))
    tx.connection.execute(here.values(work_version=version, declared_version=version))


def _count_on_from(tx: Tx, event: int) -> None:
    """Give no event the number of one that somebody has seen: a stream would never send it."""
    last = counters.c.name == "events"
    tx.connection.execute(update(counters).where(last, counters.c.value < event).values(value=event))


# --- reading


def status(tx: Tx, sees: Environments = None) -> Json:
    """Whether anything waits for a person since a restore, and what of it somebody may see."""
    newest = select(incarnation_table).order_by(incarnation_table.c.number.desc()).limit(1)
    row = tx.connection.execute(newest).one()
    c = live_systems.c
    held = select(c.id, c.deleting, c.generation, c.deployed_at, c.recovery_plan).where(c.in_recovery).order_by(c.id)
    if sees is not None:
        held = held.where(is_visible(tx, sees, c.id))
    waiting = tokens.waiting(tx) if sees is None else []
    found = [
        {
            "id": one.id,
            "deleting": one.deleting,
            "generation": one.generation,
            "deployedAt": one.deployed_at,
            "shownAt": (one.recovery_plan or {}).get("at"),
        }
        for one in tx.connection.execute(held)
    ]
    return {
        "incarnation": row.id,
        "inRecovery": bool(found or waiting),
        "since": row.began_at if row.number > 1 else None,
        "by": row.by if row.number > 1 else None,
        "reason": row.reason if row.number > 1 else None,
        "liveSystems": found,
        "tokens": waiting,
    }


# --- ending


def require_held(tx: Tx, live_system_id: str) -> Any:
    """The row of a LiveSystem that waits to be confirmed."""
    row = livesystems.require(tx, live_system_id)
    if not row.in_recovery:
        raise Refused(f"LiveSystem {live_system_id!r} does not wait to be confirmed: nothing holds it back")
    return row


def show(tx: Tx, live_system_id: str, plan: Json) -> Json:
    """Remember that somebody was shown what confirming would do; the plan with the word that confirms it.

    A plan that leaves a component unknown shows nothing of it, and confirms nothing.
    """
    unknown = sorted(c["componentId"] for c in plan["components"] if c["action"] == PlannedAction.UNKNOWN.value)
    fingerprint = None if unknown else _fingerprint(plan)
    shown = None if fingerprint is None else {"fingerprint": fingerprint, "at": iso(tx.now)}
    here = update(live_systems).where(live_systems.c.id == live_system_id)
    tx.connection.execute(here.values(recovery_plan=shown))
    return {**plan, "fingerprint": fingerprint, "unknown": unknown}


def _fingerprint(plan: Json) -> str:
    parts = [
        [component[name] for name in ("componentId", "type", "action", "changes", "resourceId")]
        for component in plan["components"]
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def confirm(tx: Tx, live_system_id: str, fingerprint: str, by: str) -> None:
    """Let a LiveSystem be written to again, as somebody wants who was shown what that does; then S12a."""
    lock_live_systems(tx, [live_system_id])
    row = require_held(tx, live_system_id)
    shown = row.recovery_plan
    if shown is None or shown["fingerprint"] != fingerprint:
        raise Refused(f"what would become of {live_system_id!r} has changed since it was shown: have it shown again")
    if tx.now - datetime.fromisoformat(shown["at"]) > SHOWN_FOR:
        raise Refused(f"what would become of {live_system_id!r} was shown more than an hour ago: have it shown again")
    livesystems.end_recovery(tx, live_system_id, f"confirmed by {by!r} after a restore; not reconciled yet")
    _renew(tx, components.c.live_system_id == live_system_id)
    tx.record(PendingEvent(live_system_id, EventKind.RECOVERY_CONFIRMED, by))


def confirm_tokens(tx: Tx, ids: list[str], by: str) -> list[str]:
    """Let agents' tokens in again, as an admin wants who was shown them; their names."""
    names = tokens.confirm(tx, ids)
    if names:
        tx.record(PendingEvent("", EventKind.TOKENS_CONFIRMED, by, message=", ".join(names)))
    return names
