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

from sqlalchemy import Connection, Engine, insert, select
from sqlalchemy.exc import DataError, SQLAlchemyError

from fractal_cloud.control.store import bulk, dialect, failures, schema
from fractal_cloud.control.store.limits import DEFAULT_LIMITS, Limits
from fractal_cloud.control.store.listening import PostgresSignals
from fractal_cloud.control.store.migrate import migrate
from fractal_cloud.control.store.signals import EVENTS, LocalSignals, Signals
from fractal_cloud.model.event import EventKind

Clock = Callable[[], datetime]
DatabaseError = SQLAlchemyError
"""What every failure of the database derives from, for those who do not speak SQL."""
ValueRefused = DataError
"""The database cannot hold a value: a number out of range, or the like."""


_EVENTS: Final = bulk.Numbered(schema.events, "seq", schema.counters, "events")


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
    """One transaction: its connection, its time, and what is to follow from it."""

    connection: Connection
    clock: Clock | None = None
    happenings: list[PendingEvent] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    _now: datetime | None = None

    @property
    def now(self) -> datetime:
        """The time of this transaction, read once: from the clock given, else the database's, else this machine's."""
        if self._now is None:
            self._now = self.clock() if self.clock is not None else dialect.now(self.connection) or utc_now()
        return self._now

    def stamp(self) -> None:
        """Read the time while there is still something read, if there are events that need it."""
        if self.happenings:
            self._now = self.now

    def is_told(self, now: datetime | None) -> None:
        """Take the database's time from a statement that asked for it besides; the first one told counts."""
        if self._now is None and self.clock is None:
            self._now = now

    def record(self, *happenings: PendingEvent) -> None:
        """Append events, numbered when the transaction ends."""
        self.happenings.extend(happenings)

    def wake(self, topics: Iterable[str]) -> None:
        """Wake those who listen to the topics, once this is committed."""
        self.topics.update(topics)


class Database:
    """One database, of either kind, with its schema brought up to date. ``clock`` is for tests."""

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
        self._engine: Engine = dialect.connect(url, limits)
        self._reader = dialect.reading(self._engine)
        self._writer = self._engine.execution_options(**{dialect.WRITING: True})
        self._gate = dialect.WriteGate(self._engine)
        try:
            self._migrate()
        except BaseException:
            self._engine.dispose()
            raise
        self.signals: Signals = signals or self._own_signals()

    def _own_signals(self) -> Signals:
        return PostgresSignals(self._engine.url) if self._engine.dialect.name == "postgresql" else LocalSignals()

    def _migrate(self) -> None:
        with self._gate.open(), self._writer.begin() as connection:
            dialect.lock_for_migration(connection)
            migrate(connection)
            bulk.begin_numbering(connection, _EVENTS)
            self._begin_first_incarnation(Tx(connection, self._clock))

    def _begin_first_incarnation(self, tx: Tx) -> None:
        """Draw the id by which agents know this very database from a backup of it, or from another one (C9)."""
        table = schema.incarnations
        if tx.connection.execute(select(table.c.id).limit(1)).first() is None:
            row = {"id": new_incarnation(), "number": 1, "began_at": tx.now, "by": "control plane"}
            last = select(schema.counters.c.value).where(schema.counters.c.name == _EVENTS.counter).scalar_subquery()
            tx.connection.execute(insert(table).values(**row, reason="first start", first_event=last))

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A transaction that only reads."""
        with self._transaction(self._reader) as tx:
            yield tx

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """A transaction that writes: all of it or nothing; its signals go out with the commit."""
        topics: set[str] = set()
        try:
            with self._gate.open(), self._transaction(self._writer, self._conclude) as tx:
                topics = tx.topics
                yield tx
                tx.stamp()
        except failures.Unsure:
            self.signals.notify(topics)  # whoever looks for nothing has lost nothing
            raise
        if topics:
            self.signals.notify(topics)

    def _conclude(self, tx: Tx) -> None:
        """What goes to the database last, right before the commit; nothing is read here (``dialect.in_one_go``)."""
        _append_events(tx)
        self.signals.announce(tx.connection, tx.topics)

    @contextmanager
    def _transaction(self, engine: Engine, conclude: Callable[[Tx], None] = lambda _: None) -> Iterator[Tx]:
        with failures.connecting():
            connection = engine.connect()
        with connection:  # its end rolls back what was not committed
            with failures.working():
                transaction = connection.begin()
                tx = Tx(connection, self._clock)
                yield tx
            is_more = bool(tx.happenings or tx.topics)
            with failures.committing(is_writing=engine is self._writer), dialect.in_one_go(connection, is_more):
                conclude(tx)
                transaction.commit()
            if self._is_closed:
                connection.invalidate()  # its pool was closed meanwhile, and would keep it open for good

    def close(self) -> None:
        """Let all connections go; those in use, when they come back."""
        self._is_closed = True
        self.signals.close()
        self.signals.join()
        self._engine.dispose()


def _append_events(tx: Tx) -> None:
    """Write the events, numbered in the order of commits: their counter is held from here to the commit."""
    if not tx.happenings:
        return
    rows = [
        {
            "seq": index + 1,
            "id": secrets.token_hex(8),
            "at": tx.now,
            "live_system_id": happening.live_system_id,
            "component_id": happening.component_id,
            "kind": happening.kind.value,
            "by": happening.by,
            "message": happening.message,
            "before": happening.before,
            "after": happening.after,
        }
        for index, happening in enumerate(tx.happenings)
    ]
    bulk.append_numbered(tx.connection, _EVENTS, rows)
    tx.topics.add(EVENTS)
