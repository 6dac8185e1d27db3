"""What becomes of a LiveSystem's components when it is declared anew: computed on values, written by the caller.

A deploy writes the result; a plan sends the same result to the agents and forgets it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from fractal_cloud.control.store.records import ComponentRecord, Json, new_id
from fractal_cloud.model.declaration import ComponentDeclaration, LiveSystemDeclaration
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.host import called, host_of
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import RequestKind
from fractal_cloud.rules.identify import DeclaredIdentity
from fractal_cloud.rules.words import waits_for

NOT_RECONCILED = "not reconciled yet; before that: "


@dataclass(slots=True)
class Merge:
    """The components as they will be. ``replaced`` maps the uid of a row to the one it had before, where it is new.

    ``voided`` are components whose Force Push or transfer dies with the old generation (G10, O8), with which it was.
    """

    added: list[ComponentRecord] = field(default_factory=list)
    kept: list[ComponentRecord] = field(default_factory=list)
    removed: list[ComponentRecord] = field(default_factory=list)
    replaced: dict[str, ComponentRecord] = field(default_factory=dict)
    voided: list[tuple[ComponentRecord, RequestKind]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)

    @property
    def all(self) -> list[ComponentRecord]:
        """Every component there will be, those being deleted too."""
        return [*self.added, *self.kept, *self.removed]


@dataclass(frozen=True, slots=True)
class Target:
    """What is declared, and where and when: all a merge depends on beside the rows that are there."""

    declaration: LiveSystemDeclaration
    identities: Mapping[str, DeclaredIdentity]
    realms: Mapping[tuple[str, str, str], str]
    generation: int
    now: datetime


def merge(rows: Sequence[ComponentRecord], target: Target) -> Merge:
    """Match what is declared with the rows there are: by identity (O16), else by id; the rest is new or removed."""
    result = Merge()
    matches = _matches(rows, target)
    for position, component in enumerate(target.declaration.components):
        record = matches.get(component.id)
        if record is None:
            result.added.append(_new(component, position, target))
        elif record.type != component.type and record.established:
            result.errors.append(_type_changed(component, record))
        else:
            result.kept.append(_redeclared(record, component, position, target, result))
    result.errors.extend(_declared_twice([*result.added, *result.kept]))
    matched = {record.uid for record in matches.values()}
    result.removed = [_removed(r, target, result) for r in rows if r.uid not in matched]
    return result


def _matches(rows: Sequence[ComponentRecord], target: Target) -> dict[str, ComponentRecord]:
    """The row of each declared component; one that only changed its id keeps its row, and is not deleted."""
    by_identity = {(r.type, DeclaredIdentity(r.place, r.name, r.parent, r.realm_name)): r for r in rows}
    found: dict[str, ComponentRecord] = {}
    for component in target.declaration.components:
        record = by_identity.pop((component.type, target.identities[component.id]), None)
        if record is not None:
            found[component.id] = record
    matched = {record.uid for record in found.values()}
    by_id = {r.component_id: r for r in rows if r.uid not in matched}
    for component in target.declaration.components:
        if component.id not in found and component.id in by_id:
            found[component.id] = by_id[component.id]
    return found


def _type_changed(component: ComponentDeclaration, record: ComponentRecord) -> InputError:
    return InputError(
        f"components[{component.id}].type",
        f"is {component.type!r}, but {record.resource_id or record.name!r} of type {record.type!r} stands under this "
        "id: declare the new one under another id",
    )


def _declared_twice(declared: Sequence[ComponentRecord]) -> Iterator[InputError]:
    """Two names may stand for one realm: only here it shows that two components speak of one resource (O16)."""
    first: dict[str, ComponentRecord] = {}
    for record in declared:
        other = first.setdefault(record.identity_key or record.uid, record)
        if other is not record and other.realm_name != record.realm_name:
            yield InputError(
                f"components[{record.component_id}]",
                f"speaks of the same resource as components[{other.component_id}], because "
                f"{called(other.realm_name)!r} and {called(record.realm_name)!r} are both {record.realm!r}: "
                "declare it once",
            )


def _new(component: ComponentDeclaration, position: int, target: Target) -> ComponentRecord:
    identity = target.identities[component.id]
    record = ComponentRecord(
        uid=new_id(),
        live_system_id=target.declaration.id,
        component_id=component.id,
        position=position,
        type=component.type,
        provider=component.provider,
        environment=target.declaration.environment,
        declaration=component.to_json(),
        generation=target.generation,
        place=identity.place,
        name=identity.name,
        parent=identity.parent,
        declared_place=identity.place,
        declared_name=identity.name,
        declared_parent=identity.parent,
        realm_name=identity.realm,
        declared_realm_name=identity.realm,
        last_updated=target.now,
    )
    _settle(record, target)
    return record


def _settle(record: ComponentRecord, target: Target) -> None:
    realm = target.realms.get((record.environment, record.provider, record.realm_name))
    if realm is not None:
        record.settle_in(realm)
    else:
        record.unsettle()
        host = host_of(record.realm_name)
        if host is not None:
            record.waits_for = [host.component_id]
            record.message = waits_for(record.waits_for)


def _redeclared(
    old: ComponentRecord, component: ComponentDeclaration, position: int, target: Target, result: Merge
) -> ComponentRecord:
    identity = target.identities[component.id]
    record = replace(
        old,
        component_id=component.id,
        position=position,
        type=component.type,
        provider=component.provider,
        environment=target.declaration.environment,
        declaration=component.to_json(),
        generation=target.generation,
        declared_place=identity.place,
        declared_name=identity.name,
        declared_parent=identity.parent,
        declared_realm_name=identity.realm,
        deleting=False,
        bound=None,
        left_dependents=None,
        last_updated=target.now,
    )
    record.begin_anew()
    _void_request(record, target, result)
    mark_outdated(record)
    if not record.established:
        record.adopt_declared_identity()
        _settle(record, target)
        if old.scope_key is not None and record.identity_key != old.identity_key:
            record.uid = new_id()
            result.replaced[record.uid] = old
    elif record.realm == target.realms.get((record.environment, record.provider, identity.realm)):
        record.realm_name = identity.realm  # another name for where it is
    return record


def _removed(old: ComponentRecord, target: Target, result: Merge) -> ComponentRecord:
    record = replace(
        old,
        generation=target.generation,
        deleting=True,
        bound=old.bound if old.deleting else _bound(old),
        last_updated=target.now,
    )
    record.begin_anew()
    mark_outdated(record)
    _void_request(record, target, result)
    return record


def mark_outdated(record: ComponentRecord) -> None:
    """Distinguish what was observed of an older generation from what this one comes to (C8).

    The agent publishes the new outcome then, even if it is the same failure again.
    """
    record.stuck = False
    if record.status in (Status.FAILED.value, Status.MISSING.value):
        record.message = NOT_RECONCILED + record.message.removeprefix(NOT_RECONCILED)


def _bound(record: ComponentRecord) -> Json | None:
    """The one resource that the deletion may delete: the published one, or what an open creation has made (O19)."""
    if record.intent is not None:
        made = record.intent.get("resourceId")
        return None if made is None else {"resourceId": made}
    return None if record.resource_id is None else {"resourceId": record.resource_id, "incarnation": record.incarnation}


def _void_request(record: ComponentRecord, target: Target, result: Merge) -> None:
    """A Force Push is good for one generation (G10); a glass to be broken stays to be broken (G13)."""
    if record.request is None:
        return
    if record.request["kind"] == RequestKind.BREAK.value:
        record.request = {**record.request, "generation": target.generation}
    else:
        result.voided.append((record, RequestKind(record.request["kind"])))
        record.request = None


def remove_all(rows: Sequence[ComponentRecord], generation: int, now: datetime) -> Merge:
    """What becomes of the components when their LiveSystem is deleted."""
    result = Merge()
    nothing = LiveSystemDeclaration(id=rows[0].live_system_id if rows else "")
    target = Target(nothing, {}, {}, generation, now)
    result.removed = [_removed(record, target, result) for record in rows]
    return result
