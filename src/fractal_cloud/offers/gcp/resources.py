"""What all offers of Google Cloud share: how their resources are listed and read again.

An offer says where its resources are, and what an answer of Google's means. Types that cannot carry labels are made
once where that is asked for, else only read (S1, S1b, S5): what that means for the writing verbs stands here, once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.errors import NotFound
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.tags import RULES
from fractal_cloud.offers.items import Shown, parse_each, text_at
from fractal_cloud.offers.offer import C, Offer, Query, Wanted
from fractal_cloud.offers.read_only import ReadOnlyOffer

Raw = Mapping[str, Any]
"""A resource as Google returns it."""


class GcpOffer(Offer[C, Gcp]):
    """How one type is found. Names are unique in their place, so the name is the resource's id."""

    tag_rules = RULES
    realm = "project"

    @abstractmethod
    def collection(self, cloud: Gcp) -> str:
        """The path of all resources of this type in the scope."""

    @abstractmethod
    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All of them, at the largest page Google gives."""

    @abstractmethod
    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting | None:
        """What Google's answer shows; None where it is not of this type, or dead."""

    def path(self, cloud: Gcp, name: str) -> str:
        """The path of one resource."""
        return f"{self.collection(cloud)}/{name}"

    def raw(self, cloud: Gcp, name: str) -> Raw | None:
        """Read one resource as it is now."""
        return cloud.find(self.service, self.path(cloud, name))

    def raw_or_gone(self, cloud: Gcp, name: str) -> Raw:
        """The same; raises where it is gone."""
        raw = self.raw(cloud, name)
        if raw is None:
            raise NotFound(f"{name!r} is gone: it is looked for again")
        return raw

    def sightings(self, cloud: Gcp, query: Query) -> Iterator[Sighting | UnreadItem]:
        """Everything of this type in the scope."""
        del query
        yield from parse_each(self.listed(cloud), lambda raw: self.sighting(cloud, raw), _shown)

    def read(self, cloud: Gcp, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource by its name."""
        del sweep
        raw = self.raw(cloud, resource_id)
        return None if raw is None else self.sighting(cloud, raw)


def _shown(raw: Raw) -> Shown:
    name = text_at(raw, "name")
    return (name.rpartition("/")[2],) * 2 if name else (None, None)


class UnlabelledOffer(ReadOnlyOffer[C, Gcp], GcpOffer[C]):
    """A type that has no labels in Google's API: made once where a component says so, never changed or deleted."""

    creates_once = True
    glass = GlassCommands(caveat="it carries no labels, so there is nothing to break: it is never changed")
    guard = "written at creation alone: Google gives this type no labels"

    @abstractmethod
    def body(self, cloud: Gcp, component: C) -> dict[str, Any]:
        """What Google's insert call takes for it, but for its name."""

    def listed(self, cloud: Gcp) -> Iterator[Raw]:
        """All of them in the scope, 500 a call."""
        for page in cloud.pages(self.service, self.collection(cloud), "items", maxResults="500"):
            yield from page

    def create(self, cloud: Gcp, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Begin to make it (S1b). The same token never makes a second one; names are unique anyway."""
        del tags
        name = wanted.component.name
        body = {"name": name, **self.body(cloud, wanted.component)}
        request = {"requestId": str(uuid5(NAMESPACE_URL, wanted.token))} if wanted.token else {}
        begun = cloud.write(self.service, "POST", self.collection(cloud), body, request)
        made = {**body, "id": begun.get("targetId", ""), "selfLink": begun.get("targetLink", self.path(cloud, name))}
        shown = self.sighting(cloud, made)
        assert shown is not None, "what was just asked for is of this type"
        return replace(shown, condition=Condition.CREATING)
