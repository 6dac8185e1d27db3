"""When an agent tries again what failed. Pure: the time is a value; nothing here sleeps, reads or remembers.

How waits grow is for ``model.backoff``, which errors there are for ``model.errors``; what was tried how often is
remembered by whoever tries.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    DependencyMissing,
    Invalid,
    Protected,
    Throttled,
    Unexpected,
)

PERMANENT: Final = (Denied, Invalid, Protected)
"""What no time cures: a person must change something (S21)."""

_SECOND: Final = timedelta(seconds=1)
_HOUR: Final = timedelta(hours=1)

CONTROL_PLANE: Final = Backoff.in_seconds(0.2, 5)
"""A control plane that does not answer, or refuses the agent."""
THROTTLED: Final = Backoff.in_seconds(1, 60)
"""A service that asks for fewer calls."""

RECORD: Final = Backoff.in_seconds(60, 480)
"""A cloud's record of changes that does not show one yet."""
RECORD_REFUSED: Final = Backoff.in_seconds(60, 3600)
"""Such a record that does not answer."""
RECORD_DENIED: Final = Backoff(_HOUR, _HOUR)
"""Such a record that the agent may not read."""


def refused(cycle: timedelta) -> Backoff:
    """What is refused for good: one cycle, two, four, up to an hour."""
    return Backoff(cycle, max(cycle, _HOUR))


def passing(cycle: timedelta) -> Backoff:
    """Conflicts that pass by themselves, and what waits for something else: 1 s, 2 s, 4 s, up to a cycle."""
    return Backoff(min(_SECOND, cycle), cycle)


def unsettled(cycle: timedelta) -> Backoff:
    """What is under way, or had no answer: 0.4 s, 0.8 s, up to 15 s."""
    longest = min(timedelta(seconds=15), cycle)
    return Backoff(min(timedelta(seconds=0.4), longest), longest)


def searching(cycle: timedelta) -> Backoff:
    """A cloud that cannot be reached: every cycle, at least once a minute, at most once a second."""
    delay = min(max(cycle, _SECOND), timedelta(seconds=60))
    return Backoff(delay, delay)


def after_error(error: CloudError, cycle: timedelta) -> Backoff:
    """How a write that failed is tried again."""
    if isinstance(error, (*PERMANENT, Unexpected)):
        return refused(cycle)
    if isinstance(error, Throttled):
        return THROTTLED
    return passing(cycle) if isinstance(error, Conflict | DependencyMissing) else unsettled(cycle)


def next_try(error: CloudError | None, times: int, now: datetime, cycle: timedelta) -> datetime:
    """When what failed that many times in a row is tried again; an error of no cloud counts as refused for good."""
    if error is None:
        return refused(cycle).next_try(now, times)
    asked_for = error.after_seconds if isinstance(error, Throttled) else 0.0
    return after_error(error, cycle).next_try(now, times, asked_for)


def is_due(until: datetime, now: datetime, cycle: timedelta) -> bool:
    """Whether the time of the next try has come; a clock that was set back keeps nobody waiting."""
    return now >= until or until - now > 2 * refused(cycle).longest


def clock_time(at: datetime) -> str:
    """A moment of the next hours, as people read it."""
    return f"{at:%H:%M:%S} UTC"
