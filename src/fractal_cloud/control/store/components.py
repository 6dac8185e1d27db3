"""Components as people read them; how they change stands with those who change them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import select

from fractal_cloud.control.store import agents as agent_store
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.owners import unknown_owners, with_owner
from fractal_cloud.control.store.records import ComponentRecord, Json, records, select_records
from fractal_cloud.control.store.resources import to_key
from fractal_cloud.control.store.schema import components, scopes
from fractal_cloud.rules.words import with_since


def full_id(live_system_id: str, component_id: str) -> str:
    """A component's id that is unique everywhere."""
    return f"{live_system_id}/blueprint/{component_id}"


def require(tx: Tx, live_system_id: str, component_id: str) -> ComponentRecord:
    """The row of a component that must be there."""
    c = components.c
    query = select_records().where(c.live_system_id == live_system_id, c.component_id == component_id)
    found = records(tx, query)
    if not found:
        raise NotFound(
            f"LiveSystem {live_system_id!r} has no component {component_id!r}: "
            f"GET /livesystems/{live_system_id}/components lists them"
        )
    return found[0]


def get(tx: Tx, live_system_id: str, component_id: str) -> Json:
    """One component."""
    return described(tx, [require(tx, live_system_id, component_id)])[0]


def list_page(tx: Tx, live_system_id: str, limit: int, after: str | None) -> list[Json]:
    """The components of a LiveSystem by id, those after the given one."""
    c = components.c
    query = select_records().where(c.live_system_id == live_system_id).order_by(c.component_id).limit(limit)
    if after is not None:
        query = query.where(c.component_id > after)
    return described(tx, records(tx, query))


def described(tx: Tx, rows: Sequence[ComponentRecord]) -> list[Json]:
    """Components as the API shows them, each with the time its scope was last read."""
    read_at = last_reads(tx, {row.scope_key for row in rows if row.scope_key is not None})
    unknown = unknown_owners(tx, (row.owner for row in rows))
    return [_one(row, read_at.get(row.scope_key or ""), unknown) for row in rows]


def last_reads(tx: Tx, scope_keys: Iterable[str]) -> dict[str, Any]:
    """When each scope was last read, by the word of its holder's heartbeat."""
    wanted = set(scope_keys)
    holders = {
        row.key: row.holder
        for row in tx.connection.execute(select(scopes.c.key, scopes.c.holder).where(scopes.c.key.in_(wanted)))
    }
    read_at = agent_store.last_reads(tx, {holder for holder in holders.values() if holder is not None})
    return {key: read_at.get(holder or "", {}).get(key) for key, holder in holders.items()}


def _one(record: ComponentRecord, read_at: Any, unknown: Collection[str]) -> Json:
    return {
        "id": full_id(record.live_system_id, record.component_id),
        "componentId": record.component_id,
        "liveSystemId": record.live_system_id,
        "type": record.type,
        "provider": record.provider,
        "environment": record.environment,
        "status": record.status,
        "stance": record.stance,
        "message": with_since(with_owner(record.message, record, unknown), record.override),
        "owner": record.owner,
        "generation": record.generation,
        "observedGeneration": record.observed_generation,
        "lastUpdated": record.last_updated,
        "lastRead": read_at,
        "override": record.override,
        "overdue": record.overdue,
        "deleting": record.deleting,
        "scope": record.scope_key,
        "resourceId": record.resource_id,
        "resourceKey": None if record.identity_key is None else to_key(record.identity_key),
        "request": record.request,
        "waitsFor": record.waits_for,
        "declaration": record.declaration,
        "outputFields": record.output_fields,
    }
