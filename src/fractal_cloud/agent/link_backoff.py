"""Halves of links that a cloud refuses, or that fail themselves: tried again later and later (S21)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from fractal_cloud.agent.backoff import PERMANENT, clock_time, is_due, next_try
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.link_handlers import Done, Task
from fractal_cloud.agent.scope import HeldScope, LinkRetry
from fractal_cloud.model.link import Half


class LinkBackoff:
    """What is not hammered. It starts again at once when something it is made from changes."""

    def __init__(self, held: HeldScope, cycle: timedelta) -> None:
        self._held = held
        self._cycle = cycle

    def allow(self, task: Task, now: datetime) -> bool:
        """Whether a half may run now."""
        retry = self._held.backoff.links.get(task.key)
        if retry is None or retry.about != _about(task):
            self._held.backoff.links.pop(task.key, None)
            return True
        return is_due(retry.until, now, self._cycle)

    def add(self, done: Done, noted: EntryRef, now: datetime) -> str:
        """A half ended badly: it is left alone for a while. Returns when it is tried again, where people must know."""
        task = done.task
        before = self._held.backoff.links.get(task.key)
        times = before.times + 1 if before is not None else 1
        is_passing = done.error is not None and not isinstance(done.error, PERMANENT)
        until = next_try(done.error, times, now, self._cycle)
        self._held.backoff.links[task.key] = LinkRetry(_about(task), until, times, noted.entry, noted.digest)
        return "" if is_passing else f"next try at {clock_time(until)}"

    def forget(self, task: Task) -> None:
        """A half went well."""
        self._held.backoff.links.pop(task.key, None)

    def keep_only(self, keys: Collection[tuple[str, Half, str]]) -> None:
        """Halves that have nothing to do any more are not held back either."""
        for key in [key for key in self._held.backoff.links if key not in keys]:
            del self._held.backoff.links[key]


def _about(task: Task) -> str:
    return f"{task.verb}:{task.digest}"
