"""What happened: as pages, newest first, or as a live stream (C4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from fractal_cloud.control.api import views
from fractal_cloud.control.api.routing import Limit, LiveSystemId, StrictRoute, TheStore, page
from fractal_cloud.control.store import Store, events, livesystems
from fractal_cloud.control.store.errors import Gone
from fractal_cloud.control.store.failures import DatabaseUnavailable, again
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.retention import forgotten_up_to
from fractal_cloud.control.store.signals import EVENTS

router = APIRouter(tags=["events"], route_class=StrictRoute)
STREAM = "text/event-stream"
KEEP_ALIVE_SECONDS = 15.0
AT_ONCE = 500
MOST = 2**63 - 1

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
    store: TheStore,
    limit: Limit = 100,
    cursor: Before = None,
    accept: Accept = "",
    last_event_id: LastEventId = None,
) -> Response:
    """All events, newest first; with ``Accept: text/event-stream`` those to come."""
    if STREAM in accept:
        return await _stream(store, None, last_event_id)
    return await run_in_threadpool(_page, store, None, limit, cursor)


@router.get("/livesystems/{id}/events", responses=RESPONSES)
async def read_one(
    live_system_id: LiveSystemId,
    store: TheStore,
    limit: Limit = 100,
    cursor: Before = None,
    accept: Accept = "",
    last_event_id: LastEventId = None,
) -> Response:
    """The events of one LiveSystem, also of one that is gone."""
    await run_in_threadpool(_require, store, live_system_id)
    if STREAM in accept:
        return await _stream(store, live_system_id, last_event_id)
    return await run_in_threadpool(_page, store, live_system_id, limit, cursor)


def _require(store: Store, live_system_id: str) -> None:
    with store.read() as tx:
        if not events.has_any(tx, live_system_id):
            livesystems.require(tx, live_system_id)


def _page(store: Store, live_system_id: str | None, limit: int, cursor: int | None) -> Response:
    with store.read() as tx:
        return page(lambda most: events.list_page(tx, live_system_id, most, cursor), limit, "seq")


async def _stream(store: Store, live_system_id: str | None, last_event_id: str | None) -> Response:
    # isdecimal, not isdigit: «²» is a digit that int() does not read.
    after = int(last_event_id) if last_event_id is not None and last_event_id.isdecimal() else None
    if after:
        await run_in_threadpool(_refuse_gap, store, min(after, MOST))
    following = _following(store, live_system_id, None if after is None else min(after, MOST))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(following, media_type=STREAM, headers=headers)


async def _following(store: Store, live_system_id: str | None, after: int | None) -> AsyncIterator[bytes]:
    # Where the database is away for longer than a few tries, the stream ends; whoever follows it resumes it.
    with suppress(DatabaseUnavailable), store.signals.subscribe([EVENTS]) as subscription:
        newest = await run_in_threadpool(again, lambda: _newest(store))
        # A number beyond the newest is from a database that was lost: everything here is news to whoever saw it.
        seen = newest if after is None else after if after <= newest else 0
        yield b": connected\n\n"
        while not store.signals.is_closed:
            news = await run_in_threadpool(again, partial(_since, store, live_system_id, seen))
            for event in news:
                seen = event["seq"]
                yield b"id: %d\nevent: %s\ndata: %s\n\n" % (seen, event["kind"].encode(), to_json(event))
            if len(news) < AT_ONCE and not await subscription.wait(KEEP_ALIVE_SECONDS):
                yield b": keep-alive\n\n"


def _refuse_gap(store: Store, after: int) -> None:
    """Say so where what came after the last event seen is not kept any more: going on would hide the gap."""
    with store.read() as tx:
        forgotten = forgotten_up_to(tx)
    if after < forgotten:
        raise Gone(
            f"events up to number {forgotten} are kept no longer, and number {after} was the last you saw: send "
            "Last-Event-ID: 0 for all that is kept, or none for what is to come"
        )


def _newest(store: Store) -> int:
    with store.read() as tx:
        return events.newest(tx)


def _since(store: Store, live_system_id: str | None, seen: int) -> list[Json]:
    with store.read() as tx:
        return events.since(tx, live_system_id, seen, AT_ONCE)
