"""The component types that can be declared: those of packages installed here, and those agents brought along."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from sqlalchemy import select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import upsert
from fractal_cloud.control.store.schema import types
from fractal_cloud.model.catalog import TypeFacts


def register(tx: Tx, facts: Iterable[TypeFacts]) -> None:
    """Remember the types an agent has."""
    rows = [{"type": f.type, "provider": f.provider, "facts": f.to_json(), "linked": f.linked()} for f in facts]
    upsert(tx.connection, types, rows)


def catalog(tx: Tx, installed: Mapping[str, TypeFacts]) -> dict[str, TypeFacts]:
    """Every type that can be declared; what is installed here counts before what an agent said."""
    query = select(types.c.type, types.c.facts).where(types.c.type.not_in(list(installed)))
    brought = {row.type: TypeFacts.model_validate(row.facts) for row in tx.connection.execute(query)}
    return {**brought, **installed}


def frozen(tx: Tx, names: Collection[str]) -> set[str]:
    """Of these types, those whose tags nobody can change, as their agents registered them."""
    if not names:
        return set()
    query = select(types.c.type, types.c.facts).where(types.c.type.in_(sorted(names)))
    return {row.type for row in tx.connection.execute(query) if TypeFacts.model_validate(row.facts).tags_frozen}


def hosts(tx: Tx, provider: str) -> dict[str, list[str]]:
    """The types in which components of a provider may live, with the outputs by which such a one is reached."""
    found: dict[str, list[str]] = {}
    for facts in tx.connection.execute(select(types.c.facts).where(types.c.provider == provider)).scalars():
        found |= TypeFacts.model_validate(facts).hosts()
    return found
