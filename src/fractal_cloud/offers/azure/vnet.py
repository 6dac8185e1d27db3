"""Virtual networks: found by their name in a resource group.

Subnets cannot carry tags, so a network has a map of those it makes itself. Only the subnets named in it are compared
and written, each by a call of its own: a write of the whole network could take other people's subnets away.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Block, Item, ResourceGroup, ResourceKind, network_name
from fractal_cloud.offers.azure.resources import OUTPUTS, AzureResource, ResourceOffer
from fractal_cloud.offers.offer import Wanted

VNET: Final = ResourceKind("Microsoft.Network", "virtualNetworks", "2024-05-01")

# What a subnet has beyond its name and prefix: the work of somebody else, or of something that runs in it.
_MORE: Final[Mapping[str, str]] = {
    "ipConfigurations": "addresses in use",
    "privateEndpoints": "private endpoints",
    "resourceNavigationLinks": "links of a service",
    "serviceAssociationLinks": "links of a service",
    "delegations": "a delegation",
    "serviceEndpoints": "service endpoints",
    "networkSecurityGroup": "a security group",
    "routeTable": "a route table",
    "natGateway": "a NAT gateway",
}
# What Azure computes, and the other way to say the block.
_NOT_SENT: Final = frozenset({"addressPrefixes", "ipConfigurations", "provisioningState"})
_WHOLE: Final = ("addressPrefixes", "dnsServers", "flowTimeoutInMinutes")


class AzureVnet(AzureResource):
    """A virtual network, with the subnets it makes itself."""

    type = "NetworkAndCompute.IaaS.AzureVnet"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the resource group; the component's id if not given.",
    )
    resource_group: ResourceGroup = parameter(
        immutable=True, description="Resource group it lies in, which must exist; in small letters."
    )
    address_prefixes: list[Block] = parameter(
        compare="cidrs", min_length=1, description="The address blocks its subnets are taken from."
    )
    dns_servers: list[str] | None = parameter(
        default=None, description="DNS servers of its machines, in this order; Azure's own where there are none."
    )
    flow_timeout_in_minutes: int | None = parameter(
        default=None, ge=4, le=30, description="Minutes after which an idle connection is forgotten."
    )
    subnets: dict[str, Block] | None = parameter(
        default=None,
        compare="entries",
        description="Subnets it makes, each name with its address block. Others in the network are left alone, and so "
        "is one that is taken out of this map.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return network_name(name)

    @field_validator("subnets")
    @classmethod
    def _are_names(cls, subnets: dict[str, str] | None) -> dict[str, str] | None:
        for name in subnets or ():
            network_name(name)
        return subnets


class AzureVnetOffer(ResourceOffer[AzureVnet]):
    """How virtual networks are read and changed."""

    component = AzureVnet
    title = "Virtual network"
    service = "network"
    kind = VNET
    rights = (f"{VNET.type}/subnets/read", f"{VNET.type}/subnets/write")
    guard = (
        "updates carry the network's etag (If-Match), those of a subnet the subnet's own; tag changes and deletions "
        "have no precondition: their window is the one call after a fresh read"
    )
    unguarded = frozenset({"update", "tag", "delete"})
    outputs: ClassVar[Mapping[str, str]] = {**OUTPUTS, "resourceGuid": "id that no other network will ever have"}

    def actual(self, item: Item) -> dict[str, Any]:
        """Its address blocks, DNS servers and subnets."""
        properties = item.get("properties") or {}
        return {
            "addressPrefixes": (properties.get("addressSpace") or {}).get("addressPrefixes") or [],
            "dnsServers": (properties.get("dhcpOptions") or {}).get("dnsServers") or [],
            "flowTimeoutInMinutes": properties.get("flowTimeoutInMinutes"),
            "subnets": {one["name"].lower(): prefix_of(one) for one in properties.get("subnets") or ()},
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its own id."""
        return {"resourceGuid": (item.get("properties") or {}).get("resourceGuid")}

    def incarnation_of(self, item: Item) -> str:
        """The id of its own."""
        return str((item.get("properties") or {}).get("resourceGuid") or "")

    def body(self, wanted: Wanted[AzureVnet]) -> Item:
        """The network with its subnets."""
        network = wanted.component
        properties: Item = {}
        _apply(properties, network, [name for name in _WHOLE if network.parameters().get(name) is not None])
        properties["subnets"] = [subnet_body(name, block) for name, block in (network.subnets or {}).items()]
        return {"properties": properties}

    def update(self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzureVnet], drift: Collection[str]) -> None:
        """Write the network without its subnets, which leaves those alone; then the next subnet that differs."""
        network = wanted.component
        item = self.still(cloud, sighting)
        whole = [name for name in _WHOLE if name in drift]
        if whole:
            changed = deepcopy(item)
            changed["properties"].pop("subnets", None)
            _apply(changed["properties"], network, whole)
            cloud.put(sighting.resource_id, self.kind.version, changed, item["etag"])
            return
        known = {one["name"].lower(): one for one in item["properties"].get("subnets") or ()}
        for name, block in (network.subnets or {}).items():
            subnet = known.get(name)
            if subnet is not None and prefix_of(subnet) == block:
                continue
            cloud.put(
                f"{sighting.resource_id}/subnets/{name}",
                self.kind.version,
                subnet_body(name, block, subnet["properties"] if subnet is not None else None),
                subnet["etag"] if subnet is not None else None,
                is_new=subnet is None,
            )
            return

    def check_deletion(self, cloud: Azure, sighting: Sighting) -> None:
        """Azure takes every empty subnet along: one that somebody uses, or has made more of, keeps the network."""
        subnets = (self.still(cloud, sighting).get("properties") or {}).get("subnets") or ()
        used = [f"subnet {one['name']!r} ({', '.join(more)})" for one in subnets if (more := more_of(one))]
        if used:
            raise Conflict(f"{sighting.name!r} still has {', '.join(used)}: remove them first, and it is tried again")


def more_of(subnet: Item) -> list[str]:
    """What a subnet has beside its block that keeps it from being deleted, in words."""
    properties = subnet.get("properties") or {}
    return list(dict.fromkeys(words for key, words in _MORE.items() if properties.get(key)))


def prefix_of(subnet: Item) -> str:
    """The address block of a subnet; several are joined."""
    properties = subnet.get("properties") or {}
    return properties.get("addressPrefix") or ",".join(properties.get("addressPrefixes") or ())


def subnet_body(name: str, block: str, others: Mapping[str, Any] | None = None) -> Item:
    """A subnet with its block; everything else that it has is kept."""
    kept = {key: value for key, value in (others or {}).items() if key not in _NOT_SENT}
    return {"name": name, "properties": {**kept, "addressPrefix": block}}


def _apply(properties: Item, network: AzureVnet, names: Collection[str]) -> None:
    if "addressPrefixes" in names:
        properties["addressSpace"] = {"addressPrefixes": network.address_prefixes}
    if "dnsServers" in names:
        properties["dhcpOptions"] = {"dnsServers": network.dns_servers}
    if "flowTimeoutInMinutes" in names:
        properties["flowTimeoutInMinutes"] = network.flow_timeout_in_minutes
