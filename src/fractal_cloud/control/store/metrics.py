"""What the control plane counts for its metrics, and whether its database answers."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.schema import agents, components, live_systems, scopes


@dataclass(frozen=True, slots=True)
class Counts:
    """How much there is."""

    components: dict[str, int]
    live_systems: int
    agents: int
    leases: int


def probe(tx: Tx) -> None:
    """Raise if the database does not answer."""
    tx.connection.execute(select(1)).scalar_one()


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
    )
