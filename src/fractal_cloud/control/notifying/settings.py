"""What an operator may set about notifications; where it comes from is the command line's business."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from fractal_cloud.control.store.notification_queue import Pace

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """How notifications are sent.

    ``key``: seals the addresses and secrets of subscriptions; without it, ``key_file`` holds one that is made at its
    first use; without both, nothing can be subscribed. ``allows_http``: whether an address may be plain http.
    ``networks``: networks that are not public and may be sent to all the same. ``ca_file``: authorities to trust
    besides the usual ones. ``timeout_seconds``: for one notification, from connecting to the end of the answer.
    ``group_seconds``, ``repeat_minutes``, ``give_up_hours``: see ``Pace``.
    """

    key: str = field(default="", repr=False)
    key_file: Path | None = None
    allows_http: bool = False
    networks: tuple[Network, ...] = ()
    ca_file: str = ""
    timeout_seconds: float = 10.0
    group_seconds: float = 5.0
    repeat_minutes: float = 15.0
    give_up_hours: float = 24.0

    @property
    def pace(self) -> Pace:
        """When things are notified. A claim outlasts one notification that takes as long as it may."""
        return Pace(
            group=timedelta(seconds=self.group_seconds),
            repeat=timedelta(minutes=self.repeat_minutes),
            give_up=timedelta(hours=self.give_up_hours),
            claim=timedelta(seconds=2 * self.timeout_seconds + 1),
        )
