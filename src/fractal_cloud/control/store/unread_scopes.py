"""Marks what nobody has read for two cycles, and takes the mark away once somebody has (C11).

Time itself makes things stale, so housekeeping marks them; nothing is written while everything is read. What a holder
said of its reads is kept when it loses a scope, so that the last read of it stays known whoever comes next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, delete, func, not_, or_, select, text, update

from fractal_cloud.control.store import staleness
from fractal_cloud.control.store.database import Database, PendingEvent, Tx
from fractal_cloud.control.store.driver import among, upsert
from fractal_cloud.control.store.periodic import when_due
from fractal_cloud.control.store.records import Json, iso
from fractal_cloud.control.store.schema import STALE, UNREAD, components, live_systems, scope_reads, scopes
from fractal_cloud.control.store.staleness import Said
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.identity import Scope
from fractal_cloud.rules.staleness import CYCLES, Holder, is_stale

BY: Final = "control plane"
Parts = ColumnElement[bool]
"""Components that are to be marked, or not any more: a condition on their rows."""


# --- when a holder loses a scope


def keep_reads(tx: Tx, keys: Collection[str]) -> None:
    """Keep what the holders of these scopes said of their reads: they are about to lose them."""
    if not keys:
        return
    rows = tx.connection.execute(_scopes().where(scopes.c.holder.is_not(None), among(scopes.c.key, keys))).all()
    said = staleness.said_by(tx, {row.holder for row in rows})
    kept = [
        {
            "scope_key": row.key,
            "read_at": at,
            "unread": staleness.unread_to_keep(said[row.holder], row.key, row.read_at, row.unread or {}),
        }
        for row in rows
        if row.holder in said and (at := said[row.holder].read(row.key)) is not None
    ]
    upsert(tx.connection, scope_reads, kept)


def forget_reads(tx: Tx, keys: Select[tuple[str]]) -> None:
    """Forget the reads of scopes that have no components: whatever comes there next was never read."""
    tx.connection.execute(delete(scope_reads).where(scope_reads.c.scope_key.in_(keys)))


def _scopes() -> Select[Any]:
    c = scope_reads.c
    return select(scopes.c.key, scopes.c.holder, c.read_at, c.unread, c.waiting_since, c.stale_since).outerjoin(
        scope_reads, c.scope_key == scopes.c.key
    )


# --- scopes that fall silent, and are read again


@dataclass(frozen=True, slots=True)
class _Unread:
    """A scope that nobody reads: who held it, and its last read. ``waits_since``: where it was never read."""

    key: str
    holder: str | None
    said: Said | None
    last_read: datetime | None
    waits_since: datetime | None
    is_marked: bool


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be marked or unmarked among the scopes.

    ``empty``: nothing is in them any more; ``waiting``: nobody has read them yet, and their time begins now.
    """

    unread: list[_Unread]
    read: list[str]
    empty: list[str]
    waiting: list[str]

    def __bool__(self) -> bool:
        return bool(self.unread or self.read or self.empty or self.waiting)


def mark_unread(database: Database, cycle: timedelta) -> None:
    """Mark scopes that nobody has read for two cycles, each with an event; and those parts that stayed unread."""
    when_due(database, lambda tx: _judged(tx, cycle), lambda tx: _mark(tx, _judged(tx, cycle)))
    when_due(database, lambda tx: _unmarked_parts(tx, cycle), lambda tx: _mark_parts(tx, _unmarked_parts(tx, cycle)))


def end_read(database: Database) -> None:
    """Take the mark from scopes and parts of them that were read since."""
    when_due(database, _read_again, lambda tx: _end(tx, _read_again(tx)))
    when_due(database, _read_parts, lambda tx: _end_parts(tx, _read_parts(tx)))


def end_read_by(tx: Tx, agent_id: str) -> None:
    """Take the mark from the scopes that an agent holds and has read."""
    _end(tx, _read_again(tx, agent_id))


def _judged(tx: Tx, cycle: timedelta) -> _Found:
    said = staleness.said_by(tx)
    found = _Found([], [], [], [])
    silent = []
    for row in tx.connection.execute(_scopes()):
        one = _Unread(
            *(row.key, row.holder, said.get(row.holder or "")),
            *(staleness.read_of(row, said.get(row.holder or "")).last_read, row.waiting_since),
            is_marked=row.stale_since is not None,
        )
        if _is_silent(one, tx.now, cycle):
            silent.append(one)
    filled = _filled(tx, [one.key for one in silent])
    for one in silent:
        if one.key not in filled:
            if one.is_marked or one.last_read is not None or one.waits_since is not None:
                found.empty.append(one.key)
        elif one.last_read is None and one.waits_since is None:
            found.waiting.append(one.key)
        elif not one.is_marked and (one.last_read is not None or _is_over(one, tx.now, cycle)):
            found.unread.append(one)
    return found


def _is_silent(one: _Unread, now: datetime, cycle: timedelta) -> bool:
    if one.last_read is None:
        return True
    said = one.said
    if said is None:
        return is_stale(one.last_read, now, cycle)
    holder = Holder(timedelta(seconds=said.cycle_seconds), said.last_seen)
    # What was read is still being reconciled: every write reads again what it is about.
    is_writing = said.cycles.get(one.key, {}).get("isWriting", False)
    return is_stale(max(one.last_read, said.last_seen) if is_writing else one.last_read, now, cycle, holder)


def _is_over(one: _Unread, now: datetime, cycle: timedelta) -> bool:
    """Whether a scope that nobody has read yet had its two cycles."""
    own = cycle if one.said is None else timedelta(seconds=one.said.cycle_seconds)
    return one.waits_since is not None and now - one.waits_since > CYCLES * own


def _filled(tx: Tx, keys: Collection[str]) -> set[str]:
    """Those of the scopes in which there are components."""
    if not keys:
        return set()
    there = select(components.c.uid).where(components.c.scope_key == scopes.c.key).exists()
    return set(tx.connection.execute(select(scopes.c.key).where(among(scopes.c.key, keys), there)).scalars())


def _mark(tx: Tx, found: _Found) -> None:
    upsert(tx.connection, scope_reads, [{"scope_key": key, "waiting_since": tx.now} for key in found.waiting])
    upsert(tx.connection, scope_reads, [{"scope_key": one.key, "stale_since": tx.now} for one in found.unread])
    tx.connection.execute(delete(scope_reads).where(among(scope_reads.c.scope_key, found.empty)))
    tx.record(*_events_of_unread(tx, found.unread))


def _events_of_unread(tx: Tx, unread: Collection[_Unread]) -> Iterator[PendingEvent]:
    inside = _inside(tx, [one.key for one in unread])
    for one in unread:
        after = {**_facts(one.key, inside[one.key]), "holder": one.holder, "lastRead": _said(one.last_read)}
        yield PendingEvent("", EventKind.SCOPE_UNREAD, BY, message=_message(one, inside[one.key]), after=after)


def _message(one: _Unread, inside: _Inside) -> str:
    """Cause, and what to do about it."""
    since = "has no read reported" if one.last_read is None else f"was last read at {iso(one.last_read)}"
    what = f"scope {one.key!r} {since}: its {inside.components} components show what was known then"
    if one.said is None or one.holder is None:
        return f"{what}; no agent holds it: start one that reaches it, or see `fractal agents` for those that are dead"
    return f"{what}; agent {one.holder!r} holds it, last heard of at {iso(one.said.last_seen)}: see its log"


@dataclass(frozen=True, slots=True)
class _Inside:
    """What is in a scope: how many components, and of which environments."""

    components: int
    environments: list[str]


def _inside(tx: Tx, keys: Collection[str]) -> dict[str, _Inside]:
    c = components.c
    query = select(c.scope_key, c.environment, func.count().label("many")).where(among(c.scope_key, keys))
    found: dict[str, dict[str, int]] = {key: {} for key in keys}
    for row in tx.connection.execute(query.group_by(c.scope_key, c.environment)) if keys else ():
        found[row.scope_key][row.environment] = row.many
    return {key: _Inside(sum(many.values()), sorted(many)) for key, many in found.items()}


def _facts(key: str, inside: _Inside) -> Json:
    scope = Scope.from_key(key)
    return {
        "scope": key,
        "provider": scope.provider,
        "realm": scope.realm,
        "place": scope.place,
        "environments": inside.environments,
        "components": inside.components,
    }


def _said(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


@dataclass(frozen=True, slots=True)
class _ReadAgain:
    """A scope that is marked, and was read since."""

    key: str
    holder: str
    last_read: datetime
    stale_since: datetime


def _read_again(tx: Tx, agent_id: str | None = None) -> list[_ReadAgain]:
    """The scopes that are marked and were read since, of all agents or of one."""
    query = _scopes().where(text(f"scope_reads.{STALE}"), scopes.c.holder.is_not(None))
    if agent_id is not None:
        query = query.where(scopes.c.holder == agent_id)
    rows = tx.connection.execute(query.order_by(scopes.c.key)).all()
    said = staleness.said_by(tx, {row.holder for row in rows}) if rows else {}
    found = []
    for row in rows:
        own = said.get(row.holder)
        at = staleness.read_of(row, own).last_read
        if own is not None and at is not None and not _is_still_silent(row, own, at, tx.now):
            found.append(_ReadAgain(row.key, row.holder, at, row.stale_since))
    return found


def _is_still_silent(row: Any, said: Said, last_read: datetime, now: datetime) -> bool:
    one = _Unread(row.key, row.holder, said, last_read, None, is_marked=True)
    return _is_silent(one, now, timedelta(seconds=said.cycle_seconds))


def _end(tx: Tx, read: Collection[_ReadAgain]) -> None:
    if not read:
        return
    here = update(scope_reads).where(among(scope_reads.c.scope_key, [one.key for one in read]), text(STALE))
    ended = here.values(stale_since=None, waiting_since=None).returning(scope_reads.c.scope_key)
    keys = set(tx.connection.execute(ended).scalars())  # another heartbeat may have ended some of them just now
    inside = _inside(tx, keys)
    for one in read:
        if one.key in keys:
            message = f"scope {one.key!r} is read again, by agent {one.holder!r}"
            before = {"staleSince": iso(one.stale_since)}
            after = {**_facts(one.key, inside[one.key]), "holder": one.holder, "lastRead": iso(one.last_read)}
            tx.record(PendingEvent("", EventKind.SCOPE_READ, BY, message=message, before=before, after=after))


# --- parts of a scope that stay unread: types, single components, and what is in no scope


def _unmarked_parts(tx: Tx, cycle: timedelta) -> list[Parts]:
    """What has stayed unread for two cycles though its scope was read, or is in no scope, and is not marked."""
    found = [*_in_no_scope(tx, cycle), *_in_scopes(tx)]
    return [one for one in found if _first(tx, and_(one, not_(components.c.unread))) is not None]


def _first(tx: Tx, condition: ColumnElement[bool]) -> Any:
    return tx.connection.execute(select(components.c.uid).where(condition).limit(1)).first()


def _in_no_scope(tx: Tx, cycle: timedelta) -> Iterator[Parts]:
    deployed = select(live_systems.c.id).where(live_systems.c.deployed_at < tx.now - CYCLES * cycle)
    yield and_(components.c.scope_key.is_(None), components.c.live_system_id.in_(deployed))


def _in_scopes(tx: Tx) -> Iterator[Parts]:
    said = {agent: one for agent, one in staleness.said_by(tx).items() if any(map(one.unread, one.cycles))}
    if not said:
        return
    for row in tx.connection.execute(_scopes().where(among(scopes.c.holder, said))):
        own = said[row.holder]
        times = staleness.read_of(row, own).parts
        holder = Holder(timedelta(seconds=own.cycle_seconds), own.last_seen)
        overdue = [
            part
            for part, one in own.unread(row.key).items()
            if is_stale(times.get(part) or datetime.fromisoformat(one["since"]), tx.now, holder.cycle, holder)
        ]
        if overdue:
            yield _of_parts(row.key, overdue)


def _of_parts(key: str, parts: Iterable[str]) -> ColumnElement[bool]:
    named = list(parts)
    c = components.c
    return and_(c.scope_key == key, or_(among(c.type, named), among(c.uid, named)))


def _mark_parts(tx: Tx, parts: Collection[Parts]) -> None:
    for one in parts:
        here = update(components).where(one, not_(components.c.unread))
        tx.connection.execute(here.values(unread=True))


def _read_parts(tx: Tx) -> list[Parts]:
    """What is marked, and was read since; what nobody has read since stays marked, whoever holds its scope."""
    c = components.c
    marked = select(c.scope_key).where(text(f"components.{UNREAD}"), c.scope_key.is_not(None)).distinct()
    keys = list(tx.connection.execute(marked).scalars())
    if not keys:
        return []
    rows = tx.connection.execute(_scopes().where(among(scopes.c.key, keys), scopes.c.holder.is_not(None))).all()
    said = staleness.said_by(tx, {row.holder for row in rows})
    found = []
    for row in rows:
        own = said.get(row.holder)
        if own is None or own.read(row.key) is None:
            continue
        condition = and_(text(f"components.{UNREAD}"), c.scope_key == row.key)
        unread = own.unread(row.key)
        if unread:
            condition = and_(condition, not_(_of_parts(row.key, unread)))
        if _first(tx, condition) is not None:
            found.append(condition)
    return found


def _end_parts(tx: Tx, parts: Collection[Parts]) -> None:
    for one in parts:
        tx.connection.execute(update(components).where(one).values(unread=False))


__all__ = ["end_read", "end_read_by", "forget_reads", "keep_reads", "mark_unread"]
