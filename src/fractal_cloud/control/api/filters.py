"""The filters of lists as query parameters: several values of one name mean any of them, several names all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

from fastapi import Depends, Query

from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.store.events import EventFilters
from fractal_cloud.control.store.listing import BadCursor, Filters, Overridden, Page
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Status

_TEXT: Final = r"^[^\x00-\x1f\x7f]+$"
_Text = Annotated[str, Query(min_length=1, max_length=200, pattern=_TEXT)]
_MOST: Final = 50

Environment = Annotated[list[_Text] | None, Query(max_length=_MOST, description="Of these environments.")]
Types = Annotated[list[_Text] | None, Query(alias="type", max_length=_MOST, description="Whole, or the last word.")]
Provider = Annotated[list[_Text] | None, Query(max_length=_MOST, description="Of these clouds.")]
Owner = Annotated[list[_Text] | None, Query(max_length=_MOST, description="Owned by these LiveSystems.")]
Stale = Annotated[list[Literal["true", "false"]] | None, Query(description="Whether it was not read for two cycles.")]
Override = Annotated[list[Overridden] | None, Query(description="Whether somebody holds it by hand, or for too long.")]
By = Annotated[list[_Text] | None, Query(max_length=_MOST, description="Who did it, or holds it by hand.")]
Since = Annotated[datetime | None, Query(description="Changed or happened since: a time with its zone.")]
Search = Annotated[str, Query(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$", description="What to look for.")]
Statuses = Annotated[list[Status] | None, Query(alias="status", description="With one of these statuses.")]
Kinds = Annotated[list[EventKind] | None, Query(alias="kind", description="Of these kinds.")]


def _moment(since: datetime | None) -> datetime | None:
    if since is not None and since.tzinfo is None:
        raise BadRequest([InputError("since", "has no zone: send a time like 2026-11-15T12:00:00Z")])
    try:
        return None if since is None else since.astimezone(UTC)
    except OverflowError as error:
        raise BadRequest([InputError("since", "is beyond all times: send a time like 2026-11-15T12:00:00Z")]) from error


async def _live_system_filters(
    status: Statuses = None,
    environment: Environment = None,
    types: Types = None,
    provider: Provider = None,
    owner: Owner = None,
    stale: Stale = None,
    override: Override = None,
    since: Since = None,
    search: Search = "",
) -> Filters:
    return Filters(
        status=tuple(one.value for one in status or ()),
        environment=tuple(environment or ()),
        type=tuple(types or ()),
        provider=tuple(provider or ()),
        owner=tuple(owner or ()),
        stale=tuple(one == "true" for one in stale or ()),
        override=tuple(override or ()),
        since=_moment(since),
        search=search.strip(),
    )


LiveSystemFilters = Annotated[Filters, Depends(_live_system_filters)]


async def _component_filters(common: LiveSystemFilters, by: By = None) -> Filters:
    return replace(common, by=tuple(by or ()))


ComponentFilters = Annotated[Filters, Depends(_component_filters)]


async def _event_filters(
    kind: Kinds = None,
    by: By = None,
    environment: Environment = None,
    since: Since = None,
    search: Search = "",
) -> EventFilters:
    kinds = tuple(one.value for one in kind or ())
    return EventFilters(kinds, tuple(by or ()), tuple(environment or ()), _moment(since), search.strip())


EventsFilters = Annotated[EventFilters, Depends(_event_filters)]


def in_order(fetch: Callable[[], Page]) -> Page:
    """A page, or the error of a cursor that belongs to another order."""
    try:
        return fetch()
    except BadCursor as error:
        raise BadRequest([InputError("cursor", str(error))]) from error
