"""Deploys and deletes as records: the newest follows its components, older ones stand still (C3, C8).

The progress of the newest is nowhere stored: it is computed from its components whenever somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import String, cast, delete, func, insert, literal, or_, select, text, update

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import among, upsert
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.owners import unknown_owners, with_owner
from fractal_cloud.control.store.records import ComponentRecord, Json, new_id
from fractal_cloud.control.store.schema import UNSETTLED, components, live_systems, mutation_components, mutations
from fractal_cloud.model.link import LinkStates
from fractal_cloud.model.status import MutationStatus, Status
from fractal_cloud.rules.mutation import Progress, causes, mutation_status
from fractal_cloud.rules.words import with_since

Kind = Literal["deploy", "delete"]
_SNAPSHOT = tuple(column.name for column in mutation_components.c if column.name != "mutation_id")


def begin(tx: Tx, live_system_id: str, kind: Kind, generation: int, by: str) -> str:
    """A new mutation; the one before it is frozen, and cancelled if it was still under way."""
    _freeze_newest(tx, live_system_id)
    mutation_id = new_id()
    tx.connection.execute(
        insert(mutations).values(
            id=mutation_id,
            live_system_id=live_system_id,
            generation=generation,
            kind=kind,
            status=MutationStatus.IN_PROGRESS.value,
            by=by,
            created_at=tx.now,
            updated_at=tx.now,
        )
    )
    return mutation_id


def _freeze_newest(tx: Tx, live_system_id: str) -> None:
    query = select(mutations.c.id).where(mutations.c.live_system_id == live_system_id, ~mutations.c.frozen)
    for mutation_id in list(tx.connection.execute(query).scalars()):
        status = _present(tx, live_system_id).status
        if status == MutationStatus.IN_PROGRESS.value:
            status = MutationStatus.CANCELLED.value
        _keep_all(tx, mutation_id, live_system_id)
        _end(tx, live_system_id, status)


def _end(tx: Tx, live_system_id: str, status: str) -> None:
    here = update(mutations).where(mutations.c.live_system_id == live_system_id, ~mutations.c.frozen)
    tx.connection.execute(here.values(status=status, frozen=True, updated_at=tx.now))


def _keep_all(tx: Tx, mutation_id: str, live_system_id: str) -> None:
    """Copy all components of the LiveSystem as they are now into a mutation's record, inside the database."""
    copied = select(
        cast(literal(mutation_id), String).label("mutation_id"), *(components.c[name] for name in _SNAPSHOT)
    ).where(components.c.live_system_id == live_system_id)
    present = select(components.c.component_id).where(components.c.live_system_id == live_system_id)
    tx.connection.execute(
        delete(mutation_components).where(
            mutation_components.c.mutation_id == mutation_id, mutation_components.c.component_id.in_(present)
        )
    )
    tx.connection.execute(insert(mutation_components).from_select(["mutation_id", *_SNAPSHOT], copied))


def keep(tx: Tx, mutation_id: str, finished: Iterable[ComponentRecord]) -> None:
    """Remember components that are gone for good in a mutation's record."""
    rows = [{"mutation_id": mutation_id, **{name: getattr(r, name) for name in _SNAPSHOT}} for r in finished]
    upsert(tx.connection, mutation_components, rows)


def newest_of(tx: Tx, live_system_ids: Iterable[str]) -> dict[str, str]:
    """The id of the mutation that each LiveSystem is in."""
    query = select(live_systems.c.id, live_systems.c.mutation_id).where(among(live_systems.c.id, live_system_ids))
    return {row.id: row.mutation_id for row in tx.connection.execute(query)}


def freeze(tx: Tx, live_system_id: str) -> None:
    """End the newest mutation of a LiveSystem that is gone: nothing of it is left to be done."""
    _end(tx, live_system_id, MutationStatus.COMPLETED.value)


@dataclass(frozen=True, slots=True)
class _Present:
    """How the newest mutation of a LiveSystem is doing, and when that last changed; None for one that is gone.

    ``causes``: the components that keep it from being completed, if it is ``Failed``.
    """

    status: str
    updated_at: datetime | None
    causes: Sequence[str] = ()


def _present(tx: Tx, live_system_id: str) -> _Present:
    c = components.c
    changed = select(func.max(c.last_updated)).where(c.live_system_id == live_system_id)
    # What is stuck counts also where it is settled: something may wait for it.
    counting = (
        select(*(c[name] for name in _PROGRESS), c.dealt_generation, c.deleting)
        .where(c.live_system_id == live_system_id, or_(text(UNSETTLED), c.stuck))
        .order_by(c.position, c.component_id)
    )
    progress = [
        _progress(row, dealt_generation=row.dealt_generation, deleting=row.deleting)
        for row in tx.connection.execute(counting)
    ]
    return _Present(mutation_status(progress).value, tx.connection.execute(changed).scalar(), causes(progress))


_PROGRESS = ("component_id", "status", "generation", "observed_generation", "waits_for", "stuck")


def _progress(row: Any, *, dealt_generation: int, deleting: bool) -> Progress:
    return Progress(
        component_id=row.component_id,
        status=Status(row.status),
        generation=row.generation,
        observed_generation=row.observed_generation,
        dealt_generation=dealt_generation,
        deleting=deleting,
        waits_for=tuple(row.waits_for),
        stuck=row.stuck,
    )


def get(tx: Tx, live_system_id: str, mutation_id: str) -> Json:
    """One mutation with its components, live or as they were when it was frozen."""
    query = select(mutations).where(mutations.c.id == mutation_id, mutations.c.live_system_id == live_system_id)
    row = tx.connection.execute(query).first()
    if row is None:
        raise NotFound(f"LiveSystem {live_system_id!r} has no mutation {mutation_id!r}")
    kept = tx.connection.execute(
        select(*(mutation_components.c[name] for name in _SNAPSHOT)).where(
            mutation_components.c.mutation_id == mutation_id
        )
    ).all()
    current: list[Any] = [] if row.frozen else _current(tx, live_system_id)
    present = _frozen(row, kept) if row.frozen else _present(tx, live_system_id)
    described = _components([*kept, *current])
    unknown = unknown_owners(tx, (one.owner for one in current))
    for one in current:
        described["components"][one.component_id]["message"] = with_since(
            with_owner(one.message, one, unknown), one.override
        )
    return {**_summary(row, present), **described, "reasons": _reasons(present, described["components"])}


def newest(tx: Tx, live_system_id: str) -> Json:
    """How the newest mutation of a LiveSystem is doing, and why it is ``Failed``, without its components."""
    present, c = _present(tx, live_system_id), components.c
    query = select(c.component_id, c.status, c.message).where(
        c.live_system_id == live_system_id, c.component_id.in_(present.causes)
    )
    shown = {
        row.component_id: {"componentId": row.component_id, "status": row.status, "message": row.message}
        for row in tx.connection.execute(query)
    }
    return {"status": present.status, "reasons": _reasons(present, shown)}


def _frozen(row: Any, kept: Iterable[Any]) -> _Present:
    """A mutation as it ended: what its record does not hold any more was true of its own generation."""
    ended = (_progress(one, dealt_generation=one.generation, deleting=False) for one in kept)
    return _Present(row.status, row.updated_at, causes(ended))


def _reasons(present: _Present, components: Json) -> list[str]:
    """Why a mutation is ``Failed``, a line for each component that must be resolved first (C8)."""
    if present.status != MutationStatus.FAILED.value:
        return []
    found = [components[name] for name in present.causes if name in components]
    return [f"{one['componentId']} ({one['status']}): {one['message'] or 'no message'}" for one in found]


def _current(tx: Tx, live_system_id: str) -> list[Any]:
    query = select(
        *(components.c[name] for name in _SNAPSHOT),
        components.c.owner,
        components.c.absent_since,
        components.c.override,
    )
    return list(
        tx.connection.execute(
            query.where(components.c.live_system_id == live_system_id).order_by(components.c.position)
        )
    )


def _summary(row: Any, present: _Present) -> Json:
    return {
        "id": row.id,
        "liveSystemId": row.live_system_id,
        "kind": row.kind,
        "status": present.status,
        "generation": row.generation,
        "by": row.by,
        "createdAt": row.created_at,
        "updatedAt": max(row.updated_at, present.updated_at or row.updated_at),
    }


def _components(rows: Iterable[Any]) -> Json:
    found = {
        row.component_id: {
            "componentId": row.component_id,
            "type": row.type,
            "status": row.status,
            "message": row.message,
            "outputFields": row.output_fields,
            "generation": row.generation,
            "observedGeneration": row.observed_generation,
            "waitsFor": row.waits_for,
            "linksWaiting": LinkStates.model_validate(row.links).waiting(),
            "resourceId": row.resource_id,
        }
        for row in rows
    }
    held = [name for name, entry in found.items() if entry["status"] == Status.MANUAL_OVERRIDE.value]
    waiting = [name for name, entry in found.items() if entry["waitsFor"]]
    links = [f"link of {name!r} {text}" for name, entry in found.items() for text in entry["linksWaiting"]]
    return {"components": found, "heldByOverride": held, "waiting": waiting, "linksWaiting": links}


def list_of(tx: Tx, live_system_id: str, limit: int, before: str | None) -> list[Json]:
    """The mutations of a LiveSystem, newest first, without their components; ``before``: the last already seen."""
    table = mutations.c
    query = select(mutations).where(table.live_system_id == live_system_id)
    if before is not None:
        seen = select(table.created_at).where(table.id == before).scalar_subquery()
        query = query.where((table.created_at < seen) | ((table.created_at == seen) & (table.id < before)))
    query = query.order_by(table.created_at.desc(), table.id.desc()).limit(limit)
    return [
        _summary(row, _Present(row.status, row.updated_at) if row.frozen else _present(tx, live_system_id))
        for row in tx.connection.execute(query).all()
    ]


def has_any(tx: Tx, live_system_id: str) -> bool:
    """Whether a LiveSystem of that id was ever deployed, as far as is remembered."""
    query = select(mutations.c.id).where(mutations.c.live_system_id == live_system_id).limit(1)
    return tx.connection.execute(query).first() is not None
