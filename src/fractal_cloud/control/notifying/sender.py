"""Fills the queues from the events and empties them, beside the requests; any number of processes may do so.

One thread sends to one receiver, a few of them at once: a slow or dead receiver holds up neither the others nor any
request, and its turn comes back at growing intervals. Nothing is held in memory but what is being sent.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import structlog

from fractal_cloud.control.notifying import delivery as http
from fractal_cloud.control.notifying.payloads import payload
from fractal_cloud.control.notifying.sealing import NoKey, SubscriptionKey
from fractal_cloud.control.notifying.settings import NotificationSettings
from fractal_cloud.control.store import Store, incarnations
from fractal_cloud.control.store import notification_queue as queue
from fractal_cloud.control.store.database import DatabaseError
from fractal_cloud.control.store.failures import DatabaseUnavailable
from fractal_cloud.control.store.notification_queue import Claimed, Delivery, Failure
from fractal_cloud.control.store.signals import EVENTS, NOTIFICATIONS
from fractal_cloud.model.notification import NotificationFormat

log = structlog.get_logger()

AT_ONCE: Final = 8
"""Receivers that one process sends to at the same time."""
REST_SECONDS: Final = 0.2
"""Between two rounds, however much happens."""
LONGEST_SECONDS: Final = 15.0
"""Until the next round, where nothing is due and nobody wakes: another process may have died with a claim."""
IDLE_SECONDS: Final = 300.0
"""The same, where nobody has subscribed."""
CLOSE_SECONDS: Final = 2.0
_AFTER_A_FAILURE: Final = 2.0
Count = Callable[[str, str], None]


class _Workers:
    """The threads that send; they are daemons, so that no receiver keeps the process from ending."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._lock = threading.Lock()
        self._running: set[threading.Thread] = set()

    @property
    def has_free(self) -> bool:
        """Whether another one may begin."""
        with self._lock:
            return len(self._running) < AT_ONCE

    def begin(self, claimed: Claimed) -> None:
        """Send to a receiver in a thread of its own."""
        thread = threading.Thread(target=self._work, args=(claimed,), daemon=True, name="fractal-notify")
        with self._lock:
            self._running.add(thread)
        thread.start()

    def _work(self, claimed: Claimed) -> None:
        try:
            self._sender.send_all(claimed)
        except (DatabaseError, DatabaseUnavailable) as error:
            # Nobody knows any more whether it was sent: it is sent again once the claim has ended.
            log.warning("the outcome of a notification was not stored", subscription=claimed.name, error=str(error))
        finally:
            with self._lock:
                self._running.discard(threading.current_thread())
            self._sender.wake()

    def close(self) -> None:
        """Give those that are sending a moment to store what came of it."""
        until = time.monotonic() + CLOSE_SECONDS
        with self._lock:
            running = list(self._running)
        for thread in running:
            thread.join(max(until - time.monotonic(), 0))


class Sender:
    """Sends what is due. ``count`` is notified the outcome of every try, with the name of the subscription."""

    def __init__(
        self,
        store: Store,
        settings: NotificationSettings,
        count: Count = lambda _outcome, _name: None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self.key = SubscriptionKey(settings)
        self._store = store
        self._pace = settings.pace
        self._context = http.trusted(settings.ca_file)
        self._count = count
        self._jitter = jitter
        self._source = ""

    # --- one step each; tests call these

    def collect(self) -> None:
        """Queue what follows from the events after the cursor."""
        while queue.collect(self._store.database, self._pace):
            pass

    def claim(self) -> Claimed | None:
        """Take a receiver to which something is due."""
        with self._store.read() as tx:
            has_any, due = queue.next_due(tx)
            if not has_any or due is None or due > tx.now:
                return None
        with self._store.write() as tx:
            return queue.claim(tx, self._pace)

    def send_all(self, claimed: Claimed) -> None:
        """Send to one receiver what is due, in its order, until nothing is left or it fails."""
        while True:
            with self._store.write() as tx:
                delivery = queue.next_of(tx, claimed, self._pace)
            if delivery is None:
                return
            failure = self._send(claimed, delivery)
            self._count("failed" if failure is not None else "sent", claimed.name)
            with self._store.write() as tx:
                if failure is None:
                    queue.sent(tx, claimed, delivery)
                else:
                    queue.failed(tx, claimed, delivery, failure, self._pace)
            if failure is not None:
                log.warning("a notification was not accepted", subscription=claimed.name, error=failure.error)
                return

    def run_once(self) -> None:
        """Collect, and send all that is due, one receiver after the other."""
        self.collect()
        while (claimed := self.claim()) is not None:
            self.send_all(claimed)

    def _send(self, claimed: Claimed, delivery: Delivery) -> Failure | None:
        try:
            opened = self.key.open(claimed.id, claimed.sealed)
        except NoKey as error:
            return Failure(f"not sent: {error}", jitter=self._jitter())
        made = payload(delivery, NotificationFormat(claimed.format), self._named_source(), opened.secret)
        failure = http.send(opened.url, made, self.settings, self._context)
        if failure is None:
            return None
        return Failure(failure.error, failure.at_least, failure.is_refused, self._jitter())

    def _named_source(self) -> str:
        """What CloudEvents call the source: the database, by an id that it has had from its first start."""
        if not self._source:
            with self._store.read() as tx:
                self._source = f"urn:fractal-cloud:{incarnations.installation(tx)}"
        return self._source

    # --- for good

    async def run_forever(self) -> None:
        """Send what becomes due until cancelled; a database that is away for a while is tried again."""
        workers = _Workers(self)
        rounds = ThreadPoolExecutor(1, "fractal-notify-rounds")
        loop = asyncio.get_running_loop()
        try:
            has_any = True
            while not self._store.signals.is_closed:
                with self._store.signals.subscribe([NOTIFICATIONS, EVENTS] if has_any else [NOTIFICATIONS]) as news:
                    had_any = has_any
                    has_any, seconds = await loop.run_in_executor(rounds, self._round, workers)
                    if has_any == had_any:
                        await news.wait(seconds)
                await asyncio.sleep(REST_SECONDS)
        finally:
            rounds.shutdown(wait=False, cancel_futures=True)
            workers.close()

    def wake(self) -> None:
        """Begin the next round at once."""
        self._store.signals.notify([NOTIFICATIONS])

    def _round(self, workers: _Workers) -> tuple[bool, float]:
        """Collect, hand out what is due; returns whether anybody has subscribed, and when to come again."""
        try:
            self.collect()
            while workers.has_free and (claimed := self.claim()) is not None:
                workers.begin(claimed)
            with self._store.read() as tx:
                has_any, due = queue.next_due(tx)
                if not has_any:
                    return False, IDLE_SECONDS
                seconds = LONGEST_SECONDS if due is None else (due - tx.now).total_seconds()
        except (DatabaseError, DatabaseUnavailable) as error:
            log.warning("notifications wait for the database", error=str(error))
            return True, _AFTER_A_FAILURE
        return True, min(max(seconds, REST_SECONDS), LONGEST_SECONDS)
