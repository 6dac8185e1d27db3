"""What a scope's agent has to do, in the form it travels in. Built as plain JSON: thousands of components at once.

The models of ``model.wire`` describe the same documents; a test holds the two together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import and_, or_, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.dialect import chunks
from fractal_cloud.control.store.records import ComponentRecord, Json, select_records, to_record
from fractal_cloud.control.store.schema import components, departures, live_systems, refers, resources

_LIVE_SYSTEM = (live_systems.c.readoption, live_systems.c.deployed_at)


def full_work(tx: Tx, versions: Mapping[str, int]) -> dict[str, Json]:
    """Everything in these scopes, by scope key."""
    work = {key: _scope_work(key, version, full=True) for key, version in versions.items()}
    outside = _outside(tx, versions)
    held_back = _held_back(tx, versions)
    for some in chunks(versions):
        query = (
            select_records()
            .add_columns(*_LIVE_SYSTEM)
            .join(live_systems, live_systems.c.id == components.c.live_system_id)
            .where(components.c.scope_key.in_(some))
        )
        for row in tx.connection.execute(query):
            record = to_record(row)
            work[str(record.scope_key)]["components"].append(
                work_component(record, row.readoption, row.deployed_at, held_back)
            )
        for resource in tx.connection.execute(select(resources).where(resources.c.scope_key.in_(some))):
            work[resource.scope_key]["resources"].append(_known_resource(resource))
    for key, found in outside.items():
        work[key]["outside"] = found
    return work


def changed_work(tx: Tx, key: str, version: int, since: int) -> Json:
    """What changed in a scope after the version its agent has."""
    work = _scope_work(key, version, full=False)
    held_back = _held_back(tx, [key])
    query = (
        select_records()
        .add_columns(*_LIVE_SYSTEM)
        .join(live_systems, live_systems.c.id == components.c.live_system_id)
        .where(components.c.scope_key == key, components.c.work_version > since)
    )
    identities: list[str] = []
    uids: list[str] = []
    for row in tx.connection.execute(query):
        record = to_record(row)
        uids.append(record.uid)
        identities.append(str(record.identity_key))
        work["components"].append(work_component(record, row.readoption, row.deployed_at, held_back))
    for some in chunks(identities):
        found = tx.connection.execute(select(resources).where(resources.c.identity_key.in_(some)))
        work["resources"].extend(_known_resource(resource) for resource in found)
    work["outside"] = _outside(tx, [key], since=since).get(key, [])
    gone = select(departures.c.uid).where(departures.c.scope_key == key, departures.c.version > since)
    work["gone"] = sorted(set(tx.connection.execute(gone).scalars()) - set(uids))
    return work


def _scope_work(key: str, version: int, *, full: bool) -> Json:
    return {
        "scope": key,
        "version": version,
        "full": full,
        "components": [],
        "gone": [],
        "resources": [],
        "outside": [],
    }


def work_component(record: ComponentRecord, readoption: str, deployed_at: Any, held_back: set[str]) -> Json:
    """One component as ``WorkComponent`` spells it; one whose deletion must wait is not yet shown as being deleted."""
    return {
        "uid": record.uid,
        "liveSystemId": record.live_system_id,
        "environment": record.environment,
        "readoption": readoption,
        "deployedAt": deployed_at,
        "generation": record.generation,
        "declaration": record.declaration,
        "name": record.name,
        "place": record.place,
        "parent": record.parent,
        "declaredName": record.declared_name,
        "declaredPlace": record.declared_place,
        "declaredParent": record.declared_parent,
        "deleting": record.deleting and record.uid not in held_back,
        "request": record.request,
        "memory": {
            "stance": record.stance,
            "status": record.status,
            "message": record.message,
            "owner": record.owner,
            "resourceId": record.resource_id,
            "outputFields": record.output_fields,
            "observedGeneration": record.observed_generation,
            "established": record.established,
            "absentSince": record.absent_since,
            "noticedSince": record.noticed_since,
            "intent": record.intent,
            "override": record.override,
            "waitsFor": record.waits_for,
        },
    }


def _known_resource(row: Any) -> Json:
    return {
        "identity": row.identity_key,
        "owner": row.owner,
        "resourceId": row.resource_id,
        "leftBy": row.left_by,
    }


def _outside(tx: Tx, keys: Iterable[str], since: int | None = None) -> dict[str, list[Json]]:
    """What components in these scopes refer to in other scopes, by the scope that refers."""
    target = components.alias("target")
    found: dict[str, dict[tuple[str, str], Json]] = defaultdict(dict)
    for some in chunks(keys):
        query = (
            select(
                components.c.scope_key.label("here"),
                target.c.live_system_id,
                target.c.component_id,
                target.c.status,
                target.c.output_fields,
            )
            .join(
                refers,
                and_(
                    refers.c.live_system_id == components.c.live_system_id,
                    refers.c.source == components.c.component_id,
                ),
            )
            .join(
                target,
                and_(target.c.live_system_id == refers.c.live_system_id, target.c.component_id == refers.c.target),
            )
            .where(
                components.c.scope_key.in_(some),
                or_(target.c.scope_key.is_(None), target.c.scope_key != components.c.scope_key),
            )
        )
        if since is not None:
            query = query.where(components.c.work_version > since)
        for row in tx.connection.execute(query):
            found[row.here][row.live_system_id, row.component_id] = {
                "liveSystemId": row.live_system_id,
                "componentId": row.component_id,
                "status": row.status,
                "outputFields": row.output_fields,
            }
    return {key: list(outside.values()) for key, outside in found.items()}


def _held_back(tx: Tx, keys: Iterable[str]) -> set[str]:
    """Components here whose deletion waits for dependents in other scopes, unseen by its agent (O10)."""
    dependent = components.alias("dependent")
    found: set[str] = set()
    for some in chunks(keys):
        query = (
            select(components.c.uid)
            .join(
                refers,
                and_(
                    refers.c.live_system_id == components.c.live_system_id,
                    refers.c.target == components.c.component_id,
                    refers.c.kind == "dependency",
                ),
            )
            .join(
                dependent,
                and_(
                    dependent.c.live_system_id == refers.c.live_system_id,
                    dependent.c.component_id == refers.c.source,
                ),
            )
            .where(
                components.c.scope_key.in_(some),
                components.c.deleting,
                dependent.c.scope_key != components.c.scope_key,
            )
        )
        found.update(tx.connection.execute(query).scalars())
    return found
