"""Transactions: one clock reading each, events appended at their end, waiters woken after the commit.

The time is the database's own where it has one (PostgreSQL): servers whose clocks differ agree on it. Locks are taken
in one order everywhere, so that PostgreSQL never meets a deadlock: LiveSystems by id, then scopes by key, then
everything else, the event counter last; what waits for nobody (SKIP LOCKED) may come in any order. SQLite has one
writer at a time anyway. What can go wrong stands in ``failures``.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Transaction, insert, select
from sqlalchemy.exc import DataError, SQLAlchemyError

from fractal_cloud.control.store import driver, failures, schema, summaries
from fractal_cloud.control.store.limits import DEFAULT_LIMITS, Limits
from fractal_cloud.control.store.migrate import migrate
from fractal_cloud.control.store.signals import EVENTS, Signals
from fractal_cloud.model.event import EventKind

Clock = Callable[[], datetime]
DatabaseError = SQLAlchemyError
"""What every failure of the database derives from, for those who do not speak SQL."""
ValueRefused = DataError
"""The database cannot hold a value: a number out of range, or the like."""


_EVENTS: Final = driver.Numbered(schema.events, "seq", schema.counters, "events")


def new_incarnation() -> str:
    """An id that no database has, nor any former life of this one."""
    return secrets.token_hex(16)


def utc_now() -> datetime:
    """The time, aware of its zone."""
    return datetime.now(UTC)


class PendingEvent(NamedTuple):
    """An event that has no number yet."""

    live_system_id: str
    kind: EventKind
    by: str
    component_id: str | None = None
    message: str = ""
    before: Any = None
    after: Any = None


@dataclass(slots=True)
class Tx:
    """One transaction: its connection, its time, and what is to follow from it.

    ``recount``: LiveSystems whose components changed, and which it holds: they are counted when it ends.
    """

    connection: Connection
    clock: Clock | None = None
    events: list[PendingEvent] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    recount: set[str] = field(default_factory=set)
    _now: datetime | None = None

    @property
    def now(self) -> datetime:
        """The time of this transaction, read once: from the clock given, else the database's, else this machine's."""
        if self._now is None:
            self._now = self.clock() if self.clock is not None else driver.now(self.connection) or utc_now()
        return self._now

    def set_time(self, now: datetime | None) -> None:
        """Use the database's time as a statement returned it besides its rows; the first one counts."""
        if self._now is None and self.clock is None:
            self._now = now

    def record(self, *events: PendingEvent) -> None:
        """Append events, numbered when the transaction ends."""
        self.events.extend(events)

    def wake(self, topics: Iterable[str]) -> None:
        """Wake those who listen to the topics, once this is committed."""
        self.topics.update(topics)


class Database:
    """One database, of either kind, with its schema brought up to date. ``clock`` is for tests.

    ``is_unwritable``: whether the last write failed because the disk is full, or the like.
    """

    def __init__(
        self,
        url: str,
        *,
        signals: Signals | None = None,
        clock: Clock | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._clock = clock
        self._is_closed = False
        self.is_unwritable = False
        with failures.opening(driver.shown_address(url)):
            self._connections = driver.Connections(url, limits)
            try:
                self._migrate()
            except BaseException:
                self._connections.close()
                raise
        self.signals: Signals = signals or self._connections.signals()

    def _migrate(self) -> None:
        with self._connections.turn_to_write(), self._connections.writing() as connection, connection.begin():
            driver.lock_for_migration(connection)
            migrate(connection)
            driver.begin_numbering(connection, _EVENTS)
            self._begin_first_incarnation(Tx(connection, self._clock))

    def _begin_first_incarnation(self, tx: Tx) -> None:
        """Draw the id by which agents know this very database from a backup of it, or from another one (C9)."""
        table = schema.incarnations
        if tx.connection.execute(select(table.c.id).limit(1)).first() is None:
            row = {"id": new_incarnation(), "number": 1, "began_at": tx.now, "by": "control plane"}
            row["proof_key"] = secrets.token_hex(32)
            last = select(schema.counters.c.value).where(schema.counters.c.name == _EVENTS.counter).scalar_subquery()
            tx.connection.execute(insert(table).values(**row, reason="first start", first_event=last))

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that only reads."""
        with self._connected(self._connections.reading) as connection:
            with failures.working():
                transaction = connection.begin()
                yield Tx(connection, self._clock)
            with failures.committing(is_writing=False):
                transaction.commit()

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that writes: all of it or nothing; its signals go out with the commit."""
        topics: set[str] = set()
        try:
            with self._connections.turn_to_write(), self._connected(self._connections.writing) as connection:
                with failures.working():
                    transaction = connection.begin()
                    tx = Tx(connection, self._clock)
                    topics = tx.topics
                    yield tx
                    if tx.recount:
                        summaries.recount(tx.connection, tx.recount, tx.now)
                    events = _event_rows(tx)
                with failures.committing(is_writing=True):
                    self._commit(tx, transaction, events)
        except failures.Unwritable:
            self.is_unwritable = True
            raise
        except failures.OutcomeUnknown:
            self.signals.notify(topics)  # it may be committed, and waking those who find nothing new does no harm
            raise
        self.is_unwritable = False
        if topics:
            self.signals.notify(topics)

    def _commit(self, tx: Tx, transaction: Transaction, events: list[dict[str, Any]]) -> None:
        """Append the events, announce the topics and commit, all sent at once: nothing is read here."""
        if not events and not tx.topics:
            transaction.commit()
            return
        with driver.sent_with_commit(tx.connection):
            if events:
                # Numbered in the order of commits: their counter is held from here to the commit.
                driver.append_numbered(tx.connection, _EVENTS, events)
                tx.topics.add(EVENTS)
            self.signals.announce(tx.connection, tx.topics)
            transaction.commit()

    @contextmanager
    def _connected(self, connect: Callable[[], Connection]) -> Iterator[Connection]:
        with failures.connecting():
            connection = connect()
        with connection:  # its end rolls back what was not committed
            yield connection
            if self._is_closed:
                connection.invalidate()  # its pool was closed meanwhile, and would keep it open for good

    def close(self) -> None:
        """Let all connections go; those in use, when they come back."""
        self._is_closed = True
        self.signals.close()
        self.signals.join()
        self._connections.close()


def _event_rows(tx: Tx) -> list[dict[str, Any]]:
    """The rows of a transaction's events, numbered from 1."""
    return [
        {
            "seq": number,
            "id": secrets.token_hex(8),
            "at": tx.now,
            "live_system_id": event.live_system_id,
            "component_id": event.component_id,
            "kind": event.kind.value,
            "by": event.by,
            "message": event.message,
            "before": event.before,
            "after": event.after,
        }
        for number, event in enumerate(tx.events, 1)
    ]
