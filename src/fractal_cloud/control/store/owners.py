"""Owners that tags name and that are no LiveSystem here: mistyped, deleted, or of another control plane (C10).

Agents do not know which LiveSystems there are, so it is said where components are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sqlalchemy import select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.dialect import chunks
from fractal_cloud.control.store.schema import live_systems


def unknown_owners(tx: Tx, owners: Iterable[str | None]) -> frozenset[str]:
    """Those of these owners that are no LiveSystem here."""
    named = {owner for owner in owners if owner is not None}
    for some in chunks(sorted(named)):
        named -= set(tx.connection.execute(select(live_systems.c.id).where(live_systems.c.id.in_(some))).scalars())
    return frozenset(named)


def unknown_owner(owner: str) -> str:
    """That nobody here is the owner that a tag names."""
    return f"this control plane knows no LiveSystem {owner!r}"


def with_owner(message: str, owner: str | None, unknown: Collection[str]) -> str:
    """A component's message, with a remark on its owner where that is unknown."""
    return f"{message}; {unknown_owner(owner)}" if owner is not None and owner in unknown else message
