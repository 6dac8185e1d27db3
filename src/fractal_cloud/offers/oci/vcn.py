"""Virtual cloud networks: found by their display name in a compartment, of which there may be several equal ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.oci.calls import CORE, Item, Oci
from fractal_cloud.offers.oci.core import CoreOffer, OciComponent
from fractal_cloud.offers.oci.tags import WARNING, glass
from fractal_cloud.offers.oci.value_types import Block, DnsLabel, Region
from fractal_cloud.offers.offer import Wanted

MOST_BLOCKS = 5


class OciVcn(OciComponent):
    """A virtual cloud network in one region."""

    type = "NetworkAndCompute.IaaS.OciVcn"

    region: Region = parameter(immutable=True, description="Region it lies in.")
    cidr_blocks: list[Block] = parameter(
        compare="cidrs",
        min_length=1,
        max_length=MOST_BLOCKS,
        description="Its IPv4 blocks, between /16 and /30. They are added and taken away one by one.",
    )
    dns_label: DnsLabel | None = parameter(
        default=None,
        immutable=True,
        description="Its part of the names of what is in it; without it, it has no DNS names.",
    )
    is_ipv6_enabled: bool | None = parameter(
        default=None, immutable=True, description="Whether Oracle gave it an IPv6 block."
    )


class OciVcnOffer(CoreOffer[OciVcn]):
    """How VCNs are read and changed."""

    component = OciVcn
    title = "VCN"
    collection = "vcns"
    rights = ("manage vcns", "manage route-tables", "manage security-lists", "manage dhcp-options")
    outputs: ClassVar[Mapping[str, str]] = {
        "vcnId": "OCID of the VCN",
        "region": "region it lies in",
        "compartmentId": "OCID of its compartment",
        "lifecycleState": "PROVISIONING, AVAILABLE, UPDATING or TERMINATING",
        "defaultRouteTableId": "OCID of the route table that came with it",
        "defaultSecurityListId": "OCID of the security list that came with it",
        "defaultDhcpOptionsId": "OCID of the DHCP options that came with it",
        "vcnDomainName": "its DNS domain, where it has one",
        "warning": WARNING,
    }
    glass = glass("network vcn", "--vcn-id")

    def actual(self, item: Item) -> dict[str, Any]:
        """Its blocks, and what was chosen when it was made."""
        return {
            "cidrBlocks": item.get("cidrBlocks") or [item["cidrBlock"]],
            "dnsLabel": item.get("dnsLabel"),
            "isIpv6Enabled": bool(item.get("ipv6CidrBlocks")),
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its id, and what came with it."""
        names = ("defaultRouteTableId", "defaultSecurityListId", "defaultDhcpOptionsId", "vcnDomainName")
        return {"vcnId": item["id"], **{name: item.get(name) for name in names}}

    def body(self, cloud: Oci, wanted: Wanted[OciVcn]) -> Item:
        """All of it travels in the create call."""
        del cloud
        vcn = wanted.component
        return {"cidrBlocks": vcn.cidr_blocks, "dnsLabel": vcn.dns_label, "isIpv6Enabled": vcn.is_ipv6_enabled}

    def update(self, cloud: Oci, sighting: Sighting, wanted: Wanted[OciVcn], drift: Collection[str]) -> None:
        """Add the next missing block, then remove the next surplus one; with no space left, the other way round."""
        del drift
        here = list(sighting.actual["cidrBlocks"])
        missing = [block for block in wanted.component.cidr_blocks if block not in here]
        surplus = [block for block in here if block not in wanted.component.cidr_blocks]
        if missing and len(here) < MOST_BLOCKS:
            action, block = "addCidr", missing[0]
        elif surplus:
            action, block = "removeCidr", surplus[0]
        else:
            return
        path = f"{CORE}/vcns/{sighting.resource_id}/actions/{action}"
        cloud.change(self.service, "POST", path, sighting.revision, {"cidrBlock": block})
