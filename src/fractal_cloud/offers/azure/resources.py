"""What all offers of Azure share: one kind of resource, listed in bulk, found by its id, tagged one tag at a time.

An offer says how declared parameters stand in its kind of resource and how they are changed. How resources are found,
created, tagged and deleted is the same for all of them, and stands here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.errors import Conflict, NotFound, Overtaken
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Item, Location, ResourceKind, canonical_id, group_in, name_in, same_place
from fractal_cloud.offers.azure.tags import GUARDED, RULES, glass, protocol_of, write_tags
from fractal_cloud.offers.items import Shown, parse_each, text_at
from fractal_cloud.offers.offer import C, Offer, Query, Wanted

OUTPUTS: Final[Mapping[str, str]] = {
    "id": "Azure's id of the resource",
    "name": "its name",
    "resourceGroup": "resource group it lies in",
    "location": "where it is",
    "provisioningState": "Creating, Succeeded, Updating, Deleting, Failed, …",
}
State = tuple[Condition, str]
"""Whether Azure is still at work on a resource, and what it says about it."""
_CONDITIONS: Final[Mapping[str, Condition]] = {
    "Succeeded": Condition.SETTLED,
    "Creating": Condition.CREATING,
    "Deleting": Condition.DYING,
    "Failed": Condition.BROKEN,
    "Canceled": Condition.BROKEN,
}


class AzureComponent(Component):
    """What all components of Azure declare."""

    provider = "azure"

    subscription: str | None = parameter(
        default=None, immutable=True, description="Id or name of the subscription; the agent's own where none is given."
    )


class AzureResource(AzureComponent):
    """What all components declare that become a resource of their own."""

    location: Location = parameter(immutable=True, description="Where it is, in Azure's short spelling.")


class ResourceOffer(Offer[C, Azure]):
    """How one kind of resource is read and changed. ``deletes_guarded``: a deletion respects the etag, too."""

    kind: ClassVar[ResourceKind]
    deletes_guarded: ClassVar[bool] = False
    tag_rules = RULES
    place: ClassVar[tuple[str, ...]] = ("resourceGroup",)
    realm = "subscription"
    rename_changes_id = True  # a move to another resource group
    glass = glass()
    guard = GUARDED
    unguarded: ClassVar[frozenset[str]] = frozenset({"tag", "delete"})

    # --- what each offer says of its kind

    @abstractmethod
    def actual(self, item: Item) -> dict[str, Any]:
        """The actual values of the parameters a resource shows, as people declare them; None where it has none."""

    @abstractmethod
    def body(self, wanted: Wanted[C]) -> Item:
        """What a new resource is made of, but for its location and tags."""

    def shown(self, item: Item) -> dict[str, Any]:
        """The outputs beside those that every resource has; those that are None are left out."""
        del item
        return {}

    def state(self, item: Item) -> State:
        """What a resource says of Azure's work on it."""
        return state_of((item.get("properties") or {}).get("provisioningState"))

    def check_deletion(self, cloud: Azure, sighting: Sighting) -> None:
        """Raise ``Conflict`` or ``Protected`` where a deletion must not be asked for.

        Whoever reads the resource itself once more does so with ``still``: that read counts like the guard's.
        """

    def incarnation_of(self, item: Item) -> str:
        """Return what distinguishes it from a later resource of the same id: mostly its creation time."""
        return str((item.get("systemData") or {}).get("createdAt") or "")

    def etag_of(self, item: Item) -> str | None:
        """The precondition of an update, where the kind has one."""
        return item.get("etag")

    # --- what is the same for all

    def items(self, cloud: Azure) -> Iterator[Item]:
        """Everything of the kind that Azure lists."""
        return cloud.list(self.kind)

    def find(self, cloud: Azure, resource_id: str) -> Item | None:
        """One of them, fresh."""
        return cloud.find(resource_id, self.kind.version)

    def sightings(self, cloud: Azure, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All resources of the kind, a page a call."""
        del query
        yield from parse_each(self.items(cloud), lambda item: self.sighting(cloud, item), shown_id)

    def read(self, cloud: Azure, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource by its id."""
        del sweep
        item = self.find(cloud, resource_id)
        return self.sighting(cloud, item) if item is not None else None

    def sighting(self, cloud: Azure, item: Item) -> Sighting:
        """What a resource shows."""
        del cloud
        condition, detail = self.state(item)
        resource_id = canonical_id(item["id"])
        tags = item.get("tags") or {}
        shown = {
            "id": resource_id,
            "name": name_in(resource_id),
            "resourceGroup": group_in(resource_id),
            "location": same_place(item.get("location")),
            "provisioningState": (item.get("properties") or {}).get("provisioningState"),
            **self.shown(item),
        }
        return Sighting(
            type=self.type,
            name=name_in(resource_id),
            resource_id=resource_id,
            incarnation=self.incarnation_of(item),
            protocol=protocol_of(tags),
            tags=tags,
            actual={
                "resourceGroup": group_in(resource_id),
                "location": same_place(item.get("location")),
                **self.actual(item),
            },
            outputs={name: value for name, value in shown.items() if value is not None},
            condition=condition,
            revision=self.etag_of(item),
            detail=detail,
            is_open=condition is Condition.BROKEN,
        )

    def create(self, cloud: Azure, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Create it with its tags in the call; one of that name is never overwritten, as Azure would.

        Where the service ignores «If-None-Match», the read right before the call has to do.
        """
        name = wanted.component.name
        resource_id = cloud.id_of(self.kind, name, self.group_of(wanted))
        if self.find(cloud, resource_id) is not None:
            raise Conflict(f"{name!r} is there already, though no list showed it: it is read again")
        location = getattr(wanted.component, "location", None)
        body = {"location": location, "tags": tags.to_mapping(), **self.body(wanted)}
        made = cloud.put(resource_id, self.kind.version, body, is_new=True)
        return self.sighting(cloud, {**body, "id": resource_id, **made})

    def group_of(self, wanted: Wanted[C]) -> str:
        """The group a new resource goes into, where the scope does not say it."""
        del wanted
        return ""

    def still(self, cloud: Azure, sighting: Sighting) -> Item:
        """The resource as it is now, right before a write; raises where its tags are no longer those of the guard."""
        item = self.find(cloud, sighting.resource_id)
        if item is None:
            raise NotFound(f"{sighting.name!r} is gone: it is looked for again")
        if protocol_of(item.get("tags") or {}) != sighting.protocol:
            raise Overtaken(f"the tags of {sighting.name!r} were changed by somebody: nothing was written")
        return item

    def delete(self, cloud: Azure, sighting: Sighting) -> None:
        """Delete it; absent is success."""
        try:
            self.check_deletion(cloud, sighting)
        except NotFound:
            return
        cloud.delete(sighting.resource_id, self.kind.version, sighting.revision if self.deletes_guarded else None)

    def tag(self, cloud: Azure, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change protocol tags."""
        write_tags(cloud, sighting.resource_id, add, remove)


def shown_id(item: Item) -> Shown:
    """The id that a resource shows, and the name, which is the last part of it."""
    found = text_at(item, "id")
    return (canonical_id(found), name_in(canonical_id(found))) if found else (None, None)


def state_of(text: str | None) -> State:
    """What the state of a resource's provisioning means; one that shows none is ready."""
    condition = _CONDITIONS.get(text or "Succeeded", Condition.CHANGING)
    return condition, "" if condition is Condition.SETTLED else str(text)
