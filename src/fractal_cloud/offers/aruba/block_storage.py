"""Block storage: found by its name in a project and location. Its data is gone with it, for good."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal

from fractal_cloud.model.component import parameter
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.aruba.calls import Item, address
from fractal_cloud.offers.aruba.resources import ArubaComponent, ArubaOffer
from fractal_cloud.offers.aruba.tags import glass
from fractal_cloud.offers.aruba.value_types import DataCenter, Location
from fractal_cloud.offers.offer import Wanted


class ArubaBlockStorage(ArubaComponent):
    """A disk that can be attached to a server. Aruba refuses to delete it while it is attached, or has snapshots."""

    type = "Storage.IaaS.ArubaBlockStorage"

    location: Location = parameter(immutable=True, description="Region it lies in.")
    data_center: DataCenter | None = parameter(
        default=None, immutable=True, description="Zone it lies in; the whole region where none is given."
    )
    size_gb: int = parameter(ge=1, le=65_536, description="Its size in GB; it can grow and never shrink.")
    kind: Literal["Standard", "Performance"] = parameter(
        default="Standard", immutable=True, description="How fast it is: Aruba's type."
    )
    billing_period: Literal["Hour", "Month", "Year"] | None = parameter(
        default=None, description="How it is paid for; Aruba starts with Hour."
    )
    image: str | None = parameter(
        default=None, immutable=True, description="Id of the image it can be booted from; empty where none is given."
    )


class ArubaBlockStorageOffer(ArubaOffer[ArubaBlockStorage]):
    """How disks are read and changed."""

    component = ArubaBlockStorage
    title = "Block storage"
    service = "storage"
    holds_data = True
    collection = "Aruba.Storage/blockStorages"
    rights = ("Aruba.Storage/blockStorages",)
    echoed = ("sizeGb", "billingPeriod", "dataCenter")
    outputs: ClassVar[Mapping[str, str]] = {
        "blockStorageUri": "address of the disk, by which others refer to it",
        "id": "id of the disk",
        "location": "region it lies in",
        "projectId": "id of its project",
        "state": "its state in Aruba's words: NotUsed, or InUse while it is attached",
        "bootable": "whether it can be booted from",
    }
    glass = glass(echoed)

    def actual(self, item: Item) -> dict[str, Any]:
        """Its size and what it was made of."""
        properties = item["properties"]
        return {
            "sizeGb": properties["sizeGb"],
            "kind": properties["type"],
            "billingPeriod": properties.get("billingPeriod"),
            "dataCenter": properties.get("dataCenter"),
            "image": properties.get("image"),
        }

    def shown(self, item: Item) -> dict[str, Any]:
        """Its address."""
        return {"blockStorageUri": address(item), "bootable": bool(item["properties"].get("bootable"))}

    def properties(self, wanted: Wanted[ArubaBlockStorage]) -> Item:
        """All of it travels in the create call."""
        disk = wanted.component
        return {
            "sizeGb": disk.size_gb,
            "type": disk.kind,
            "billingPeriod": disk.billing_period or "Hour",
            "dataCenter": disk.data_center,
            "bootable": None if disk.image is None else True,
            "image": disk.image,
        }

    def changed(self, wanted: Wanted[ArubaBlockStorage], drift: Collection[str]) -> Item:
        """Its size and how it is paid for."""
        disk = wanted.component
        changeable = {"sizeGb": disk.size_gb, "billingPeriod": disk.billing_period}
        return {name: value for name, value in changeable.items() if name in drift}

    def impossible(
        self, sighting: Sighting, wanted: Wanted[ArubaBlockStorage], drift: Collection[str]
    ) -> Mapping[str, str]:
        """A disk never shrinks."""
        here, there = sighting.actual["sizeGb"], wanted.component.size_gb
        if "sizeGb" not in drift or there > here:
            return {}
        return {"sizeGb": f"sizeGb cannot shrink from {here} to {there}: declare at least {here}, or a new disk"}
