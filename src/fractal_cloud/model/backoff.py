"""Back-off: how long to wait before something that failed is tried again. Its only definition in the product.

Pure: the time is a value; nothing here sleeps, counts or throws dice. What is worth another try, and how often, is for
whoever tries.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Self, TypedDict

_MOST_STEPS: Final = 16
"""Beyond any longest wait; more would overflow."""


class StaminaWaits(TypedDict):
    """The parameters of stamina's functions that say how long to wait."""

    wait_initial: timedelta
    wait_max: timedelta
    wait_jitter: timedelta
    wait_exp_base: float


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that grow by a factor, from the first to the longest.

    ``jitter``: up to so much is added at random by who waits, so that many do not come back at the same moment.
    """

    first: timedelta
    longest: timedelta
    factor: int = 2
    jitter: timedelta = timedelta()

    @classmethod
    def in_seconds(cls, first: float, longest: float, *, factor: int = 2, jitter: float = 0.0) -> Self:
        """Make one of seconds."""
        return cls(timedelta(seconds=first), timedelta(seconds=longest), factor, timedelta(seconds=jitter))

    def delay(self, times: int) -> timedelta:
        """How long to wait after that many failures in a row (1: the first)."""
        growth: int = self.factor ** min(max(times, 1) - 1, _MOST_STEPS)
        return min(self.first * growth, self.longest)

    def next_try(self, now: datetime, times: int, at_least: float = 0.0) -> datetime:
        """When the next try is due; ``at_least``: the seconds that the other side asked for."""
        return now + max(self.delay(times), timedelta(seconds=at_least))

    def waits(self, attempts: int) -> tuple[float, ...]:
        """The waits between so many attempts, in seconds."""
        return tuple(self.delay(times).total_seconds() for times in range(1, attempts))

    def for_stamina(self) -> StaminaWaits:
        """The same waits, for whoever retries with stamina."""
        return {
            "wait_initial": self.first,
            "wait_max": self.longest,
            "wait_jitter": self.jitter,
            "wait_exp_base": self.factor,
        }
