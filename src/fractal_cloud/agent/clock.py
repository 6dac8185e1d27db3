"""The control plane's time, as an agent knows it between two answers. When a lease ends is for ``deadline``."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from fractal_cloud.agent.deadline import Moment, moment


class Clock:
    """Shows the control plane's time, carried on by this machine's steady clock."""

    def __init__(self, here: Callable[[], Moment] = moment) -> None:
        self._here = here
        at = here()
        self._offset = at.wall - at.steady

    def set(self, now: datetime) -> None:
        """Set it to the time that the control plane reported just now."""
        self._offset = now.timestamp() - self._here().steady

    def now(self) -> datetime:
        """Return the time at the control plane."""
        return datetime.fromtimestamp(self._offset + self._here().steady, UTC)
