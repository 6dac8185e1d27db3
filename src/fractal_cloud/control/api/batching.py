"""Work that comes at the same time is done in one go: what waits while some is under way goes together, next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")
R = TypeVar("R")
MOST_SUBJECTS: Final = 1_000
"""As much goes together as is about so many things; one item may be about more."""
PATIENCE: Final = 1.0
"""How long, in seconds, anybody waits for others: what is held up by something keeps nobody else for longer.

Long enough that mere load never begins beside what is under way: the two would wait for each other's locks.
"""


class RunIndividually(Exception):
    """It could not be done together: each is to be done alone, and then only what is to blame fails."""


@dataclass(eq=False, slots=True)
class _Waiting(Generic[T, R]):
    item: T
    subjects: Collection[str]
    outcome: asyncio.Future[R | Exception]


class Batcher(Generic[T, R]):
    """Does items together. ``work`` runs on a thread and tells an outcome for each, or raises ``RunIndividually``.

    ``subjects``: what an item is about; items that share any of it are done one after the other.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R | Exception]], subjects: Callable[[T], Collection[str]]
    ) -> None:
        self._work = work
        self._subjects = subjects
        self._waiting: list[_Waiting[T, R]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def do(self, item: T) -> R:
        """Have an item done; what its outcome is, or raises."""
        loop = asyncio.get_running_loop()
        own: _Waiting[T, R] = _Waiting(item, self._subjects(item), loop.create_future())
        self._waiting.append(own)
        if not self._running:
            self._begin()
        patience = loop.call_later(PATIENCE, self._go_ahead, own)
        try:
            outcome = await own.outcome
            if isinstance(outcome, RunIndividually):
                (outcome,) = await run_in_threadpool(self._work, [item])
        finally:
            patience.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _go_ahead(self, own: _Waiting[T, R]) -> None:
        """Begin beside what is under way, if that has not come to an end since."""
        if own in self._waiting:
            self._begin()

    def _begin(self) -> None:
        chosen: list[_Waiting[T, R]] = []
        left: list[_Waiting[T, R]] = []
        seen: set[str] = set()
        for one in self._waiting:
            is_next = not chosen or (len(seen) + len(one.subjects) <= MOST_SUBJECTS and seen.isdisjoint(one.subjects))
            (chosen if is_next else left).append(one)
            seen.update(one.subjects)
        self._waiting = left
        task = asyncio.get_running_loop().create_task(self._do(chosen))
        self._running.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if self._waiting and not self._running:
            self._begin()

    async def _do(self, chosen: Sequence[_Waiting[T, R]]) -> None:
        outcomes: Sequence[R | Exception]
        try:
            outcomes = await run_in_threadpool(self._work, [one.item for one in chosen])
        except Exception as error:  # noqa: BLE001 (told to everybody who waits for it)
            outcomes = [error] * len(chosen)
        for one, outcome in zip(chosen, outcomes, strict=True):
            if not one.outcome.done():
                one.outcome.set_result(outcome)
