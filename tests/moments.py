"""A clock that only the test moves: for tests of what happens when, at any load, on any machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fractal_cloud.agent.main import Clock
from tests.world import World


class Moments:
    """The time of control plane and agent; leases and deadlines go by the real one, as ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = datetime.now(UTC)
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(Clock, "now", lambda _: self.now)

    def rule(self, world: World) -> None:
        """Have the world's control plane go by this clock, too."""
        self._monkeypatch.setattr(world.app.state.store.database, "_clock", lambda: self.now)

    def pass_by(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)
