"""What happened, newest first or from a number on; appended by the transactions themselves (C4)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, func, or_, select

from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.driver import among, contains
from fractal_cloud.control.store.records import ComponentRecord, Json
from fractal_cloud.control.store.schema import events, live_system_environments
from fractal_cloud.control.store.visibility import Environments, is_visible
from fractal_cloud.model.event import EventKind


def list_page(
    tx: Tx, live_system_id: str | None, limit: int, before: int | None, sees: Environments = None
) -> list[Json]:
    """Events, newest first, those before the given number; of all LiveSystems, those that somebody may see."""
    query = select(events).order_by(events.c.seq.desc()).limit(limit)
    if live_system_id is not None:
        query = query.where(events.c.live_system_id == live_system_id)
    elif sees is not None:
        query = query.where(is_visible(tx, sees, events.c.live_system_id))
    if before is not None:
        query = query.where(events.c.seq < before)
    return [_described(row) for row in tx.connection.execute(query)]


@dataclass(frozen=True, slots=True)
class EventFilters:
    """Which events a list is to show; ``search``: part of the id of a LiveSystem or component, or of the message."""

    kind: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    since: datetime | None = None
    search: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Events as somebody asked for them: of one LiveSystem, or of all that they may see."""

    filters: EventFilters = EventFilters()
    live_system_id: str | None = None
    sees: Environments = None


READ_AT_MOST: Final = 10_000
"""Events that one page reads at most: a filter that fits few would else walk through all that ever happened."""
_OUT_OF_ORDER: Final = timedelta(hours=1)
"""Events are numbered when they are committed, and bear the time at which their transaction began: at most so late."""


def find(tx: Tx, wanted: Wanted, limit: int, before: int | None) -> tuple[list[Json], int | None]:
    """A page of events, newest first, and the number before which the next one begins, if there may be more."""
    if wanted.filters == EventFilters():
        found = list_page(tx, wanted.live_system_id, limit + 1, before, wanted.sees)
        return found[:limit], found[limit - 1]["seq"] if len(found) > limit else None
    c = events.c
    newest_first = select(c.seq, c.at).order_by(c.seq.desc()).limit(READ_AT_MOST)
    if before is not None:
        newest_first = newest_first.where(c.seq < before)
    if wanted.live_system_id is not None:
        newest_first = newest_first.where(c.live_system_id == wanted.live_system_id)
    window = newest_first.subquery()
    many, last, newest = tx.connection.execute(
        select(func.count(), func.min(window.c.seq), func.max(window.c.at)).select_from(window)
    ).one()
    if not many:
        return [], None
    query = select(events).where(c.seq >= last, *_conditions(tx, wanted)).order_by(c.seq.desc()).limit(limit + 1)
    query = query if before is None else query.where(c.seq < before)
    found = [_described(row) for row in tx.connection.execute(query)]
    if len(found) > limit:
        return found[:limit], found[limit - 1]["seq"]
    begin = wanted.filters.since
    is_end = many < READ_AT_MOST or (begin is not None and newest < begin - _OUT_OF_ORDER)
    return found, None if is_end else last


def _conditions(tx: Tx, wanted: Wanted) -> list[ColumnElement[bool]]:
    c, filters = events.c, wanted.filters
    conditions: list[ColumnElement[bool]] = []
    if wanted.live_system_id is not None:
        conditions.append(c.live_system_id == wanted.live_system_id)
    elif wanted.sees is not None:
        conditions.append(is_visible(tx, wanted.sees, c.live_system_id))
    if filters.kind:
        conditions.append(among(c.kind, filters.kind))
    if filters.by:
        conditions.append(among(c.by, filters.by))
    if filters.environment:
        inside = live_system_environments.c
        named = select(inside.live_system_id).where(among(inside.environment, filters.environment))
        conditions.append(c.live_system_id.in_(named))
    if filters.since is not None:
        conditions.append(c.at >= filters.since)
    if filters.search:
        conditions.append(
            or_(*(contains(one, filters.search) for one in (c.live_system_id, c.component_id, c.message)))
        )
    return conditions


def since(tx: Tx, live_system_id: str | None, after: int, limit: int, sees: Environments = None) -> list[Json]:
    """Events after the given number, oldest first: what a live stream goes on with."""
    query = select(events).where(events.c.seq > after).order_by(events.c.seq).limit(limit)
    if live_system_id is not None:
        query = query.where(events.c.live_system_id == live_system_id)
    elif sees is not None:
        query = query.where(is_visible(tx, sees, events.c.live_system_id))
    return [_described(row) for row in tx.connection.execute(query)]


def newest(tx: Tx) -> int:
    """The number of the newest event."""
    return int(tx.connection.execute(select(func.coalesce(func.max(events.c.seq), 0))).scalar_one())


def has_any(tx: Tx, live_system_id: str) -> bool:
    """Whether anything ever happened to a LiveSystem of that id."""
    query = select(events.c.seq).where(events.c.live_system_id == live_system_id).limit(1)
    return tx.connection.execute(query).first() is not None


def _described(row: Any) -> Json:
    return {
        "seq": row.seq,
        "at": row.at,
        "liveSystemId": row.live_system_id,
        "componentId": row.component_id,
        "kind": row.kind,
        "by": row.by,
        "message": row.message,
        "before": row.before,
        "after": row.after,
    }


def status_changed(record: ComponentRecord, by: str, before: str) -> PendingEvent:
    """The event of a component's new status."""
    return PendingEvent(
        record.live_system_id,
        EventKind.STATUS_CHANGED,
        by,
        record.component_id,
        record.message,
        before,
        record.status,
    )
