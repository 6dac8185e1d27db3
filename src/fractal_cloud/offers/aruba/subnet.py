"""Subnets: found by their name in their VPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.offers.aruba.calls import Item, address
from fractal_cloud.offers.aruba.resources import ArubaComponent, ArubaOffer
from fractal_cloud.offers.aruba.tags import glass
from fractal_cloud.offers.aruba.value_types import Block
from fractal_cloud.offers.aruba.vpc import ArubaVpc
from fractal_cloud.offers.offer import Wanted


class ArubaSubnet(ArubaComponent):
    """A part of a VPC. Aruba changes nothing about it once it is there."""

    type = "NetworkAndCompute.IaaS.ArubaSubnet"

    vpc: Reference[ArubaVpc] = parameter(
        immutable=True,
        reference=(ArubaVpc.type, "vpcUri"),
        description="The VPC it is a part of; it lies in its location and project.",
    )
    kind: Literal["Basic", "Advanced"] = parameter(
        default="Basic", immutable=True, description="Basic: Aruba chooses its addresses. Advanced: you give the block."
    )
    address: Block | None = parameter(
        default=None, immutable=True, description="Its IPv4 block; for Advanced, and only there."
    )
    dhcp_enabled: bool | None = parameter(
        default=None,
        immutable=True,
        description="Whether machines get their addresses by DHCP; for Advanced, and only there.",
    )

    @model_validator(mode="after")
    def _has_a_block(self) -> Self:
        if (self.kind == "Advanced") != (self.address is not None) or (self.kind == "Basic" and self.dhcp_enabled):
            raise ValueError("an Advanced subnet has an address (and dhcpEnabled), a Basic one has neither")
        return self


class ArubaSubnetOffer(ArubaOffer[ArubaSubnet]):
    """How subnets are read and changed."""

    component = ArubaSubnet
    title = "Subnet"
    service = "network"
    parent = "vpc"
    reads_by_parent = True
    read_needs_parent = True
    collection = "subnets"
    rights = ("Aruba.Network/subnets",)
    echoed = ("default",)
    outputs: ClassVar[Mapping[str, str]] = {
        "subnetUri": "address of the subnet, by which others refer to it",
        "id": "id of the subnet",
        "vpcUri": "address of its VPC",
        "location": "region it lies in",
        "projectId": "id of its project",
        "state": "its state in Aruba's words",
        "networkAddress": "its IPv4 block, given or chosen",
    }
    glass = glass(echoed)

    def actual(self, item: Item) -> dict[str, Any]:
        """How it was made; what Aruba chose for a Basic one is no parameter of it."""
        properties = item["properties"]
        made = {"vpc": address(item).rsplit("/", 2)[0], "kind": properties["type"]}
        if properties["type"] == "Basic":
            return made
        return {
            **made,
            "address": (properties.get("network") or {}).get("address"),
            "dhcpEnabled": (properties.get("dhcp") or {}).get("enabled"),
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address, and its block."""
        uri = address(item)
        block = (item["properties"].get("network") or {}).get("address")
        return {"subnetUri": uri, "vpcUri": uri.rsplit("/", 2)[0], "networkAddress": block}

    def properties(self, wanted: Wanted[ArubaSubnet]) -> Item:
        """All of it travels in the create call."""
        subnet = wanted.component
        return {
            "type": subnet.kind,
            "default": False,
            "network": None if subnet.address is None else {"address": subnet.address},
            "dhcp": None if subnet.dhcp_enabled is None else {"enabled": subnet.dhcp_enabled},
        }
