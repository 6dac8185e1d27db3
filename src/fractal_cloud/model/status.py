"""The words for how a component, a LiveSystem and a mutation are doing."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """How one component is doing."""

    INSTANTIATING = "Instantiating"
    MUTATING = "Mutating"
    ACTIVE = "Active"
    RECONCILE_REQUESTED = "ReconcileRequested"
    MANUAL_OVERRIDE = "ManualOverride"
    EXTERNALLY_MANAGED = "ExternallyManaged"
    MISSING = "Missing"
    FAILED = "Failed"
    DELETING = "Deleting"
    DELETED = "Deleted"


class Stance(StrEnum):
    """What the control plane remembers of a component, apart from its status."""

    NONE = "none"
    MANAGED = "managed"
    OVERRIDE = "override"
    IMPORTED = "imported"

    @property
    def is_read_only(self) -> bool:
        """Whether the agent only reads."""
        return self in (Stance.OVERRIDE, Stance.IMPORTED)


class MutationStatus(StrEnum):
    """How one deploy or delete is doing."""

    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"


_GRAVEST_FIRST: Final = (
    Status.FAILED,
    Status.MISSING,
    Status.DELETING,
    Status.MUTATING,
    Status.INSTANTIATING,
    Status.RECONCILE_REQUESTED,
    Status.MANUAL_OVERRIDE,
    Status.ACTIVE,
)
SETTLED: Final = frozenset({Status.ACTIVE, Status.EXTERNALLY_MANAGED, Status.MANUAL_OVERRIDE, Status.DELETED})


def gravest(statuses: Iterable[Status]) -> Status:
    """The one status that stands for many; an importer's ``ExternallyManaged`` counts as ``Active``."""
    present = set(statuses)
    return next((status for status in _GRAVEST_FIRST if status in present), Status.ACTIVE)
