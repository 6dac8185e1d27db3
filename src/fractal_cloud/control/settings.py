"""The settings of a control plane; where they come from (environment, flags) is the command line's business."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from fractal_cloud.control.store.limits import Limits

DATABASE_FILE = "fractal.db"
DEFAULT_CYCLE_SECONDS = 180.0
DEFAULT_KEEP_DAYS = 400.0


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """What a control plane must know to run.

    ``database_url`` empty means the SQLite file in ``data_dir``. ``admin_token`` empty means that one is made; it then
    stands in ``app.state.admin_token``. ``cycle_seconds`` is what the control plane takes for an agent's cycle where
    no agent has said its own. ``limits``: how much of PostgreSQL this process may take. ``keep_days``: how long events
    and journal are kept; 0 for ever.
    """

    database_url: str = ""
    admin_token: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8600
    data_dir: Path = field(default_factory=lambda: Path(".fractal"))
    cycle_seconds: float = DEFAULT_CYCLE_SECONDS
    limits: Limits = field(default_factory=Limits)
    keep_days: float = DEFAULT_KEEP_DAYS

    def resolved_database_url(self) -> str:
        """The database to open: as given, else the file in the data directory."""
        return self.database_url or f"sqlite:///{self.data_dir / DATABASE_FILE}"

    @property
    def keep(self) -> timedelta | None:
        """How long what happened is kept; None for ever."""
        return timedelta(days=self.keep_days) if self.keep_days > 0 else None
