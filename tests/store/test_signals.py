"""Signals from process to process: two stores on one PostgreSQL, each with a listener of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial

import pytest
from sqlalchemy import text

from fractal_cloud.control.store import Store, open_store
from fractal_cloud.control.store.driver.notifications import MOST_BYTES, PostgresSignals
from fractal_cloud.control.store.signals import LocalSignals
from tests.store.playing import CATALOG


@pytest.fixture
def pair(postgres_database: str) -> Iterator[tuple[Store, Store]]:
    """Two processes' stores on one database."""
    here, there = (open_store(postgres_database, types_here=CATALOG) for _ in range(2))
    for store in (here, there):
        assert isinstance(store.signals, PostgresSignals)
        assert store.signals.is_listening(10)
    yield here, there
    here.close()
    there.close()


def _commit(store: Store, *topics: str) -> None:
    with store.write() as tx:
        tx.wake(topics)


def _is_woken(store: Store, topic: str, action: Callable[[], object], seconds: float = 10.0) -> bool:
    """Whether one who waits for a topic in a store is woken by an action in another thread."""

    async def wait() -> bool:
        with store.signals.subscribe([topic]) as subscription:
            thread = threading.Thread(target=action)
            thread.start()
            woken = await subscription.wait(seconds)
            await asyncio.to_thread(thread.join)
            return woken

    with ThreadPoolExecutor(1) as pool:  # a thread of its own: this one may have a loop running already
        return pool.submit(asyncio.run, wait()).result()


def test_a_commit_wakes_those_who_wait_in_another_process(pair: tuple[Store, Store]) -> None:
    here, there = pair
    assert _is_woken(there, "news", lambda: _commit(here, "news"))
    assert _is_woken(here, "own", lambda: _commit(here, "own"))
    assert not _is_woken(there, "something else", lambda: _commit(here, "other"), 0.3)


def test_a_transaction_that_fails_wakes_nobody_anywhere(pair: tuple[Store, Store]) -> None:
    here, there = pair

    def fail() -> None:
        with suppress(RuntimeError), here.write() as tx:
            tx.wake(["news"])
            raise RuntimeError

    assert not _is_woken(there, "news", fail, 0.3)
    assert not _is_woken(here, "news", fail, 0.3)


def test_more_topics_than_a_notification_holds_wake_everybody(pair: tuple[Store, Store]) -> None:
    here, there = pair
    many = [f"reach:provider/{index:040}" for index in range(MOST_BYTES // 40)]
    assert _is_woken(there, "something else", lambda: _commit(here, *many))


def test_what_a_stranger_says_on_the_channel_wakes_everybody_and_breaks_nothing(pair: tuple[Store, Store]) -> None:
    here, there = pair

    def say(payload: str) -> None:
        with here.write() as tx:
            tx.connection.execute(text("SELECT pg_notify('fractal_cloud', :payload)"), {"payload": payload})

    for payload in ("", "{}", "[1]", "null"):
        assert _is_woken(there, "news", partial(say, payload))


def test_ones_own_process_is_woken_without_its_listener(pair: tuple[Store, Store]) -> None:
    here, _ = pair
    with _deaf():
        assert _is_woken(here, "news", lambda: _commit(here, "news"))


@contextmanager
def _deaf() -> Iterator[None]:
    """Listeners that hear nobody: who is woken was woken by their own process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresSignals, "_hear", lambda *_: None)
        yield


def test_a_lost_connection_is_made_again_and_wakes_everybody_once(pair: tuple[Store, Store]) -> None:
    here, there = pair

    def cut() -> None:
        with here.read() as tx:
            listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
            assert len(tx.connection.execute(text(listening)).all()) == 2

    assert _is_woken(there, "whatever", cut)
    assert isinstance(there.signals, PostgresSignals)
    assert there.signals.is_listening(10)
    assert _is_woken(there, "news", lambda: _commit(here, "news"))


def test_closing_ends_every_wait_and_the_thread(pair: tuple[Store, Store]) -> None:
    here, _ = pair
    signals = here.signals
    assert isinstance(signals, PostgresSignals)
    assert not _is_woken(here, "news", signals.close), "the server stops: that is no news"
    signals.join()
    assert not signals.is_listening()


def test_closing_also_ends_the_wait_of_who_listens_to_no_topic() -> None:
    """An agent that reaches nothing yet waits like this; a server that stops waits for all of its answers."""

    async def wait() -> None:
        signals = LocalSignals()
        with signals.subscribe([]) as subscription:
            asyncio.get_running_loop().call_later(0.05, signals.close)
            await asyncio.wait_for(subscription.wait(60), 10)

    with ThreadPoolExecutor(1) as pool:  # a thread of its own: this one may have a loop running already
        pool.submit(asyncio.run, wait()).result()
