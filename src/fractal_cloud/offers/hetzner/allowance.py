"""How many calls a project may still make: Hetzner reports it with every answer, and asking on helps nobody.

The limit is the project's, shared with all its people and tools. It is refilled evenly over an hour.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from fractal_cloud.model.errors import Throttled

LIMIT: Final = "ratelimit-limit"
REMAINING: Final = "ratelimit-remaining"
HOUR: Final = 3600.0


class Allowance:
    """What is left, as the last answer said, and what has come in since. Safe to share by threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._left: float | None = None
        self._per_second = 1.0
        self._at = clock()

    def note(self, headers: Mapping[str, str]) -> None:
        """Take over what an answer says; one that says nothing changes nothing."""
        try:
            left, limit = float(headers[REMAINING]), float(headers[LIMIT])
        except (KeyError, ValueError):
            return
        with self._lock:
            self._left, self._at = left, self._clock()
            self._per_second = max(limit, 1.0) / HOUR

    def check(self) -> None:
        """Raise ``Throttled`` where the next call is sure to be refused: it is not made."""
        with self._lock:
            if self._left is None or self._left + (self._clock() - self._at) * self._per_second >= 1:
                return
        raise Throttled(
            "the project has used up its calls of this hour (rate_limit_exceeded): it is tried again later",
            code="rate_limit_exceeded",
        )
