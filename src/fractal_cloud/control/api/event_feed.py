"""One reader of events for all streams of a process: each event is read and encoded once, and sent to all who follow.

The newest events are kept in memory, up to a size; a stream only remembers how far it is. One that begins further back,
or falls behind, reads what it lacks from the store, as fast as its client takes it and no faster. A client that takes
nothing is the connection's business (``control.connections``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from fractal_cloud.control.store import Store, events
from fractal_cloud.control.store.failures import DatabaseUnavailable, again
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.signals import EVENTS
from fractal_cloud.control.store.visibility import Environments, visible_ids

KEEP_ALIVE_SECONDS: Final = 15.0
AT_ONCE: Final = 500
"""Events that the reader takes from the store at a time."""
AT_ONCE_BEHIND: Final = 100
"""Events that a stream which is behind takes: it keeps them until its client has taken them."""
KEPT_BYTES: Final = 4 * 1024 * 1024
SENT_BYTES: Final = 64 * 1024
"""What is handed to a connection at once, but for a single larger event."""
WOKEN_AT_ONCE: Final = 20
"""Between so many streams, other requests get their turn."""
MOST_SHARED: Final = 64
"""Kinds of streams whose last piece is kept for the others of that kind."""
KEEP_ALIVE: Final = b": keep-alive\n\n"


@dataclass(frozen=True, slots=True)
class _Event:
    """An event as it is sent."""

    seq: int
    live_system_id: str | None
    encoded: bytes


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Which events a stream is about: of one LiveSystem, or of those that somebody sees."""

    live_system_id: str | None
    sees: Environments


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What those were sent who were at one number, and the number at which they are then."""

    since: int
    up_to: int
    content: bytes


@dataclass(eq=False, slots=True)
class _Follower:
    """A stream that waits for news."""

    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> bool:
        """Return whether something came before it is time for a sign of life."""
        try:
            async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                await self.news.wait()
        except TimeoutError:
            return False
        self.news.clear()
        return True


class EventFeed:
    """The newest events, and those who follow them; its reader runs while anybody does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: deque[_Event] = deque()
        self._kept_bytes = 0
        self._complete_after = 0
        self._newest = 0
        self._followers: set[_Follower] = set()
        self._reading: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._last_chunks: dict[_Chosen, _Chunk] = {}

    async def follow(
        self, live_system_id: str | None, after: int | None, sees: Environments = None
    ) -> AsyncIterator[bytes]:
        """The events of one LiveSystem, or all that somebody sees, after a number, or from now on, as a stream.

        Where the database is away for longer than a few tries, it ends; whoever follows resumes it.
        """
        chosen = _Chosen(live_system_id, sees if live_system_id is None else None)
        with suppress(DatabaseUnavailable), self._following() as follower:
            newest = await run_in_threadpool(again, partial(_newest, self._store))
            # A number beyond the newest is from a database that was lost: everything here is news to whoever saw it.
            seen = newest if after is None else after if after <= newest else 0
            reading = await self._reader()
            yield b": connected\n\n"
            while not reading.done():
                if seen < self._complete_after:
                    seen, chunks = await run_in_threadpool(again, partial(_missed, self._store, chosen, seen))
                    for chunk in chunks:
                        yield chunk
                    continue
                seen, chunk = await self._since(seen, chosen)
                if chunk:
                    yield chunk
                elif seen >= self._newest and not await follower.wait():
                    yield KEEP_ALIVE

    async def numbers(self) -> AsyncIterator[bytes]:
        """The number of the newest event: first the present one, then one whenever it has changed."""
        sent: int | None = None
        with self._following() as follower:
            reading = await self._reader()
            while not reading.done():
                newest = self._newest
                yield KEEP_ALIVE if newest == sent else b"data: %d\n\n" % newest
                sent = newest
                await follower.wait()

    # --- those who follow

    @contextmanager
    def _following(self) -> Iterator[_Follower]:
        follower = _Follower()
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)
            if not self._followers and self._reading is not None:
                self._reading.cancel()
                self._reading = None

    async def _reader(self) -> asyncio.Task[None]:
        """The reader, begun if there is none, as soon as it knows the newest event; a stream ends with it."""
        if self._reading is None:
            self._started = asyncio.Event()
            self._reading = asyncio.get_running_loop().create_task(self._read(self._started))
        reading = self._reading
        await self._started.wait()
        return reading

    async def _since(self, seen: int, chosen: _Chosen) -> tuple[int, bytes]:
        """How far a stream is then, and what it is sent for it; all that follow the same share one copy."""
        last = self._last_chunks.get(chosen)
        if last is not None and last.since == seen:
            return last.up_to, last.content
        news = [event for event in self._after(seen) if chosen.live_system_id in (None, event.live_system_id)]
        up_to = self._newest
        if chosen.sees is not None:
            ids = {event.live_system_id for event in news if event.live_system_id is not None}
            visible = await run_in_threadpool(again, partial(_visible, self._store, chosen.sees, ids)) if ids else set()
            news = [event for event in news if event.live_system_id in visible]
        size = 0
        for number, event in enumerate(news):
            size += len(event.encoded)
            if number and size > SENT_BYTES:
                news, up_to = news[:number], news[number - 1].seq
                break
        content = b"".join(event.encoded for event in news)
        if up_to > seen:
            if len(self._last_chunks) >= MOST_SHARED:
                self._last_chunks.clear()
            self._last_chunks[chosen] = _Chunk(seen, up_to, content)
        return max(seen, up_to), content

    def _after(self, seen: int) -> list[_Event]:
        """What is kept and came after a number, oldest first."""
        news: list[_Event] = []
        for event in reversed(self._kept):
            if event.seq <= seen:
                break
            news.append(event)
        news.reverse()
        return news

    # --- the reader

    async def _read(self, started: asyncio.Event) -> None:
        """Read what happens, and wake those who follow; ends with the server, or with a database that is away."""
        signals = self._store.signals
        try:
            with suppress(DatabaseUnavailable), signals.subscribe([EVENTS]) as subscription:
                self._forget(await run_in_threadpool(again, partial(_newest, self._store)))
                started.set()
                while not signals.is_closed:
                    news = await run_in_threadpool(again, partial(_since, self._store, self._newest))
                    if news:
                        self._keep(news)
                        await self._wake()
                    if len(news) < AT_ONCE:
                        await subscription.wait(KEEP_ALIVE_SECONDS)
        finally:
            if self._reading is asyncio.current_task():
                self._reading = None
            started.set()
            # Those who follow see it ended in the next turn of the loop.
            asyncio.get_running_loop().call_soon(self._wake_all)

    def _forget(self, newest: int) -> None:
        """Begin anew: what happened before is in the store alone."""
        self._kept.clear()
        self._kept_bytes = 0
        self._newest = self._complete_after = newest
        self._last_chunks.clear()

    def _keep(self, news: Sequence[_Event]) -> None:
        for event in news:
            self._kept.append(event)
            self._kept_bytes += len(event.encoded)
        self._newest = news[-1].seq
        while self._kept_bytes > KEPT_BYTES:
            oldest = self._kept.popleft()
            self._kept_bytes -= len(oldest.encoded)
            self._complete_after = oldest.seq

    def _wake_all(self) -> None:
        for follower in self._followers:
            follower.news.set()

    async def _wake(self) -> None:
        for number, follower in enumerate(list(self._followers), 1):
            follower.news.set()
            if number % WOKEN_AT_ONCE == 0:
                await asyncio.sleep(0)


def _newest(store: Store) -> int:
    with store.read() as tx:
        return events.newest(tx)


def _since(store: Store, seen: int) -> list[_Event]:
    with store.read() as tx:
        found = events.since(tx, None, seen, AT_ONCE)
    return [_Event(event["seq"], event["liveSystemId"], _encoded(event)) for event in found]


def _visible(store: Store, sees: frozenset[str], ids: set[str]) -> set[str]:
    with store.read() as tx:
        return visible_ids(tx, sees, ids)


def _missed(store: Store, chosen: _Chosen, seen: int) -> tuple[int, list[bytes]]:
    """How far a stream is after it was sent what it lacks, and that, in pieces."""
    with store.read() as tx:
        newest = events.newest(tx)  # before the rest, which then holds all up to it
        found = events.since(tx, chosen.live_system_id, seen, AT_ONCE_BEHIND, chosen.sees)
    chunks: list[bytes] = []
    for event in found:
        encoded = _encoded(event)
        if chunks and len(chunks[-1]) + len(encoded) <= SENT_BYTES:
            chunks[-1] += encoded
        else:
            chunks.append(encoded)
    last = found[-1]["seq"] if found else seen
    return (last if len(found) == AT_ONCE_BEHIND else max(last, newest)), chunks


def _encoded(event: Json) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event["seq"], event["kind"].encode(), to_json(event))
