"""What a deploy will not do, said in its answer and in its plan, as far as it is known at that moment (C10).

What only a reading of the cloud shows stands on the component.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import select

from fractal_cloud.control.store import previews
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks
from fractal_cloud.control.store.owners import unknown_owner, unknown_owners
from fractal_cloud.control.store.records import ComponentRecord
from fractal_cloud.control.store.resources import absent_of, declarers
from fractal_cloud.control.store.schema import resources
from fractal_cloud.model.catalog import TypeFacts


def surprises(
    tx: Tx, live_system_id: str, rows: Sequence[ComponentRecord], catalog: Mapping[str, TypeFacts]
) -> list[str]:
    """The warnings of a deploy after which a LiveSystem has these components."""
    declared = [row for row in rows if not row.deleting]
    reasons = {row.uid: previews.why_read_only(row, catalog) for row in declared}
    owned = [row for row in declared if not reasons[row.uid]]
    taken_out = [row for row in rows if row.deleting]
    return [
        *_imported(tx, live_system_id, owned),
        *_taken_out(tx, live_system_id, taken_out, catalog),
        *_read_only(declared, reasons),
    ]


def _imported(tx: Tx, live_system_id: str, rows: Sequence[ComponentRecord]) -> list[str]:
    by_key = {row.identity_key: row.component_id for row in rows if row.identity_key is not None}
    owners = {key: owner for key, owner in _owners(tx, by_key).items() if owner != live_system_id}
    absent = absent_of(tx, owners)
    unknown = unknown_owners(tx, owners.values())
    heirs = {key: {d.live_system_id for d in found if not d.deleting} for key, found in declarers(tx, absent).items()}
    said: list[str] = []
    for owner in sorted(set(owners.values())):
        there = [by_key[key] for key, of in owners.items() if of == owner and key not in absent]
        missing = [by_key[key] for key in absent if owners[key] == owner and owner in heirs.get(key, ())]
        if there:
            are, they = ("is", "it is") if len(there) == 1 else ("are", "they are")
            note = f"; {unknown_owner(owner)}" if owner in unknown else ""
            said.append(f"{_named(there)} {are} owned by {owner!r}: {they} imported, nothing is created{note}")
        if missing:
            are, it = ("is", "it") if len(missing) == 1 else ("are", "them")
            said.append(
                f"{_named(missing)} {are} absent, and only {owner!r}, which owns {it}, creates {it} again: "
                "Missing until then"
            )
    return said


def _owners(tx: Tx, identity_keys: Iterable[str]) -> dict[str, str]:
    """Who is known as the owner of resources, by identity."""
    found: dict[str, str] = {}
    for some in chunks(identity_keys):
        query = select(resources.c.identity_key, resources.c.owner).where(
            resources.c.identity_key.in_(some), resources.c.owner.is_not(None)
        )
        found |= {row.identity_key: row.owner for row in tx.connection.execute(query)}
    return found


def _taken_out(
    tx: Tx, live_system_id: str, rows: Sequence[ComponentRecord], catalog: Mapping[str, TypeFacts]
) -> list[str]:
    if not rows:
        return []
    endings = previews.endings(tx, live_system_id, rows, catalog)
    said = previews.warning(endings)
    if said is None:
        return []
    missed = [end.component.component_id for end in previews.missed(endings)]
    return [f"{_named(missed)} {'is' if len(missed) == 1 else 'are'} taken out of the declaration. {said}"]


def _read_only(rows: Sequence[ComponentRecord], reasons: Mapping[str, str]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for row in rows:
        if reasons[row.uid]:
            by_reason.setdefault(reasons[row.uid], []).append(row.component_id)
    return [
        f"{_named(names)} {'is' if len(names) == 1 else 'are'} read only ({reason}): nothing is created or changed"
        for reason, names in sorted(by_reason.items())
    ]


def _named(component_ids: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in component_ids)
