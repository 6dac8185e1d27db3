"""Until when this agent's leases certainly hold, by its own clocks; asked right before every write to a cloud.

Time counts from before the request that renewed the leases was sent: the control plane counts from later. Two clocks
are asked, and whichever says first that it is too late is believed:

- one that nobody can set and that goes on while the machine is suspended (Linux: CLOCK_BOOTTIME; CLOCK_MONOTONIC stands
  still meanwhile);
- the wall clock, which a virtual machine that was frozen from outside gets set right again, where the first one has
  slept through all of it. One that was set forward for another reason only costs the time until the next heartbeat.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def steady() -> float:
    """Seconds of a clock that nobody sets, and that goes on while the machine sleeps, where there is one."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


@dataclass(frozen=True, slots=True)
class Moment:
    """The same moment on both clocks."""

    steady: float
    wall: float


def moment() -> Moment:
    """Now."""
    return Moment(steady(), time.time())


class Deadline:
    """Passed until it is renewed for the first time. ``now`` reads both clocks; a test sets them as it likes."""

    def __init__(self, now: Callable[[], Moment] = moment) -> None:
        self._now = now
        self._until: Moment | None = None

    def renew(self, asked: Moment, seconds: float) -> None:
        """The control plane has renewed the leases, in answer to what was asked at that moment."""
        self._until = Moment(asked.steady + seconds, asked.wall + seconds)

    def has_passed(self) -> bool:
        """Whether the leases may be somebody else's by now."""
        now, until = self._now(), self._until
        return until is None or now.steady >= until.steady or now.wall >= until.wall
