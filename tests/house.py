"""How often control planes keep house in tests: rarely, but where a test waits for what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from fractal_cloud.control import housekeeping

RARELY: Final = 1.0
OFTEN: Final = 0.2
_as_cycles_want = housekeeping.interval


@contextmanager
def kept(at_least: float) -> Iterator[None]:
    """Let that many seconds pass between two rounds, however short the cycles are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(housekeeping, "interval", lambda cycle_seconds: max(_as_cycles_want(cycle_seconds), at_least))
        yield
