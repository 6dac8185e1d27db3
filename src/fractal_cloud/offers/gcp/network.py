"""VPC networks: read only, because Google gives them no labels; others refer to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import field_validator

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.resources import Raw, UnlabelledOffer
from fractal_cloud.offers.gcp.value_types import GcpComponent, path_of, resource_name


class GcpVpc(GcpComponent):
    """A VPC network, made by somebody else. It is only imported, because Google gives networks no labels."""

    type = "NetworkAndCompute.IaaS.GcpVpc"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the project; the component's id if not given.",
    )
    auto_create_subnetworks: bool | None = parameter(
        default=None, immutable=True, description="Whether it has a subnet in every region by itself."
    )
    routing_mode: Literal["REGIONAL", "GLOBAL"] | None = parameter(
        default=None, description="Whether routes are known in one region or in all."
    )
    mtu: int | None = parameter(default=None, ge=1300, le=8896, description="Largest packet in bytes.")

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return resource_name(name)


class GcpVpcOffer(UnlabelledOffer[GcpVpc]):
    """How networks are read."""

    component = GcpVpc
    title = "VPC network"
    service = "compute"
    rights = tuple(f"compute.networks.{verb}" for verb in ("get", "list"))
    outputs: ClassVar[Mapping[str, str]] = {
        "networkName": "name of the network",
        "networkPath": "the network as `projects/…`",
        "networkId": "number that no other network will ever have",
        "selfLink": "its address in Google's API",
    }

    def collection(self, cloud: Gcp) -> str:
        """All networks of the project."""
        return f"/projects/{cloud.project}/global/networks"

    def sighting(self, cloud: Gcp, raw: Raw) -> Sighting:
        """What a network shows."""
        del cloud
        name = raw["name"]
        return Sighting(
            type=GcpVpc.type,
            name=name,
            resource_id=name,
            incarnation=str(raw["id"]),
            actual={
                "autoCreateSubnetworks": bool(raw.get("autoCreateSubnetworks")),
                "routingMode": (raw.get("routingConfig") or {}).get("routingMode"),
                "mtu": raw.get("mtu"),
            },
            outputs={
                "networkName": name,
                "networkPath": path_of(raw["selfLink"]),
                "networkId": str(raw["id"]),
                "selfLink": raw["selfLink"],
            },
        )

    def is_provider_default(self, sighting: Sighting) -> bool:
        """Whether every new project has it."""
        return sighting.name == "default" and bool(sighting.actual["autoCreateSubnetworks"])
