"""What happened, append-only (C4)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

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
    READOPTED = "Readopted"
    DRIFT_FOUND = "DriftFound"
    DRIFT_CORRECTED = "DriftCorrected"
    LINK_CHANGE_FOUND = "LinkChangeFound"
    LINK_CHANGE_APPLIED = "LinkChangeApplied"
    OWNER_CHANGED = "OwnerChanged"
    RESOURCE_LOST = "ResourceLost"
    RACE_LOST = "RaceLost"
    UNREADABLE = "Unreadable"
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
