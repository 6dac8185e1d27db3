"""A subscription and a sender for tests: over a store, with a receiver on the loopback, which a setting allows."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from fractal_cloud.control.notifying.addresses import checked_url, shown
from fractal_cloud.control.notifying.sealing import Opened, new_secret
from fractal_cloud.control.notifying.sender import Sender
from fractal_cloud.control.notifying.settings import NotificationSettings
from fractal_cloud.control.store import Store, notifications
from fractal_cloud.control.store.notifications import NewSubscription
from fractal_cloud.control.store.records import new_id
from tests.notifications.receiver import Receiver

KEY = "a-key-that-only-the-tests-have-0123456789"
LOOPBACK = (ip_network("127.0.0.0/8"),)
SETTINGS = NotificationSettings(key=KEY, allows_http=True, networks=LOOPBACK, timeout_seconds=5.0)


@dataclass
class Subscribed:
    """A subscription and what sends to it."""

    sender: Sender
    store: Store
    name: str
    secret: str

    def run(self) -> None:
        """Collect, and send what is due."""
        self.sender.run_once()

    @property
    def shown(self) -> dict[str, Any]:
        """The subscription as people see it."""
        with self.store.read() as tx:
            return notifications.get(tx, self.name, None)


def subscribe(store: Store, receiver: Receiver, settings: NotificationSettings = SETTINGS, **more: Any) -> Subscribed:
    """Have a receiver notified."""
    sender = Sender(store, settings, jitter=lambda: 0.0)
    secret = more.pop("secret", new_secret())
    url = more.pop("url", receiver.url)
    subscription_id = new_id()
    row: dict[str, Any] = {"name": "team", "format": "cloudevents", "kinds": [], "environments": [], "live_systems": []}
    row |= more
    sealed = sender.key.seal(subscription_id, Opened(url, secret))
    wanted = NewSubscription(
        id=subscription_id,
        address=shown(checked_url(url, settings)),
        sealed=sealed,
        signed=bool(secret),
        by="ann",
        **row,
    )
    with store.write() as tx:
        notifications.add(tx, wanted)
    return Subscribed(sender, store, row["name"], secret)
