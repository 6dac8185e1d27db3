"""The settings of a control plane; where they come from (environment, flags) is the command line's business."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from fractal_cloud.control.limits import ClientLimits
from fractal_cloud.control.notifying.sealing import KEY_FILE
from fractal_cloud.control.notifying.settings import NotificationSettings
from fractal_cloud.control.store.limits import Limits
from fractal_cloud.control.store.sessions import Endings
from fractal_cloud.control.tls import Tls
from fractal_cloud.model.address import is_loopback

DATABASE_FILE = "fractal.db"
DEFAULT_CYCLE_SECONDS = 180.0
DEFAULT_KEEP_DAYS = 400.0


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """What a control plane must know to run.

    ``database_url`` empty means the SQLite file in ``data_dir``. ``admin_token`` empty means that one is made; it then
    stands in ``app.state.admin_token``. ``cycle_seconds`` is what the control plane takes for an agent's cycle where
    no agent has said its own. ``limits``: how much of PostgreSQL this process may take. ``keep_days``: how long events
    and journal are kept; 0 for ever. ``session_endings``: when sessions at the dashboard end. ``clients``: how much of
    this process its clients may take. ``tls``: its certificate and key; without them it speaks plain http.
    ``admin_agents``: whether an admin's token may be an agent's, where only this machine can connect (A1).
    ``notifications``: how they are sent.
    """

    database_url: str = ""
    admin_token: str = field(default="", repr=False)
    host: str = "127.0.0.1"
    port: int = 8600
    data_dir: Path = field(default_factory=lambda: Path(".fractal"))
    cycle_seconds: float = DEFAULT_CYCLE_SECONDS
    limits: Limits = field(default_factory=Limits)
    keep_days: float = DEFAULT_KEEP_DAYS
    session_endings: Endings = field(default_factory=Endings)
    clients: ClientLimits = field(default_factory=ClientLimits)
    tls: Tls | None = None
    admin_agents: bool = False
    notifications: NotificationSettings = field(default_factory=NotificationSettings)

    @property
    def resolved_notifications(self) -> NotificationSettings:
        """How notifications are sent; beside an SQLite file there is also one for their key."""
        given = self.notifications
        url = self.resolved_database_url()
        if given.key or given.key_file is not None or not url.startswith("sqlite:///"):
            return given
        return replace(given, key_file=Path(url.removeprefix("sqlite:///")).with_name(KEY_FILE))

    @property
    def lets_admins_be_agents(self) -> bool:
        """Whether an admin's token is accepted as an agent's: only where it was asked for, and on loopback."""
        return self.admin_agents and is_loopback(self.host)

    def resolved_database_url(self) -> str:
        """The database to open: as given, else the file in the data directory."""
        return self.database_url or f"sqlite:///{self.data_dir / DATABASE_FILE}"

    @property
    def keep(self) -> timedelta | None:
        """How long what happened is kept; None for ever."""
        return timedelta(days=self.keep_days) if self.keep_days > 0 else None
