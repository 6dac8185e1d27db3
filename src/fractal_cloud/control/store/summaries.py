"""What is kept of every LiveSystem about its components, so that no list has to count a million of them.

Whoever changes components holds their LiveSystem (``placement.lock_live_systems``), so what is kept changes in the same
transaction, and nobody else changes it meanwhile. ``records`` notes which LiveSystems are to be counted again, which is
done once, when the transaction ends. Reports, of which there are many, say instead what changed (``Adjustment``): they
write one row more, and count nothing unless they must. What is stale depends on the time, and is not kept.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, delete, func, or_, select, update

from fractal_cloud.control.store.driver import PreparedStatement, among, binary, chunks, update_rows, upsert
from fractal_cloud.control.store.schema import components, live_system_scopes, live_systems
from fractal_cloud.model.status import Status, gravest

if TYPE_CHECKING:
    from fractal_cloud.control.store.records import ComponentRecord

Json = dict[str, Any]

COUNTED: Final = frozenset(
    {
        *("status", "override", "overdue", "output_fields", "owner", "last_updated"),
        *("type", "provider", "realm", "realm_name", "scope_key"),
    }
)
"""The columns of a component that a summary depends on."""


def status_of(counts: Mapping[str, int], *, deleting: bool) -> str:
    """The one status that stands for a LiveSystem."""
    statuses = [Status(name) for name, many in counts.items() if many]
    return gravest([*statuses, Status.DELETING] if deleting else statuses).value


@dataclass(slots=True)
class Kept:
    """What is kept of one LiveSystem and may change with a report; ``oldest``: since when its oldest override is."""

    id: str
    deleting: bool
    status: str
    counts: dict[str, int]
    overrides: int
    overdue: int
    drifted: int
    oldest_override: datetime | None
    last_updated: datetime

    def row(self) -> Json:
        """The columns to write."""
        return {
            "id": self.id,
            "status": status_of(self.counts, deleting=self.deleting),
            "counts": {name: many for name, many in self.counts.items() if many},
            "overrides": self.overrides,
            "overdue": self.overdue,
            "drifted": self.drifted,
            "oldest_override": self.oldest_override,
            "last_updated": self.last_updated,
        }


KEPT: Final = tuple(live_systems.c[name] for name in Kept.__dataclass_fields__)
"""The columns of ``Kept``, in its order."""


def since_of(override: Json | None) -> datetime | None:
    """Since when a component is in override."""
    return None if override is None else datetime.fromisoformat(override["since"])


def has_drift(output_fields: Mapping[str, Any]) -> bool:
    """Whether something differs from what is declared."""
    return bool(output_fields.get("drift"))


def _foreign_owner(record: ComponentRecord) -> str | None:
    return None if record.owner == record.live_system_id else record.owner


# --- changed by reports


@dataclass(slots=True)
class Adjustment:
    """What reports change of what is kept; ``recount``: the LiveSystems for which only counting shows it."""

    kept: Mapping[str, Kept]
    changed: set[str] = field(default_factory=set)
    counted: set[str] = field(default_factory=set)
    recount: set[str] = field(default_factory=set)

    def add(self, before: ComponentRecord, after: ComponentRecord) -> None:
        """Take in one component that changed."""
        kept = self.kept[before.live_system_id]
        self.changed.add(kept.id)
        kept.last_updated = max(kept.last_updated, after.last_updated)
        if before.status != after.status:
            self.counted.add(kept.id)
            kept.counts = {**kept.counts, before.status: kept.counts.get(before.status, 0) - 1}
            kept.counts[after.status] = kept.counts.get(after.status, 0) + 1
        if before.overdue != after.overdue:
            self.counted.add(kept.id)
            kept.overdue += after.overdue - before.overdue
        drift = has_drift(after.output_fields) - has_drift(before.output_fields)
        if drift:
            self.counted.add(kept.id)
            kept.drifted += drift
        if before.override != after.override:
            self._override(kept, since_of(before.override), since_of(after.override))
        if _foreign_owner(before) != _foreign_owner(after):
            self.recount.add(kept.id)

    def _override(self, kept: Kept, before: datetime | None, after: datetime | None) -> None:
        if before == after:
            return
        self.counted.add(kept.id)
        kept.overrides += (after is not None) - (before is not None)
        if before is not None and (kept.oldest_override is None or before <= kept.oldest_override):
            self.recount.add(kept.id)  # another one is the oldest now, or none
        elif after is not None:
            kept.oldest_override = after if kept.oldest_override is None else min(kept.oldest_override, after)

    def write(self, connection: Connection) -> None:
        """Write what changed, but for what is counted again anyway."""
        counted = self.counted - self.recount
        only_time = self.changed - counted - self.recount
        update_rows(connection, live_systems, [self.kept[name].row() for name in sorted(counted)])
        if only_time:
            newest = max(self.kept[name].last_updated for name in only_time)  # of one transaction: all bear its time
            _TOUCH.run(connection, {"ids": only_time, "newest": newest})


_TOUCH: Final = PreparedStatement(
    update(live_systems).where(among(live_systems.c.id, "ids")).values(last_updated=bindparam("newest"))
)


# --- counted


@dataclass(slots=True)
class _Counted:
    counts: Counter[str] = field(default_factory=Counter)
    overrides: int = 0
    overdue: int = 0
    drifted: int = 0
    oldest: str | None = None
    types: set[str] = field(default_factory=set)
    providers: set[str] = field(default_factory=set)
    realms: set[str] = field(default_factory=set)
    owners: set[str] = field(default_factory=set)
    scopes: Counter[str] = field(default_factory=Counter)

    def add(self, row: Any) -> None:
        self.counts[row.status] += row.many
        self.overdue += row.overdue_many
        self.drifted += row.drifted_many
        self.overrides += row.overridden_many
        if row.oldest is not None:
            self.oldest = row.oldest if self.oldest is None else min(self.oldest, row.oldest)
        self.types.add(row.type)
        self.providers.add(row.provider)
        self.realms |= {row.realm or "", row.realm_name} - {""}
        if row.owner is not None and row.owner != row.live_system_id:
            self.owners.add(row.owner)
        if row.scope_key is not None:
            self.scopes[row.scope_key] += row.many


def since_text() -> ColumnElement[str]:
    """Since when a component is in override, as a text whose order is that of the times."""
    since = components.c.override["since"].as_string()
    return binary(func.replace(since, "Z", ""))


def _is_drifted() -> ColumnElement[bool]:
    drift = components.c.output_fields["drift"].as_string()
    return and_(drift.is_not(None), drift != "{}")


def _many(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


_c = components.c
_GROUPS: Final = (
    *(_c.live_system_id, _c.status, _c.type, _c.provider, _c.realm, _c.realm_name, _c.owner, _c.scope_key),
)


def _count(connection: Connection, ids: Iterable[str]) -> dict[str, _Counted]:
    """Count the components of LiveSystems."""
    found: dict[str, _Counted] = defaultdict(_Counted)
    for some in chunks(ids):
        query = (
            select(
                *_GROUPS,
                func.count().label("many"),
                _many(_c.overdue).label("overdue_many"),
                _many(_is_drifted()).label("drifted_many"),
                _many(_c.override.is_not(None)).label("overridden_many"),
                func.min(since_text()).label("oldest"),
            )
            .where(_c.live_system_id.in_(some))
            .group_by(*_GROUPS)
        )
        for row in connection.execute(query):
            found[row.live_system_id].add(row)
    return found


def _listed(values: Iterable[str]) -> str:
    """Values with a line break before and after each."""
    lines = sorted(values)
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def _row(live_system: Any, counted: _Counted) -> Json:
    """What is kept of a LiveSystem, but for the time, by what was counted."""
    oldest = None if counted.oldest is None else datetime.fromisoformat(counted.oldest).replace(tzinfo=UTC)
    return {
        "id": live_system.id,
        "status": status_of(counted.counts, deleting=live_system.deleting),
        "counts": dict(counted.counts),
        "overrides": counted.overrides,
        "overdue": counted.overdue,
        "drifted": counted.drifted,
        "oldest_override": oldest,
        "types": _listed(counted.types),
        "providers": _listed(counted.providers),
        "realms": _listed(counted.realms),
        "owners": _listed(counted.owners),
    }


def recount(connection: Connection, ids: Collection[str], now: datetime) -> None:
    """Count the components of LiveSystems that changed, which are held, and keep what was counted."""
    live = _live_systems(connection, ids)
    if not live:
        return
    counted = _count(connection, live)
    rows = [{**_row(row, counted[name]), "last_updated": max(now, row.last_updated)} for name, row in live.items()]
    update_rows(connection, live_systems, rows)
    _keep_scopes(connection, {name: counted[name].scopes for name in live})


def _live_systems(connection: Connection, ids: Iterable[str]) -> dict[str, Any]:
    return {
        row.id: row
        for some in chunks(sorted(ids))
        for row in connection.execute(
            select(live_systems).where(live_systems.c.id.in_(some)).order_by(live_systems.c.id)
        )
    }


def _keep_scopes(connection: Connection, counted: Mapping[str, Mapping[str, int]]) -> None:
    c = live_system_scopes.c
    kept = _kept_scopes(connection, counted)
    gone = [(name, key) for name, key in kept if key not in counted[name]]
    for some in (gone[start : start + 100] for start in range(0, len(gone), 100)):
        these = or_(*(and_(c.live_system_id == name, c.scope_key == key) for name, key in some))
        connection.execute(delete(live_system_scopes).where(these))
    rows = [
        {"live_system_id": name, "scope_key": key, "components": many}
        for name, scopes in counted.items()
        for key, many in scopes.items()
        if kept.get((name, key)) != many
    ]
    upsert(connection, live_system_scopes, rows)


def _kept_scopes(connection: Connection, ids: Iterable[str]) -> dict[tuple[str, str], int]:
    c = live_system_scopes.c
    return {
        (row.live_system_id, row.scope_key): row.components
        for some in chunks(ids)
        for row in connection.execute(select(live_system_scopes).where(c.live_system_id.in_(some)))
    }


# --- checked


def differences(connection: Connection) -> list[str]:
    """Where what is kept is not what is counted now; empty, unless something here is wrong. For tests."""
    live = {row.id: row for row in connection.execute(select(live_systems).order_by(live_systems.c.id))}
    counted = _count(connection, live)
    found: list[str] = []
    for name, row in live.items():
        for column, value in _row(row, counted[name]).items():
            if getattr(row, column) != value:
                found.append(f"{name}: {column} is kept as {getattr(row, column)!r}, and counted as {value!r}")
    kept = _kept_scopes(connection, live)
    scopes = {(name, key): many for name in live for key, many in counted[name].scopes.items()}
    if kept != scopes:
        found.append(f"scopes are kept as {kept}, and counted as {scopes}")
    newest = select(_c.live_system_id, func.max(_c.last_updated).label("at")).group_by(_c.live_system_id)
    late = [row.live_system_id for row in connection.execute(newest) if live[row.live_system_id].last_updated < row.at]
    return [*found, *(f"{name}: last_updated is kept as older than that of a component" for name in late)]


__all__: Sequence[str] = (
    "COUNTED",
    "KEPT",
    "Adjustment",
    "Kept",
    "differences",
    "has_drift",
    "recount",
    "since_of",
    "since_text",
    "status_of",
)
