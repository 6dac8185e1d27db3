"""Private networks: found by their name in a project. Hetzner does not promise that there is only one of a name.

Deleting one would detach every machine and load balancer in it without asking: that is never done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Network
from typing import Any, ClassVar, Literal

from pydantic import Field, field_serializer

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.hetzner.cloud import Hetzner, Item
from fractal_cloud.offers.hetzner.resources import ResourceOffer, Seen, Step, in_use, protection
from fractal_cloud.offers.hetzner.tags import glass
from fractal_cloud.offers.hetzner.value_types import (
    PROTECTION,
    Address,
    Block,
    HetznerComponent,
    Part,
    Zone,
    flattened,
    sent,
)
from fractal_cloud.offers.offer import Recognition, Wanted

Entry = Mapping[str, Any]


class HetznerSubnet(Part):
    """A part of a private network that lies in one zone."""

    type: Literal["cloud", "server", "vswitch"] = Field(default="cloud", description="What it connects.")
    ip_range: Block = Field(description="Its block, inside that of the network.")
    network_zone: Zone = Field(default="eu-central", description="The zone it lies in.")
    vswitch_id: int | None = Field(
        default=None, description="The vSwitch it is joined with; only for the type vswitch."
    )


class HetznerRoute(Part):
    """A route that machines in the network learn."""

    destination: Block = Field(description="Where it leads.")
    gateway: Address = Field(description="The machine that takes it there.")


class HetznerNetwork(HetznerComponent):
    """A private network with its subnets and routes."""

    type = "NetworkAndCompute.IaaS.HetznerNetwork"

    ip_range: Block = parameter(compare="cidr", description="Its block of addresses; it can widen and never narrow.")
    subnets: list[HetznerSubnet] | None = parameter(default=None, compare="unordered", description="All its subnets.")
    routes: list[HetznerRoute] | None = parameter(default=None, compare="unordered", description="All its routes.")
    expose_routes_to_vswitch: bool | None = parameter(
        default=None, description="Whether a vSwitch learns the routes too; Hetzner starts with false."
    )
    delete_protection: bool | None = parameter(default=None, description=PROTECTION)

    @field_serializer("subnets", "routes")
    def _in_one_spelling(self, parts: list[HetznerSubnet] | list[HetznerRoute] | None) -> Any:
        return flattened(parts)


class HetznerNetworkOffer(ResourceOffer[HetznerNetwork]):
    """How private networks are read and changed."""

    component = HetznerNetwork
    title = "Private network"
    plural = "networks"
    unique_in = "its project, if people see to it"
    recognition = Recognition.WINDOW
    outputs: ClassVar[Mapping[str, str]] = {
        "networkId": "id of the network",
        "created": "when it was created",
    }
    glass = glass("network")

    def seen(self, item: Item) -> Seen:
        """A network has no state: it is ready when it is there."""
        return Seen(
            actual={
                "ipRange": item["ip_range"],
                "subnets": sorted(map(_subnet, item.get("subnets") or ()), key=lambda one: str(one["ipRange"])),
                "routes": sorted(map(_route, item.get("routes") or ()), key=lambda one: str(one["destination"])),
                "exposeRoutesToVswitch": bool(item.get("expose_routes_to_vswitch")),
                "deleteProtection": protection(item),
            },
            outputs={"networkId": str(item["id"]), "created": item.get("created") or ""},
        )

    def made_of(self, component: HetznerNetwork) -> Item:
        """Everything but the protection."""
        return {
            "ip_range": component.ip_range,
            "subnets": _all_sent(component.subnets),
            "routes": _all_sent(component.routes),
            "expose_routes_to_vswitch": component.expose_routes_to_vswitch,
        }

    def steps(self, sighting: Sighting, wanted: Wanted[HetznerNetwork], drift: Collection[str]) -> Iterator[Step]:
        """Widen first, then remove what overlaps, add, and remove the rest last: nothing that stays is cut off."""
        component = wanted.component
        actual = sighting.actual
        narrows = "ipRange" in drift and not _contains(component.ip_range, actual["ipRange"])
        if "ipRange" in drift and not narrows:
            yield Step("change_ip_range", {"ip_range": component.ip_range})
        if "exposeRoutesToVswitch" in drift:
            yield Step("", {"expose_routes_to_vswitch": component.expose_routes_to_vswitch})
        if "deleteProtection" in drift:
            yield Step("change_protection", {"delete": component.delete_protection})
        yield from _parts_steps(sighting, component, drift)
        if narrows:
            raise Invalid(
                f"ipRange cannot narrow from {actual['ipRange']!r} to {component.ip_range!r}: "
                f"declare {actual['ipRange']!r}, or a new network"
            )

    def release(self, cloud: Hetzner, item: Item, user: Item | None) -> Step | None:
        """Refuse while anything is in it."""
        del user
        users = {kind: item.get(kind) or [] for kind in ("servers", "load_balancers")}
        if any(users.values()):
            raise in_use(cloud, "the network", users)
        return None


def _parts_steps(sighting: Sighting, component: HetznerNetwork, drift: Collection[str]) -> Iterator[Step]:
    routes = _difference(component, "routes", sighting, drift)
    subnets = _difference(component, "subnets", sighting, drift)
    clashing = [one for one in routes[1] if any(one["destination"] == new["destination"] for new in routes[0])]
    overlapping = [one for one in subnets[1] if any(_overlaps(one, new) for new in subnets[0])]
    for one in clashing:
        yield Step("delete_route", sent(one))
    for one in overlapping:
        yield Step("delete_subnet", sent(one, ("ipRange",)))
    for one in subnets[0]:
        yield Step("add_subnet", sent(one))
    for one in routes[0]:
        yield Step("add_route", sent(one))
    for one in routes[1]:
        yield Step("delete_route", sent(one))
    for one in subnets[1]:
        yield Step("delete_subnet", sent(one, ("ipRange",)))


def _difference(
    component: HetznerNetwork, name: str, sighting: Sighting, drift: Collection[str]
) -> tuple[list[Entry], list[Entry]]:
    """What is missing, and what is too much."""
    if name not in drift:
        return [], []
    declared, actual = component.parameters()[name], sighting.actual[name]
    return [one for one in declared if one not in actual], [one for one in actual if one not in declared]


def _contains(wide: str, narrow: str) -> bool:
    return IPv4Network(narrow).subnet_of(IPv4Network(wide))


def _overlaps(one: Entry, other: Entry) -> bool:
    return IPv4Network(one["ipRange"]).overlaps(IPv4Network(other["ipRange"]))


def _subnet(item: Mapping[str, Any]) -> dict[str, Any]:
    joined = {"vswitchId": item["vswitch_id"]} if item.get("vswitch_id") else {}
    return {"type": item["type"], "ipRange": item["ip_range"], "networkZone": item["network_zone"], **joined}


def _route(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"destination": item["destination"], "gateway": item["gateway"]}


def _all_sent(parts: Iterable[Part] | None) -> list[dict[str, Any]] | None:
    return None if parts is None else [sent(part.flat()) for part in parts]
