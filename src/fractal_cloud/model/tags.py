"""The three tags that are the protocol, as plain values, and the user's own tags that are written with them.

How a provider spells and stores them belongs beside that provider's offers, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

MANAGED_BY: Final = "managed-by"
OURS: Final = "fractal-cloud"
RECONCILE: Final = "fractal-cloud"
RECONCILE_VALUE: Final = "reconcile"
OWNER: Final = "fractal-cloud-owner"


@dataclass(frozen=True, slots=True)
class ProtocolTags:
    """What the three tags of one resource say; every other tag is somebody else's.

    ``declared``: where tags are added, those of the user's own that travel in the same call (T1). What is read from a
    resource, and what is removed, has none.
    """

    managed_by: str | None = None
    reconcile: bool = False
    owner: str | None = None
    declared: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_managed(self) -> bool:
        """Whether ``managed-by`` is ours, to the letter (T7)."""
        return self.managed_by == OURS

    @property
    def other_manager(self) -> str | None:
        """The name of another manager, or None."""
        return None if self.managed_by in (None, OURS) else self.managed_by

    @classmethod
    def from_mapping(cls, tags: Mapping[str, str]) -> ProtocolTags:
        """Read the protocol from plain key-value tags; values are compared exactly (T8)."""
        if not tags:
            return NO_TAGS
        return cls.from_values(tags.get(MANAGED_BY), tags.get(RECONCILE), tags.get(OWNER))

    @classmethod
    def from_values(cls, managed_by: str | None, reconcile: str | None, owner: str | None) -> ProtocolTags:
        """Read the protocol from the values of the three; equal ones are one object, for there are thousands."""
        return _same_tags(managed_by, reconcile == RECONCILE_VALUE, owner)

    def to_mapping(self) -> dict[str, str]:
        """The tags as plain key-value pairs, those that are set; no declared one stands in the place of the three."""
        tags = dict(self.declared)
        if self.managed_by is not None:
            tags[MANAGED_BY] = self.managed_by
        if self.reconcile:
            tags[RECONCILE] = RECONCILE_VALUE
        if self.owner is not None:
            tags[OWNER] = self.owner
        return tags


@lru_cache(maxsize=4096)
def _same_tags(managed_by: str | None, reconcile: bool, owner: str | None) -> ProtocolTags:
    return ProtocolTags(managed_by, reconcile, owner)


NO_TAGS: Final = ProtocolTags()


def stamp(owner: str, declared: Mapping[str, str] | None = None) -> ProtocolTags:
    """The tags a resource is created with (T2), the user's own among them."""
    return ProtocolTags(managed_by=OURS, owner=owner, declared=declared or {})
