"""What happened, append-only (C4)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from fractal_cloud.model.declaration import Wire


class EventKind(StrEnum):
    """What kind of thing happened."""

    STATUS_CHANGED = "StatusChanged"
    DEPLOYED = "Deployed"
    DELETE_REQUESTED = "DeleteRequested"
    DELETED = "Deleted"
    FORGOTTEN = "Forgotten"
    FORCE_PUSH_REQUESTED = "ForcePushRequested"
    FORCE_PUSH_REFUSED = "ForcePushRefused"
    GLASS_BROKEN = "GlassBroken"
    GLASS_REQUESTED = "GlassRequested"
    OVERRIDE_OVERDUE = "OverrideOverdue"
    OVERRIDE_EXTENDED = "OverrideExtended"
    OVERRIDE_HANDED_OVER = "OverrideHandedOver"
    TRANSFER_REQUESTED = "TransferRequested"
    TRANSFER_REFUSED = "TransferRefused"
    READOPTED = "Readopted"
    DRIFT_FOUND = "DriftFound"
    DRIFT_CORRECTED = "DriftCorrected"
    LINK_CHANGE_FOUND = "LinkChangeFound"
    LINK_CHANGE_APPLIED = "LinkChangeApplied"
    SECRET_SEALED = "SecretSealed"
    SECRET_REVOKED = "SecretRevoked"
    KEY_WITHDRAWN = "KeyWithdrawn"
    OWNER_CHANGED = "OwnerChanged"
    RESOURCE_LOST = "ResourceLost"
    RACE_LOST = "RaceLost"
    UNREADABLE = "Unreadable"
    SCOPE_UNREAD = "ScopeUnread"
    SCOPE_READ = "ScopeRead"
    OFFER_FAILED = "OfferFailed"
    CALL_GIVEN_UP = "CallGivenUp"
    DECLARATION_REFUSED = "DeclarationRefused"
    RECOVERY_BEGAN = "RecoveryBegan"
    RECOVERY_CONFIRMED = "RecoveryConfirmed"
    REQUEST_VOIDED = "RequestVoided"
    TOKENS_CONFIRMED = "TokensConfirmed"
    REALM_REACHED = "RealmReached"
    REALM_CHANGED = "RealmChanged"
    REALM_ACCEPTED = "RealmAccepted"
    NEW_AGENT = "NewAgent"
    NEW_KEY = "NewKey"
    AGENT_APPROVED = "AgentApproved"
    APPROVAL_WITHDRAWN = "ApprovalWithdrawn"
    APPROVAL_CHANGED = "ApprovalChanged"
    REPORT_REFUSED = "ReportRefused"
    REGISTRATION_REFUSED = "RegistrationRefused"
    TYPE_MOVED = "TypeMoved"
    TOKEN_CREATED = "TokenCreated"
    TOKEN_ROTATED = "TokenRotated"
    TOKEN_REVOKED = "TokenRevoked"
    TOKEN_EXPIRED = "TokenExpired"
    LOGGED_IN = "LoggedIn"
    LOGGED_OUT = "LoggedOut"
    NOTIFICATION_ADDED = "NotificationAdded"
    NOTIFICATION_REMOVED = "NotificationRemoved"
    NOTIFICATION_GIVEN_UP = "NotificationGivenUp"


BEING_DEPLOYED: Final = " (it is being deployed)"
"""How the message of a difference ends that a deploy brings: nobody has to be notified of what somebody asked for."""
AGENT_EVENTS: Final = frozenset(
    {
        EventKind.FORCE_PUSH_REFUSED,
        EventKind.TRANSFER_REFUSED,
        EventKind.RACE_LOST,
        EventKind.UNREADABLE,
        EventKind.OFFER_FAILED,
        EventKind.CALL_GIVEN_UP,
        EventKind.SECRET_SEALED,
        EventKind.SECRET_REVOKED,
    }
)
"""What only an agent can know, and may report; every other event is the control plane's own to record (A3)."""


class Event(Wire):
    """One thing that happened: when, who, what, before and after."""

    seq: int
    at: datetime
    live_system_id: str
    component_id: str | None = None
    kind: EventKind
    by: str
    message: str = ""
    before: Any = None
    after: Any = None
