"""What happens when the database is late, full, cut off, or has two who want the same in another order."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError

from fractal_cloud.control.store import Store, database, open_store, schema
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.failures import NotOpened, OutcomeUnknown, Overloaded, Undone, again
from fractal_cloud.control.store.limits import Limits
from fractal_cloud.model.event import EventKind
from tests.store.playing import CATALOG

TIGHT = Limits(connections=2, wait_seconds=0.2, statement_seconds=0.5, lock_seconds=0.3, idle_seconds=1.0)


@pytest.fixture
def store(postgres_database: str) -> Iterator[Store]:
    """A store with little patience."""
    made = open_store(postgres_database, types_here=CATALOG, limits=TIGHT)
    yield made
    made.close()


def _put(tx: Tx, name: str) -> None:
    tx.connection.execute(insert(schema.types), [{"type": name, "provider": "x", "facts": {}}])


def _names(store: Store) -> list[str]:
    with store.read() as tx:
        return list(tx.connection.execute(select(schema.types.c.type)).scalars())


def _cut(tx: Tx, other: Store) -> None:
    """End the server's side of a transaction's connection."""
    pid = tx.connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with other.read() as second:
        second.connection.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": pid})


# --- time


def test_the_time_is_the_databases_whatever_this_machine_says(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "utc_now", lambda: datetime(2001, 1, 1, tzinfo=UTC))
    with store.read() as tx:
        read = tx.connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        assert abs(tx.now - read) < timedelta(seconds=5)
        assert tx.now is tx.now, "one transaction has one time"


def test_sqlite_and_tests_keep_the_clock_they_are_given(tmp_path_factory: pytest.TempPathFactory) -> None:
    then = datetime(2001, 1, 1, tzinfo=UTC)
    made = open_store(f"sqlite:///{tmp_path_factory.mktemp('x') / 's.db'}", types_here=CATALOG, clock=lambda: then)
    with made.read() as tx:
        assert tx.now == then
    made.close()


# --- surely undone


def test_a_deadlock_is_undone_and_its_work_runs_again(postgres_database: str) -> None:
    made = open_store(postgres_database, types_here=CATALOG)
    with made.write() as tx:
        _put(tx, "one")
        _put(tx, "two")
    met = threading.Barrier(2)
    runs: list[str] = []

    def work(first: str, second: str) -> None:
        with made.write() as tx:
            runs.append(first)
            _lock(tx, first)
            if len(runs) <= 2:
                met.wait(10)
            _lock(tx, second)

    threads = [
        threading.Thread(target=again, args=(lambda a=a, b=b: work(a, b),)) for a, b in (("one", "two"), ("two", "one"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    made.close()
    # More than three where the one that was undone came back before the other had got its lock.
    assert len(runs) >= 3, "none of both ran a second time"


def _lock(tx: Tx, name: str) -> None:
    tx.connection.execute(select(schema.types).where(schema.types.c.type == name).with_for_update()).one()


def test_a_serialisation_failure_runs_again(store: Store) -> None:
    runs = []

    def work() -> None:
        with store.write() as tx:
            runs.append(1)
            _put(tx, f"run-{len(runs)}")
            if len(runs) < 3:
                tx.connection.execute(text("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40001'; END $$"))

    again(work)
    assert _names(store) == ["run-3"]


def test_a_connection_cut_before_the_commit_is_undone_and_the_pool_recovers(store: Store) -> None:
    def work() -> None:
        with store.write() as tx:
            _put(tx, "lost")
            _cut(tx, store)
            _put(tx, "more")

    with pytest.raises(Undone, match="nothing was changed"):
        work()
    assert _names(store) == []


def test_idle_connections_that_were_cut_are_replaced_without_a_word(store: Store) -> None:
    with store.read() as tx:
        own = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        tx.connection.execute(text(f"{own} AND pid <> pg_backend_pid()"))
    for _ in range(5):
        assert _names(store) == []


def test_what_the_values_are_to_blame_for_is_never_tried_again(store: Store) -> None:
    with store.write() as tx:
        _put(tx, "same")
    with pytest.raises(DBAPIError), store.write() as tx:
        _put(tx, "same")


# --- nobody knows


def test_a_connection_lost_while_committing_is_not_tried_again(store: Store) -> None:
    runs = []

    def work() -> None:
        with store.write() as tx:
            runs.append(1)
            _put(tx, "perhaps")
            # Cut at the COMMIT itself: a deferred trigger ends the session from inside.
            tx.connection.execute(text("CREATE TABLE bomb (x int)"))
            tx.connection.execute(
                text(
                    "CREATE FUNCTION blow() RETURNS trigger LANGUAGE plpgsql AS "
                    "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); RETURN NULL; END $$"
                )
            )
            tx.connection.execute(
                text(
                    "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON bomb DEFERRABLE INITIALLY DEFERRED "
                    "FOR EACH ROW EXECUTE FUNCTION blow()"
                )
            )
            tx.connection.execute(text("INSERT INTO bomb VALUES (1)"))

    with pytest.raises(OutcomeUnknown, match="may be done, or not"):
        again(work)
    assert runs == [1]


# --- events and the commit, which go in one go


def _put_with_event(tx: Tx, name: str, message: str = "changed") -> None:
    """Change something, and record an event of it."""
    _put(tx, name)
    tx.record(PendingEvent("ls-a", EventKind.DRIFT_FOUND, "somebody", "net", message))


def _messages(store: Store) -> list[str]:
    with store.read() as tx:
        return list(tx.connection.execute(select(schema.events.c.message).order_by(schema.events.c.seq)).scalars())


def test_events_are_committed_with_their_change(store: Store) -> None:
    for name in ("one", "two"):
        with store.write() as tx:
            _put_with_event(tx, name, name)
    assert _messages(store) == _names(store) == ["one", "two"]


def test_who_waits_too_long_to_count_events_has_changed_nothing(store: Store) -> None:
    with store.write() as holder:
        holder.connection.execute(text("SELECT value FROM counters WHERE name = 'events' FOR UPDATE"))
        with pytest.raises(Overloaded, match="held by somebody else"), store.write() as waiter:
            _put_with_event(waiter, "late")
    assert _names(store) == _messages(store) == []


def test_an_event_that_cannot_be_stored_rolls_everything_back(store: Store) -> None:
    with pytest.raises(DBAPIError), store.write() as tx:
        _put_with_event(tx, "lost", "a NUL \0 in it")
    assert _names(store) == _messages(store) == []
    with store.write() as tx:
        _put_with_event(tx, "more", "and on it goes")
    assert _messages(store) == ["and on it goes"]


def test_without_a_counter_nothing_is_stored_rather_than_events_lost(store: Store) -> None:
    with store.write() as tx:
        tx.connection.execute(text("DELETE FROM counters"))
    with pytest.raises(DBAPIError, match="seq"), store.write() as tx:
        _put_with_event(tx, "lost")
    assert _names(store) == _messages(store) == []


def test_a_connection_cut_while_events_are_counted_is_not_tried_again(store: Store, postgres_database: str) -> None:
    runs = []

    def work() -> None:
        with store.write() as tx:
            runs.append(1)
            _put_with_event(tx, "perhaps")

    other = open_store(postgres_database, types_here=CATALOG)
    here = "datname = current_database() AND pid <> pg_backend_pid()"
    waiting = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {here}"

    def cut() -> None:
        with other.read() as tx:
            while not tx.connection.execute(text(waiting)).all():
                time.sleep(0.01)

    with other.write() as holder:
        holder.connection.execute(text("SELECT value FROM counters WHERE name = 'events' FOR UPDATE"))
        cutting = threading.Thread(target=cut)
        cutting.start()
        with pytest.raises(OutcomeUnknown, match="may be done, or not"):
            again(work)
        cutting.join()
    other.close()
    assert runs == [1]
    assert _names(store) == _messages(store) == []


# --- never hangs


def test_no_free_connection_is_said_soon(store: Store) -> None:
    started = time.monotonic()
    with store.read() as one, store.read() as two:
        assert one.now <= two.now
        with pytest.raises(Overloaded, match="connections"), store.read():
            pass
    assert time.monotonic() - started < 3
    assert _names(store) == []


def test_statements_locks_and_idle_transactions_have_an_end(store: Store) -> None:
    with pytest.raises(Overloaded, match="took too long"), store.read() as tx:
        tx.connection.execute(text("SELECT pg_sleep(5)"))
    with store.write() as tx:
        _put(tx, "held")
    with store.write() as holder:
        _lock(holder, "held")
        with pytest.raises(Overloaded, match="held by somebody else"), store.write() as waiter:
            _lock(waiter, "held")
    with pytest.raises(Undone):
        _idle(store)
    assert _names(store) == ["held"]


def _idle(store: Store) -> None:
    with store.write() as tx:
        _put(tx, "idle")
        time.sleep(1.5)
        _put(tx, "more")


def test_a_database_that_is_not_there_is_said_with_what_to_do() -> None:
    with pytest.raises(NotOpened) as refused:
        open_store("postgresql://nobody:s3cret@127.0.0.1:1/none", types_here=CATALOG)
    assert "the database at 127.0.0.1 cannot be opened" in refused.value.message
    assert "FRACTAL_DATABASE_URL" in refused.value.advice
    assert "s3cret" not in str(refused.value)
