"""Subnets: found by their display name in their VCN."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import IPv4Network
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.oci.calls import Item, Oci
from fractal_cloud.offers.oci.core import CoreOffer, OciComponent
from fractal_cloud.offers.oci.tags import WARNING, glass
from fractal_cloud.offers.oci.value_types import Block, DnsLabel
from fractal_cloud.offers.oci.vcn import OciVcn
from fractal_cloud.offers.offer import Wanted

_CHANGED = ("cidrBlock", "routeTableId", "securityListIds", "dhcpOptionsId")
SecurityListId = Annotated[str, Field(pattern=r"^ocid1\.securitylist\.")]


class OciSubnet(OciComponent):
    """A part of a VCN, in one availability domain or, without one, in the whole region."""

    type = "NetworkAndCompute.IaaS.OciSubnet"

    vcn: Reference[OciVcn] = parameter(
        immutable=True,
        reference=(OciVcn.type, "vcnId"),
        description="The VCN it is a part of; it lies in its region and compartment.",
    )
    cidr_block: Block = parameter(
        compare="cidr",
        description="Its IPv4 block. It may grow or shrink if it still begins at the same address and holds all "
        "addresses in use.",
    )
    availability_domain: str | None = parameter(
        default=None,
        immutable=True,
        description="Availability domain it lies in; the whole region where none is given.",
    )
    dns_label: DnsLabel | None = parameter(
        default=None, immutable=True, description="Its part of the names of what is in it."
    )
    prohibit_public_ip_on_vnic: bool | None = parameter(
        default=None, immutable=True, description="Whether nothing in it may have a public address: a private subnet."
    )
    route_table_id: str | None = parameter(
        default=None,
        description="OCID of its route table; the VCN's default one if not given.",
        pattern=r"^ocid1\.routetable\.",
    )
    security_list_ids: list[SecurityListId] | None = parameter(
        default=None,
        compare="unordered",
        description="OCIDs of its security lists; the VCN's default one if not given.",
    )
    dhcp_options_id: str | None = parameter(
        default=None,
        description="OCID of its DHCP options; the VCN's default ones if not given.",
        pattern=r"^ocid1\.dhcpoptions\.",
    )


class OciSubnetOffer(CoreOffer[OciSubnet]):
    """How subnets are read and changed."""

    component = OciSubnet
    title = "Subnet"
    collection = "subnets"
    rights = ("manage subnets", "use vnics")
    parent = "vcn"
    outputs: ClassVar[Mapping[str, str]] = {
        "subnetId": "OCID of the subnet",
        "vcnId": "OCID of its VCN",
        "region": "region it lies in",
        "compartmentId": "OCID of its compartment",
        "lifecycleState": "PROVISIONING, AVAILABLE, UPDATING or TERMINATING",
        "virtualRouterIp": "address of its router",
        "subnetDomainName": "its DNS domain, where it has one",
        "warning": WARNING,
    }
    glass = glass("network subnet", "--subnet-id")

    def actual(self, item: Item) -> dict[str, Any]:
        """What it is a part of, and how it is wired."""
        return {
            "vcn": item["vcnId"],
            "availabilityDomain": item.get("availabilityDomain"),
            "dnsLabel": item.get("dnsLabel"),
            "prohibitPublicIpOnVnic": bool(item.get("prohibitPublicIpOnVnic")),
            "securityListIds": sorted(item.get("securityListIds") or ()),
            **{name: item.get(name) for name in ("cidrBlock", "routeTableId", "dhcpOptionsId")},
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its id, its router and its names."""
        names = ("vcnId", "virtualRouterIp", "subnetDomainName")
        return {"subnetId": item["id"], **{name: item.get(name) for name in names}}

    def parent_of(self, item: Item) -> str | None:
        """Its VCN."""
        return str(item["vcnId"])

    def body(self, cloud: Oci, wanted: Wanted[OciSubnet]) -> Item:
        """All of it travels in the create call."""
        del cloud
        subnet = wanted.component
        return {
            "vcnId": wanted.parent_id or reference_id(subnet.vcn),
            "cidrBlock": subnet.cidr_block,
            "availabilityDomain": subnet.availability_domain,
            "dnsLabel": subnet.dns_label,
            "prohibitPublicIpOnVnic": subnet.prohibit_public_ip_on_vnic,
            "routeTableId": subnet.route_table_id,
            "securityListIds": subnet.security_list_ids,
            "dhcpOptionsId": subnet.dhcp_options_id,
        }

    def update(self, cloud: Oci, sighting: Sighting, wanted: Wanted[OciSubnet], drift: Collection[str]) -> None:
        """Change all of it in one call; a block that begins elsewhere would be another subnet (S18)."""
        declared = wanted.component.parameters()
        fixed = set(drift) & {"cidrBlock"} if _begins_elsewhere(sighting, wanted.component) else set()
        changed = {name: declared[name] for name in _CHANGED if name in drift and name not in fixed}
        if not changed:
            raise Invalid(
                f"cidrBlock is {sighting.actual['cidrBlock']!r} and cannot become {wanted.component.cidr_block!r}, "
                "which begins elsewhere: declare a new subnet, or delete this one and deploy again"
            )
        self.put(cloud, sighting, changed)


def _begins_elsewhere(sighting: Sighting, subnet: OciSubnet) -> bool:
    here, there = IPv4Network(str(sighting.actual["cidrBlock"])), IPv4Network(subnet.cidr_block)
    return here.network_address != there.network_address
