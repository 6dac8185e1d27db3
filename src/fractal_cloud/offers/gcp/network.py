"""VPC networks: made once or only read, because Google gives them no labels; others refer to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from fractal_cloud.model.component import Component, parameter, reference_id
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.gcp.cloud import Gcp
from fractal_cloud.offers.gcp.resources import Raw, UnlabelledOffer
from fractal_cloud.offers.gcp.value_types import GcpComponent, path_of, resource_name


class GcpVpc(GcpComponent):
    """A VPC network, only imported, because Google gives networks no labels; with `createOnce` it is made if absent."""

    type = "NetworkAndCompute.IaaS.GcpVpc"

    name: str = parameter(
        default="",
        validate_default=True,
        description="Its name, unique in the project; the component's id if not given.",
    )
    auto_create_subnetworks: bool | None = parameter(
        default=None,
        immutable=True,
        description="Whether it has a subnet in every region; we start with false.",
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
    """How networks are read, and made once."""

    component = GcpVpc
    title = "VPC network"
    service = "compute"
    rights = tuple(f"compute.networks.{verb}" for verb in ("create", "get", "list"))
    outputs: ClassVar[Mapping[str, str]] = {
        "networkName": "name of the network",
        "networkPath": "the network as `projects/…`",
        "networkId": "number that no other network will ever have",
        "selfLink": "its address in Google's API",
    }

    def collection(self, cloud: Gcp) -> str:
        """All networks of the project."""
        return f"/projects/{cloud.project}/global/networks"

    def body(self, cloud: Gcp, component: GcpVpc) -> dict[str, Any]:
        """A network whose subnets are declared: without a word on it, Google makes one of the kind of before."""
        del cloud
        routing = {"routingConfig": {"routingMode": component.routing_mode}} if component.routing_mode else {}
        mtu = {"mtu": component.mtu} if component.mtu is not None else {}
        return {"autoCreateSubnetworks": bool(component.auto_create_subnetworks), **routing, **mtu}

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


def network_of(cloud: Gcp, reference: str | Component | None) -> str:
    """A network as `projects/…`, once resolved; the project's `default` where none is declared."""
    return reference_id(reference) if reference is not None else f"projects/{cloud.project}/global/networks/default"
