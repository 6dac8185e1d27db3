"""Components as people read them; how they change stands with those who change them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, func, literal, or_, select, text

from fractal_cloud.control.store import listing, staleness, summaries
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import among
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.listing import (
    NO_FILTERS,
    ComponentOrder,
    Filters,
    Found,
    Overridden,
    Page,
    Place,
)
from fractal_cloud.control.store.owners import unknown_owners, with_owner
from fractal_cloud.control.store.records import ComponentRecord, Json, records, select_records
from fractal_cloud.control.store.resources import to_key
from fractal_cloud.control.store.schema import OVERRIDDEN, components, live_systems
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.model.status import Status
from fractal_cloud.rules.changed_by import shown
from fractal_cloud.rules.hiding import DRIFT
from fractal_cloud.rules.words import with_since


def full_id(live_system_id: str, component_id: str) -> str:
    """A component's id that is unique everywhere."""
    return f"{live_system_id}/blueprint/{component_id}"


def require(tx: Tx, live_system_id: str, component_id: str) -> ComponentRecord:
    """The row of a component that must be there."""
    c = components.c
    query = select_records().where(c.live_system_id == live_system_id, c.component_id == component_id)
    found = records(tx, query)
    if not found:
        raise NotFound(
            f"LiveSystem {live_system_id!r} has no component {component_id!r}: "
            f"GET /livesystems/{live_system_id}/components lists them"
        )
    return found[0]


def get(tx: Tx, live_system_id: str, component_id: str) -> Json:
    """One component."""
    return described(tx, [require(tx, live_system_id, component_id)])[0]


def list_page(tx: Tx, live_system_id: str, limit: int, after: str | None) -> list[Json]:
    """The components of a LiveSystem by id, those after the given one."""
    c = components.c
    query = select_records().where(c.live_system_id == live_system_id).order_by(c.component_id).limit(limit)
    if after is not None:
        query = query.where(c.component_id > after)
    return described(tx, records(tx, query))


def list_all(
    tx: Tx,
    place: Place,
    filters: Filters = NO_FILTERS,
    order: ComponentOrder = ComponentOrder.ID,
    sees: Environments = None,
) -> Page:
    """Components of all LiveSystems, as far as somebody may see them; their number in all where it is cheap."""
    if order is ComponentOrder.OVERRIDE and not filters.override:
        filters = replace(filters, override=(Overridden.TRUE,))
    found = listing.found_anywhere(tx, filters.search) if filters.search else Found()
    candidates = listing.candidate_conditions(tx, filters, sees, found)
    if order is ComponentOrder.OVERRIDE:
        rows, more = _oldest_first(tx, place, filters, found, candidates)
    else:
        rows, more = _by_id(tx, place, filters, found, candidates)
    return Page(described(tx, rows), more, _total(tx, filters, candidates))


def list_overrides(tx: Tx, place: Place, filters: Filters = NO_FILTERS, sees: Environments = None) -> Page:
    """Everything that is held by hand: the overdue first, of each the oldest first, and how many they are in all.

    Pages are counted from the start; there are no cursors in this order.
    """
    found = listing.found_anywhere(tx, filters.search) if filters.search else Found()
    wanted = filters if filters.override else replace(filters, override=(Overridden.TRUE,))
    query = _held(wanted, found, listing.candidate_conditions(tx, wanted, sees, found))
    total = tx.connection.execute(select(func.count()).select_from(query.subquery())).scalar_one()
    c = components.c
    in_order = query.order_by(c.overdue.desc(), summaries.since_text(), c.live_system_id, c.component_id)
    rows = records(tx, in_order.offset(place.offset).limit(place.limit + 1))
    shown, more = _cut(rows, place.limit, lambda row: (row.live_system_id, row.component_id))
    return Page(described(tx, shown), more, total)


_Conditions = list[ColumnElement[bool]]
_CANDIDATES: Final = (25, 1_600)
"""LiveSystems whose components are looked through at once: at first, and at most."""


def _by_id(
    tx: Tx, place: Place, filters: Filters, found: Found, candidates: _Conditions
) -> tuple[list[ComponentRecord], str | None]:
    """Go through the LiveSystems that may have some, by id, until the page is full."""
    c = components.c
    last = ("", "") if place.cursor is None else tuple(listing.from_cursor(place.cursor, str, str))
    at_once, most = _CANDIDATES
    conditions = listing.component_conditions(filters, found)
    wanted = place.offset + place.limit + 1
    rows: list[ComponentRecord] = []
    after, is_first = last[0], place.cursor is not None
    while len(rows) < wanted:
        here = live_systems.c.id >= after if is_first else live_systems.c.id > after
        query = select(live_systems.c.id).where(here, *candidates).order_by(live_systems.c.id).limit(at_once)
        ids = list(tx.connection.execute(query).scalars())
        if not ids:
            break
        some = select_records().where(among(c.live_system_id, ids), *conditions)
        if is_first:
            some = some.where(or_(c.live_system_id > last[0], c.component_id > last[1]))
        some = some.order_by(c.live_system_id, c.component_id).limit(wanted - len(rows))
        rows += records(tx, some)
        after, is_first, at_once = ids[-1], False, min(2 * at_once, most)
    return _cut(rows[place.offset :], place.limit, lambda row: (row.live_system_id, row.component_id))


def _oldest_first(
    tx: Tx, place: Place, filters: Filters, found: Found, candidates: _Conditions
) -> tuple[list[ComponentRecord], str | None]:
    """Those in override, the oldest first."""
    c = components.c
    since = summaries.since_text()
    query = _held(filters, found, candidates)
    if place.cursor is not None:
        at, live_system_id, component_id = listing.from_cursor(place.cursor, str, str, str)
        behind = or_(
            c.live_system_id > live_system_id, and_(c.live_system_id == live_system_id, c.component_id > component_id)
        )
        query = query.where(or_(since > at, and_(since == at, behind)))
    query = query.order_by(since, c.live_system_id, c.component_id).offset(place.offset).limit(place.limit + 1)

    def key(row: ComponentRecord) -> tuple[str, ...]:
        return str((row.override or {})["since"]).replace("Z", ""), row.live_system_id, row.component_id

    return _cut(records(tx, query), place.limit, key)


def _held(filters: Filters, found: Found, candidates: _Conditions) -> Select[Any]:
    """Those in override, which are few: an index has them all."""
    held = select(live_systems.c.id).where(live_systems.c.overrides > 0, *candidates)
    query = select_records().where(text(f"components.{OVERRIDDEN}"), components.c.live_system_id.in_(held))
    return query.where(*listing.component_conditions(filters, found))


def _cut(
    rows: list[ComponentRecord], limit: int, key: Callable[[ComponentRecord], tuple[str, ...]]
) -> tuple[list[ComponentRecord], str | None]:
    shown = rows[:limit]
    return shown, listing.to_cursor(*key(shown[-1])) if len(rows) > limit else None


def _total(tx: Tx, filters: Filters, candidates: _Conditions) -> int | None:
    """How many there are in all, where what is kept of the LiveSystems says so."""
    c = live_systems.c
    exact = replace(filters, environment=(), status=(), override=())
    if exact != NO_FILTERS or (filters.status and filters.override):
        return None
    if filters.override == (Overridden.TRUE,):
        many: ColumnElement[Any] = func.sum(c.overrides)
    elif filters.override == (Overridden.OVERDUE,):
        many = func.sum(c.overdue)
    elif filters.override:
        return None
    else:
        names = sorted(set(filters.status)) or [status.value for status in Status]
        many = func.sum(sum((func.coalesce(c.counts[name].as_integer(), 0) for name in names), literal(0)))
    return int(tx.connection.execute(select(func.coalesce(many, 0)).where(*candidates)).scalar_one())


def some(tx: Tx, live_system_id: str, component_ids: Sequence[str]) -> list[Json]:
    """Those of a LiveSystem's components that are named and there, in the order of their names here."""
    c = components.c
    query = select_records().where(c.live_system_id == live_system_id, c.component_id.in_(component_ids))
    found = {one["componentId"]: one for one in described(tx, records(tx, query))}
    return [found[name] for name in component_ids if name in found]


def drifting(tx: Tx, live_system_id: str) -> set[str]:
    """The ids of those of its components that differ from what is declared."""
    query = select(components.c.component_id, components.c.output_fields)
    rows = tx.connection.execute(query.where(components.c.live_system_id == live_system_id))
    return {row.component_id for row in rows if row.output_fields.get(DRIFT)}


def described(tx: Tx, rows: Sequence[ComponentRecord]) -> list[Json]:
    """Components as the API shows them, each with the time it was last read, and whether it is stale (C11)."""
    read = staleness.reads(tx, {row.scope_key for row in rows if row.scope_key is not None})
    unknown = unknown_owners(tx, (row.owner for row in rows))
    return [_one(row, read.get(row.scope_key or "", staleness.NEVER_READ), unknown) for row in rows]


def _one(record: ComponentRecord, read: staleness.ScopeRead, unknown: Collection[str]) -> Json:
    return {
        "id": full_id(record.live_system_id, record.component_id),
        "componentId": record.component_id,
        "liveSystemId": record.live_system_id,
        "type": record.type,
        "provider": record.provider,
        "environment": record.environment,
        "status": record.status,
        "stance": record.stance,
        "message": with_since(with_owner(record.message, record, unknown), record.override),
        "owner": record.owner,
        "generation": record.generation,
        "observedGeneration": record.observed_generation,
        "lastUpdated": record.last_updated,
        "lastRead": read.of(record.type, record.uid),
        "stale": record.unread or read.is_stale,
        "override": record.override,
        "overdue": record.overdue,
        "deleting": record.deleting,
        "scope": record.scope_key,
        "resourceId": record.resource_id,
        "resourceKey": None if record.identity_key is None else to_key(record.identity_key),
        "request": record.request,
        "waitsFor": record.waits_for,
        "changedBy": [shown(one) for one in record.changed_by or ()],
        "declaration": record.declaration,
        "outputFields": record.output_fields,
    }
