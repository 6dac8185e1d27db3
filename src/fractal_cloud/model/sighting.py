"""What one read of the cloud showed of one resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags


class Condition(StrEnum):
    """Whether the cloud is still at work on a resource. Dead remains are never sighted: they count as absent."""

    SETTLED = "settled"
    CREATING = "creating"
    CHANGING = "changing"
    DYING = "dying"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class UnreadItem:
    """One item of a list that cannot be understood; ``resource_id`` and ``name`` where it shows them.

    Nothing is decided for the components it may be (S24).
    """

    error: CloudError
    resource_id: str | None = None
    name: str | None = None

    def may_be(self, name: str, resource_id: str | None) -> bool:
        """Whether it may be what a component names, whose last published id is ``resource_id``."""
        if self.resource_id is not None and self.resource_id == resource_id:
            return True
        if self.name is not None:
            return self.name == name
        return self.resource_id is None or resource_id is None


@dataclass(frozen=True, slots=True)
class Sighting:
    """One resource as it was seen: values are in the form in which people declare them.

    ``parent_id`` is the cloud's id of the resource the name is unique in (a subnet's VPC). ``actual`` holds actual
    parameters by their declared (camelCase) names; a parameter that this read did not show is not in it.
    ``revision`` is the provider's precondition (etag, resourceVersion), where there is one.
    ``detail`` says in the vendor's words why a resource is ``BROKEN`` or what the cloud is doing.
    ``moved_to``: where it is, if a direct read found it outside the place it was read for; empty otherwise.
    ``incarnation``: what distinguishes it from a later resource that bears the same id (a uid, the time of its
    creation); empty where the id itself never returns, or where the cloud reports nothing of the kind
    (``Offer.ids_return``). What ``create`` returns may lack it: some clouds report it only once the resource is listed.
    So two of them distinguish resources only where neither is empty.
    ``is_hidden``: the cloud is making it and shows nothing of it yet, nor its tags: nothing is decided about it (S13).
    ``ours``: entries of maps and lists, as paths, that the cloud records as set by the agent and by nobody else: one of
    them that is no longer declared, where its list or map still is, is a difference.
    ``is_open``: the cloud takes changes (and a deletion) also while it is at work on the last ones, or failed at them.
    """

    type: str
    name: str
    resource_id: str
    parent_id: str | None = None
    protocol: ProtocolTags = NO_TAGS
    tags: Mapping[str, str] = field(default_factory=dict)
    actual: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    condition: Condition = Condition.SETTLED
    revision: str | None = None
    detail: str = ""
    is_hidden: bool = False
    is_open: bool = False
    incarnation: str = ""
    moved_to: str = ""
    ours: frozenset[str] = frozenset()

    @property
    def accepts_changes(self) -> bool:
        """Whether a write makes sense now: never to what dies, to what is at work only where the cloud allows it."""
        if self.condition is Condition.DYING:
            return False
        return self.is_open or self.condition is Condition.SETTLED
