"""What needs a person, over all LiveSystems: how many there are of each kind, and the first few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import func, select

from fractal_cloud.control.store import components, staleness
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.listing import ComponentOrder, Filters, Overridden, Page, Place
from fractal_cloud.control.store.schema import live_system_scopes, scope_reads, scopes
from fractal_cloud.control.store.visibility import Environments, is_visible
from fractal_cloud.model.status import Status

FEW: Final = 5


@dataclass(frozen=True, slots=True)
class Attention:
    """Components that are failed, missing or held by hand, the oldest override first, and scopes that nobody reads.

    All of it as far as somebody sees it.
    """

    failed: Page
    missing: Page
    overdue: Page
    overrides: Page
    stale_scopes: Page


def needed(tx: Tx, sees: Environments = None, few: int = FEW) -> Attention:
    """What needs a person: the first few of each kind, and how many there are."""

    def first(filters: Filters, order: ComponentOrder = ComponentOrder.ID) -> Page:
        return components.list_all(tx, Place(few), filters, order, sees)

    return Attention(
        failed=first(Filters(status=(Status.FAILED.value,))),
        missing=first(Filters(status=(Status.MISSING.value,))),
        overdue=first(Filters(override=(Overridden.OVERDUE,)), ComponentOrder.OVERRIDE),
        overrides=first(Filters(override=(Overridden.TRUE,)), ComponentOrder.OVERRIDE),
        stale_scopes=stale_scopes(tx, Place(few), sees),
    )


def stale_scopes(tx: Tx, place: Place, sees: Environments = None) -> Page:
    """Scopes that nobody has read for two cycles, longest ago first; of their components, those that somebody sees."""
    kept = live_system_scopes.c
    inside = select(kept.scope_key, func.sum(kept.components).label("many")).group_by(kept.scope_key)
    if sees is not None:
        inside = inside.where(is_visible(tx, sees, live_system_scopes.c.live_system_id))
    many = inside.where(staleness.scope_is_stale(kept.scope_key)).subquery()
    found = (
        select(scopes.c.key, scopes.c.provider, scopes.c.realm, scopes.c.place, scope_reads.c.stale_since, many.c.many)
        .join(many, many.c.scope_key == scopes.c.key)
        .join(scope_reads, scope_reads.c.scope_key == scopes.c.key)
    )
    total = tx.connection.execute(select(func.count()).select_from(many)).scalar_one()
    ordered = found.order_by(scope_reads.c.stale_since, scopes.c.key).offset(place.offset).limit(place.limit)
    rows = tx.connection.execute(ordered).all()
    read = staleness.reads(tx, [row.key for row in rows])
    items = [
        {
            "key": row.key,
            "provider": row.provider,
            "realm": row.realm,
            "place": row.place,
            "components": int(row.many),
            "lastRead": read[row.key].last_read,
            "staleSince": row.stale_since,
        }
        for row in rows
    ]
    return Page(items, total=total)
