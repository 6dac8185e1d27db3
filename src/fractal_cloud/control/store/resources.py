"""Resources by their natural identity, whoever declares them: owner, importers, and what was left behind (O13)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import delete, exists, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks, upsert
from fractal_cloud.control.store.errors import NotFound
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import components, resources
from fractal_cloud.model.wire import KnownResource


def write(tx: Tx, scope_key: str, known: Sequence[KnownResource]) -> None:
    """Remember what is known of resources in a scope; nothing to remember is no row."""
    if not known:
        return
    forgotten = [one.identity for one in known if one.owner is None and one.resource_id is None and one.left_by is None]
    for some in chunks(forgotten):
        tx.connection.execute(delete(resources).where(resources.c.identity_key.in_(some)))
    rows = [
        {
            "identity_key": resource.identity,
            "scope_key": scope_key,
            "owner": resource.owner,
            "resource_id": resource.resource_id,
            "left_by": resource.left_by,
            "overridden": resource.overridden,
            "updated_at": tx.now,
        }
        for resource in known
        if resource.identity not in forgotten
    ]
    upsert(tx.connection, resources, rows)


def forget_gone(tx: Tx, identity_keys: Iterable[str]) -> None:
    """Forget resources that were proven gone, unless somebody still declares them, or left them behind (O10)."""
    for some in chunks(identity_keys):
        is_declared = exists().where(components.c.identity_key == resources.c.identity_key)
        tx.connection.execute(
            delete(resources).where(resources.c.identity_key.in_(some), resources.c.left_by.is_(None), ~is_declared)
        )


def to_key(identity_key: str) -> str:
    """An identity as it can stand in a URL."""
    return base64.urlsafe_b64encode(identity_key.encode()).decode().rstrip("=")


def from_key(key: str) -> str:
    """The identity a URL speaks of."""
    try:
        identity_key = base64.urlsafe_b64decode(key + "=" * (-len(key) % 4)).decode()
    except (binascii.Error, UnicodeError, ValueError):
        identity_key = ""
    if not identity_key.isprintable() or not identity_key:
        raise NotFound(f"there is no resource {key!r}: GET /resources lists them")
    return identity_key


def get(tx: Tx, key: str) -> Json:
    """One resource, by its URL key."""
    row = tx.connection.execute(select(resources).where(resources.c.identity_key == from_key(key))).first()
    if row is None:
        raise NotFound(f"there is no resource {key!r}: GET /resources lists them")
    return _described(tx, [row])[0]


def list_page(tx: Tx, limit: int, after: str | None) -> list[Json]:
    """Resources by identity, those after the given one; not those that are absent, or were never seen."""
    is_absent = exists().where(
        components.c.identity_key == resources.c.identity_key, components.c.absent_since.is_not(None)
    )
    query = (
        select(resources)
        .where(resources.c.resource_id.is_not(None), ~is_absent)
        .order_by(resources.c.identity_key)
        .limit(limit)
    )
    if after is not None:
        query = query.where(resources.c.identity_key > after)
    return _described(tx, tx.connection.execute(query).all())


def declarers(tx: Tx, identity_keys: Iterable[str]) -> dict[str, list[Any]]:
    """Who declares each resource now: rows with identity, LiveSystem, component id and status."""
    c = components.c
    found: dict[str, list[Any]] = {}
    for some in chunks(identity_keys):
        query = (
            select(c.identity_key, c.live_system_id, c.component_id, c.status, c.deleting)
            .where(c.identity_key.in_(some))
            .order_by(c.live_system_id, c.component_id)
        )
        for row in tx.connection.execute(query):
            found.setdefault(row.identity_key, []).append(row)
    return found


def absent_of(tx: Tx, identity_keys: Iterable[str]) -> set[str]:
    """Those of these resources that somebody who declares them has found absent."""
    found: set[str] = set()
    for some in chunks(identity_keys):
        query = select(components.c.identity_key).where(
            components.c.identity_key.in_(some), components.c.absent_since.is_not(None)
        )
        found |= set(tx.connection.execute(query).scalars())
    return found


def _described(tx: Tx, rows: Sequence[Any]) -> list[Json]:
    keys = [row.identity_key for row in rows]
    declared, absent = declarers(tx, keys), absent_of(tx, keys)
    return [_one(row, declared.get(row.identity_key, []), is_absent=row.identity_key in absent) for row in rows]


def _one(row: Any, declared: Sequence[Any], *, is_absent: bool) -> Json:
    component_type, _, name = row.identity_key.partition(f":{row.scope_key}:")
    return {
        "key": to_key(row.identity_key),
        "identity": row.identity_key,
        "type": component_type,
        "scope": row.scope_key,
        "name": name,
        "resourceId": row.resource_id,
        "absent": is_absent,
        "owner": row.owner,
        "leftBy": row.left_by,
        "importers": sorted({d.live_system_id for d in declared if d.live_system_id != row.owner}),
        "declaredBy": [
            {"liveSystemId": d.live_system_id, "componentId": d.component_id, "status": d.status} for d in declared
        ],
        "lastUpdated": row.updated_at,
    }
