"""What operators ask for through the product: Force Push (G10), breaking the glass (G13), and transfers (O8).

Kept until the agent has used it up or refused it; refused here at once where what is remembered already says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fractal_cloud.control.store import components as component_store
from fractal_cloud.control.store import livesystems, scopes
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.errors import Refused
from fractal_cloud.control.store.parents import parent_of
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, Json, iso, new_id, records_of, update_records
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.observed import BEGUN_ANEW
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.wire import OperatorRequest, RequestKind
from fractal_cloud.rules import words

# The agent says both in the component's message, and nowhere else.
_SEVERAL: Final = re.compile(r"several resources are named .*")
_OTHER_MANAGER: Final = re.compile(r"managed-by is ('[^']*'): somebody else's")


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks for what, and with which words."""

    kind: RequestKind
    by: str
    reason: str | None = None
    until: datetime | None = None
    to: str | None = None


def ask(tx: Tx, live_system_id: str, component_id: str, asked: Asked, catalog: Mapping[str, TypeFacts]) -> Json:
    """Keep an operator's request for one component, and wake its agent; or refuse it with the reason."""
    lock_live_systems(tx, [live_system_id])
    refuse_in_recovery(tx, live_system_id)
    record = component_store.require(tx, live_system_id, component_id)
    why = refusal(record, asked.kind, catalog)
    if why:
        raise Refused(f"{component_id!r}: {why}")
    stands = record.override if asked.kind is RequestKind.BREAK else None
    keep(tx, [record], asked)
    return {
        "liveSystemId": live_system_id,
        "requested": [component_id],
        "refused": [],
        "alreadyInOverride": [] if stands is None else [component_id],
        "override": stands,
        "tagsFrozen": _frozen([record], catalog),
    }


def ask_all(tx: Tx, live_system_id: str, by: str, catalog: Mapping[str, TypeFacts]) -> Json:
    """Force Push everything a LiveSystem has in ``ManualOverride`` and does not import; those refused are named."""
    lock_live_systems(tx, [live_system_id])
    refuse_in_recovery(tx, live_system_id)
    taken: list[ComponentRecord] = []
    refused: list[Json] = []
    for record in records_of(tx, live_system_id):
        if record.status != Status.MANUAL_OVERRIDE.value or record.stance == Stance.IMPORTED.value:
            continue
        why = refusal(record, RequestKind.FORCE_PUSH, catalog)
        if why:
            refused.append({"componentId": record.component_id, "reason": why})
        else:
            taken.append(record)
    if not taken:
        reasons = "; ".join(f"{item['componentId']!r}: {item['reason']}" for item in refused)
        raise Refused(f"nothing of {live_system_id!r} can be pushed: {reasons or 'nothing is in ManualOverride'}")
    keep(tx, taken, Asked(RequestKind.FORCE_PUSH, by))
    return {
        "liveSystemId": live_system_id,
        "requested": [record.component_id for record in taken],
        "refused": refused,
        "alreadyInOverride": [],
        "override": None,
        "tagsFrozen": _frozen(taken, catalog),
    }


def refuse_in_recovery(tx: Tx, live_system_id: str) -> None:
    """Refuse requests for a LiveSystem of a backup that nobody has confirmed: nothing is written for it (C9)."""
    if livesystems.require(tx, live_system_id).in_recovery:
        raise Refused(f"{live_system_id!r}: {words.in_recovery(live_system_id)}")


def _frozen(rows: list[ComponentRecord], catalog: Mapping[str, TypeFacts]) -> list[str]:
    """Those for which nothing is written to tags: the control plane remembers what was asked for."""
    return [row.component_id for row in rows if row.type in catalog and catalog[row.type].tags_frozen]


def readopt(tx: Tx, live_system_id: str, component_id: str, asked: Asked, catalog: Mapping[str, TypeFacts]) -> Json:
    """A Force Push on a component in ``ManualOverride``: the operator hands it back."""
    record = component_store.require(tx, live_system_id, component_id)
    if record.status != Status.MANUAL_OVERRIDE.value:
        raise Refused(f"{component_id!r} is {record.status}, not ManualOverride: there is nothing to re-adopt")
    return ask(tx, live_system_id, component_id, asked, catalog)


def refusal(record: ComponentRecord, kind: RequestKind, catalog: Mapping[str, TypeFacts]) -> str:
    """Why a request cannot be carried out, as far as is known; empty if nothing speaks against it (G10)."""
    facts = catalog.get(record.type)
    several = _SEVERAL.match(record.message)
    manager = _OTHER_MANAGER.match(record.message)
    is_push = kind is RequestKind.FORCE_PUSH
    frozen = facts is not None and facts.tags_frozen
    why = ""
    if record.deleting and (is_push or (kind is RequestKind.BREAK and not frozen)):
        # Frozen tags cannot be removed to save it from its deletion: this is the only way.
        why = "the component is being deleted"
    elif facts is not None and facts.is_part:
        why = f"it carries no tags of its own: ask it of {parent_of(record, facts)!r}, which it is a part of"
    elif facts is not None and not facts.taggable:
        why = f"{record.type} cannot carry tags: it is only ever read"
    elif record.declaration.get("importOnly"):
        why = "the component is importOnly: take importOnly out of its declaration first"
    elif record.absent_since is not None or record.status == Status.MISSING.value:
        why = "the resource is absent: only a deploy creates it"
    elif several is not None:
        why = record.message
    elif record.owner is not None and record.owner != record.live_system_id:
        why = f"{record.owner!r} owns it: only its owner can be {'moved' if kind is RequestKind.TRANSFER else 'pushed'}"
    elif frozen and record.owner is None and record.status == Status.EXTERNALLY_MANAGED.value:
        why = "its tags are frozen and not ours: it can never be adopted, and is only read"
    elif manager is not None and kind is not RequestKind.BREAK:
        why = f"managed-by says {manager[1]}: remove that tag first, if the resource is yours to take"
    return why


def keep(tx: Tx, rows: list[ComponentRecord], asked: Asked) -> None:
    """Keep a request for components that nothing speaks against, and wake their agents."""
    versions = scopes.renew_work(tx, {r.scope_key for r in rows if r.scope_key is not None})
    for record in rows:
        _replace_transfer(tx, record, asked)
        record.request = OperatorRequest(
            id=new_id(),
            kind=asked.kind,
            by=asked.by,
            at=tx.now,
            generation=record.generation,
            resource_id=record.resource_id,
            stance=Stance(record.stance),
            reason=asked.reason,
            until=asked.until,
            to=asked.to,
        ).to_json()
        record.declared_in(versions.get(record.scope_key or "", 0))
        record.begin_anew()
        tx.record(_event(record, asked))
    update_records(tx, rows, ("request", *BEGUN_ANEW, "work_version", "declared_version"))


def _event(record: ComponentRecord, asked: Asked) -> PendingEvent:
    """What was asked for; of a glass that is broken again also how the override stood before."""
    about = record.component_id, asked.reason or ""
    if asked.kind is RequestKind.FORCE_PUSH:
        return PendingEvent(record.live_system_id, EventKind.FORCE_PUSH_REQUESTED, asked.by, *about)
    if asked.kind is RequestKind.TRANSFER:
        moved = record.owner, asked.to
        return PendingEvent(record.live_system_id, EventKind.TRANSFER_REQUESTED, asked.by, *about, *moved)
    until = None if asked.until is None else iso(asked.until)
    after = {"by": asked.by, "reason": asked.reason, "until": until}
    return PendingEvent(record.live_system_id, EventKind.GLASS_REQUESTED, asked.by, *about, record.override, after)


def _replace_transfer(tx: Tx, record: ComponentRecord, asked: Asked) -> None:
    """Say of a transfer that nobody carried out that something else was asked for in its place."""
    if record.request is not None and record.request["kind"] == RequestKind.TRANSFER.value:
        what = f"{asked.by} asked for {asked.kind.value} before it was carried out"
        about = record.live_system_id, EventKind.TRANSFER_REFUSED, "control plane", record.component_id
        tx.record(PendingEvent(*about, what))
