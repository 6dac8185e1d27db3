"""What is still to be sent to whom: filled from the events by a cursor, emptied by whoever holds a claim.

Nobody who reports or deploys writes here. ``collect`` reads the events after the cursor, in the order of commits, and
puts what is news into the queue of each subscription, in the transaction that advances the cursor: a process may die at
any moment, and nothing is lost or queued twice. A queue is sent in its order, by one process at a time: ``claim`` takes
it for a while, ``next_of`` hands out its head, and ``sent`` or ``failed`` records what came of it. What died with its
process is handed out again, under the same id and with the same content, once the claim has ended.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic_core import to_json
from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update

from fractal_cloud.control.store import events as event_store
from fractal_cloud.control.store import notifications as subscription_store
from fractal_cloud.control.store.database import Database, PendingEvent, Tx
from fractal_cloud.control.store.driver import among, insert_missing, insert_rows, update_rows, upsert
from fractal_cloud.control.store.realm_bindings import NOBODYS
from fractal_cloud.control.store.records import Json, iso, new_id
from fractal_cloud.control.store.schema import (
    counters,
    events,
    notifications,
    notified_topics,
    subscriptions,
)
from fractal_cloud.control.store.signals import NOTIFICATIONS
from fractal_cloud.control.store.visibility import visible_ids
from fractal_cloud.model.backoff import Backoff
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.notification import NotificationKind
from fractal_cloud.rules.notify import (
    NOTIFIED_EVENTS,
    LastNotice,
    Notice,
    NotifiableEvent,
    is_news,
    is_same_story,
    notice_of,
)

BY: Final = "control plane"
SCOPES: Final = (NotificationKind.SCOPE_UNREAD, NotificationKind.SCOPE_READ)
Noticed = tuple[NotifiableEvent, Notice]
CURSOR: Final = "events notified"
AT_ONCE: Final = 1_000
"""Events that are read in one transaction."""
MOST_SKIPPED: Final = 5_000
"""Events that concern nobody are passed over without a write, up to so many."""
MOST_NAMED: Final = 20
"""Things that one notification names; of more, the number."""
MOST_QUEUED: Final = 100
"""Notifications of one subscription beyond which what comes is grouped by kind, no longer by LiveSystem."""
MOST_MESSAGE: Final = 500
MOST_VALUE: Final = 512
"""Bytes of what was before, and of what is after; longer values are left out."""
MOST_ERROR: Final = 300
MOST_REFUSALS: Final = 8
"""Tries of a notification that its receiver refuses as such: longer it would only hold up those behind it."""
JITTER: Final = 0.25
"""The part of a wait that is added to it at random."""

BACKOFF: Final = Backoff.in_seconds(2, 600)


@dataclass(frozen=True, slots=True)
class Pace:
    """When notifications are sent.

    ``group``: how long the first of a group waits for others. ``repeat``: the window of ``rules.notify``. ``give_up``:
    how old a notification may become while its receiver fails. ``claim``: how long a process has to send one.
    """

    group: timedelta = timedelta(seconds=5)
    repeat: timedelta = timedelta(minutes=15)
    give_up: timedelta = timedelta(hours=24)
    claim: timedelta = timedelta(seconds=21)
    backoff: Backoff = BACKOFF


# --- from events to queues


def collect(database: Database, pace: Pace, at_once: int = AT_ONCE) -> bool:
    """Queue what follows from new events; returns whether there are more of them. Writes only where there is news."""
    with database.read() as tx:
        if not _is_due(tx):
            return False
    with database.write() as tx:
        return _collect(tx, pace, at_once)


def _is_due(tx: Tx) -> bool:
    subscribed = tx.connection.execute(select(func.min(subscriptions.c.after))).scalar()
    if subscribed is None:
        return False
    begin = max(_cursor(tx), subscribed)
    is_next = select(events.c.seq).where(events.c.seq > begin, events.c.kind.in_(NOTIFIED_EVENTS)).limit(1)
    return tx.connection.execute(is_next).first() is not None or event_store.newest(tx) - begin > MOST_SKIPPED


def _cursor(tx: Tx, *, lock: bool = False) -> int:
    query = select(counters.c.value).where(counters.c.name == CURSOR)
    return int(tx.connection.execute(query.with_for_update() if lock else query).scalar() or 0)


def _collect(tx: Tx, pace: Pace, at_once: int) -> bool:
    insert_missing(tx.connection, counters, [{"name": CURSOR, "value": 0}])
    subscribed = tx.connection.execute(select(subscriptions)).all()
    if not subscribed:
        return False
    begin = max(_cursor(tx, lock=True), min(row.after for row in subscribed))
    newest = event_store.newest(tx)
    found = _after(tx, begin, newest, at_once)
    end = found[-1].seq if len(found) == at_once else max(newest, begin)
    if end > begin:
        upsert(tx.connection, counters, [{"name": CURSOR, "value": end}])
    noticed = [(event, notice) for event in found if (notice := notice_of(event)) is not None]
    if noticed:
        _queue(tx, subscribed, noticed, pace)
    tx.connection.execute(delete(notified_topics).where(notified_topics.c.at < tx.now - pace.repeat))
    return len(found) == at_once


def _after(tx: Tx, begin: int, end: int, most: int) -> list[NotifiableEvent]:
    c = events.c
    query = (
        select(c.seq, c.at, c.live_system_id, c.component_id, c.kind, c.by, c.message, c.before, c.after)
        .where(c.seq > begin, c.seq <= end, c.kind.in_(NOTIFIED_EVENTS))
        .order_by(c.seq)
        .limit(most)
    )
    return [NotifiableEvent(*row) for row in tx.connection.execute(query)]


@dataclass(slots=True)
class _Group:
    """A notification that nobody has tried to send yet, so that it may still grow."""

    row: Json
    is_new: bool
    has_changed: bool = False

    def add(self, item: Json) -> None:
        """Name one thing more; of one thing, the newest."""
        self.has_changed = True
        items: list[Json] = self.row["items"]
        about = item["liveSystemId"], item["componentId"]
        for index, one in enumerate(items):
            if item["componentId"] is not None and (one["liveSystemId"], one["componentId"]) == about:
                items[index] = item
                return
        self.row["count"] += 1
        if len(items) < MOST_NAMED:
            items.append(item)


@dataclass(slots=True)
class _Queue:
    """The queue of one subscription while events are put into it; ``groups`` in the order in which they are sent."""

    subscription_id: str
    groups: list[_Group] = field(default_factory=list)
    tried: int = 0

    def put(self, tx: Tx, event: NotifiableEvent, notice: Notice, pace: Pace) -> None:
        """Add one event, in a notification that is there already, or in one of its own."""
        about = event.live_system_id if len(self.groups) + self.tried < MOST_QUEUED else ""
        group = self._open(notice.kind, event.live_system_id) or (None if about else self._open(notice.kind, ""))
        if group is None:
            row: Json = {
                "id": new_id(),
                "subscription_id": self.subscription_id,
                "kind": notice.kind.value,
                "live_system_id": about,
                "items": [],
                "count": 0,
                "first_event": event.seq,
                "created_at": tx.now,
                "due_at": tx.now + pace.group,
                "tried": False,
                "attempts": 0,
            }
            group = _Group(row, is_new=True)
            self.groups.append(group)
        group.add(_item(event))

    def _open(self, kind: NotificationKind, live_system_id: str) -> _Group | None:
        """The group to add to; none where what came later of the same story would then be sent before it."""
        for group in reversed(self.groups):
            if group.row["live_system_id"] != live_system_id:
                continue
            there = NotificationKind(group.row["kind"])
            if there is kind:
                return group
            if len(self.groups) + self.tried < MOST_QUEUED and is_same_story(there, kind):
                return None
        return None


def _item(event: NotifiableEvent) -> Json:
    return {
        "liveSystemId": event.live_system_id,
        "componentId": event.component_id,
        "event": event.seq,
        "at": iso(event.at),
        "by": event.by,
        "message": event.message[:MOST_MESSAGE],
        "before": _bounded(event.before),
        "after": _bounded(event.after),
    }


def _bounded(value: Any) -> Any:
    return value if len(to_json(value, inf_nan_mode="null")) <= MOST_VALUE else None


def _queue(tx: Tx, subscribed: Iterable[Any], noticed: list[Noticed], pace: Pace) -> None:
    wanted = {row.id: _wanted_by(tx, row, noticed) for row in subscribed}
    wanted = {name: found for name, found in wanted.items() if found}
    last = _last_notices(tx, wanted)
    queues = _queues(tx, wanted)
    changed: dict[tuple[str, str], Json] = {}
    for subscription_id, found in wanted.items():
        queue = queues[subscription_id]
        for event, notice in found:
            key = subscription_id, notice.topic
            if not is_news(notice, tx.now, last.get(key), pace.repeat):
                continue
            last[key] = LastNotice(notice.state, tx.now)
            changed[key] = {
                "subscription_id": subscription_id,
                "topic": notice.topic,
                "state": notice.state,
                "at": tx.now,
            }
            queue.put(tx, event, notice, pace)
    upsert(tx.connection, notified_topics, list(changed.values()))
    groups = [group for queue in queues.values() for group in queue.groups]
    insert_rows(tx.connection, notifications, [group.row for group in groups if group.is_new])
    grown = [group.row for group in groups if group.has_changed and not group.is_new]
    update_rows(tx.connection, notifications, [{name: row[name] for name in ("id", "items", "count")} for row in grown])
    if changed:
        tx.wake([NOTIFICATIONS])


def _wanted_by(tx: Tx, subscription: Any, noticed: Iterable[Noticed]) -> list[Noticed]:
    """What a subscription asked for: by kind, by LiveSystem, and by the environments that it may know of."""
    named = set(subscription.live_systems)
    found = [
        (event, notice)
        for event, notice in noticed
        if event.seq > subscription.after
        and (not subscription.kinds or notice.kind.value in subscription.kinds)
        and (not named or event.live_system_id in named)
    ]
    if not found or not subscription.environments:
        return found
    named_environments = frozenset(subscription.environments)
    within = visible_ids(tx, named_environments, {event.live_system_id for event, _ in found})
    return [
        (event, notice)
        for event, notice in found
        if event.live_system_id in within or _is_scope_within(event, notice, named_environments)
    ]


def _is_scope_within(event: NotifiableEvent, notice: Notice, named: frozenset[str]) -> bool:
    """Whether an event is about a scope in which there is nothing of other environments."""
    inside: list[str] = event.after.get("environments") or [] if isinstance(event.after, dict) else []
    return notice.kind in SCOPES and bool(inside) and named.issuperset(inside)


def _last_notices(tx: Tx, wanted: Mapping[str, list[Noticed]]) -> dict[tuple[str, str], LastNotice]:
    topics = {notice.topic for found in wanted.values() for _, notice in found}
    c = notified_topics.c
    query = select(notified_topics).where(among(c.topic, topics), c.subscription_id.in_(wanted))
    return {(row.subscription_id, row.topic): LastNotice(row.state, row.at) for row in tx.connection.execute(query)}


def _queues(tx: Tx, subscription_ids: Collection[str]) -> dict[str, _Queue]:
    c = notifications.c
    queues = {name: _Queue(name) for name in subscription_ids}
    query = select(notifications).where(c.subscription_id.in_(subscription_ids)).order_by(c.first_event, c.id)
    for row in tx.connection.execute(query.with_for_update()).mappings():
        queue = queues[row["subscription_id"]]
        if row["tried"]:
            queue.tried += 1
        elif row["kind"] != NotificationKind.TEST.value:
            queue.groups.append(_Group(dict(row), is_new=False))
    return queues


# --- a test, which goes before everything else and is tried once


def queue_test(tx: Tx, row: Any, by: str) -> Json:
    """Have a notification sent to one subscription alone, whatever it is subscribed to; returns how the test goes."""
    notification_id = new_id()
    item = {"liveSystemId": "", "componentId": None, "event": 0, "at": iso(tx.now), "by": by, "before": None}
    item |= {"after": None, "message": f"This is a test of the subscription {row.name!r}."}
    values = {
        "id": notification_id,
        "subscription_id": row.id,
        "kind": NotificationKind.TEST.value,
        "live_system_id": "",
        "items": [item],
        "count": 1,
        "first_event": 0,
        "created_at": tx.now,
        "due_at": tx.now,
    }
    earlier = notifications.c.subscription_id == row.id, notifications.c.kind == NotificationKind.TEST.value
    tx.connection.execute(delete(notifications).where(*earlier))
    insert_rows(tx.connection, notifications, [values])
    test = {"id": notification_id, "at": iso(tx.now), "outcome": "pending", "error": ""}
    subscription_store.note_test(tx, row.id, test)
    tx.wake([NOTIFICATIONS])
    return test


# --- from queues to receivers


@dataclass(frozen=True, slots=True)
class Claimed:
    """A subscription that this process sends to for a while."""

    id: str
    name: str
    sealed: str
    format: str
    claim: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """One notification to be sent now."""

    id: str
    kind: NotificationKind
    live_system_id: str
    items: list[Json]
    count: int
    created_at: datetime
    attempts: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a notification was not accepted.

    ``at_least``: the seconds that the receiver asked to wait. ``is_refused``: the receiver does not take this very
    notification, and would refuse it again. ``jitter``: a number from 0 to 1, drawn at random.
    """

    error: str
    at_least: float = 0.0
    is_refused: bool = False
    jitter: float = 0.0


def next_due(tx: Tx) -> tuple[bool, datetime | None]:
    """Whether there is any subscription, and when the next notification is due, by the time of the database."""
    c, s = notifications.c, subscriptions.c
    if tx.connection.execute(select(s.id).limit(1)).first() is None:
        return False, None
    soonest = [
        max(filter(None, (row.due_at, row.next_try if row.kind != NotificationKind.TEST.value else None, row.until)))
        for row in tx.connection.execute(
            select(c.kind, func.min(c.due_at).label("due_at"), s.next_try, s.claimed_until.label("until"))
            .join_from(notifications, subscriptions)
            .group_by(c.kind, c.subscription_id, s.next_try, s.claimed_until)
        )
    ]
    return True, min(soonest, default=None)


def claim(tx: Tx, pace: Pace, but: Collection[str] = ()) -> Claimed | None:
    """Take a subscription to which something is due and to which nobody sends; the one that waits longest."""
    s = subscriptions.c
    is_free = or_(s.claimed_until.is_(None), s.claimed_until <= tx.now)
    query = (
        select(subscriptions)
        .where(is_free, s.id.not_in(but), _has_due(tx.now))
        .order_by(s.claimed_until.asc().nulls_first(), s.id)
        .limit(1)
        .with_for_update(skip_locked=True, key_share=True)
    )
    row = tx.connection.execute(query).first()
    if row is None:
        return None
    taken = Claimed(row.id, row.name, row.sealed, row.format, new_id())
    held = {"claimed_by": taken.claim, "claimed_until": tx.now + pace.claim}
    tx.connection.execute(update(subscriptions).where(s.id == row.id).values(**held))
    return taken


def _has_due(now: datetime) -> ColumnElement[bool]:
    c, s = notifications.c, subscriptions.c
    is_test = c.kind == NotificationKind.TEST.value
    is_time = and_(c.due_at <= now, or_(s.next_try.is_(None), s.next_try <= now))
    return exists().where(c.subscription_id == s.id, or_(is_test, is_time))


def next_of(tx: Tx, claimed: Claimed, pace: Pace) -> Delivery | None:
    """The notification to send next; it does not change from now on. None ends the claim."""
    row = _held(tx, claimed)
    if row is None:
        return None
    _give_up_old(tx, row, pace)
    head = _head(tx, row)
    s = subscriptions.c
    here = update(subscriptions).where(s.id == claimed.id)
    if head is None:
        tx.connection.execute(here.values(claimed_by=None, claimed_until=None))
        return None
    tx.connection.execute(here.values(claimed_until=tx.now + pace.claim))
    if not head.tried:
        tx.connection.execute(update(notifications).where(notifications.c.id == head.id).values(tried=True))
    about = head.id, NotificationKind(head.kind), head.live_system_id, head.items, head.count, head.created_at
    return Delivery(*about, head.attempts, tx.now)


def _held(tx: Tx, claimed: Claimed) -> Any:
    """The row of a subscription that is still there and still claimed by the same process."""
    s = subscriptions.c
    query = (
        select(subscriptions).where(s.id == claimed.id, s.claimed_by == claimed.claim).with_for_update(key_share=True)
    )
    return tx.connection.execute(query).first()


def _head(tx: Tx, row: Any) -> Any:
    c = notifications.c
    is_test = c.kind == NotificationKind.TEST.value
    is_time = c.due_at <= tx.now if row.next_try is None or row.next_try <= tx.now else is_test
    query = (
        select(notifications)
        .where(c.subscription_id == row.id, or_(is_test, is_time))
        .order_by(is_test.desc(), c.first_event, c.id)
        .limit(1)
        .with_for_update()
    )
    return tx.connection.execute(query).first()


def sent(tx: Tx, claimed: Claimed, delivery: Delivery) -> None:
    """Record that a notification was accepted: the receiver is well, and the next one may follow at once."""
    row = _held(tx, claimed)
    if row is None:
        return
    tx.connection.execute(delete(notifications).where(notifications.c.id == delivery.id))
    well = {"failures": 0, "failing_since": None, "next_try": None, "last_error": "", "last_sent_at": tx.now}
    values: Json = {**well, "sent": row.sent + 1}
    if delivery.kind is NotificationKind.TEST:
        values["test"] = {**(row.test or {}), "outcome": "sent", "error": ""}
    tx.connection.execute(update(subscriptions).where(subscriptions.c.id == row.id).values(**values))


def failed(tx: Tx, claimed: Claimed, delivery: Delivery, failure: Failure, pace: Pace) -> None:
    """Record that a notification was not accepted, and when the next try is; the claim ends."""
    row = _held(tx, claimed)
    if row is None:
        return
    error = failure.error[:MOST_ERROR]
    values: Json = {"claimed_by": None, "claimed_until": None}
    this = notifications.c.id == delivery.id
    if delivery.kind is NotificationKind.TEST:
        tx.connection.execute(delete(notifications).where(this))
        values["test"] = {**(row.test or {}), "outcome": "failed", "error": error}
        tx.connection.execute(update(subscriptions).where(subscriptions.c.id == row.id).values(**values))
        return
    times = row.failures + 1
    values |= {"failures": times, "failing_since": row.failing_since or tx.now, "last_error": error}
    wait = pace.backoff.next_try(tx.now, times, failure.at_least) - tx.now
    values["next_try"] = tx.now + wait * (1 + JITTER * failure.jitter)
    tx.connection.execute(update(notifications).where(this).values(attempts=delivery.attempts + 1))
    tx.connection.execute(update(subscriptions).where(subscriptions.c.id == row.id).values(**values))
    if failure.is_refused and delivery.attempts + 1 >= MOST_REFUSALS:
        _give_up(tx, row, this, f"refused {MOST_REFUSALS} times: {error}")


def _give_up_old(tx: Tx, row: Any, pace: Pace) -> None:
    """Give up what has become too old while its receiver failed; what was never tried for another reason is sent."""
    if row.failing_since is None:
        return
    c = notifications.c
    is_old = and_(c.created_at <= tx.now - pace.give_up, c.kind != NotificationKind.TEST.value)
    _give_up(tx, row, and_(c.subscription_id == row.id, is_old), row.last_error)


def _give_up(tx: Tx, row: Any, which: ColumnElement[bool], why: str) -> None:
    c = notifications.c
    found = tx.connection.execute(select(c.id, c.kind, c.live_system_id).where(which).order_by(c.first_event)).all()
    if not found:
        return
    tx.connection.execute(delete(notifications).where(which))
    lost = update(subscriptions).where(subscriptions.c.id == row.id)
    tx.connection.execute(lost.values(given_up=subscriptions.c.given_up + len(found)))
    named = ", ".join(f"{one.kind} {one.live_system_id}".strip() for one in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    message = (
        f"{len(found)} notification{'s' if len(found) > 1 else ''} for {row.name!r} at {row.address} given up "
        f"({named}{more}): {why}; `fractal notify test {row.name}` shows whether it is reached again"
    )
    tx.record(PendingEvent(NOBODYS, EventKind.NOTIFICATION_GIVEN_UP, BY, message=message, after=[o.id for o in found]))
