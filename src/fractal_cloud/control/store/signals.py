"""Wakes those who wait for a commit. What was committed they read from the store: a signal carries no data.

``driver`` has the second implementation, for several server processes on one database.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterable
from types import TracebackType
from typing import Protocol, Self

from sqlalchemy import Connection

EVENTS = "events"
TOKENS = "tokens"
"""Notified when somebody has lost access, or what a token may do has changed."""
NOTIFICATIONS = "notifications"
"""Notified when a subscription to notifications was added, or is to be tested."""
MOST_REMEMBERED = 10_000
"""Of how many topics it is remembered when they were last notified."""


def reach_topic(provider: str, realm: str) -> str:
    """What agents that reach a realm listen to."""
    return f"reach:{provider}/{realm}"


def plan_topic(plan_id: str) -> str:
    """What the one who asked for a plan listens to."""
    return f"plan:{plan_id}"


class Subscription(Protocol):
    """One who waits for topics; subscribe first, then read the store, then wait."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def wait(self, seconds: float) -> bool:
        """Return True as soon as a topic was notified since the last wait, False after so many seconds."""
        ...


class Signals(Protocol):
    """How a commit reaches those who wait for it."""

    def announce(self, connection: Connection, topics: Iterable[str]) -> None:
        """Notify other processes on the same database, as part of a transaction and only if it commits."""
        ...

    def notify(self, topics: Iterable[str]) -> None:
        """Wake everybody who subscribed to one of the topics; called from any thread, after the commit."""
        ...

    def subscribe(self, topics: Iterable[str]) -> Subscription:
        """Listen to topics; to be entered inside a running event loop."""
        ...

    def mark(self) -> int:
        """How much was notified so far."""
        ...

    def was_notified(self, topics: Iterable[str], since: int) -> bool:
        """Whether one of the topics was notified since that mark was taken."""
        ...

    def close(self) -> None:
        """End every wait at once, now and from now on: the server stops."""
        ...

    def join(self) -> None:
        """After ``close``: wait a moment for what runs in the background."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether the server stops."""
        ...


class LocalSignals:
    """Signals inside one process: enough for a database that has one server process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._everybody: set[LocalSubscription] = set()
        self._listeners: dict[str, set[LocalSubscription]] = defaultdict(set)
        self._count = 0
        self._last_notified: dict[str, int] = {}
        self._all_notified = 0
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether the server stops."""
        return self._closed

    def announce(self, connection: Connection, topics: Iterable[str]) -> None:
        """Do nothing: there is no other process."""

    def notify(self, topics: Iterable[str]) -> None:
        """Wake everybody who subscribed to one of the topics."""
        named = list(topics)
        with self._lock:
            self._count += 1
            self._last_notified.update(dict.fromkeys(named, self._count))
            if len(self._last_notified) > MOST_REMEMBERED:
                self._last_notified.clear()
                self._all_notified = self._count
            woken = {listener for topic in named for listener in self._listeners.get(topic, ())}
        for listener in woken:
            listener.wake()

    def mark(self) -> int:
        """How much was notified so far."""
        return self._count

    def was_notified(self, topics: Iterable[str], since: int) -> bool:
        """Whether one of the topics was notified since that mark was taken."""
        with self._lock:
            return self._all_notified > since or any(self._last_notified.get(topic, 0) > since for topic in topics)

    def subscribe(self, topics: Iterable[str]) -> LocalSubscription:
        """Listen to topics."""
        return LocalSubscription(self, frozenset(topics))

    def close(self) -> None:
        """End every wait."""
        self._closed = True
        self.wake_all()

    def wake_all(self) -> None:
        """Wake everybody, whatever they wait for."""
        with self._lock:
            self._count += 1
            self._all_notified = self._count
            woken = set(self._everybody)  # also who listens to no topic, and waits for the time alone
        for listener in woken:
            listener.wake()

    def join(self) -> None:
        """Return at once: nothing runs in the background."""

    def add(self, listener: LocalSubscription) -> None:
        """Add a listener."""
        with self._lock:
            self._everybody.add(listener)
            for topic in listener.topics:
                self._listeners[topic].add(listener)

    def drop(self, listener: LocalSubscription) -> None:
        """Remove a listener."""
        with self._lock:
            self._everybody.discard(listener)
            for topic in listener.topics:
                self._listeners[topic].discard(listener)
                if not self._listeners[topic]:
                    del self._listeners[topic]


class LocalSubscription:
    """One who waits, on the event loop it entered."""

    def __init__(self, signals: LocalSignals, topics: frozenset[str]) -> None:
        self.topics = topics
        self._signals = signals
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event = asyncio.Event()

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._signals.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._signals.drop(self)

    def wake(self) -> None:
        """Let ``wait`` return; called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification since the last wait."""
        if self._signals.is_closed or not seconds > 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True
