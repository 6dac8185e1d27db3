"""Load balancers: found by their name, which is unique in a project. Their addresses go with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import field_serializer, field_validator, model_validator

from fractal_cloud.model.component import Reference, References, parameter, reference_id
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.hetzner import targets
from fractal_cloud.offers.hetzner.cloud import Item
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.offers.hetzner.resources import ResourceOffer, Seen, Step, protection
from fractal_cloud.offers.hetzner.server import HetznerServer
from fractal_cloud.offers.hetzner.services import (
    HetznerLoadBalancerService,
    each_once,
    from_answer,
    to_request,
)
from fractal_cloud.offers.hetzner.tags import glass
from fractal_cloud.offers.hetzner.value_types import PROTECTION, HetznerComponent, Location, Zone, flattened
from fractal_cloud.offers.offer import Wanted


class HetznerLoadBalancer(HetznerComponent):
    """A load balancer with its services and targets."""

    type = "NetworkAndCompute.IaaS.HetznerLoadBalancer"

    load_balancer_type: str = parameter(description="Its size.", examples=["lb11"])
    location: Location | None = parameter(
        default=None, immutable=True, description="Where it runs; or give networkZone."
    )
    network_zone: Zone | None = parameter(
        default=None, immutable=True, description="The zone it runs in, where no location is given."
    )
    algorithm: Literal["round_robin", "least_connections"] | None = parameter(
        default=None, description="How it chooses among its targets; Hetzner starts with round_robin."
    )
    services: list[HetznerLoadBalancerService] | None = parameter(
        default=None, compare="unordered", description="All its services."
    )
    servers: References[HetznerServer] | None = parameter(
        default=None,
        compare="unordered",
        reference=(HetznerServer.type, "serverId"),
        description="All servers that are its targets by themselves.",
    )
    label_selectors: list[str] | None = parameter(
        default=None,
        compare="unordered",
        description="All label selectors whose servers are its targets: a label removed there takes a target away.",
    )
    ips: list[str] | None = parameter(
        default=None,
        compare="unordered",
        description="All addresses of the vendor's dedicated servers that are its targets.",
    )
    use_private_ip: bool | None = parameter(
        default=None, description="Whether targets are reached through the private network; needs one."
    )
    network: Reference[HetznerNetwork] | None = parameter(
        default=None, reference=(HetznerNetwork.type, "networkId"), description="The private network it is in."
    )
    public_interface: bool | None = parameter(
        default=None, description="Whether it is reached from the internet; Hetzner starts with true."
    )
    delete_protection: bool | None = parameter(default=None, description=PROTECTION)

    @model_validator(mode="after")
    def _lies_somewhere(self) -> Self:
        if self.location is None and self.network_zone is None:
            raise ValueError("a load balancer needs a location or a networkZone")
        if self.use_private_ip is not None and not (self.servers or self.label_selectors):
            raise ValueError("usePrivateIp says how servers and labelSelectors are reached: declare some")
        return self

    @field_validator("services")
    @classmethod
    def _has_each_port_once(
        cls, services: list[HetznerLoadBalancerService] | None
    ) -> list[HetznerLoadBalancerService] | None:
        return each_once(services)

    @field_serializer("services")
    def _in_one_spelling(self, services: list[HetznerLoadBalancerService] | None) -> Any:
        return flattened(services)


class HetznerLoadBalancerOffer(ResourceOffer[HetznerLoadBalancer]):
    """How load balancers are read and changed."""

    component = HetznerLoadBalancer
    title = "Load balancer"
    plural = "load_balancers"
    outputs: ClassVar[Mapping[str, str]] = {
        "loadBalancerId": "id of the load balancer",
        "location": "where it runs",
        "networkZone": "the zone that is in",
        "publicIpv4": "its public IPv4 address",
        "publicIpv6": "its public IPv6 address",
        "privateIp": "its address in its private network, while it is in one",
        "privateTargets": "its targets that are reached through the private network",
        "unhealthyTargets": "how many targets do not answer as they should",
        "created": "when it was created",
    }
    glass = glass("load-balancer")

    def seen(self, item: Item) -> Seen:
        """A load balancer has no state: it is ready when it is there."""
        private = item.get("private_net") or ()
        place = item["location"]
        return Seen(
            actual={
                "loadBalancerType": item["load_balancer_type"]["name"],
                "location": place["name"],
                "networkZone": place["network_zone"],
                "algorithm": item["algorithm"]["type"],
                "services": sorted(map(from_answer, item.get("services") or ()), key=lambda one: one["listenPort"]),
                **targets.actual(targets.from_answer(item.get("targets") or ())),
                "network": str(private[0]["network"]) if private else None,
                "publicInterface": bool((item.get("public_net") or {}).get("enabled")),
                "deleteProtection": protection(item),
            },
            outputs=_outputs(item),
        )

    def made_of(self, component: HetznerLoadBalancer) -> Item:
        """Everything but the protection."""
        declared = component.parameters()
        network = component.network
        return {
            "load_balancer_type": component.load_balancer_type,
            "location": component.location,
            "network_zone": component.network_zone if component.location is None else None,
            "algorithm": None if component.algorithm is None else {"type": component.algorithm},
            "services": [to_request(service) for service in declared.get("services") or ()],
            "targets": [
                target.to_request(how=True)
                for target in targets.declared(declared, is_private=bool(declared.get("usePrivateIp")))
            ],
            "network": None if network is None else int(reference_id(network)),
            "public_interface": component.public_interface,
        }

    def steps(self, sighting: Sighting, wanted: Wanted[HetznerLoadBalancer], drift: Collection[str]) -> Iterator[Step]:
        """Ways in and to the targets are opened before anything rests on them, and closed once nothing does."""
        component = wanted.component
        declared, actual = component.parameters(), sighting.actual
        if "network" in drift and component.network is not None:
            if actual["network"] is not None:
                yield Step("detach_from_network", {"network": int(actual["network"])})
            yield Step("attach_to_network", {"network": int(reference_id(component.network))})
        if "publicInterface" in drift and component.public_interface:
            yield Step("enable_public_interface", {})
        if "loadBalancerType" in drift:
            yield Step("change_type", {"load_balancer_type": component.load_balancer_type})
        if "algorithm" in drift:
            yield Step("change_algorithm", {"type": component.algorithm})
        if "deleteProtection" in drift:
            yield Step("change_protection", {"delete": component.delete_protection})
        if "services" in drift:
            yield from _service_steps(declared["services"], actual["services"])
        seen = targets.recalled(actual, sighting.outputs["privateTargets"])
        for action, body in targets.calls(declared, seen, drift, wanted.ignored):
            yield Step(action, body)
        if "publicInterface" in drift and not component.public_interface:
            yield Step("disable_public_interface", {})


def _service_steps(declared: list[dict[str, Any]], actual: list[dict[str, Any]]) -> Iterator[Step]:
    wanted = {service["listenPort"]: service for service in declared}
    present = {service["listenPort"]: service for service in actual}
    for port, service in wanted.items():
        if port not in present:
            yield Step("add_service", to_request(service))
    for port, service in wanted.items():
        if port in present and present[port] != service:
            yield Step("update_service", to_request(service))
    for port in present:
        if port not in wanted:
            yield Step("delete_service", {"listen_port": port})


def _outputs(item: Mapping[str, Any]) -> dict[str, Any]:
    public = item.get("public_net") or {}
    private = item.get("private_net") or ()
    optional = {
        "publicIpv4": (public.get("ipv4") or {}).get("ip"),
        "publicIpv6": (public.get("ipv6") or {}).get("ip"),
        "privateIp": private[0]["ip"] if private else None,
    }
    unhealthy = [
        target
        for target in item.get("targets") or ()
        if any(one["status"] == "unhealthy" for one in target.get("health_status") or ())
    ]
    return {
        "loadBalancerId": str(item["id"]),
        "location": item["location"]["name"],
        "networkZone": item["location"]["network_zone"],
        "privateTargets": targets.private(targets.from_answer(item.get("targets") or ())),
        "unhealthyTargets": len(unhealthy),
        "created": item.get("created") or "",
        **{name: value for name, value in optional.items() if value},
    }
