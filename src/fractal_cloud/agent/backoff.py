"""When something that failed is tried again. Pure: the time is a value; nothing here sleeps, reads or remembers.

Every pause doubles, from a first to a longest one. Which errors there are is for ``model.errors``; what was tried how
often is remembered by whoever tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fractal_cloud.model.errors import CloudError, Conflict, Denied, Invalid, Protected, Throttled, Unexpected

PERMANENT: Final = (Denied, Invalid, Protected)
"""What no time cures: a person must change something (S21)."""

_SECOND: Final = timedelta(seconds=1)
_HOUR: Final = timedelta(hours=1)
_MOST_DOUBLINGS: Final = 16
"""Beyond any longest pause; more would overflow."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Pauses that double, from the first to the longest."""

    first: timedelta
    longest: timedelta

    def delay(self, times: int) -> timedelta:
        """How long to wait after that many failures in a row (1: the first)."""
        doublings: int = min(max(times, 1) - 1, _MOST_DOUBLINGS)
        return min(self.first * (1 << doublings), self.longest)

    def next_try(self, now: datetime, times: int, at_least: float = 0.0) -> datetime:
        """When the next try is due; ``at_least``: the seconds that the other side asked for."""
        return now + max(self.delay(times), timedelta(seconds=at_least))


CONTROL_PLANE: Final = Backoff(timedelta(seconds=0.2), timedelta(seconds=5))
"""A control plane that does not answer, or refuses the agent."""
THROTTLED: Final = Backoff(_SECOND, timedelta(seconds=60))
"""A service that asks for fewer calls."""


def refused(cycle: timedelta) -> Backoff:
    """What is refused for good: one cycle, two, four, up to an hour."""
    return Backoff(cycle, max(cycle, _HOUR))


def passing(cycle: timedelta) -> Backoff:
    """Conflicts that pass by themselves: 1 s, 2 s, 4 s, up to a cycle."""
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
    return passing(cycle) if isinstance(error, Conflict) else unsettled(cycle)


def is_due(until: datetime, now: datetime, cycle: timedelta) -> bool:
    """Whether the time of the next try has come; a clock that was set back keeps nobody waiting."""
    return now >= until or until - now > 2 * refused(cycle).longest


def clock_time(at: datetime) -> str:
    """A moment of the next hours, as people read it."""
    return f"{at:%H:%M:%S} UTC"
