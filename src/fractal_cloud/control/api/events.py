"""What happened: as pages, newest first, or as a live stream (C4)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.api import views
from fractal_cloud.control.api.event_feed import EventFeed
from fractal_cloud.control.api.filters import EventsFilters
from fractal_cloud.control.api.problems import BadRequest
from fractal_cloud.control.api.routing import Limit, LiveSystemId, StrictRoute, TheStore, Who, answer, listed
from fractal_cloud.control.api.turns import STREAM, OpenStreams
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import Store, events, livesystems
from fractal_cloud.control.store.errors import Gone
from fractal_cloud.control.store.retention import forgotten_up_to
from fractal_cloud.model.errors import InputError

router = APIRouter(tags=["events"], route_class=StrictRoute)
MOST = 2**63 - 1

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Accept = Annotated[str, Header(alias="Accept", include_in_schema=False)]
LastEventId = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=32, description="Where a stream broke off: it goes on after this one."),
]
Before = Annotated[int | None, Query(alias="cursor", ge=0, le=MOST, description="Where the page before ended.")]
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": views.EventPage, "content": {STREAM: {"schema": {"type": "string"}}}}
}


@router.get("/events", responses=RESPONSES)
async def read_all(
    request: Request,
    store: TheStore,
    who: Who,
    filters: EventsFilters,
    limit: Limit = 100,
    cursor: Before = None,
    accept: Accept = "",
    last_event_id: LastEventId = None,
) -> Response:
    """All events, newest first; with ``Accept: text/event-stream`` those to come.

    With filters a page may be short, or empty, and still have a ``next``: each reads so many events at most.
    """
    if STREAM in accept:
        return await _stream(request, who, None, last_event_id)
    return await run_in_threadpool(_page, store, events.Wanted(filters, None, who.sees), limit, cursor)


@router.get("/livesystems/{id}/events", responses=RESPONSES)
async def read_one(
    request: Request,
    live_system_id: LiveSystemId,
    store: TheStore,
    who: Who,
    filters: EventsFilters,
    limit: Limit = 100,
    cursor: Before = None,
    accept: Accept = "",
    last_event_id: LastEventId = None,
) -> Response:
    """The events of one LiveSystem, also of one that is gone."""
    await run_in_threadpool(_require, store, live_system_id)
    if STREAM in accept:
        return await _stream(request, who, live_system_id, last_event_id)
    return await run_in_threadpool(_page, store, events.Wanted(filters, live_system_id), limit, cursor)


def _require(store: Store, live_system_id: str) -> None:
    with store.read() as tx:
        if not events.has_any(tx, live_system_id):
            livesystems.require(tx, live_system_id)


def _page(store: Store, wanted: events.Wanted, limit: int, cursor: int | None) -> Response:
    with store.read() as tx:
        found, following = events.find(tx, wanted, limit, cursor)
    return answer(listed(found, None if following is None else str(following)))


async def _stream(request: Request, who: Principal, live_system_id: str | None, last_event_id: str | None) -> Response:
    given = sorted(set(request.query_params) - {"limit", "cursor"})
    if given:
        raise BadRequest([InputError(name, "filters pages, and not a stream: leave it out") for name in given])
    # isdecimal, not isdigit: «²» is a digit that int() does not read.
    after = int(last_event_id) if last_event_id is not None and last_event_id.isdecimal() else None
    if after:
        await run_in_threadpool(_refuse_gap, request.app.state.store, min(after, MOST))
    feed: EventFeed = request.app.state.event_feed
    streams: OpenStreams = request.app.state.streams
    following = feed.follow(live_system_id, None if after is None else min(after, MOST), who.sees)
    return streams.answer(who.id, following, STREAM_HEADERS)


def _refuse_gap(store: Store, after: int) -> None:
    """Say so where what came after the last event seen is not kept any more: going on would hide the gap."""
    with store.read() as tx:
        forgotten = forgotten_up_to(tx)
    if after < forgotten:
        raise Gone(
            f"events up to number {forgotten} are kept no longer, and number {after} was the last you saw: send "
            "Last-Event-ID: 0 for all that is kept, or none for what is to come"
        )
