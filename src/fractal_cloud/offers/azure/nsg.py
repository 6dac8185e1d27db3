"""Network security groups: found by their name in a resource group."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final

from pydantic import field_serializer, field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.kinds import Item, ResourceGroup, ResourceKind, canonical_id, name_in, network_name
from fractal_cloud.offers.azure.nsg_rules import AzureSecurityRule, Rule, each_once, from_items, to_items
from fractal_cloud.offers.azure.resources import OUTPUTS, AzureResource, ResourceOffer
from fractal_cloud.offers.offer import Wanted

NSG: Final = ResourceKind("Microsoft.Network", "networkSecurityGroups", "2024-05-01")


class AzureNsg(AzureResource):
    """A set of firewall rules that subnets and network interfaces are put under."""

    type = "NetworkAndCompute.IaaS.AzureNsg"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the resource group; the component's id if not given.",
    )
    resource_group: ResourceGroup = parameter(
        immutable=True, description="Resource group it lies in, which must exist; in small letters."
    )
    security_rules: list[AzureSecurityRule] | None = parameter(
        default=None, compare="unordered", description="All its rules, but for those that Azure puts into every group."
    )
    flush_connection: bool | None = parameter(
        default=None,
        description="Whether a change of the rules also ends connections that no longer pass; Azure says false.",
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return network_name(name)

    @field_validator("security_rules")
    @classmethod
    def _has_each_rule_once(cls, rules: list[AzureSecurityRule] | None) -> list[AzureSecurityRule] | None:
        return each_once(rules)

    @field_serializer("security_rules")
    def _in_one_spelling(self, rules: list[AzureSecurityRule] | None) -> list[Rule] | None:
        return None if rules is None else [rule.flat() for rule in rules]


class AzureNsgOffer(ResourceOffer[AzureNsg]):
    """How network security groups are read and changed."""

    component = AzureNsg
    title = "Network security group"
    service = "network"
    kind = NSG
    rights = (f"{NSG.type}/join/action",)
    outputs: ClassVar[Mapping[str, str]] = {**OUTPUTS, "resourceGuid": "id that no other group will ever have"}

    def actual(self, item: Item) -> dict[str, Any]:
        """Its rules."""
        properties = item.get("properties") or {}
        return {
            "securityRules": from_items(properties.get("securityRules") or ()),
            "flushConnection": bool(properties.get("flushConnection")),
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its own id."""
        return {"resourceGuid": (item.get("properties") or {}).get("resourceGuid")}

    def incarnation_of(self, item: Item) -> str:
        """The id of its own."""
        return str((item.get("properties") or {}).get("resourceGuid") or "")

    def body(self, wanted: Wanted[AzureNsg]) -> Item:
        """The group with its rules."""
        properties: Item = {}
        _apply(properties, wanted.component, wanted.component.parameters())
        return {"properties": properties}

    def update(self, cloud: Azure, sighting: Sighting, wanted: Wanted[AzureNsg], drift: Collection[str]) -> None:
        """Write the group back as it is, with what is declared."""
        item = self.still(cloud, sighting)
        changed = deepcopy(item)
        _apply(changed["properties"], wanted.component, drift)
        cloud.put(sighting.resource_id, self.kind.version, changed, item["etag"])

    def check_deletion(self, cloud: Azure, sighting: Sighting) -> None:
        """What is still under it is named; Azure would refuse, and say less."""
        properties = self.still(cloud, sighting).get("properties") or {}
        under = [
            f"{noun} {_short(one['id'])!r}"
            for noun, key in (("subnet", "subnets"), ("network interface", "networkInterfaces"))
            for one in properties.get(key) or ()
        ]
        if under:
            raise Conflict(f"{sighting.name!r} is still used by {', '.join(under)}: release it, and it is tried again")


def _short(resource_id: str) -> str:
    network, found, subnet = canonical_id(resource_id).rpartition("/subnets/")
    return f"{name_in(network)}/{subnet}" if found else name_in(resource_id)


def _apply(properties: Item, group: AzureNsg, names: Collection[str]) -> None:
    if "securityRules" in names:
        properties["securityRules"] = to_items(group.parameters()["securityRules"])
    if "flushConnection" in names:
        properties["flushConnection"] = group.flush_connection
