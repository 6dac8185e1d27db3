"""Halves of links that a cloud refuses, or that are at fault themselves: tried again later and later (S21)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from fractal_cloud.agent.halves import Done, Task
from fractal_cloud.agent.scope import HeldScope, Pause
from fractal_cloud.model.errors import Denied, Invalid
from fractal_cloud.model.link import Half

LONGEST_PAUSE = timedelta(hours=1)


class Pauses:
    """What is not hammered. It starts again at once when something it is made from changes."""

    def __init__(self, held: HeldScope, cycle: timedelta) -> None:
        self._held = held
        self._cycle = cycle

    def allow(self, task: Task, now: datetime) -> bool:
        """Whether a half may run now."""
        pause = self._held.pauses.get(task.key)
        if pause is None or pause.about != _about(task):
            self._held.pauses.pop(task.key, None)
            return True
        return now >= pause.until

    def add(self, done: Done, now: datetime) -> None:
        """A half ended badly: what is refused for good, or at fault, is left alone for a while."""
        if not (done.is_faulty or done.failed or isinstance(done.error, Denied | Invalid)):
            return
        task = done.task
        before = self._held.pauses.get(task.key)
        times = before.times + 1 if before is not None else 1
        pause = min(self._cycle * 2 ** min(times - 1, 8), LONGEST_PAUSE)
        self._held.pauses[task.key] = Pause(_about(task), now + pause, times)

    def forget(self, task: Task) -> None:
        """A half went well."""
        self._held.pauses.pop(task.key, None)

    def keep_only(self, keys: Collection[tuple[str, Half, str]]) -> None:
        """Halves that have nothing to do any more are not held back either."""
        for key in [key for key in self._held.pauses if key not in keys]:
            del self._held.pauses[key]


def _about(task: Task) -> str:
    return f"{task.verb}:{task.digest}"
