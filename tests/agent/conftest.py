"""What tests of the agent share."""

from __future__ import annotations

import pytest

from tests.manual_clock import ManualClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Time passes when the test says so."""
    return ManualClock(monkeypatch)
