"""VPCs: found by their name in a project and location, of which there may be several equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from fractal_cloud.model.component import parameter
from fractal_cloud.offers.aruba.calls import Item, address
from fractal_cloud.offers.aruba.resources import ArubaComponent, ArubaOffer
from fractal_cloud.offers.aruba.tags import glass
from fractal_cloud.offers.aruba.value_types import Location
from fractal_cloud.offers.offer import Wanted


class ArubaVpc(ArubaComponent):
    """A private network. It is created empty, and never as the project's default one."""

    type = "NetworkAndCompute.IaaS.ArubaVpc"

    location: Location = parameter(immutable=True, description="Region it lies in.")


class ArubaVpcOffer(ArubaOffer[ArubaVpc]):
    """How VPCs are read and changed."""

    component = ArubaVpc
    title = "VPC"
    service = "network"
    collection = "Aruba.Network/vpcs"
    rights = ("Aruba.Network/vpcs",)
    echoed = ("default",)
    outputs: ClassVar[Mapping[str, str]] = {
        "vpcUri": "address of the VPC, by which others refer to it",
        "id": "id of the VPC",
        "location": "region it lies in",
        "projectId": "id of its project",
        "state": "its state in Aruba's words",
    }
    glass = glass(echoed)

    def actual(self, item: Item) -> dict[str, Any]:
        """A VPC has no settings of its own."""
        del item
        return {}

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address."""
        return {"vpcUri": address(item)}

    def properties(self, wanted: Wanted[ArubaVpc]) -> Item:
        """Neither the default one, nor with a subnet and a group that nobody declared."""
        del wanted
        return {"default": False, "preset": False}
