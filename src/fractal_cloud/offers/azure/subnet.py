"""Subnets: found by their name in their virtual network. They cannot carry tags, so they are only ever imported.

A network makes the subnets it names itself: see ``AzureVnet``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar

from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Block, Item, ResourceGroup, canonical_id, group_in, name_in
from fractal_cloud.offers.azure.resources import AzureComponent, shown_id, state_of
from fractal_cloud.offers.azure.vnet import VNET, AzureVnet, prefix_of
from fractal_cloud.offers.items import parse_each
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.read_only import ReadOnlyOffer


class AzureSubnet(AzureComponent):
    """A subnet of a virtual network, made by the network or by somebody else: it is read, and never changed."""

    type = "NetworkAndCompute.IaaS.AzureSubnet"

    resource_group: ResourceGroup | None = parameter(
        default=None, immutable=True, description="Resource group of its network, where that is not declared here."
    )
    vnet: Reference[AzureVnet] = parameter(
        immutable=True, reference=(AzureVnet.type, "id"), description="The virtual network it is part of."
    )
    address_prefix: Block | None = parameter(
        default=None, compare="cidr", description="Its address block; a difference is shown, and never corrected."
    )


class AzureSubnetOffer(ReadOnlyOffer[AzureSubnet, Azure]):
    """How subnets are read."""

    component = AzureSubnet
    title = "Subnet"
    service = "network"
    rights = (f"{VNET.type}/subnets/read",)
    place = ("resourceGroup",)
    parent = "vnet"
    realm = "subscription"
    ids_return = True
    rename_changes_id = True
    read_needs_parent = True
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
            detail=detail,
        )
