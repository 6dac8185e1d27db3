"""Which notification follows from an event, and whether it says anything new (C4, C11, G13, O5). Pure.

A notification has a *topic*, such as «the override of ls-a/web», and a *state* of it. It is news where the state
differs from that of the last notification of the topic, or where that is longer ago than a window: a status that flaps,
or a report that is repeated, is no second message. The override of a component is one topic, so that its begin, its end
and its next begin are news each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from fractal_cloud.model.event import BEING_DEPLOYED, EventKind
from fractal_cloud.model.notification import NotificationKind
from fractal_cloud.model.status import Status


class NotifiableEvent(NamedTuple):
    """An event, as far as a notification can follow from it."""

    seq: int
    at: datetime
    live_system_id: str
    component_id: str | None
    kind: str
    by: str
    message: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Notice:
    """What to notify of. ``topic`` and ``state`` decide whether it is news."""

    kind: NotificationKind
    topic: str
    state: str


class LastNotice(NamedTuple):
    """The state that a topic had in its last notification, and when that was."""

    state: str
    at: datetime


def notice_of(event: NotifiableEvent) -> Notice | None:
    """The notification of an event; None where nobody is notified of such."""
    rule = _RULES.get(event.kind)
    return None if rule is None else rule(event)


def is_news(notice: Notice, at: datetime, last: LastNotice | None, window: timedelta) -> bool:
    """Whether a notice differs from the last one of its topic, or that one is longer ago than the window."""
    return last is None or last.state != notice.state or at - last.at >= window


def is_same_story(one: NotificationKind, other: NotificationKind) -> bool:
    """Whether two kinds speak of one thing that goes on, so that their order must be kept: begun, extended, ended."""
    return any(one in story and other in story for story in _STORIES)


def _component(event: NotifiableEvent) -> str:
    return f"{event.live_system_id}/{event.component_id or ''}"


def _override(kind: NotificationKind, *, with_facts: bool = False) -> Callable[[NotifiableEvent], Notice]:
    def notice(event: NotifiableEvent) -> Notice:
        state = f"{kind.value} {_digest(event.message, event.after)}" if with_facts else kind.value
        return Notice(kind, f"override {_component(event)}", state)

    return notice


def _status(event: NotifiableEvent) -> Notice | None:
    kind = _STATUSES.get(str(event.after))
    return None if kind is None else Notice(kind, f"{kind.value} {_component(event)}", kind.value)


def _drift(event: NotifiableEvent) -> Notice | None:
    if event.message.endswith(BEING_DEPLOYED):
        return None
    # Importers' differences raise no event at all (O5). Another set of parameters is another drift; other values of the
    # same ones are not, since what is tuned all the time would be a message each time.
    parameters = sorted(event.after) if isinstance(event.after, dict) else event.message
    return Notice(NotificationKind.DRIFT_FOUND, f"drift {_component(event)}", _digest(parameters))


def _owner(event: NotifiableEvent) -> Notice | None:
    """An owner that was replaced or removed; the first one that is stamped has moved from nobody.

    Every LiveSystem that declares the resource has such an event, in the same words: the resource is one topic.
    """
    if event.before is None:
        return None
    resource = event.message.rpartition(_WAS)[0]
    return Notice(NotificationKind.OWNER_MOVED, f"owner {_digest(resource)}", _digest(event.message))


def _scope(kind: NotificationKind) -> Callable[[NotifiableEvent], Notice]:
    def notice(event: NotifiableEvent) -> Notice:
        key = event.after.get("scope") if isinstance(event.after, dict) else event.message
        return Notice(kind, f"scope {key}", kind.value)

    return notice


def _refused(event: NotifiableEvent) -> Notice:
    return Notice(NotificationKind.AGENT_REFUSED, f"refused {event.by}", event.kind)


_WAS: Final = " was "
"""How ``derived_events`` begins the owners in its message, after the resource."""


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


_STORIES: Final = (
    frozenset(
        {
            NotificationKind.OVERRIDE_BEGUN,
            NotificationKind.OVERRIDE_EXTENDED,
            NotificationKind.OVERRIDE_HANDED_OVER,
            NotificationKind.OVERRIDE_OVERDUE,
            NotificationKind.OVERRIDE_ENDED,
        }
    ),
    frozenset({NotificationKind.SCOPE_UNREAD, NotificationKind.SCOPE_READ}),
)
_STATUSES: Final[Mapping[str, NotificationKind]] = {
    Status.FAILED.value: NotificationKind.FAILED,
    Status.MISSING.value: NotificationKind.MISSING,
}
_RULES: Final[Mapping[str, Callable[[NotifiableEvent], Notice | None]]] = {
    EventKind.GLASS_BROKEN: _override(NotificationKind.OVERRIDE_BEGUN),
    EventKind.READOPTED: _override(NotificationKind.OVERRIDE_ENDED),
    EventKind.OVERRIDE_OVERDUE: _override(NotificationKind.OVERRIDE_OVERDUE, with_facts=True),
    EventKind.OVERRIDE_EXTENDED: _override(NotificationKind.OVERRIDE_EXTENDED, with_facts=True),
    EventKind.OVERRIDE_HANDED_OVER: _override(NotificationKind.OVERRIDE_HANDED_OVER, with_facts=True),
    EventKind.STATUS_CHANGED: _status,
    EventKind.DRIFT_FOUND: _drift,
    EventKind.OWNER_CHANGED: _owner,
    EventKind.SCOPE_UNREAD: _scope(NotificationKind.SCOPE_UNREAD),
    EventKind.SCOPE_READ: _scope(NotificationKind.SCOPE_READ),
    EventKind.REPORT_REFUSED: _refused,
    EventKind.REGISTRATION_REFUSED: _refused,
}
NOTIFIED_EVENTS: Final = frozenset(str(kind) for kind in _RULES)
"""The kinds of events from which a notification can follow."""
