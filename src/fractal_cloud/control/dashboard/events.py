"""Notifies an open page of new events, so that it fetches itself again; the notification carries no data."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from fractal_cloud.control.api.routing import TheStore
from fractal_cloud.control.dashboard.pages import HEADERS, PageRoute
from fractal_cloud.control.dashboard.sessions import TheVisitor
from fractal_cloud.control.store import Store, events
from fractal_cloud.control.store.failures import DatabaseUnavailable, again
from fractal_cloud.control.store.signals import EVENTS

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
KEEP_ALIVE_SECONDS = 15.0


@router.get("/events")
async def follow(_visitor: TheVisitor, store: TheStore) -> Response:
    """A stream of the newest event's number: first the present one, then one whenever it has changed."""
    headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_numbers(store), media_type="text/event-stream", headers=headers)


async def _numbers(store: Store) -> AsyncIterator[bytes]:
    sent: int | None = None
    with suppress(DatabaseUnavailable), store.signals.subscribe([EVENTS]) as subscription:
        while not store.signals.is_closed:
            newest = await run_in_threadpool(again, lambda: _newest(store))
            yield b": keep-alive\n\n" if newest == sent else b"data: %d\n\n" % newest
            sent = newest
            await subscription.wait(KEEP_ALIVE_SECONDS)


def _newest(store: Store) -> int:
    with store.read() as tx:
        return events.newest(tx)
