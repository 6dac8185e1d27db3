"""What VCNs, subnets and instances share: found by display name in a compartment, read and written with an etag."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Final

from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.errors import Denied
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.items import parse_each, text_at
from fractal_cloud.offers.oci.calls import CORE, Item, Oci
from fractal_cloud.offers.oci.tags import GUARD, RULES, protocol_of, rewritten, warning
from fractal_cloud.offers.oci.value_types import Compartment, Region
from fractal_cloud.offers.offer import C, Offer, Query, Recognition, Wanted

STATES: Mapping[str, Condition] = {
    "PROVISIONING": Condition.CREATING,
    "AVAILABLE": Condition.SETTLED,
    "UPDATING": Condition.CHANGING,
    "TERMINATING": Condition.DYING,
}
"""What the states of a network mean; one that is unknown counts as work in progress."""
DEAD: Final = "TERMINATED"
"""The one state that counts as absent."""


class OciComponent(Component):
    """What all components of OCI declare."""

    provider = "oci"

    region: Region | None = parameter(
        default=None, immutable=True, description="Region it lies in; that of what it refers to where none is given."
    )
    compartment: Compartment | None = parameter(
        default=None,
        immutable=True,
        description="Compartment it lies in: its OCID, or its path of names from below the root. That of what it "
        "refers to where none is given, else the one the agent is set to: the tenancy's root if nothing is said.",
    )


class OciOffer(Offer[C, Oci]):
    """Where all offers of OCI find things."""

    tag_rules = RULES
    place = ("region",)
    realm = "compartment"
    guard = GUARD
    not_found_may_mean_denied = True  # «NotAuthorizedOrNotFound»

    @abstractmethod
    def listed(self, cloud: Oci) -> Iterator[str]:
        """The ids of everything of this kind that lives in the compartment."""

    def make_sure_of_absence(self, cloud: Oci, resource_id: str) -> None:
        """Make sure that what a read did not find is not there, by a list that shows all of the compartment (S0).

        To a read OCI answers «not found» also where the caller may not see it; a list it refuses as a whole. Raises
        ``Denied`` where the list shows what the read was refused.
        """
        if resource_id in self.listed(cloud):
            raise Denied(
                f"{resource_id!r} is listed but may not be read (NotAuthorizedOrNotFound): allow it to the agent: "
                "`fractal agent policy --provider oci` prints what it needs",
                code="NotAuthorizedOrNotFound",
            )


class CoreOffer(OciOffer[C]):
    """``collection``: where its resources are listed. ``states``: what its lifecycle states mean."""

    service = "core"
    recognition = Recognition.TOKEN
    collection: ClassVar[str]
    states: ClassVar[Mapping[str, Condition]] = STATES

    # --- what each offer says of its kind

    @abstractmethod
    def actual(self, item: Item) -> dict[str, Any]:
        """The actual values of the parameters a resource shows."""

    @abstractmethod
    def shown(self, item: Item) -> dict[str, Any]:
        """Its outputs."""

    @abstractmethod
    def body(self, cloud: Oci, wanted: Wanted[C]) -> Item:
        """What the create call says beside name, compartment and tags."""

    # --- what is the same for all

    def sightings(self, cloud: Oci, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All living resources of the kind in the compartment, a thousand a call."""
        del query
        yield from parse_each(
            cloud.list(self.service, f"{CORE}/{self.collection}"),
            lambda item: self.sighting(cloud, item) if item["lifecycleState"] != DEAD else None,
            lambda item: (text_at(item, "id"), text_at(item, "displayName")),
        )

    def listed(self, cloud: Oci) -> Iterator[str]:
        """The OCIDs of those that are not dead."""
        every = cloud.list(self.service, f"{CORE}/{self.collection}")
        return (item["id"] for item in every if item["lifecycleState"] != DEAD)

    def read(self, cloud: Oci, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One resource by its OCID, with its etag."""
        del sweep
        found = cloud.find(self.service, self._path(resource_id))
        if found is None:
            self.make_sure_of_absence(cloud, resource_id)
            return None
        item, etag = found
        return self.sighting(cloud, item, etag) if item["lifecycleState"] != DEAD else None

    def create(self, cloud: Oci, wanted: Wanted[C], tags: ProtocolTags) -> Sighting:
        """Create it; the same token never makes a second one."""
        body = {
            "compartmentId": cloud.compartment,
            "displayName": wanted.component.name,
            "freeformTags": tags.to_mapping(),
            **{name: value for name, value in self.body(cloud, wanted).items() if value is not None},
        }
        item, etag = cloud.create(self.service, f"{CORE}/{self.collection}", body, wanted.token)
        return self.sighting(cloud, item, etag)

    def put(self, cloud: Oci, sighting: Sighting, body: Item) -> None:
        """Change the fields named; those that are not stay as they are."""
        cloud.change(self.service, "PUT", self._path(sighting.resource_id), sighting.revision, body)

    def delete(self, cloud: Oci, sighting: Sighting) -> None:
        """Delete it as it was read; the cloud itself names what is still in it."""
        self.remove(cloud, sighting)

    def remove(self, cloud: Oci, sighting: Sighting, **query: str) -> None:
        """Ask for the deletion; what is gone already is success, what is only hidden is not."""
        try:
            cloud.change(self.service, "DELETE", self._path(sighting.resource_id), sighting.revision, **query)
        except Denied:
            if self.read(cloud, sighting.resource_id) is not None:
                raise

    def tag(self, cloud: Oci, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Write the map of free-form tags as it was read, but for the protocol's, and only if it still is so."""
        self.put(cloud, sighting, {"freeformTags": rewritten(sighting.tags, add, remove)})

    def sighting(self, cloud: Oci, item: Item, etag: str | None = None) -> Sighting:
        """What a resource shows."""
        state = item["lifecycleState"]
        condition = self.states.get(state, Condition.CHANGING)
        tags = item.get("freeformTags") or {}
        return Sighting(
            type=self.type,
            name=name_of(cloud, item["displayName"], item["compartmentId"]),
            resource_id=item["id"],
            parent_id=self.parent_of(item),
            protocol=protocol_of(tags),
            tags=tags,
            actual={"region": cloud.region, **self.actual(item)},
            outputs={
                "region": cloud.region,
                "compartmentId": item["compartmentId"],
                "lifecycleState": state,
                **{name: value for name, value in self.shown(item).items() if value is not None},
                **warning(item),
            },
            condition=condition,
            revision=etag or None,
            detail="" if condition is Condition.SETTLED else state,
        )

    def parent_of(self, item: Item) -> str | None:
        """The OCID of the resource its name is unique in."""
        del item
        return None

    def _path(self, resource_id: str) -> str:
        return f"{CORE}/{self.collection}/{resource_id}"


def name_of(cloud: Oci, name: str, compartment: str) -> str:
    """The name of a resource in the scope. What was moved to another compartment is no longer what the name means."""
    return name if compartment == cloud.compartment else f"{name} (in compartment {compartment})"
