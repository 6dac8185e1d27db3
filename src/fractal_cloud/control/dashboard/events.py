"""Notifies an open page of new events, so that it fetches itself again; the notification carries no data."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from fractal_cloud.control.api.event_feed import EventFeed
from fractal_cloud.control.api.events import STREAM_HEADERS
from fractal_cloud.control.api.turns import OpenStreams
from fractal_cloud.control.dashboard.pages import HEADERS, PageRoute
from fractal_cloud.control.dashboard.sessions import TheVisitor

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)


@router.get("/events")
async def follow(request: Request, visitor: TheVisitor) -> Response:
    """A stream of the newest event's number: first the present one, then one whenever it has changed."""
    feed: EventFeed = request.app.state.event_feed
    streams: OpenStreams = request.app.state.streams
    return streams.answer(visitor.who.id, feed.numbers(), {**HEADERS, **STREAM_HEADERS})
