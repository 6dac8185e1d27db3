"""Subnets: found by their name in their virtual network. They carry no tags: they are parts of that network (S25).

A network makes the subnets it names itself, too: see ``AzureVnet``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, NoReturn

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.model.errors import Conflict, Invalid, NotFound, Overtaken
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Block, Item, ResourceGroup, canonical_id, group_in, name_in
from fractal_cloud.offers.azure.resources import AzureComponent, shown_id, state_of
from fractal_cloud.offers.azure.vnet import VNET, AzureVnet, more_of, prefix_of, subnet_body
from fractal_cloud.offers.items import parse_each
from fractal_cloud.offers.offer import Offer, Query, Wanted


class AzureSubnet(AzureComponent):
    """A subnet of a virtual network: a part of it. Where the network is another LiveSystem's, it is only read."""

    type = "NetworkAndCompute.IaaS.AzureSubnet"

    resource_group: ResourceGroup | None = parameter(
        default=None, immutable=True, description="Resource group of its network, where that is not declared here."
    )
    vnet: Reference[AzureVnet] = parameter(
        immutable=True, reference=(AzureVnet.type, "id"), description="The virtual network it is part of."
    )
    address_prefix: Block | None = parameter(
        default=None,
        compare="cidr",
        description="Its address block. Azure makes no subnet without one, and changes none that is in use.",
    )


class AzureSubnetOffer(Offer[AzureSubnet, Azure]):
    """How subnets are read, and changed while their network may be."""

    component = AzureSubnet
    title = "Subnet"
    service = "network"
    rights = tuple(f"{VNET.type}/subnets/{verb}" for verb in ("read", "write", "delete"))
    place = ("resourceGroup",)
    parent = "vnet"
    realm = "subscription"
    taggable = False
    is_part = True
    ids_return = True
    rename_changes_id = True
    read_needs_parent = True
    unguarded = frozenset({"delete"})
    guard = (
        "its network's tags, read right before the one call; an update carries the subnet's own etag (If-Match), a "
        "deletion has no precondition"
    )
    glass = GlassCommands(caveat="it carries no tags: break the glass of its network, and it is not changed either")
    outputs: ClassVar[Mapping[str, str]] = {
        "id": "Azure's id of the subnet",
        "name": "its name",
        "resourceGroup": "resource group it lies in",
        "vnetId": "id of its network",
        "provisioningState": "Succeeded, Updating, Deleting or Failed",
    }

    def sightings(self, cloud: Azure, query: Query) -> Iterator[Sighting | UnreadItem]:
        """The subnets of all networks of the group, which come with them."""
        del query
        for network in cloud.list(VNET):
            # A network that shows no list of subnets cannot be understood, and so can none of them.
            yield from parse_each(network["properties"]["subnets"] or (), self._sighting, shown_id)

    def read(self, cloud: Azure, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One subnet by its id."""
        del sweep
        subnet = cloud.find(resource_id, VNET.version)
        return self._sighting(subnet) if subnet is not None else None

    def create(self, cloud: Azure, wanted: Wanted[AzureSubnet], tags: ProtocolTags) -> Sighting:
        """Create it in its network; one of that name is never overwritten, as Azure would."""
        del tags
        name, block = wanted.component.name, wanted.component.address_prefix
        if not block:
            raise Invalid(f"addressPrefix of {name!r} is missing: Azure makes no subnet without an address block")
        subnet_id = f"{wanted.parent_id}/subnets/{name}"
        if cloud.find(subnet_id, VNET.version) is not None:
            raise Conflict(f"{name!r} is there already, though no list showed it: it is read again")
        body = subnet_body(name, block)
        made = cloud.put(subnet_id, VNET.version, body, is_new=True)
        return self._sighting({**body, "id": subnet_id, **made})

    def update(self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzureSubnet], drift: Collection[str]) -> None:
        """Give it its declared block; everything else that it has is kept."""
        block = wanted.component.address_prefix
        if "addressPrefix" not in drift or not block:
            return
        subnet = self._still(cloud, sighting)
        body = subnet_body(sighting.name, block, subnet["properties"])
        cloud.put(sighting.resource_id, VNET.version, body, subnet.get("etag"))

    def delete(self, cloud: Azure, sighting: Sighting) -> None:
        """Delete it while nobody uses it; absent is success."""
        subnet = cloud.find(sighting.resource_id, VNET.version)
        if subnet is None:
            return
        if more := more_of(subnet):
            raise Conflict(
                f"subnet {sighting.name!r} still has {', '.join(more)}: remove them first, and it is tried again"
            )
        cloud.delete(sighting.resource_id, VNET.version)

    def tag(self, cloud: Azure, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> NoReturn:
        """Never: it has none."""
        del cloud, add, remove
        raise Invalid(f"{sighting.name!r} is a subnet, which carries no tags: those of its network count")

    def _still(self, cloud: Azure, sighting: Sighting) -> Item:
        """The subnet as it is now; raises where it is no longer the one that was read."""
        subnet = cloud.find(sighting.resource_id, VNET.version)
        if subnet is None:
            raise NotFound(f"{sighting.name!r} is gone: it is looked for again")
        if sighting.revision is not None and subnet.get("etag") != sighting.revision:
            raise Overtaken(f"{sighting.name!r} was changed by somebody: nothing was written")
        return subnet

    def _sighting(self, subnet: Item) -> Sighting:
        subnet_id = canonical_id(subnet["id"])
        network_id = subnet_id.rpartition("/subnets/")[0]
        condition, detail = state_of((subnet.get("properties") or {}).get("provisioningState"))
        outputs = {
            "id": subnet_id,
            "name": name_in(subnet_id),
            "resourceGroup": group_in(subnet_id),
            "vnetId": network_id,
            "provisioningState": (subnet.get("properties") or {}).get("provisioningState"),
        }
        return Sighting(
            type=self.type,
            name=name_in(subnet_id),
            resource_id=subnet_id,
            parent_id=network_id,
            actual={"resourceGroup": group_in(subnet_id), "vnet": network_id, "addressPrefix": prefix_of(subnet)},
            outputs={name: value for name, value in outputs.items() if value is not None},
            condition=condition,
            revision=subnet.get("etag"),
            detail=detail,
        )
