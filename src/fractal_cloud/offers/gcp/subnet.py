"""Subnets: made once or only read, because Google gives them no labels; machines and clusters refer to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import field_validator

from fractal_cloud.model.component import Reference, parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.network import GcpVpc, network_of
from fractal_cloud.offers.gcp.resources import Raw, UnlabelledOffer
from fractal_cloud.offers.gcp.tags import interned
from fractal_cloud.offers.gcp.value_types import GcpComponent, Network, Region, path_of, resource_name


class GcpSubnet(GcpComponent):
    """A subnet, only imported, because Google gives subnets no labels; with `createOnce` it is made if absent."""

    type = "NetworkAndCompute.IaaS.GcpSubnet"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in project and region; the component's id if not given.",
    )
    region: Region = parameter(immutable=True, description="Region it lies in.")
    network: Reference[GcpVpc] | None = parameter(
        default=None, immutable=True, reference=(GcpVpc.type, "networkPath"), description="The network it is part of."
    )
    ip_cidr_range: Network | None = parameter(
        default=None, compare="cidr", description="Its primary block of addresses; Google makes none without one."
    )
    private_ip_google_access: bool | None = parameter(
        default=None, description="Whether machines without a public address reach Google's APIs."
    )

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return resource_name(name)


class GcpSubnetOffer(UnlabelledOffer[GcpSubnet]):
    """How subnets are read, and made once."""

    component = GcpSubnet
    title = "Subnet"
    service = "compute"
    rights = (*(f"compute.subnetworks.{verb}" for verb in ("create", "get", "list")), "compute.networks.updatePolicy")
    place = ("region",)
    outputs: ClassVar[Mapping[str, str]] = {
        "subnetworkName": "name of the subnet",
        "subnetworkPath": "the subnet as `projects/…`",
        "subnetworkId": "number that no other subnet will ever have",
        "networkPath": "its network as `projects/…`",
        "region": "region it lies in",
        "gatewayAddress": "address of its gateway",
        "selfLink": "its address in Google's API",
    }

    def collection(self, cloud: Gcp) -> str:
        """All subnets of the region."""
        return f"/projects/{cloud.project}/regions/{cloud.place}/subnetworks"

    def body(self, cloud: Gcp, component: GcpSubnet) -> dict[str, Any]:
        """A subnet of the network that is declared, else of `default`."""
        return {
            "network": network_of(cloud, component.network),
            **({"ipCidrRange": component.ip_cidr_range} if component.ip_cidr_range else {}),
            **({"privateIpGoogleAccess": True} if component.private_ip_google_access else {}),
        }

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting:
        """What a subnet shows."""
        name = raw["name"]
        network = path_of(raw["network"])
        region = interned(cloud.place)
        return Sighting(
            type=GcpSubnet.type,
            name=name,
            resource_id=name,
            incarnation=str(raw["id"]),
            actual={
                "region": region,
                "network": network,
                "ipCidrRange": raw.get("ipCidrRange"),
                "privateIpGoogleAccess": bool(raw.get("privateIpGoogleAccess")),
            },
            outputs={
                "subnetworkName": name,
                "subnetworkPath": path_of(raw["selfLink"]),
                "subnetworkId": str(raw["id"]),
                "networkPath": network,
                "region": region,
                "gatewayAddress": raw.get("gatewayAddress", ""),
                "selfLink": raw["selfLink"],
            },
        )

    def is_provider_default(self, sighting: Sighting) -> bool:
        """Whether it came with the network `default`."""
        return sighting.name == "default"
