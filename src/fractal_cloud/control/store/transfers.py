"""Ownership moved by an operator: what was asked for, what came of it, and in whose name the event of it is (O8).

An operator's transfer is a request to the agent that holds the scope: it replaces the owner tag, once. That the tag was
replaced is seen by the components of both LiveSystems, at different moments; who asked for it is remembered with the
resource, so that each of their events names the operator. Whoever edits the tag by hand stays unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from sqlalchemy import select, update

from fractal_cloud.control.store import components as component_store
from fractal_cloud.control.store import livesystems, visibility
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.driver import chunks
from fractal_cloud.control.store.errors import NotFound, Refused
from fractal_cloud.control.store.placement import lock_live_systems
from fractal_cloud.control.store.records import ComponentRecord, Json, records_of
from fractal_cloud.control.store.requests import Asked, keep, refusal, refuse_in_recovery
from fractal_cloud.control.store.schema import resources
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Stance
from fractal_cloud.model.wire import JournalEntry, RequestKind
from fractal_cloud.rules.derived_events import DerivedEvent

REASON: Final = "transfer"
"""The reason of a transfer's write in the journal."""


def ask(
    tx: Tx, live_system_id: str, component_id: str, asked: Asked, catalog: Mapping[str, TypeFacts], sees: Environments
) -> Json:
    """Ask the agent to make another LiveSystem the owner of a component's resource; or refuse it with the reason.

    ``sees``: the environments of whoever asks: the other LiveSystem must be in one of them too.
    """
    to = str(asked.to)
    lock_live_systems(tx, [live_system_id, to])
    record = component_store.require(tx, live_system_id, component_id)
    if to == live_system_id:
        raise Refused(f"{component_id!r}: {to!r} owns it already: name another LiveSystem")
    refuse_in_recovery(tx, live_system_id)
    why = _immovable(record, catalog)
    if why:
        raise Refused(f"{component_id!r}: {why}")
    other = _new_owner(tx, record, to, sees)
    keep(tx, [record], asked)
    return {
        "liveSystemId": live_system_id,
        "componentId": component_id,
        "to": to,
        "toComponentId": other.component_id,
        "resourceId": record.resource_id,
    }


def _immovable(record: ComponentRecord, catalog: Mapping[str, TypeFacts]) -> str:
    """Why the owner of a resource cannot be moved, as far as is known; empty if nothing speaks against it."""
    facts = catalog.get(record.type)
    request = record.request
    why = ""
    if facts is not None and facts.tags_frozen:
        why = "its tags are frozen: its owner can never be moved"
    elif other := refusal(record, RequestKind.TRANSFER, catalog):
        why = other
    elif facts is not None and not facts.owner_moves:
        why = f"one call cannot replace the owner of {record.type}: move the tag by hand"
    elif record.owner is None:
        why = "nobody owns it yet: hand it over by the handshake, or Force Push the LiveSystem that is to own it"
    elif record.stance == Stance.OVERRIDE.value:
        why = "it is in manual override: hand it back first, or move the tag by hand"
    elif record.resource_id is None or record.identity_key is None:
        why = "no agent has seen its resource yet: ask again once it shows an id"
    elif request is not None and request["kind"] != RequestKind.TRANSFER.value:
        why = f"{request['by']} asked for {request['kind']}, which no agent has carried out yet: ask again afterwards"
    return why


def _new_owner(tx: Tx, record: ComponentRecord, to: str, sees: Environments) -> ComponentRecord:
    """The component of the other LiveSystem that declares the same resource and may own it, or ``Refused``."""
    try:
        visibility.require_visible(tx, sees, to)
        target = livesystems.require(tx, to)
    except NotFound:
        raise Refused(f"there is no LiveSystem {to!r}: GET /livesystems lists them") from None
    if target.deleting:
        raise Refused(f"{to!r} is being deleted, and everything it owns with it")
    refuse_in_recovery(tx, to)
    declaring = [other for other in records_of(tx, to) if other.identity_key == record.identity_key]
    if not declaring:
        raise Refused(
            f"{to!r} does not declare {record.type} {record.name!r} in {record.scope_key!r}: deploy it there first, "
            "with the same name and place"
        )
    (other,) = declaring
    if other.deleting:
        raise Refused(f"{to!r} is letting it go: {other.component_id!r} was taken out of its declaration")
    if other.declaration.get("importOnly"):
        raise Refused(f"{to!r} only imports it: take importOnly out of {other.component_id!r} first")
    return other


# --- what agents report of it


def begin(tx: Tx, record: ComponentRecord, used_request: str | None, entries: Iterable[JournalEntry]) -> None:
    """Remember who moves a resource once the intent of it is published: that uses the request itself up."""
    request = record.request
    if request is None or request["id"] != used_request or request["kind"] != RequestKind.TRANSFER.value:
        return
    if any(entry.uid == record.uid and _is_begun(entry) for entry in entries):
        moved = {"from": record.live_system_id, "resourceId": record.resource_id}
        asked = {name: request.get(name) for name in ("to", "by", "reason", "at")}
        _write(tx, record.identity_key, {**moved, **asked})


def _is_begun(entry: JournalEntry) -> bool:
    return entry.reason == REASON and entry.outcome is None


def end(tx: Tx, entries: Iterable[JournalEntry], known: Mapping[str, ComponentRecord]) -> None:
    """Record every transfer that came to nothing: it is used up, and has to be asked for again."""
    for entry in entries:
        record = known.get(entry.uid)
        if entry.reason != REASON or entry.outcome not in ("failed", "abandoned") or record is None:
            continue
        if of(tx, {str(record.identity_key)}).get(str(record.identity_key), {}).get("from") != record.live_system_id:
            continue  # nobody asked for it, or it was recorded before
        _write(tx, record.identity_key, None)
        why = entry.error or "its tags changed right before the write, or the agent ended: nothing was written"
        message = f"the owner tag was not moved: {why}; ask once more"
        about = record.live_system_id, EventKind.TRANSFER_REFUSED, "control plane", record.component_id
        tx.record(PendingEvent(*about, message))


def of(tx: Tx, identity_keys: Collection[str]) -> dict[str, Json]:
    """Who moved each of these resources last, where it was through the product."""
    found: dict[str, Json] = {}
    for some in chunks(identity_keys):
        query = select(resources.c.identity_key, resources.c.transfer).where(
            resources.c.identity_key.in_(some), resources.c.transfer.is_not(None)
        )
        found.update((row.identity_key, row.transfer) for row in tx.connection.execute(query))
    return found


def attributed(tx: Tx, record: ComponentRecord, event: DerivedEvent, moved: Mapping[str, Json]) -> DerivedEvent:
    """An event with the operator's name, where ownership moved as one had asked for; any other move ends that."""
    if event.kind is not EventKind.OWNER_CHANGED:
        return event
    transfer = moved.get(record.identity_key or "")
    if transfer is None:
        return event
    if (transfer["from"], transfer["to"], transfer["resourceId"]) != (event.before, event.after, record.resource_id):
        _write(tx, record.identity_key, None)
        return event
    reason = f": {transfer['reason']}" if transfer.get("reason") else ""
    return event._replace(by=transfer["by"], message=f"{event.message}{reason}")


def _write(tx: Tx, identity_key: str | None, transfer: Json | None) -> None:
    tx.connection.execute(update(resources).where(resources.c.identity_key == identity_key).values(transfer=transfer))
