"""Owners that tags name and that are no LiveSystem here: mistyped, deleted, or of another control plane (C10).

Agents do not know which LiveSystems there are, so it is said where components are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from sqlalchemy import select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks
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


def with_owner(message: str, row: Any, unknown: Collection[str]) -> str:
    """A component's message, with a remark on the owner that the tag names, where that is unknown.

    ``row`` has the columns of ``components``. What is absent has no tag: its owner is only remembered.
    """
    is_named = row.owner is not None and row.owner in unknown and row.absent_since is None
    return f"{message}; {unknown_owner(row.owner)}" if is_named else message
