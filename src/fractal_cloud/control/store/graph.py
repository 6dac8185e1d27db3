"""All components of one LiveSystem as few columns, and who refers to whom: enough to order and to draw them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.schema import components, refers
from fractal_cloud.control.store.staleness import component_is_stale
from fractal_cloud.model.status import Stance

LINK = "link"


@dataclass(frozen=True, slots=True)
class Vertex:
    """One component as far as a drawing or an order needs it."""

    id: str
    type: str
    provider: str
    status: str
    stance: str = Stance.MANAGED.value
    is_overdue: bool = False
    is_stale: bool = False

    @property
    def is_imported(self) -> bool:
        """Whether it is somebody else's, and only read here."""
        return self.stance == Stance.IMPORTED.value


@dataclass(frozen=True, slots=True)
class Edge:
    """That one component refers to another: ``source`` needs ``target``, or is linked to it."""

    source: str
    target: str
    is_link: bool = False


def vertices(tx: Tx, live_system_id: str) -> list[Vertex]:
    """Its components by id."""
    c = components.c
    query = (
        select(c.component_id, c.type, c.provider, c.status, c.stance, c.overdue, component_is_stale().label("stale"))
        .where(c.live_system_id == live_system_id)
        .order_by(c.component_id)
    )
    return [
        Vertex(row.component_id, row.type, row.provider, row.status, row.stance, bool(row.overdue), bool(row.stale))
        for row in tx.connection.execute(query)
    ]


def edges(tx: Tx, live_system_id: str) -> list[Edge]:
    """Who needs whom, and who is linked to whom, inside the LiveSystem."""
    query = (
        select(refers.c.source, refers.c.target, refers.c.kind)
        .where(refers.c.live_system_id == live_system_id)
        .order_by(refers.c.source, refers.c.target, refers.c.kind)
    )
    return [Edge(row.source, row.target, is_link=row.kind == LINK) for row in tx.connection.execute(query)]
