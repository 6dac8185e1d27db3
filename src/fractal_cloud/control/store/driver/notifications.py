"""Signals across processes on one PostgreSQL: NOTIFY inside the committing transaction, LISTEN in a thread of its own.

A notification names topics that changed, never what changed: that is read from the store. So a lost connection costs
nothing but a read: whoever waits here is woken once it is open again.
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import stamina
import structlog
from sqlalchemy import URL, Connection, text

from fractal_cloud.control.store.driver.prepared import PreparedStatement
from fractal_cloud.control.store.signals import LocalSignals
from fractal_cloud.model.backoff import Backoff

log = structlog.get_logger()

CHANNEL = "fractal_cloud"
KEEPALIVE: Final[Mapping[str, Any]] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""How soon a PostgreSQL that is gone without closing its connections is noticed, here and by the pool."""
MOST_BYTES = 7_900
"""PostgreSQL refuses a payload of 8,000 bytes and more."""
PROBE_SECONDS = 15.0
"""A connection that is silent for so long is probed."""
RECONNECTING: Final = Backoff.in_seconds(0.1, 5.0, jitter=0.5)
_NOTIFY = PreparedStatement(text("SELECT pg_notify(:channel, :payload)"))


class PostgresSignals(LocalSignals):
    """Signals inside this process, and from and to all others on the same database."""

    def __init__(self, url: URL) -> None:
        super().__init__()
        self._url = url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._origin = uuid4().hex
        self._bell, self._ears = socket.socketpair()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._listen_forever, name="signals", daemon=True)
        self._thread.start()

    def announce(self, connection: Connection, topics: Iterable[str]) -> None:
        """Notify the other processes, if and when this transaction commits."""
        named = sorted(topics)
        if not named:
            return
        payload = json.dumps([self._origin, named])
        if len(payload.encode()) > MOST_BYTES:
            payload = json.dumps([self._origin, None])
        _NOTIFY.run(connection, {"channel": CHANNEL, "payload": payload})

    def close(self) -> None:
        """End every wait, and stop listening."""
        super().close()
        with suppress(OSError):
            self._bell.send(b"x")

    def join(self) -> None:
        """Wait a moment for the thread to end."""
        self._thread.join(2.0)

    def is_listening(self, seconds: float = 0.0) -> bool:
        """Whether other processes are heard; waits up to so long for it."""
        return self._listening.wait(seconds)

    # --- the thread

    def _listen_forever(self) -> None:
        import psycopg

        with self._bell, self._ears:
            while not self.is_closed:
                connection = self._connected()
                if connection is None:
                    return
                with suppress(psycopg.Error), connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self.wake_all()  # for what was notified while nobody listened
                    self._listening.set()
                    self._listen(connection)
                self._listening.clear()
                if not self.is_closed:
                    log.warning("connection for signals lost: connecting again")

    def _connected(self) -> Any:
        """A new connection, tried for until there is one; None if the server stops meanwhile."""
        import psycopg

        @stamina.retry(on=psycopg.Error, attempts=None, timeout=None, **RECONNECTING.for_stamina())
        def connect() -> Any:
            return None if self.is_closed else psycopg.connect(self._url, autocommit=True, **KEEPALIVE)

        return connect()

    def _listen(self, connection: Any) -> None:
        ready = select.poll()  # not select.select, which cannot count beyond 1,024 open files
        for source in (connection.fileno(), self._ears.fileno()):
            ready.register(source, select.POLLIN)
        while not self.is_closed:
            if not ready.poll(PROBE_SECONDS * 1000):
                connection.execute("SELECT 1")
            for notification in connection.notifies(timeout=0):
                self._hear(notification.payload)

    def _hear(self, payload: str) -> None:
        try:
            origin, topics = json.loads(payload)
        except (ValueError, TypeError):
            origin, topics = "", None  # not from one of our processes: waking everybody is always safe
        if origin == self._origin:
            return  # those who wait here were woken by the commit itself
        if topics is None:
            self.wake_all()
        else:
            self.notify(topics)
