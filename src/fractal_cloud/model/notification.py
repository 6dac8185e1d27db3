"""What people are notified of, and in which form it is sent; what happened itself is an event (C4)."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class NotificationKind(StrEnum):
    """What a notification is about. ``TEST`` is only sent when somebody asks for it, and to nobody else."""

    OVERRIDE_BEGUN = "OverrideBegun"
    OVERRIDE_ENDED = "OverrideEnded"
    OVERRIDE_OVERDUE = "OverrideOverdue"
    OVERRIDE_EXTENDED = "OverrideExtended"
    OVERRIDE_HANDED_OVER = "OverrideHandedOver"
    DRIFT_FOUND = "DriftFound"
    MISSING = "Missing"
    FAILED = "Failed"
    OWNER_MOVED = "OwnerMoved"
    SCOPE_UNREAD = "ScopeUnread"
    SCOPE_READ = "ScopeRead"
    AGENT_REFUSED = "AgentRefused"
    TEST = "Test"


class NotificationFormat(StrEnum):
    """In which form a notification is sent: a CloudEvent, or a message as Slack's incoming webhooks take it."""

    CLOUDEVENTS = "cloudevents"
    SLACK = "slack"


SUBSCRIBABLE: Final = tuple(kind for kind in NotificationKind if kind is not NotificationKind.TEST)
"""Every kind that a subscription can name."""
