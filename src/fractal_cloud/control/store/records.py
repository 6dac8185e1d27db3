"""A component's row as a typed value.

Rows are read and written in bulk, so the JSON columns stay plain: they were validated where they came in.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final
from uuid import uuid4

from sqlalchemy import Select, delete, select

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import among, insert_rows, update_rows
from fractal_cloud.control.store.schema import components
from fractal_cloud.control.store.summaries import COUNTED
from fractal_cloud.model.identity import Identity, Scope
from fractal_cloud.model.observed import BEGUN_ANEW, ObservedColumns

Json = dict[str, Any]


def new_id() -> str:
    """An id nobody has used."""
    return uuid4().hex


def iso(moment: datetime) -> str:
    """A moment in UTC as it stands in JSON."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass
class _DesiredColumns:
    """What a LiveSystem declares of a component, and where the control plane places it."""

    __slots__ = ()

    uid: str
    live_system_id: str
    component_id: str
    type: str
    provider: str
    environment: str
    declaration: Json
    generation: int
    place: str
    name: str
    parent: str
    declared_place: str
    declared_name: str
    declared_parent: str
    last_updated: datetime
    realm_name: str = ""
    declared_realm_name: str = ""
    position: int = 0
    dealt_generation: int = 0
    deleting: bool = False
    bound: Json | None = None
    left_dependents: list[str] | None = None
    request: Json | None = None
    realm: str | None = None
    scope_key: str | None = None
    identity_key: str | None = None
    overdue: bool = False
    unread: bool = False
    work_version: int = 0
    declared_version: int = 0


@dataclass(slots=True)
class ComponentRecord(ObservedColumns, _DesiredColumns):
    """One row of ``components``; its columns are explained in the schema, and those observed in their definition."""

    def begin_anew(self) -> None:
        """Forget the attempts that are counted: it was declared again, or an operator wants it tried now."""
        for name in BEGUN_ANEW:
            setattr(self, name, None)

    def declared_in(self, version: int) -> None:
        """Its desired half changed in that version of its scope's work."""
        self.work_version = self.declared_version = version

    def settle_in(self, realm: str) -> None:
        """Give it the scope and the key that follow from its identity in that realm."""
        scope = Scope(self.provider, realm, self.place)
        self.realm = realm
        self.scope_key = scope.key
        self.identity_key = Identity(self.type, scope, self.name, self.parent).key

    def unsettle(self) -> None:
        """Nobody has said yet which realm is meant: it is in no scope, and nobody reconciles it."""
        self.realm = self.scope_key = self.identity_key = None

    def adopt_declared_identity(self) -> None:
        """Look for it from now on where its declaration says."""
        self.place, self.name, self.parent = self.declared_place, self.declared_name, self.declared_parent
        self.realm_name = self.declared_realm_name

    @property
    def is_where_declared(self) -> bool:
        """Whether it is looked for where its declaration says."""
        return (self.place, self.name, self.parent, self.realm_name) == (
            self.declared_place,
            self.declared_name,
            self.declared_parent,
            self.declared_realm_name,
        )

    def references(self) -> set[tuple[str, str]]:
        """The components it refers to, each with the kind of reference."""
        found = {(target, "dependency") for target in self.declaration.get("dependencies", ())}
        return found | {(link["target"], "link") for link in self.declaration.get("links", ())}

    def copy(self) -> ComponentRecord:
        """Another one like it; ``dataclasses.replace`` takes four times as long for so many fields."""
        return ComponentRecord(*_values(self))

    def values(self) -> Json:
        """The row to write."""
        return dict(zip(_NAMES, _values(self), strict=True))


_NAMES: Final = tuple(item.name for item in fields(ComponentRecord))
_values: Final = operator.attrgetter(*_NAMES)
_COLUMNS: Final = tuple(components.c[name] for name in _NAMES)


def select_records() -> Select[Any]:
    """The start of every query for records: add a WHERE."""
    return select(*_COLUMNS)


def to_record(row: Sequence[Any]) -> ComponentRecord:
    """The record a row begins with; further columns are the caller's."""
    return ComponentRecord(*row[: len(_NAMES)])


def records(tx: Tx, statement: Select[Any]) -> list[ComponentRecord]:
    """The records a query finds."""
    return [to_record(row) for row in tx.connection.execute(statement)]


def records_of(tx: Tx, live_system_id: str) -> list[ComponentRecord]:
    """All components of a LiveSystem, in the order in which they are declared."""
    table = components.c
    query = select_records().where(table.live_system_id == live_system_id)
    return records(tx, query.order_by(table.position, table.component_id))


def insert_records(tx: Tx, new: Sequence[ComponentRecord]) -> None:
    """Write new rows."""
    if new:
        tx.recount.update(record.live_system_id for record in new)
        insert_rows(tx.connection, components, [record.values() for record in new])


def update_records(tx: Tx, changed: Sequence[ComponentRecord], names: Sequence[str] = _NAMES) -> None:
    """Overwrite rows (only the columns named), found by their uid; their LiveSystems, which are held, are counted."""
    if not COUNTED.isdisjoint(names):
        tx.recount.update(record.live_system_id for record in changed)
    write_records(tx, changed, names)


def write_records(tx: Tx, changed: Sequence[ComponentRecord], names: Sequence[str]) -> None:
    """As ``update_records``, by somebody who keeps the summaries of their LiveSystems right."""
    wanted = ("uid", *(name for name in names if name != "uid"))
    values = operator.attrgetter(*wanted)
    update_rows(tx.connection, components, [dict(zip(wanted, values(record), strict=True)) for record in changed])


def delete_records(tx: Tx, gone: Iterable[ComponentRecord]) -> None:
    """Delete rows, found by their uid."""
    ended = list(gone)
    tx.recount.update(record.live_system_id for record in ended)
    tx.connection.execute(_DELETE, {"uids": [record.uid for record in ended]})


_DELETE: Final = delete(components).where(among(components.c.uid, "uids"))
