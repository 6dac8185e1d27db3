"""What is stale: not read for two cycles (C11). Everybody who lists, filters or counts asks here.

    component_is_stale()      condition on ``components``: its scope is stale, or it was left out when that was read
    live_system_is_stale()    condition on ``live_systems``: any of its components is
    scope_is_stale(column)    condition on a column that holds keys of scopes
    of_live_systems(tx, ids)  how many components of each are stale, and the oldest of their last reads
    reads(tx, scope_keys)     when scopes, and components in them, were last read

All conditions start from the few rows that are marked (partial indexes), whatever the number of components. Who marks
them is ``unread_scopes``, from time to time: a cycle without change writes nothing (S20).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Boolean, ColumnElement, Select, and_, func, literal_column, not_, or_, select, text, union

from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import among
from fractal_cloud.control.store.records import Json, iso
from fractal_cloud.control.store.schema import (
    STALE,
    agents,
    components,
    live_system_scopes,
    live_systems,
    scope_reads,
    scopes,
)

# Spelled as the partial index is: SQLite would not use it for ``unread = 1``.
_UNREAD: Final = literal_column("components.unread", Boolean)


def stale_scopes() -> Select[tuple[str]]:
    """The keys of all scopes that are stale."""
    return select(scope_reads.c.scope_key).where(text(f"scope_reads.{STALE}"))


def scope_is_stale(key: ColumnElement[Any]) -> ColumnElement[bool]:
    """Whether the scope is stale whose key a column holds."""
    return key.in_(stale_scopes())


def component_is_stale() -> ColumnElement[bool]:
    """Whether a row of ``components`` is stale."""
    return or_(_UNREAD, scope_is_stale(components.c.scope_key))


def live_system_is_stale() -> ColumnElement[bool]:
    """Whether a row of ``live_systems`` is stale: one of its components is."""
    kept = live_system_scopes.c
    in_stale_scopes = select(kept.live_system_id).where(scope_is_stale(kept.scope_key))
    return live_systems.c.id.in_(union(in_stale_scopes, select(components.c.live_system_id).where(_UNREAD)))


def count(tx: Tx) -> int:
    """How many components are stale."""
    kept = live_system_scopes.c
    in_stale_scopes = select(func.coalesce(func.sum(kept.components), 0)).where(scope_is_stale(kept.scope_key))
    beside = select(func.count()).select_from(components).where(_is_unread_beside())
    return int(sum(tx.connection.execute(query).scalar_one() for query in (in_stale_scopes, beside)))


def _is_unread_beside() -> ColumnElement[bool]:
    """Whether a component is stale though its scope is not, or in none."""
    key = components.c.scope_key
    return and_(_UNREAD, or_(key.is_(None), not_(scope_is_stale(key))))


# --- when something was last read


@dataclass(frozen=True, slots=True)
class ScopeRead:
    """When a scope was last read, and which parts of it were read earlier, by type or uid; whether it is stale."""

    last_read: datetime | None = None
    parts: Mapping[str, datetime | None] = field(default_factory=dict)
    is_stale: bool = False

    def of(self, component_type: str, uid: str) -> datetime | None:
        """When a component in it was last read."""
        for part in (uid, component_type):
            if part in self.parts:
                return self.parts[part]
        return self.last_read


NEVER_READ: Final = ScopeRead()


def reads(tx: Tx, scope_keys: Iterable[str]) -> dict[str, ScopeRead]:
    """The last reads of scopes: by their holder's word, or what was kept of the holder before."""
    query = (
        select(scopes.c.key, scopes.c.holder, scope_reads.c.read_at, scope_reads.c.unread, scope_reads.c.stale_since)
        .outerjoin(scope_reads, scope_reads.c.scope_key == scopes.c.key)
        .where(among(scopes.c.key, set(scope_keys)))
    )
    rows = tx.connection.execute(query).all()
    holders = said_by(tx, {row.holder for row in rows if row.holder is not None})
    return {row.key: read_of(row, holders.get(row.holder or "")) for row in rows}


@dataclass(frozen=True, slots=True)
class Said:
    """What an agent said of its scopes in its last heartbeat."""

    cycle_seconds: float
    last_seen: datetime
    deadline: datetime
    read_at: Mapping[str, str]
    cycles: Mapping[str, Json]

    def read(self, key: str) -> datetime | None:
        """When it last read a scope."""
        at = self.read_at.get(key)
        return None if at is None else datetime.fromisoformat(at)

    @property
    def newest_read(self) -> datetime | None:
        """When it last read any scope."""
        return max(map(datetime.fromisoformat, self.read_at.values()), default=None)

    def unread(self, key: str) -> Mapping[str, Json]:
        """The parts of a scope that its last read did not show."""
        found: Mapping[str, Json] = self.cycles.get(key, {}).get("unread", {})
        return found


def said_by(tx: Tx, agent_ids: Collection[str] | None = None) -> dict[str, Said]:
    """What agents said last: these, or all of them."""
    c = agents.c
    query = select(c.id, c.cycle_seconds, c.last_seen, c.deadline, c.read_at, c.cycles)
    if agent_ids is not None:
        query = query.where(among(c.id, agent_ids))
    found = tx.connection.execute(query)
    return {row.id: Said(row.cycle_seconds, row.last_seen, row.deadline, row.read_at, row.cycles) for row in found}


def read_of(row: Any, said: Said | None) -> ScopeRead:
    """The last read of a scope, from a row with its key and what is kept of it, and what its holder said."""
    own = said.read(row.key) if said is not None else None
    kept = row.unread or {}
    if own is None:
        return ScopeRead(row.read_at, _times(kept, None), row.stale_since is not None)
    unread = said.unread(row.key) if said is not None else {}
    return ScopeRead(own, _times(unread, row.read_at, kept), row.stale_since is not None)


def _times(
    unread: Mapping[str, Json], before: datetime | None, kept: Mapping[str, Json] | None = None
) -> dict[str, datetime | None]:
    """When parts were last read; what a holder never read itself, the one before may have."""
    found: dict[str, datetime | None] = {}
    for part, said in unread.items():
        last = said.get("lastRead") or (kept or {}).get(part, {}).get("lastRead")
        known_before = before if not kept or part not in kept else None
        found[part] = datetime.fromisoformat(last) if last else known_before
    return found


def unread_to_keep(said: Said, key: str, before: datetime | None, kept: Mapping[str, Json]) -> Json:
    """What is kept of the unread parts of a scope when its holder loses it."""
    unread = said.unread(key)
    times = _times(unread, before, kept)
    return {
        part: {**one, "lastRead": iso(at) if (at := times[part]) is not None else None} for part, one in unread.items()
    }


# --- LiveSystems


@dataclass(frozen=True, slots=True)
class LiveSystemStaleness:
    """How many components of a LiveSystem are stale, and the oldest of the last reads of all of them, if any."""

    stale_components: int = 0
    last_read: datetime | None = None

    def described(self) -> Json:
        """The fields that the API shows of a LiveSystem."""
        return {
            "stale": self.stale_components > 0,
            "staleComponents": self.stale_components,
            "lastRead": self.last_read,
        }


def of_live_systems(tx: Tx, ids: Collection[str]) -> dict[str, LiveSystemStaleness]:
    """How stale some LiveSystems are."""
    c, kept = components.c, live_system_scopes.c
    rows = tx.connection.execute(select(live_system_scopes).where(among(kept.live_system_id, ids))).all()
    unread = select(c.live_system_id, c.scope_key, c.type, c.uid).where(among(c.live_system_id, ids), _UNREAD)
    parts = tx.connection.execute(unread).all()
    read = reads(tx, {row.scope_key for row in rows})
    stale = dict.fromkeys(ids, 0)
    times: dict[str, list[datetime | None]] = {one: [] for one in ids}
    for row in rows:
        here = read.get(row.scope_key, NEVER_READ)
        stale[row.live_system_id] += row.components if here.is_stale else 0
        times[row.live_system_id].append(here.last_read)
    for part in parts:
        here = read.get(part.scope_key or "", NEVER_READ)
        stale[part.live_system_id] += not here.is_stale
        times[part.live_system_id].append(here.of(part.type, part.uid))
    return {
        one: LiveSystemStaleness(stale[one], min((at for at in times[one] if at is not None), default=None))
        for one in ids
    }


__all__ = [
    "NEVER_READ",
    "LiveSystemStaleness",
    "Said",
    "ScopeRead",
    "component_is_stale",
    "count",
    "live_system_is_stale",
    "of_live_systems",
    "read_of",
    "reads",
    "said_by",
    "scope_is_stale",
    "stale_scopes",
    "unread_to_keep",
]
