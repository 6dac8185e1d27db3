"""What all Hetzner types have in common: how they are listed, read, made, labelled and deleted.

An offer says how its parameters stand in the vendor's object, and which single calls lead from one to the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from fractal_cloud.model.component import Component
from fractal_cloud.model.errors import Conflict, NotFound, Overtaken, Protected
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.hetzner.cloud import Hetzner, Item
from fractal_cloud.offers.hetzner.tags import GUARD, RULES, relabelled
from fractal_cloud.offers.items import parse_each, text_at
from fractal_cloud.offers.offer import Offer, Query, Wanted

C = TypeVar("C", bound=Component)
NAMED = 10


@dataclass(frozen=True, slots=True)
class Step:
    """One writing call: an action with its body, of the resource itself unless another one is named.

    ``stops_for``: the parameter for whose sake a machine is stopped.
    """

    action: str
    body: Mapping[str, Any]
    plural: str = ""
    resource_id: str = ""
    stops_for: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What an offer reads from the vendor's object."""

    actual: Mapping[str, Any]
    outputs: Mapping[str, Any]
    condition: Condition = Condition.SETTLED
    detail: str = ""


class ResourceOffer(Offer[C, Hetzner]):
    """How one kind of resource is read and changed. ``plural``: what it is called in the paths of the API."""

    plural: ClassVar[str]
    unique_in = "its project"
    tag_rules = RULES
    realm = "project"
    service = "hetzner"
    guard = GUARD

    # --- what an offer says

    @abstractmethod
    def seen(self, item: Item) -> Seen:
        """The parameters and outputs of a resource."""

    @abstractmethod
    def made_of(self, component: C) -> Item:
        """The body of the create call, beside name and labels."""

    @abstractmethod
    def steps(self, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> Iterator[Step]:
        """The calls that fix these parameters, in order; only the first is made, and the rest is found anew.

        Raises ``Invalid`` after the last one where something can never be changed.
        """

    def user_of(self, cloud: Hetzner, sighting: Sighting) -> Item | None:
        """Another resource that must be read before a deletion; read first, so that the last read is our own."""
        del cloud, sighting
        return None

    def release(self, cloud: Hetzner, item: Item, user: Item | None) -> Step | None:
        """The call that must come before a deletion. Raises ``Conflict`` naming what somebody else would lose.

        ``item`` was read right before. Who uses a resource is asked only here: it is no output of the resource, which
        would change whenever somebody else's does.
        """
        del cloud, item, user
        return None

    # --- the verbs

    def sightings(self, cloud: Hetzner, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All of this kind in the project, fifty a call."""
        del query
        shown = lambda item: (text_at(item, "id"), text_at(item, "name"))  # noqa: E731
        yield from parse_each(cloud.items(self.plural), self.sighting, shown)

    def read(self, cloud: Hetzner, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One by its id."""
        del sweep
        item = cloud.find(self.plural, resource_id)
        return None if item is None else self.sighting(item)

    def create(self, cloud: Hetzner, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Create it with its labels; what cannot travel along is left to ``update``."""
        component = wanted.component
        body = {key: value for key, value in self.made_of(component).items() if value is not None}
        return self.sighting(cloud.create(self.plural, {"name": component.name, "labels": tags.to_mapping(), **body}))

    def update(self, cloud: Hetzner, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> None:
        """Make the next call needed."""
        step = next(self.steps(sighting, wanted, drift), None)
        if step is not None:
            if step.stops_for:
                wanted.may_stop_for(step.stops_for, sighting.name)
            self._carry_out(cloud, sighting, step)

    def delete(self, cloud: Hetzner, sighting: Sighting) -> None:
        """Make the next call needed to delete it; protection is respected, and nobody loses anything unasked."""
        if sighting.actual.get("deleteProtection"):
            raise Protected(
                f"{self.noun} {sighting.name!r} has deleteProtection: switch it off, and it is tried again",
                code="protected",
            )
        user = self.user_of(cloud, sighting)
        item = cloud.find(self.plural, sighting.resource_id)
        if item is None:
            return
        if item.get("labels") != sighting.tags:
            raise Overtaken("its labels were changed a moment ago: nothing was written, and it is tried again")
        try:
            step = self.release(cloud, item, user)
            if step is None:
                cloud.delete(self.plural, sighting.resource_id)
            else:
                self._carry_out(cloud, sighting, step)
        except NotFound:
            return

    def tag(self, cloud: Hetzner, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write all labels as they were read right before, with only ours changed (T10)."""
        labels = relabelled(sighting.tags, add, remove)
        if labels != sighting.tags:
            cloud.put(self.plural, sighting.resource_id, {"labels": labels})

    def sighting(self, item: Item) -> Sighting:
        """One resource as it was seen."""
        labels = item.get("labels") or {}
        seen = self.seen(item)
        return Sighting(
            type=self.type,
            name=item["name"],
            resource_id=str(item["id"]),
            protocol=ProtocolTags.from_mapping(labels),
            tags=labels,
            actual=seen.actual,
            outputs=seen.outputs,
            condition=seen.condition,
            detail=seen.detail,
        )

    @property
    def noun(self) -> str:
        """What people call one of this kind."""
        return self.plural.removesuffix("s").replace("_", " ")

    def _carry_out(self, cloud: Hetzner, sighting: Sighting, step: Step) -> None:
        plural, resource_id = step.plural or self.plural, step.resource_id or sighting.resource_id
        if step.action:
            cloud.act(plural, resource_id, step.action, step.body)
        else:
            cloud.put(plural, resource_id, step.body)


def protection(item: Mapping[str, Any]) -> bool:
    """Whether a resource is protected from deletion."""
    return bool((item.get("protection") or {}).get("delete"))


def in_use(cloud: Hetzner, what: str, users: Mapping[str, Sequence[int]]) -> Conflict:
    """The refusal to delete something that others use, naming them: kinds by their plural, and the ids in use."""
    named = [text for plural, used in users.items() for text in _named(cloud, plural, used)]
    more = " and more" if len(named) > NAMED else ""
    gone = "that is gone" if len(named) == 1 else "they are gone"
    return Conflict(f"{', '.join(named[:NAMED])}{more} would lose {what}: it goes when {gone}", code="resource_in_use")


def _named(cloud: Hetzner, plural: str, used: Sequence[int]) -> Iterator[str]:
    noun = plural.removesuffix("s").replace("_", " ")
    for number, one in enumerate(used):
        item = cloud.find(plural, str(one)) if number < NAMED else None
        yield f"{noun} {item['name']!r} ({one})" if item else f"{noun} {one}"
