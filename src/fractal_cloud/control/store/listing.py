"""How lists are filtered, ordered and cut into pages, of LiveSystems and of the components of all of them.

All of it starts at what is kept of LiveSystems (``summaries``), never at the components: of these, only those of
LiveSystems that may have some to show are read. So a page costs the same whatever the number of components.

A cursor names the place of the last item in the order of its list. Following cursors shows everything once that keeps
its place meanwhile; by ``id`` nothing ever changes its place. Pages for people count from the start (``Place.offset``).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Subquery,
    and_,
    case,
    func,
    literal,
    or_,
    select,
    true,
)

from fractal_cloud.control.store import staleness, visibility
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.driver import UtcTime, among, begins_with, binary, contains
from fractal_cloud.control.store.records import Json, iso
from fractal_cloud.control.store.schema import components, live_systems, resources
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.model.errors import FractalError
from fractal_cloud.model.status import Status

SHORTEST_PREFIX: Final = 6
"""A resource is found by the beginning of its id from so many characters on: «vpc-0a», not «arn»."""
MOST_RESOURCES: Final = 1_000
"""Resources whose id begins with what is searched for that are taken into account."""
MOST_HOLDERS: Final = 5_000
"""Components whose id begins with what is searched for, of which the LiveSystems are looked up first."""
NEVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Overridden(StrEnum):
    """Whether somebody holds it by hand."""

    TRUE = "true"
    FALSE = "false"
    OVERDUE = "overdue"


class Order(StrEnum):
    """The orders in which LiveSystems are listed."""

    ID = "id"
    WORST = "worst"
    LAST_UPDATED = "-lastUpdated"


class ComponentOrder(StrEnum):
    """The orders in which components are listed: by id, or the oldest override first."""

    ID = "id"
    OVERRIDE = "override"


class BadCursor(FractalError):
    """A cursor that no page of that order ended with."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What a list is to show: of several values of one name any, of several names all.

    ``type``: whole, or its last word. ``owner``: of a LiveSystem, that one of its components has. ``by``: who holds a
    component by hand. ``since``: changed since then. ``search``: part of a LiveSystem's id, of an environment, type or
    realm, the beginning of a component's id (where components are listed), or of a resource's.
    """

    status: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    provider: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    stale: tuple[bool, ...] = ()
    override: tuple[Overridden, ...] = ()
    by: tuple[str, ...] = ()
    since: datetime | None = None
    search: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after a cursor, or after so many; and how long it is at most."""

    limit: int
    cursor: str | None = None
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """One page; ``next``: the cursor of the one after it, if any; ``total``: on all pages, where that is cheap."""

    items: list[Json]
    next: str | None = None
    total: int | None = None


NO_FILTERS: Final = Filters()


# --- cursors


def to_cursor(*parts: Any) -> str:
    """A place in an order as it can stand in a URL."""
    written = json.dumps([iso(part) if isinstance(part, datetime) else part for part in parts], separators=(",", ":"))
    return base64.urlsafe_b64encode(written.encode()).decode().rstrip("=")


def from_cursor(cursor: str, *kinds: type) -> list[Any]:
    """The place a cursor names: values of these kinds, or ``BadCursor``."""
    try:
        parts = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if not isinstance(parts, list) or len(parts) != len(kinds):
            raise TypeError
        return [_part(kind, part) for kind, part in zip(kinds, parts, strict=True)]
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise BadCursor("is no cursor of this list in this order: begin without one") from error


def _part(kind: type, value: Any) -> Any:
    if kind is datetime and isinstance(value, str):
        return datetime.fromisoformat(value).astimezone(UTC)
    is_text = isinstance(value, str) and kind is str and "\0" not in value
    is_number = type(value) is int and kind is int and abs(value) < 2**31
    if not is_text and not is_number:
        raise TypeError
    return value


# --- conditions on LiveSystems


def _any_of(conditions: Collection[ColumnElement[bool]]) -> list[ColumnElement[bool]]:
    return [or_(*conditions)] if conditions else []


def _lists(column: ColumnElement[Any], value: str) -> ColumnElement[bool]:
    """Whether a list of a summary has a value."""
    return contains(column, f"\n{value}\n")


def _has_type(name: str) -> ColumnElement[bool]:
    return or_(_lists(live_systems.c.types, name), contains(live_systems.c.types, f".{name}\n"))


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found by an index before anything is listed.

    ``identities``: of resources, by the whole or the beginning of their id. ``holders``: the LiveSystems that have a
    component whose id begins so; None where these are so many that looking everywhere finds them soon.
    """

    identities: tuple[str, ...] = ()
    holders: tuple[str, ...] | None = ()


def found_resources(tx: Tx, search: str) -> Found:
    """Look resources up by their id, as many as are taken into account."""
    c = resources.c
    if len(search) < SHORTEST_PREFIX:
        query = select(c.identity_key).where(c.resource_id == search)
    else:
        query = select(c.identity_key).where(begins_with(c.resource_id, search))
    query = query.order_by(binary(c.resource_id), binary(c.identity_key)).limit(MOST_RESOURCES)
    return Found(tuple(tx.connection.execute(query).scalars()))


def found_anywhere(tx: Tx, search: str) -> Found:
    """Look resources and components up by their id."""
    c = components.c
    begins = select(c.live_system_id).where(begins_with(c.component_id, search)).limit(MOST_HOLDERS + 1)
    holders = list(tx.connection.execute(begins).scalars())
    few = tuple(sorted(set(holders))) if len(holders) <= MOST_HOLDERS else None
    return replace(found_resources(tx, search), holders=few)


def _searched(search: str, found: Found) -> ColumnElement[bool]:
    c = live_systems.c
    words = [contains(column, search) for column in (c.id, c.environment, c.types, c.realms)]
    holding = select(components.c.live_system_id).where(among(components.c.identity_key, found.identities))
    return or_(*words, c.id.in_(holding)) if found.identities else or_(*words)


def _overridden(wanted: Overridden) -> ColumnElement[bool]:
    c = live_systems.c
    match wanted:
        case Overridden.TRUE:
            return c.overrides > 0
        case Overridden.FALSE:
            return c.overrides == 0
        case Overridden.OVERDUE:
            return c.overdue > 0


def _common(filters: Filters) -> list[ColumnElement[bool]]:
    """What is asked of a LiveSystem, whether it is listed itself or its components are."""
    c = live_systems.c
    return [
        *([among(c.environment, filters.environment)] if filters.environment else []),
        *_any_of([_has_type(name) for name in filters.type]),
        *_any_of([_lists(c.providers, name) for name in filters.provider]),
        *_any_of([or_(c.id == name, _lists(c.owners, name)) for name in filters.owner]),
        *([c.last_updated >= filters.since] if filters.since is not None else []),
    ]


def _visible(tx: Tx, sees: Environments) -> list[ColumnElement[bool]]:
    return [] if sees is None else [visibility.is_visible(tx, sees, live_systems.c.id)]


def live_system_conditions(tx: Tx, filters: Filters, sees: Environments) -> list[ColumnElement[bool]]:
    """What must hold of a LiveSystem that is listed."""
    search = [_searched(filters.search, found_resources(tx, filters.search))] if filters.search else []
    return [
        *_visible(tx, sees),
        *([among(live_systems.c.status, filters.status)] if filters.status else []),
        *_any_of([_overridden(wanted) for wanted in filters.override]),
        *_any_of([_is(staleness.live_system_is_stale(), wanted) for wanted in filters.stale]),
        *_common(filters),
        *search,
    ]


def _is(condition: ColumnElement[bool], wanted: bool) -> ColumnElement[bool]:
    # Not its negation: for what is in no scope the condition is neither true nor false.
    return condition if wanted else case((condition, 1), else_=0) == 0


# --- LiveSystems, in any order


def _rank() -> ColumnElement[int]:
    """How much a LiveSystem asks for a person: the lower, the more."""
    c = live_systems.c
    under_way = [Status.MUTATING.value, Status.INSTANTIATING.value, Status.RECONCILE_REQUESTED.value]
    return case(
        (c.status == Status.FAILED.value, 0),
        (c.status == Status.MISSING.value, 1),
        (c.overdue > 0, 2),
        (staleness.live_system_is_stale(), 3),
        (c.status == Status.DELETING.value, 4),
        (c.status.in_(under_way), 5),
        (c.overrides > 0, 6),
        else_=7,
    )


BY_AGE: Final = (2, 6)
"""The ranks of overrides, of which the oldest comes first."""


def ranked(conditions: Sequence[ColumnElement[bool]]) -> Subquery:
    """LiveSystems with their ``rank``, and ``age``, by which overrides are ordered."""
    rank = _rank()
    oldest = func.coalesce(live_systems.c.oldest_override, literal(NEVER, UtcTime()))
    age = case((rank.in_(BY_AGE), oldest), else_=literal(NEVER, UtcTime()))
    return select(live_systems, rank.label("rank"), age.label("age")).where(*conditions).subquery()


def ordered(found: Subquery, order: Order) -> list[ColumnElement[Any]]:
    """What LiveSystems are ordered by."""
    c = found.c
    match order:
        case Order.ID:
            return [c.id]
        case Order.WORST:
            return [c.rank, c.age, c.id]
        case Order.LAST_UPDATED:
            return [c.last_updated.desc(), c.id]


def after(found: Subquery, order: Order, cursor: str) -> ColumnElement[bool]:
    """What comes after a cursor in an order."""
    c = found.c
    match order:
        case Order.ID:
            return and_(c.id > cursor)
        case Order.WORST:
            rank, age, last = from_cursor(cursor, int, datetime, str)
            later = or_(c.age > age, and_(c.age == age, c.id > last))
            return or_(c.rank > rank, and_(c.rank == rank, later))
        case Order.LAST_UPDATED:
            at, last = from_cursor(cursor, datetime, str)
            return or_(c.last_updated < at, and_(c.last_updated == at, c.id > last))


def cursor_of(row: Any, order: Order) -> str:
    """The cursor of what comes after a row of ``ranked``."""
    match order:
        case Order.ID:
            return str(row.id)
        case Order.WORST:
            return to_cursor(row.rank, row.age, row.id)
        case Order.LAST_UPDATED:
            return to_cursor(row.last_updated, row.id)


# --- components of all LiveSystems


def _has_status(name: str) -> ColumnElement[bool]:
    return and_(live_systems.c.counts[name].as_integer() > 0)


def candidate_conditions(tx: Tx, filters: Filters, sees: Environments, found: Found) -> list[ColumnElement[bool]]:
    """What must hold of a LiveSystem for a component of it to be listed."""
    c = live_systems.c
    overrides = [_overridden(w) if w is not Overridden.FALSE else true() for w in filters.override]
    is_narrowed = bool(filters.search) and found.holders is not None
    search = [or_(_searched(filters.search, found), among(c.id, found.holders or ()))] if is_narrowed else []
    return [
        *_visible(tx, sees),
        *_any_of([_has_status(name) for name in filters.status]),
        *_any_of(overrides),
        *([c.overrides > 0] if filters.by else []),
        *([staleness.live_system_is_stale()] if filters.stale and all(filters.stale) else []),
        *_common(filters),
        *search,
    ]


def component_conditions(filters: Filters, found: Found) -> list[ColumnElement[bool]]:
    """What must hold of a component that is listed, in a LiveSystem that may have some."""
    c = components.c
    is_overridden = {
        Overridden.TRUE: c.override.is_not(None),
        Overridden.FALSE: c.override.is_(None),
        Overridden.OVERDUE: and_(c.override.is_not(None), c.overdue),
    }
    return [
        *([among(c.status, filters.status)] if filters.status else []),
        *_any_of([contains(literal(".").concat(c.type).concat("\n"), f".{name}\n") for name in filters.type]),
        *([among(c.provider, filters.provider)] if filters.provider else []),
        *([among(c.owner, filters.owner)] if filters.owner else []),
        *_any_of([is_overridden[wanted] for wanted in filters.override]),
        *_any_of([_is(staleness.component_is_stale(), wanted) for wanted in filters.stale]),
        *([among(c.override["by"].as_string(), filters.by)] if filters.by else []),
        *([c.last_updated >= filters.since] if filters.since is not None else []),
        *([_component_searched(filters.search, found)] if filters.search else []),
    ]


def _component_searched(search: str, found: Found) -> ColumnElement[bool]:
    c = components.c
    columns = (c.live_system_id, c.environment, c.type, c.realm, c.realm_name)
    words = [*(contains(column, search) for column in columns), begins_with(c.component_id, search)]
    return or_(*words, among(c.identity_key, found.identities)) if found.identities else or_(*words)
