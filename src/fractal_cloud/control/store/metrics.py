"""What the control plane counts for its metrics, and whether its database answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, insert, select

from fractal_cloud.control.store import notifications, staleness
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.schema import (
    agents,
    components,
    counters,
    live_system_scopes,
    live_systems,
    scope_reads,
    scopes,
)


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is."""

    components: dict[str, int]
    live_systems: int
    agents: int
    leases: int
    notifications: int
    stale: int


@dataclass(frozen=True, slots=True)
class ScopeCounts:
    """When a scope with components was last read, and how its last cycle went, as far as that is known."""

    key: str
    last_read: datetime | None
    last_cycle: Mapping[str, float]


def probe(tx: Tx) -> None:
    """Raise if the database does not answer."""
    tx.connection.execute(select(1)).scalar_one()


def probe_write(tx: Tx) -> None:
    """Raise if the database has no space for some pages more; what is written is taken out again."""
    name = f"probe {'-' * 16_000}"
    tx.connection.execute(insert(counters).values(name=name, value=0))
    tx.connection.execute(delete(counters).where(counters.c.name == name))


def count(tx: Tx) -> Counts:
    """Components by status, LiveSystems, agents alive, and leases that hold."""
    by_status = select(components.c.status, func.count().label("many")).group_by(components.c.status)
    alive = select(agents.c.id).where(agents.c.deadline > tx.now)
    return Counts(
        components={row.status: row.many for row in tx.connection.execute(by_status)},
        live_systems=tx.connection.execute(select(func.count()).select_from(live_systems)).scalar_one(),
        agents=tx.connection.execute(select(func.count()).select_from(alive.subquery())).scalar_one(),
        leases=tx.connection.execute(
            select(func.count()).select_from(scopes).where(scopes.c.holder.in_(alive))
        ).scalar_one(),
        notifications=notifications.pending(tx),
        stale=staleness.count(tx),
    )


def count_scopes(tx: Tx) -> list[ScopeCounts]:
    """What is known of every scope with components, by key; the holders' rows are read once, however many there are."""
    query = (
        select(scopes.c.key, scopes.c.holder, scope_reads.c.read_at, scope_reads.c.unread, scope_reads.c.stale_since)
        .outerjoin(scope_reads, scope_reads.c.scope_key == scopes.c.key)
        .where(scopes.c.key.in_(select(live_system_scopes.c.scope_key)))
        .order_by(scopes.c.key)
    )
    said = staleness.said_by(tx)
    found = []
    for row in tx.connection.execute(query):
        own = said.get(row.holder or "")
        cycle = own.cycles.get(row.key, {}) if own is not None else {}
        found.append(ScopeCounts(row.key, staleness.read_of(row, own).last_read, cycle))
    return found
