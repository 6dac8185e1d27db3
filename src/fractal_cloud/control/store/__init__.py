"""What the control plane remembers, in SQLite or PostgreSQL; no HTTP and no rules of the protocol belong here.

A noun's file holds functions over a transaction; ``Store`` opens the transactions.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from fractal_cloud.control.store import offers
from fractal_cloud.control.store.database import Clock, Database, Tx
from fractal_cloud.control.store.limits import DEFAULT_LIMITS, Limits
from fractal_cloud.control.store.refusals import Refusals
from fractal_cloud.control.store.signals import Signals
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.offers.installed_types import Catalog, InstalledTypes
from fractal_cloud.offers.registry import Registry, installed

__all__ = ["Store", "open_store"]


class Store:
    """One database, and the component types that are installed beside it."""

    def __init__(self, database: Database, installed_types: InstalledTypes) -> None:
        self.database = database
        self.installed_types = installed_types
        self.refusals = Refusals()

    @property
    def signals(self) -> Signals:
        """Where to wait for what is committed."""
        return self.database.signals

    def read(self) -> AbstractContextManager[Tx]:
        """A transaction that only reads."""
        return self.database.read()

    def write(self) -> AbstractContextManager[Tx]:
        """A transaction that writes."""
        return self.database.write()

    def catalog(self, tx: Tx) -> Catalog:
        """Every component type that can be declared; those of families are found by name, and not listed."""
        return offers.catalog(tx, self.installed_types)

    def close(self) -> None:
        """Let the database go."""
        self.database.close()


def open_store(
    url: str,
    *,
    types_here: Mapping[str, TypeFacts] | None = None,
    registry: Registry | None = None,
    clock: Clock | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Store:
    """Open a database, bring its schema up to date, and know the installed types (or those given)."""
    known = InstalledTypes.of(registry or installed())
    if types_here is not None:
        known = InstalledTypes(types_here, registry or Registry([]))
    return Store(Database(url, clock=clock, limits=limits), known)
