"""The component types that can be declared, and whose each of them is (A4).

A type belongs to the package that is installed here, else to the token whose agent brought it first, by that token's
name. Only its owner changes what is known of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from sqlalchemy import select, update

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.driver import upsert
from fractal_cloud.control.store.errors import NotFound, Refused, TypeOfAnother
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import tokens, types
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.event import EventKind
from fractal_cloud.offers.installed_types import Catalog, InstalledTypes
from fractal_cloud.rules.hiding import Marks

PACKAGE: Final = ""
"""Whose a type is that is installed here."""


def register(tx: Tx, brought: Iterable[TypeFacts], token_name: str, installed: Mapping[str, TypeFacts]) -> None:
    """Remember the types an agent has, as their owners have them; ``TypeOfAnother`` where it is not the owner.

    Of an installed type the package's own facts count, whatever an agent of another version says.
    """
    wanted = {facts.type: facts for facts in brought}
    known = {row.type: row for row in tx.connection.execute(select(types).where(types.c.type.in_(list(wanted))))}
    rows = []
    for name, facts in wanted.items():
        if name in installed and facts.provider == installed[name].provider:
            row = _row(installed[name], PACKAGE)
        elif name in installed:
            where = installed[name].provider
            raise TypeOfAnother(
                f"type {name!r} is installed at the control plane for {where!r}: give yours another name"
            )
        else:
            row = _row(facts, token_name)
            _refuse_change(row, known.get(name))
        if name not in known or any(row[column] != getattr(known[name], column) for column in row):
            rows.append(row)
    upsert(tx.connection, types, rows)


def _row(facts: TypeFacts, owner: str) -> Json:
    brought = {"type": facts.type, "provider": facts.provider, "facts": facts.to_json(), "linked": facts.linked()}
    return {**brought, "hidden": Marks.of_any([facts]).to_json(), "owner": owner}


def _refuse_change(row: Json, known: Any) -> None:
    """Refuse other facts than the owner's. A type that nobody owns any more goes to whoever brings equal ones."""
    if known is None or known.owner == row["owner"]:
        return
    before = TypeFacts.model_validate(known.facts).to_json()  # as it is written today
    differing = sorted(name for name, value in row["facts"].items() if value != before[name])
    if differing:
        owner = f"token {known.owner!r}" if known.owner else "nobody who is known by name"
        raise TypeOfAnother(
            f"type {row['type']!r} belongs to {owner}, and this agent has another {', '.join(differing)}: "
            f"run the same version of its package, or have an admin move it: "
            f"fractal types move {row['type']} --to {row['owner']!r}"
        )
    row["owner"] = known.owner or row["owner"]


def move(tx: Tx, name: str, to: str, by: str, installed: Collection[str]) -> Json:
    """Give a type to the token of that name: what its agents bring next is what the type is."""
    if name in installed:
        raise Refused(f"type {name!r} is installed at the control plane: its package says what it is")
    row = tx.connection.execute(select(types.c.owner).where(types.c.type == name)).first()
    if row is None:
        raise NotFound(f"there is no type {name!r} that an agent brought: GET /offers lists all types")
    if tx.connection.execute(select(tokens.c.id).where(tokens.c.name == to)).first() is None:
        raise NotFound(f"there is no token {to!r}: GET /tokens lists them")
    tx.connection.execute(update(types).where(types.c.type == name).values(owner=to))
    if row.owner != to:
        message = f"type {name!r} belongs to token {to!r} from now on"
        tx.record(PendingEvent("", EventKind.TYPE_MOVED, by, message=message, before=row.owner, after=to))
    return {"type": name, "before": row.owner or None, "owner": to}


def owners(tx: Tx) -> dict[str, str]:
    """Whose each type is that an agent brought, and that is known by a token's name."""
    query = select(types.c.type, types.c.owner).where(types.c.owner.is_not(None), types.c.owner != PACKAGE)
    return {row.type: row.owner for row in tx.connection.execute(query)}


def keep_used(tx: Tx, declared: Iterable[str], known_types: Catalog) -> None:
    """Remember the types of families that are declared: reports are read and hidden by what stands here.

    One that another component of its LiveSystem brought along is nobody's, until an agent says what it is.
    """
    used = {name: facts for name in set(declared) if known_types.family_of(name) and (facts := known_types.get(name))}
    query = select(types).where(types.c.type.in_(list(used)))
    known = {row.type: row for row in tx.connection.execute(query)} if used else {}
    rows = [_row(facts, PACKAGE) for name, facts in used.items() if name in known_types.installed]
    brought = [facts for name, facts in used.items() if name not in known_types.installed]
    rows += [{**_row(facts, ""), "owner": None} for facts in brought if _is_nobodys(known.get(facts.type))]
    changed = [row for row in rows if any(row[key] != getattr(known.get(row["type"]), key, None) for key in row)]
    upsert(tx.connection, types, changed)


def _is_nobodys(row: Any) -> bool:
    return row is None or row.owner is None


def families(tx: Tx, names: Collection[str]) -> dict[str, str]:
    """The family of each of these types that is of one."""
    query = select(types.c.type, types.c.facts).where(types.c.type.in_(sorted(names)))
    found = {row.type: str(row.facts.get("family", "")) for row in tx.connection.execute(query)} if names else {}
    return {name: family for name, family in found.items() if family}


def catalog(tx: Tx, installed: InstalledTypes) -> Catalog:
    """Every type that can be declared; what is installed here counts before what an agent said."""
    query = select(types.c.type, types.c.owner).where(types.c.type.not_in(list(installed)))
    others = [
        row.type for row in tx.connection.execute(query) if row.owner != PACKAGE or not installed.family_of(row.type)
    ]
    facts = select(types.c.type, types.c.facts).where(types.c.type.in_(others))
    brought = {row.type: TypeFacts.model_validate(row.facts) for row in tx.connection.execute(facts)} if others else {}
    return Catalog(brought, installed)


def frozen(tx: Tx, names: Collection[str]) -> set[str]:
    """Of these types, those whose tags nobody can change, as their owners registered them."""
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
