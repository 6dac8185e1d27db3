"""Volumes: found by their name, which is unique in a project. Their data is gone with them, for good."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.hetzner.cloud import Hetzner, Item
from fractal_cloud.offers.hetzner.resources import ResourceOffer, Seen, Step, in_use, protection
from fractal_cloud.offers.hetzner.server import HetznerServer
from fractal_cloud.offers.hetzner.tags import glass
from fractal_cloud.offers.hetzner.value_types import PROTECTION, HetznerComponent, Location
from fractal_cloud.offers.offer import Wanted


class HetznerVolume(HetznerComponent):
    """A disk that can be attached to a server. Deleting it deletes its data; protection is respected."""

    type = "Storage.IaaS.HetznerVolume"

    size: int = parameter(description="Its size in GB; it can grow and never shrink.", ge=10, le=10_240)
    location: Location | None = parameter(
        default=None, immutable=True, description="Where it lies; that of its server where none is given."
    )
    format: Literal["ext4", "xfs"] | None = parameter(
        default=None, immutable=True, description="The file system it is created with; none where none is given."
    )
    server: Reference[HetznerServer] | None = parameter(
        default=None,
        reference=(HetznerServer.type, "serverId"),
        description="The server it is attached to. Changing it takes it off the other one.",
    )
    delete_protection: bool | None = parameter(default=None, description=PROTECTION)

    @model_validator(mode="after")
    def _lies_somewhere(self) -> Self:
        if self.location is None and self.server is None:
            raise ValueError("a volume needs a location, or a server whose location it takes")
        return self


class HetznerVolumeOffer(ResourceOffer[HetznerVolume]):
    """How volumes are read and changed."""

    component = HetznerVolume
    title = "Volume"
    plural = "volumes"
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        "volumeId": "id of the volume",
        "status": "creating or available",
        "location": "where it lies",
        "linuxDevice": "the path under which a server finds it",
        "serverId": "id of the server it is attached to, while it is",
        "created": "when it was created",
    }
    glass = glass("volume")

    def seen(self, item: Item) -> Seen:
        """A volume is settled when it is available."""
        status = item["status"]
        server = item.get("server")
        attached = {} if server is None else {"serverId": str(server)}
        return Seen(
            actual={
                "size": item["size"],
                "location": item["location"]["name"],
                "format": item.get("format"),
                "server": None if server is None else str(server),
                "deleteProtection": protection(item),
            },
            outputs={
                "volumeId": str(item["id"]),
                "status": status,
                "location": item["location"]["name"],
                "linuxDevice": item.get("linux_device") or "",
                "created": item.get("created") or "",
                **attached,
            },
            condition=Condition.SETTLED if status == "available" else Condition.CREATING,
            detail="" if status == "available" else status,
        )

    def made_of(self, component: HetznerVolume) -> Item:
        """Everything but the protection; it is attached in the same call."""
        server = component.server
        return {
            "size": component.size,
            "location": component.location,
            "format": component.format,
            "server": None if server is None else int(reference_id(server)),
        }

    def steps(self, sighting: Sighting, wanted: Wanted[HetznerVolume], drift: Collection[str]) -> Iterator[Step]:
        """Taking it off one server and attaching it to another are two calls."""
        component = wanted.component
        actual = sighting.actual
        shrinks = "size" in drift and component.size < actual["size"]
        if "deleteProtection" in drift:
            yield Step("change_protection", {"delete": component.delete_protection})
        if "size" in drift and not shrinks:
            yield Step("resize", {"size": component.size})
        if "server" in drift and component.server is not None:
            if actual["server"] is not None:
                yield Step("detach", {})
            yield Step("attach", {"server": int(reference_id(component.server))})
        if shrinks:
            raise Invalid(
                f"size cannot shrink from {actual['size']} to {component.size} GB: "
                f"declare at least {actual['size']}, or a new volume"
            )

    def user_of(self, cloud: Hetzner, sighting: Sighting) -> Item | None:
        """The server it is attached to."""
        attached = sighting.actual["server"]
        return None if attached is None else cloud.find("servers", attached)

    def release(self, cloud: Hetzner, item: Item, user: Item | None) -> Step | None:
        """Take it off a server of the same LiveSystem; a server of anybody else, or in override, keeps it."""
        attached = item.get("server")
        if attached is None:
            return None
        tags = ProtocolTags.from_mapping((user or {}).get("labels") or {})
        is_its_own = tags.is_managed and tags.owner == ProtocolTags.from_mapping(item.get("labels") or {}).owner
        if user is not None and user["id"] == attached and is_its_own:
            return Step("detach", {})
        raise in_use(cloud, "the volume", {"servers": [attached]})

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What a machine would notice."""
        return ["changing server takes the volume off the server it is attached to"] if "server" in drift else []
