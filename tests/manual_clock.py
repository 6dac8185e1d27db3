"""A clock that only the test advances, so that tests of timing hold at any load and on any machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fractal_cloud.agent.clock import Clock
from tests.world import World


class ManualClock:
    """The clock of control plane and agent; leases and deadlines still go by the real one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = datetime.now(UTC)
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(Clock, "now", lambda _: self.now)

    def drive(self, world: World) -> None:
        """Have the world's control plane go by this clock as well."""
        self._monkeypatch.setattr(world.app.state.store.database, "_clock", lambda: self.now)

    def timestamp(self) -> float:
        """The time in seconds since the epoch, for a sandbox that goes by this clock."""
        return self.now.timestamp()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
