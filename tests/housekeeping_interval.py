"""Sets how often control planes run their housekeeping in tests: rarely, unless a test waits for its effects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from fractal_cloud.control import housekeeping

RARELY: Final = 1.0
OFTEN: Final = 0.2
_interval_of_product = housekeeping.interval


@contextmanager
def housekeeping_every(seconds: float) -> Iterator[None]:
    """Run housekeeping at most once in that many seconds, however short the cycles are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(housekeeping, "interval", lambda cycle_seconds: max(_interval_of_product(cycle_seconds), seconds))
        yield
