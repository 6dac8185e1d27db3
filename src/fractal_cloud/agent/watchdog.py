"""Calls that may never return: each is waited for only so long, and left behind after that.

A thread cannot be killed. So whoever calls into somebody else's code (an offer's verb, a vendor's SDK, a link handler)
does not make the call: a worker does, a daemon thread, while the caller waits. What makes no progress for too long is
given up; its worker is left behind, and nothing of the same key is called again before it has returned (S24).

What is called, and what follows from a call that was given up, does not belong here.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from contextvars import copy_context
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Beat = Callable[[], None]
"""Says that a call makes progress: a page came, an item was read."""


class NoReturn(Exception):
    """A call was given up: it made no progress for ``seconds``. What it was about to do may still happen."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it did not return within {seconds:g} s")
        self.seconds = seconds


class StillOut(Exception):
    """A call was not made: one of the same key was given up before, and has not returned since."""


@dataclass(eq=False, slots=True)
class _Call(Generic[T]):
    """One call under way. ``progress``: when it last got on. Everything but the beat is changed under the lock."""

    key: Hashable
    run: Callable[[Beat], T]
    late: Callable[[T], None] | None
    progress: float
    changed: threading.Condition
    is_over: bool = False
    is_given_up: bool = False
    result: Any = None
    error: BaseException | None = None


class Watchdog:
    """Makes calls that may never return.

    ``seconds``: for how long a call may make no progress. ``clock``: a steady one; whoever has another one must say
    ``recheck`` when it was moved.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._under_way: set[_Call[Any]] = set()
        self._out: Counter[Hashable] = Counter()
        self._idle: list[_Worker] = []
        self._is_closed = False

    def call(
        self,
        key: Hashable,
        run: Callable[[Beat], T],
        *,
        seconds: float | None = None,
        late: Callable[[T], None] | None = None,
    ) -> T:
        """Have ``run`` called, with the caller's context variables, and wait for it; what it raises is raised here.

        Raises ``NoReturn`` once it has made no progress for ``seconds``, and ``StillOut``, without a call, while an
        earlier one of the same key is out. ``late`` gets what a call returned after it had been given up.
        """
        call = _Call(key, run, late, self._clock(), threading.Condition(self._lock))
        with self._lock:
            if self._out[key]:
                raise StillOut
            self._under_way.add(call)
            worker = self._idle.pop() if self._idle else _Worker(self)
        context = copy_context()
        worker.tasks.put(lambda: context.run(self._carry_out, call))
        return self._wait(call, seconds)

    def is_out(self, key: Hashable) -> bool:
        """Whether a call of this key was given up and has not returned."""
        with self._lock:
            return self._out[key] > 0

    @property
    def calls_under_way(self) -> int:
        """How many calls are waited for; those that were given up are not among them."""
        with self._lock:
            return len(self._under_way)

    def hurry(self, seconds: float) -> None:
        """Give every call up that makes no progress for so much shorter a time: whoever called is about to end."""
        with self._lock:
            self._seconds = min(self._seconds, seconds)
        self.recheck()

    def recheck(self) -> None:
        """The clock was moved: see what is to be given up by now."""
        with self._lock:
            for call in self._under_way:
                call.changed.notify_all()

    def close(self) -> None:
        """Let all workers go that have nothing to do; the others go when they have returned."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.tasks.put(None)

    # --- the caller's side

    def _wait(self, call: _Call[T], seconds: float | None) -> T:
        with self._lock:
            while not call.is_over:
                limit = self._seconds if seconds is None else min(seconds, self._seconds)
                left = call.progress + limit - self._clock()
                if left <= 0:
                    call.is_given_up = True
                    self._under_way.discard(call)
                    self._out[call.key] += 1
                    raise NoReturn(limit)
                call.changed.wait(left)
        if call.error is not None:
            raise call.error
        result: T = call.result
        return result

    # --- the worker's side

    def _carry_out(self, call: _Call[Any]) -> None:
        def beat() -> None:
            call.progress = self._clock()

        try:
            call.result = call.run(beat)
        except BaseException as error:  # noqa: BLE001  # it is raised where the call was asked for
            call.error = error
        with self._lock:
            call.is_over = True
            self._under_way.discard(call)
            if call.is_given_up:
                self._out[call.key] -= 1
                if not self._out[call.key]:
                    del self._out[call.key]
            call.changed.notify_all()
        if call.is_given_up and call.error is None and call.late is not None:
            call.late(call.result)

    def _is_kept(self, worker: _Worker) -> bool:
        """Take a worker back that has nothing to do any more; False if it is to go."""
        with self._lock:
            if not self._is_closed:
                self._idle.append(worker)
            return not self._is_closed


class _Worker:
    """A daemon thread that makes one call after the other."""

    def __init__(self, watchdog: Watchdog) -> None:
        self.tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._watchdog = watchdog
        threading.Thread(target=self._run, name="call", daemon=True).start()

    def _run(self) -> None:
        while (task := self.tasks.get()) is not None:
            task()
            del task  # whatever it holds is not kept until the next one
            if not self._watchdog._is_kept(self):  # noqa: SLF001  # two halves of one thing
                return


@dataclass(slots=True)
class _Task:
    future: Future[Any]
    run: Callable[[], Any]


@dataclass(slots=True)
class DaemonPool(Executor):
    """A pool of at most ``size`` daemon threads: unlike the library's, one that hangs does not keep a program alive."""

    size: int
    name: str
    _tasks: SimpleQueue[_Task | None] = field(default_factory=SimpleQueue)
    _threads: list[threading.Thread] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _waiting: int = 0
    _is_shut: bool = False

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Have a function called by one of the threads, with the caller's context variables."""
        future: Future[T] = Future()
        context = copy_context()
        with self._lock:
            if self._is_shut:
                raise RuntimeError(f"the threads named {self.name!r} were let go")
            self._tasks.put(_Task(future, lambda: context.run(fn, *args, **kwargs)))
            if self._waiting > 0:
                self._waiting -= 1
            elif len(self._threads) < self.size:
                thread = threading.Thread(target=self._run, name=f"{self.name}-{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            if task.future.set_running_or_notify_cancel():
                try:
                    result = task.run()
                except BaseException as error:  # noqa: BLE001  # it is raised where the result is asked for
                    task.future.set_exception(error)
                else:
                    task.future.set_result(result)
                    del result
            del task
            with self._lock:
                self._waiting += 1

    def _cancel(self) -> None:
        """Take back what no thread has begun; threads may take from the same queue meanwhile."""
        while True:
            try:
                task = self._tasks.get_nowait()
            except Empty:
                return
            if task is not None:
                task.future.cancel()
                task.future.set_running_or_notify_cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; with ``wait``, return once the threads have ended."""
        with self._lock:
            self._is_shut = True
            if cancel_futures:
                self._cancel()
            for _ in self._threads:
                self._tasks.put(None)
        if wait:
            for thread in self._threads:
                thread.join()


__all__ = ["Beat", "DaemonPool", "NoReturn", "StillOut", "Watchdog"]
