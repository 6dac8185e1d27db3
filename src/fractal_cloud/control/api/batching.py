"""Batches work that arrives at the same time: what waits while a batch runs is the next batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from starlette.concurrency import run_in_threadpool

T = TypeVar("T")
R = TypeVar("R")
MOST_SUBJECTS: Final = 1_000
"""The most subjects that the items of one batch have; a single item may have more."""
PATIENCE: Final = 1.0
"""How many seconds an item waits for the running batch before a second one begins beside it.

Long enough that mere load never begins a second one: the two would wait for each other's locks.
"""


class RunIndividually(Exception):
    """A batch failed as a whole: each item is to run alone, and then only the one with the error fails."""


@dataclass(eq=False, slots=True)
class _Waiting(Generic[T, R]):
    item: T
    subjects: Collection[str]
    outcome: asyncio.Future[R | Exception]


class Batcher(Generic[T, R]):
    """Runs items in batches. ``work`` runs on a thread and returns an outcome for each, or raises ``RunIndividually``.

    ``subjects``: what an item is about; items that share a subject run one after the other.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R | Exception]], subjects: Callable[[T], Collection[str]]
    ) -> None:
        self._work = work
        self._subjects = subjects
        self._waiting: list[_Waiting[T, R]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, item: T) -> R:
        """Run an item in a batch; returns its outcome, or raises it."""
        loop = asyncio.get_running_loop()
        own: _Waiting[T, R] = _Waiting(item, self._subjects(item), loop.create_future())
        self._waiting.append(own)
        if not self._running:
            self._begin()
        patience = loop.call_later(PATIENCE, self._begin_beside, own)
        try:
            outcome = await own.outcome
            if isinstance(outcome, RunIndividually):
                (outcome,) = await run_in_threadpool(self._work, [item])
        finally:
            patience.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _begin_beside(self, own: _Waiting[T, R]) -> None:
        """Begin a second batch beside the one that runs, if the item still waits."""
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
        task = asyncio.get_running_loop().create_task(self._run_batch(chosen))
        self._running.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if self._waiting and not self._running:
            self._begin()

    async def _run_batch(self, chosen: Sequence[_Waiting[T, R]]) -> None:
        outcomes: Sequence[R | Exception]
        try:
            outcomes = await run_in_threadpool(self._work, [one.item for one in chosen])
        except Exception as error:  # noqa: BLE001 (raised to everybody who waits for it)
            outcomes = [error] * len(chosen)
        for one, outcome in zip(chosen, outcomes, strict=True):
            if not one.outcome.done():
                one.outcome.set_result(outcome)
