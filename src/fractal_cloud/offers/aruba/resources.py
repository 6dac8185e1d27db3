"""What all types of Aruba Cloud share: metadata, states, lists, and writes that say a resource again as a whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final

from pydantic import field_validator

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.errors import Conflict, Invalid, NotFound, Overtaken
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import NO_TAGS, ProtocolTags
from fractal_cloud.offers.aruba.calls import VERSION, Aruba, Item, address
from fractal_cloud.offers.aruba.tags import GUARD, RULES, mapping, protocol_of, rewritten, written
from fractal_cloud.offers.aruba.value_types import Location, Project, resource_name
from fractal_cloud.offers.items import Shown, parse_each, text_at
from fractal_cloud.offers.offer import C, Offer, Query, Recognition, Wanted

GONE: Final = "Deleted"
STATES: Final[Mapping[str, Condition]] = {
    "InCreation": Condition.CREATING,
    "Creating": Condition.CREATING,
    "Updating": Condition.CHANGING,
    "Provisioning": Condition.CHANGING,
    "Enabling": Condition.CHANGING,
    "Disabling": Condition.CHANGING,
    "Deleting": Condition.DYING,
    "Failed": Condition.BROKEN,
    "Error": Condition.BROKEN,
    "Disabled": Condition.BROKEN,
    "Active": Condition.SETTLED,
    "Running": Condition.SETTLED,
    "Stopped": Condition.SETTLED,
    "NotUsed": Condition.SETTLED,
    "Reserved": Condition.SETTLED,
    "InUse": Condition.SETTLED,
    "Used": Condition.SETTLED,
}
"""What Aruba's states mean; one that is unknown counts as work in progress, and nothing is written meanwhile."""


class ArubaComponent(Component):
    """What all components of Aruba Cloud declare."""

    provider = "aruba"

    location: Location | None = parameter(
        default=None, immutable=True, description="Region it lies in; that of what it refers to where none is given."
    )
    project: Project | None = parameter(
        default=None,
        immutable=True,
        description="Project it lies in: its id or its name. That of what it refers to where none is given, else the "
        "agent's only or default one.",
    )

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        return resource_name(name)


class ArubaOffer(Offer[C, Aruba]):
    """``collection``: where its resources are, in the project or, with a ``parent``, below it.

    ``echoed``: the properties that a write must say again. ``made_by``: the API version that creates it.
    ``cascade``: what a deletion says so that nothing else goes with it. ``state_as``: the output that holds its
    state.
    """

    tag_rules = RULES
    place = ("location",)
    realm = "project"
    guard = GUARD
    recognition = Recognition.WINDOW
    collection: ClassVar[str]
    echoed: ClassVar[tuple[str, ...]] = ()
    made_by: ClassVar[str] = VERSION
    cascade: ClassVar[Mapping[str, str]] = {}
    state_as: ClassVar[str] = "state"

    # --- what each offer says of its kind

    @abstractmethod
    def actual(self, item: Item) -> dict[str, Any]:
        """The actual values of the parameters a resource shows."""

    @abstractmethod
    def shown(self, item: Item) -> dict[str, Any]:
        """Its outputs."""

    @abstractmethod
    def properties(self, wanted: Wanted[C]) -> Item:
        """What the create call says beside name, location and tags."""

    def changed(self, wanted: Wanted[C], drift: Collection[str]) -> Item:
        """The properties to be written for what drifted."""
        del wanted, drift
        return {}

    def impossible(self, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> Mapping[str, str]:
        """Which of what drifted Aruba takes in one direction only, and not in this one: each with what to do."""
        del sighting, wanted, drift
        return {}

    def said_again(self, item: Item) -> Item:
        """The properties a write must say again, as they are."""
        properties = item.get("properties") or {}
        return {name: properties[name] for name in self.echoed if properties.get(name) is not None}

    def merged(self, item: Item, changes: Item) -> Item:
        """The properties of a write: what it must say again, with what is to change."""
        return {**self.said_again(item), **changes}

    # --- reading

    def sightings(self, cloud: Aruba, query: Query) -> Iterator[Sighting | UnreadItem]:
        """Everything of the kind in the location; of what lies in others, in those that are declared."""
        cloud.meet(query.live_systems)
        for path in self._paths(cloud, query):
            yield from parse_each(self._listed(cloud, path), lambda item: self._seen(cloud, item), _shown)

    def _seen(self, cloud: Aruba, item: Item) -> Sighting | None:
        is_there = item["status"]["state"] != GONE and self._is_here(cloud, item)
        return self.sighting(cloud, item) if is_there else None

    def _paths(self, cloud: Aruba, query: Query) -> list[str]:
        if self.parent is None:
            return [cloud.collection(self.collection)]
        return [f"{parent}/{self.collection}" for parent in sorted(query.parent_ids)]

    def _listed(self, cloud: Aruba, path: str) -> Iterator[Item]:
        try:
            yield from cloud.list(path)
        except NotFound:
            if self.parent is None:
                raise

    def _is_here(self, cloud: Aruba, item: Item) -> bool:
        if self.parent is not None:
            return True
        location = _location(item)
        if not location:
            raise ValueError("it shows no location")  # where it lies is unknown, not elsewhere
        return location == cloud.location

    def read(self, cloud: Aruba, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource by its address."""
        item = cloud.find(resource_id)
        if item is None or item["status"]["state"] == GONE:
            return None
        seen = self.sighting(cloud, item)
        return self.swept(cloud, seen, sweep) if sweep else seen

    def swept(self, cloud: Aruba, sighting: Sighting, names: Collection[str]) -> Sighting:
        """The same with the swept parameters named."""
        del cloud, names
        return sighting

    def sighting(self, cloud: Aruba, item: Item) -> Sighting:
        """What a resource shows."""
        metadata, state = item["metadata"], item["status"]["state"]
        tags = metadata.get("tags") or []
        condition = STATES.get(state, Condition.CHANGING)
        detail = item["status"].get("failureReason") or state
        uri = address(item)
        return Sighting(
            type=self.type,
            name=metadata["name"],
            resource_id=uri,
            parent_id=uri.rsplit("/", 2)[0] if self.parent is not None else None,
            protocol=protocol_of(tags, cloud.owners()),
            tags=mapping(tags),
            actual={"location": _location(item) or cloud.location, **self.actual(item)},
            outputs={
                "id": metadata["id"],
                "location": _location(item) or cloud.location,
                "projectId": cloud.project,
                self.state_as: state,
                **{name: value for name, value in self.shown(item).items() if value is not None},
            },
            condition=condition,
            detail="" if condition is Condition.SETTLED else str(detail),
        )

    # --- writing

    def create(self, cloud: Aruba, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Create it with its tags. Aruba knows no token: after a lost answer, name and owner show what came of it."""
        body = _said(wanted.component.name, cloud.location, written(tags), self.properties(wanted))
        path = cloud.collection(self.collection) if self.parent is None else f"{wanted.parent_id}/{self.collection}"
        return self.sighting(cloud, cloud.write("POST", path, body, self.made_by).item())

    def update(self, cloud: Aruba, sighting: Sighting, wanted: Wanted[C], drift: Collection[str]) -> None:
        """Write it again with what drifted; what cannot be changed is reported once all the rest is done (S18)."""
        stuck = self.impossible(sighting, wanted, drift)
        possible = set(drift) - set(stuck)
        if not possible:
            raise Invalid("; ".join(stuck[name] for name in sorted(stuck)))
        self.rewrite(cloud, sighting, self.changed(wanted, possible))

    def tag(self, cloud: Aruba, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write it again with other tags."""
        self.rewrite(cloud, sighting, {}, add, remove)

    def transfer(self, cloud: Aruba, sighting: Sighting, owner: str) -> None:
        """Write it again with another owner in the place of the one that was read: both are strings of one list."""
        before = ProtocolTags(owner=sighting.protocol.owner)
        self.rewrite(cloud, sighting, {}, ProtocolTags(owner=owner), before)

    def rewrite(
        self,
        cloud: Aruba,
        sighting: Sighting,
        properties: Item,
        add: ProtocolTags = NO_TAGS,
        remove: ProtocolTags = NO_TAGS,
    ) -> None:
        """Read it once more, and write it as it is but for what is to change; not if somebody touched its tags."""
        item = cloud.find(sighting.resource_id)
        if item is None:
            raise NotFound(f"{sighting.resource_id} is gone: it is looked for again")
        tags = item["metadata"].get("tags") or []
        if mapping(tags) != sighting.tags:
            raise Overtaken("somebody changed its tags a moment ago: nothing was written, and it is read again")
        body = _said(
            item["metadata"]["name"],
            _location(item) or cloud.location,
            rewritten(tags, add, remove),
            self.merged(item, properties),
        )
        cloud.write("PUT", sighting.resource_id, body)

    def delete(self, cloud: Aruba, sighting: Sighting) -> None:
        """Ask for the deletion, and of nothing else with it; what is gone already is success."""
        try:
            cloud.write("DELETE", sighting.resource_id, **self.cascade)
        except NotFound:
            return
        except Conflict as refusal:
            raise self.blocked(cloud, sighting, refusal) from refusal

    def blocked(self, cloud: Aruba, sighting: Sighting, refusal: Conflict) -> Conflict:
        """The refusal of a deletion, with the names of what is linked to the resource."""
        item = cloud.find(sighting.resource_id) or {}
        linked = (item.get("properties") or {}).get("linkedResources") or []
        names = [str(one["uri"]) for one in linked if isinstance(one, dict) and one.get("uri")]
        if not names:
            return refusal
        cause = f"{', '.join(sorted(names))} still needs it ({refusal.message})"
        return Conflict(cause, code=refusal.code, request_id=refusal.request_id)


def _shown(item: Item) -> Shown:
    uri = text_at(item, "metadata", "uri") or text_at(item, "metadata", "id")
    return uri, text_at(item, "metadata", "name")


def _location(item: Item) -> str:
    return str((item["metadata"].get("location") or {}).get("value") or "")


def _said(name: str, location: str, tags: list[str], properties: Item) -> Item:
    given = {key: value for key, value in properties.items() if value is not None}
    return {"metadata": {"name": name, "location": {"value": location}, "tags": tags}, "properties": given}
