"""What a scope's agent has to do, in the form it travels in. Built as plain JSON: thousands of components at once.

The models of ``model.wire`` describe the same documents; a test holds the two together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, or_, select

from fractal_cloud.control.store import hosts, links
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import chunks
from fractal_cloud.control.store.links import Links
from fractal_cloud.control.store.outside import Needs, Source
from fractal_cloud.control.store.records import ComponentRecord, Json, select_records, to_record
from fractal_cloud.control.store.schema import components, departures, journal, live_systems, refers, resources
from fractal_cloud.model.host import host_of
from fractal_cloud.model.observed import to_wire

_UNLINKED = Links()
_STANDS = ("place", "name", "parent", "realm_name")
_DECLARED = ("declared_place", "declared_name", "declared_parent", "declared_realm_name")


@dataclass(frozen=True, slots=True)
class Header:
    """What an agent must know of the LiveSystem that a component belongs to."""

    readoption: str
    tags: Mapping[str, str]
    deployed_at: datetime


@dataclass(frozen=True, slots=True)
class _Beside:
    """What the agent must know of components beside their own rows, by uid."""

    held_by: Mapping[str, list[str]]
    hosted: Mapping[str, list[str]]
    left_inside: Mapping[str, list[str]]
    open_writes: Mapping[str, list[Json]]
    links: Mapping[str, Links]


def full_work(tx: Tx, versions: Mapping[str, int]) -> dict[str, Json]:
    """Everything in these scopes, by scope key."""
    if not versions:
        return {}
    work = {key: empty_work(key, version, full=True) for key, version in versions.items()}
    beside = _beside(tx, versions, links.of_scopes(tx, versions))
    for some in chunks(versions):
        for row in tx.connection.execute(_rows().where(components.c.scope_key.in_(some))):
            record = to_record(row)
            work[str(record.scope_key)]["components"].append(_work_component(record, row, beside))
        for resource in tx.connection.execute(select(resources).where(resources.c.scope_key.in_(some))):
            work[resource.scope_key]["resources"].append(_known_resource(resource))
    for key, found in _outside(tx, versions).items():
        work[key]["outside"] = found
    return work


def changed_work(tx: Tx, key: str, version: int, since: int) -> Json:
    """What changed in a scope after the version its agent has."""
    work = empty_work(key, version, full=False)
    changed = _rows().where(components.c.scope_key == key, components.c.work_version > since)
    rows = [(to_record(row), row) for row in tx.connection.execute(changed)]
    beside = _beside(tx, [key], links.of_components(tx, [record for record, _ in rows]))
    uids = {record.uid for record, _ in rows}
    identities = [str(record.identity_key) for record, _ in rows]
    work["components"] = [_work_component(record, row, beside) for record, row in rows]
    for some in chunks(identities):
        found = tx.connection.execute(select(resources).where(resources.c.identity_key.in_(some)))
        work["resources"].extend(_known_resource(resource) for resource in found)
    work["outside"] = _outside(tx, [key], since=since).get(key, [])
    gone = select(departures.c.uid).where(departures.c.scope_key == key, departures.c.version > since)
    work["gone"] = sorted(set(tx.connection.execute(gone).scalars()) - uids)
    return work


def _rows() -> Select[Any]:
    return (
        select_records()
        .add_columns(
            live_systems.c.readoption, live_systems.c.tags, live_systems.c.deployed_at, live_systems.c.in_recovery
        )
        .join(live_systems, live_systems.c.id == components.c.live_system_id)
        .order_by(components.c.live_system_id, components.c.position)
    )


def _work_component(record: ComponentRecord, row: Any, beside: _Beside) -> Json:
    linked = beside.links.get(record.uid, _UNLINKED)
    return {
        **work_component(record, Header(row.readoption, row.tags, row.deployed_at)),
        "inRecovery": row.in_recovery,
        "heldBy": beside.held_by.get(record.uid, []),
        "lodgers": beside.hosted.get(record.uid, []),
        "leftInside": beside.left_inside.get(record.uid, []),
        "openWrites": beside.open_writes.get(record.uid, []),
        "linksIn": linked.inbound,
        "linksOut": linked.outbound,
    }


def empty_work(key: str, version: int, *, full: bool) -> Json:
    """The work of a scope, before anything is put in."""
    return {
        "scope": key,
        "version": version,
        "full": full,
        "components": [],
        "gone": [],
        "resources": [],
        "outside": [],
    }


def work_component(record: ComponentRecord, header: Header) -> Json:
    """One component as ``WorkComponent`` spells it, the tags of its LiveSystem beside its own (T1)."""
    return {
        "uid": record.uid,
        "liveSystemId": record.live_system_id,
        "environment": record.environment,
        "readoption": header.readoption,
        "deployedAt": header.deployed_at,
        "generation": record.generation,
        "declaration": _with_tags(record.declaration, header.tags),
        "name": record.name,
        "place": record.place,
        "parent": record.parent,
        "declaredName": record.declared_name,
        "declaredPlace": record.declared_place,
        "declaredParent": record.declared_parent,
        "realmName": record.realm_name,
        "declaredRealmName": record.declared_realm_name,
        "deleting": record.deleting,
        "bound": record.bound,
        "leftDependents": record.left_dependents or [],
        "request": record.request,
        "memory": to_wire(record),
    }


def _with_tags(declaration: Json, tags: Mapping[str, str]) -> Json:
    return {**declaration, "tags": {**tags, **declaration.get("tags", {})}} if tags else declaration


def _known_resource(row: Any) -> Json:
    return {
        "identity": row.identity_key,
        "owner": row.owner,
        "resourceId": row.resource_id,
        "leftBy": row.left_by,
        "overridden": row.overridden,
    }


def _outside(tx: Tx, keys: Iterable[str], since: int | None = None) -> dict[str, list[Json]]:
    """What components in these scopes depend on in other scopes, by the scope that refers; not the keys of links."""
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
                target.c.resource_id,
                target.c.intent,
                *(target.c[name] for name in (*_STANDS, *_DECLARED)),
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
                refers.c.kind == "dependency",
                components.c.scope_key.in_(some),
                or_(target.c.scope_key.is_(None), target.c.scope_key != components.c.scope_key),
            )
        )
        if since is not None:
            query = query.where(components.c.work_version > since)
        rows = list(tx.connection.execute(query))
        needs = _needs(tx, rows)
        for row in rows:
            found[row.here][row.live_system_id, row.component_id] = {
                "liveSystemId": row.live_system_id,
                "componentId": row.component_id,
                "status": row.status,
                "outputFields": needs[row.here].of(row.live_system_id, row.component_id, row.output_fields),
                "neverCreated": row.resource_id is None and row.intent is None,
                "moved": any(getattr(row, a) != getattr(row, b) for a, b in zip(_STANDS, _DECLARED, strict=True)),
            }
    return {key: list(outside.values()) for key, outside in found.items()}


def _needs(tx: Tx, rows: Iterable[Any]) -> dict[str, Needs]:
    """Which fields of these components their scopes need: all that refer to them there are asked, changed or not."""
    targets: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        targets[row.here].add(row.component_id)
    found: dict[str, Needs] = {}
    for here, names in targets.items():
        sources: dict[str, Source] = {}
        for some in chunks(sorted(names)):
            query = (
                select(components.c.uid, components.c.live_system_id, components.c.type, components.c.declaration)
                .join(
                    refers,
                    and_(
                        refers.c.live_system_id == components.c.live_system_id,
                        refers.c.source == components.c.component_id,
                    ),
                )
                .where(refers.c.kind == "dependency", components.c.scope_key == here, refers.c.target.in_(some))
            )
            for one in tx.connection.execute(query):
                sources[one.uid] = Source(one.live_system_id, one.type, one.declaration.get("parameters", {}))
        found[here] = Needs(tx, list(sources.values()))
    return found


def _beside(tx: Tx, keys: Iterable[str], linked: Mapping[str, Links]) -> _Beside:
    held_by: dict[str, list[str]] = defaultdict(list)
    hosted: dict[str, list[str]] = defaultdict(list)
    open_writes: dict[str, list[Json]] = defaultdict(list)
    for some in chunks(keys):
        for row in tx.connection.execute(_dependents_elsewhere(some)):
            held_by[row.uid].append(row.component_id)
            host = host_of(row.realm_name)
            if host is not None and host.component_id == row.host_id:
                hosted[row.uid].append(row.component_id)
        for row in tx.connection.execute(_open_writes(some)):
            open_writes[row.uid].append(_journal_entry(row))
    return _Beside(held_by, hosted, _left_inside(tx, keys), open_writes, linked)


def _left_inside(tx: Tx, keys: Iterable[str]) -> dict[str, list[str]]:
    """What LiveSystems left in override in components of theirs that are being deleted: these are left, too (O10)."""
    if not hosts.places(tx):
        return {}
    c = components.c
    going: list[ComponentRecord] = []
    for some in chunks(keys):
        going += [
            to_record(row) for row in tx.connection.execute(select_records().where(c.deleting, c.scope_key.in_(some)))
        ]
    if not going:
        return {}
    found: dict[str, list[str]] = {}
    for uid, live_system_id, inside in hosts.insides(tx, going):
        query = select(resources.c.identity_key).where(
            resources.c.left_by == live_system_id, resources.c.scope_key.startswith(inside, autoescape=True)
        )
        names = sorted(key.rpartition(":")[2] for key in tx.connection.execute(query).scalars())
        if names:
            found[uid] = names
    return found


def _dependents_elsewhere(keys: list[str]) -> Select[Any]:
    """Components in other scopes that must go before one here can be deleted (O10)."""
    dependent = components.alias("dependent")
    here = and_(
        refers.c.live_system_id == components.c.live_system_id,
        refers.c.target == components.c.component_id,
        refers.c.kind == "dependency",
    )
    there = and_(dependent.c.live_system_id == refers.c.live_system_id, dependent.c.component_id == refers.c.source)
    return (
        select(
            components.c.uid,
            components.c.component_id.label("host_id"),
            dependent.c.component_id,
            dependent.c.realm_name,
        )
        .join(refers, here)
        .join(dependent, there)
        .where(
            components.c.scope_key.in_(keys),
            components.c.deleting,
            dependent.c.scope_key != components.c.scope_key,
        )
        .order_by(dependent.c.component_id)
    )


def _open_writes(keys: list[str]) -> Select[Any]:
    """Intents whose outcome nobody reported (C7)."""
    return (
        select(journal)
        .join(components, components.c.uid == journal.c.uid)
        .where(journal.c.outcome.is_(None), components.c.scope_key.in_(keys))
        .order_by(journal.c.at, journal.c.id)
    )


def _journal_entry(row: Any) -> Json:
    return {
        "id": row.id,
        "uid": row.uid,
        "generation": row.generation,
        "verb": row.verb,
        "reason": row.reason,
        "resourceId": row.resource_id,
        "before": row.before,
        "after": row.after,
        "tags": row.tags,
        "requestIds": row.request_ids,
        "error": row.error,
    }
