"""To whom notifications are sent: subscriptions by name, and how sending to each of them goes.

The address and the secret of a subscription are sealed by whoever calls; what is queued for it stands in
``notification_queue``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import delete, func, insert, select, update

from fractal_cloud.control.store import events, visibility
from fractal_cloud.control.store.database import PendingEvent, Tx
from fractal_cloud.control.store.errors import NotFound, Refused
from fractal_cloud.control.store.realm_bindings import NOBODYS
from fractal_cloud.control.store.records import Json
from fractal_cloud.control.store.schema import notifications, subscriptions
from fractal_cloud.control.store.signals import NOTIFICATIONS
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.model.event import EventKind

MOST_SUBSCRIPTIONS: Final = 200
"""Each is compared with every event: more are better spread by one receiver."""


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription as it is asked for; ``address`` is what is shown of the address, ``sealed`` holds all of it.

    Empty ``kinds``, ``environments`` or ``live_systems``: all of them.
    """

    id: str
    name: str
    address: str
    sealed: str
    format: str
    signed: bool
    kinds: list[str]
    environments: list[str]
    live_systems: list[str]
    by: str


def add(tx: Tx, wanted: NewSubscription) -> Json:
    """Add a subscription: it is notified of what happens from now on."""
    if _row(tx, wanted.name) is not None:
        raise Refused(f"there is a subscription {wanted.name!r} already: remove it first, or choose another name")
    if tx.connection.execute(select(func.count()).select_from(subscriptions)).scalar_one() >= MOST_SUBSCRIPTIONS:
        raise Refused(f"there are {MOST_SUBSCRIPTIONS} subscriptions already: remove one that nobody needs")
    row = {
        "id": wanted.id,
        "name": wanted.name,
        "address": wanted.address,
        "sealed": wanted.sealed,
        "format": wanted.format,
        "signed": wanted.signed,
        "kinds": wanted.kinds,
        "environments": wanted.environments,
        "live_systems": wanted.live_systems,
        "after": events.newest(tx),
        "created_at": tx.now,
        "created_by": wanted.by,
    }
    tx.connection.execute(insert(subscriptions), [row])
    message = f"{wanted.name!r} is notified at {wanted.address} of {', '.join(wanted.kinds) or 'everything'}"
    tx.record(PendingEvent(NOBODYS, EventKind.NOTIFICATION_ADDED, wanted.by, message=message))
    tx.wake([NOTIFICATIONS])
    return get(tx, wanted.name, None)


def remove(tx: Tx, name: str, by: str, sees: Environments) -> None:
    """Remove a subscription, with what was still to be sent to it."""
    row = require(tx, name, sees)
    unsent = _pending(tx).get(row.id, 0)
    tx.connection.execute(delete(subscriptions).where(subscriptions.c.id == row.id))
    message = f"{name!r} is not notified at {row.address} any more"
    message += f"; {unsent} that were to be sent are dropped" if unsent else ""
    tx.record(PendingEvent(NOBODYS, EventKind.NOTIFICATION_REMOVED, by, message=message))


def list_all(tx: Tx, sees: Environments) -> list[Json]:
    """Every subscription that somebody may see, by name, with how it goes."""
    pending = _pending(tx)
    found = tx.connection.execute(select(subscriptions).order_by(subscriptions.c.name)).all()
    return [_described(row, pending.get(row.id, 0)) for row in found if is_within(sees, row.environments)]


def get(tx: Tx, name: str, sees: Environments) -> Json:
    """One of them."""
    row = require(tx, name, sees)
    return _described(row, _pending(tx).get(row.id, 0))


def require(tx: Tx, name: str, sees: Environments) -> Any:
    """The row of a subscription, or ``NotFound``, as for one that never was."""
    row = _row(tx, name)
    if row is None or not is_within(sees, row.environments):
        raise NotFound(f"there is no subscription {name!r}: GET /notifications lists them")
    return row


def is_within(sees: Environments, environments: list[str]) -> bool:
    """Whether what a subscription is notified of is all in environments that somebody may see."""
    if sees is None:
        return True
    return bool(environments) and all(visibility.covers(sees, one) for one in environments)


def note_test(tx: Tx, subscription_id: str, test: Json) -> None:
    """Store how the last test of a subscription goes."""
    tx.connection.execute(update(subscriptions).where(subscriptions.c.id == subscription_id).values(test=test))


def pending(tx: Tx) -> int:
    """How many notifications are still to be sent, of all subscriptions."""
    return int(tx.connection.execute(select(func.count()).select_from(notifications)).scalar_one())


def _row(tx: Tx, name: str) -> Any:
    return tx.connection.execute(select(subscriptions).where(subscriptions.c.name == name)).first()


def _pending(tx: Tx) -> dict[str, int]:
    c = notifications.c
    query = select(c.subscription_id, func.count().label("number")).group_by(c.subscription_id)
    return {row.subscription_id: row.number for row in tx.connection.execute(query)}


def _described(row: Any, unsent: int) -> Json:
    """A subscription as the API shows it: neither its whole address nor its secret."""
    return {
        "name": row.name,
        "address": row.address,
        "format": row.format,
        "signed": row.signed,
        "kinds": row.kinds,
        "environments": row.environments,
        "liveSystems": row.live_systems,
        "createdAt": row.created_at,
        "createdBy": row.created_by,
        "pending": unsent,
        "sent": row.sent,
        "givenUp": row.given_up,
        "lastSentAt": row.last_sent_at,
        "failures": row.failures,
        "failingSince": row.failing_since,
        "lastError": row.last_error,
        "nextTry": row.next_try,
        "test": row.test,
    }
