"""A complete valid declaration of every Hetzner type with its parents, and other values for its parameters.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.hetzner.firewall import HetznerFirewall
from fractal_cloud.offers.hetzner.load_balancer import HetznerLoadBalancer
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.offers.hetzner.server import HetznerServer
from fractal_cloud.offers.hetzner.volume import HetznerVolume


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test."""

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    immutable_changes: Mapping[str, Any] = field(default_factory=dict)


def component(kind: type[Component], component_id: str, **parameters: Any) -> dict[str, Any]:
    """A declaration."""
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


def subnet(ip_range: str) -> dict[str, Any]:
    """A subnet as people declare it."""
    return {"type": "cloud", "ipRange": ip_range, "networkZone": "eu-central"}


def allow(port: str, *sources: str, **more: Any) -> dict[str, Any]:
    """A rule that lets a port in."""
    return {"direction": "in", "protocol": "tcp", "port": port, "sourceIps": list(sources), **more}


def network(component_id: str, block: str = "10.1.0.0/16", inner: str = "10.1.1.0/24") -> dict[str, Any]:
    """A network that servers can be in."""
    return component(HetznerNetwork, component_id, ipRange=block, subnets=[subnet(inner)])


def server(component_id: str, **parameters: Any) -> dict[str, Any]:
    """A small server."""
    given = {"serverType": "cx23", "image": "debian-13", "location": "fsn1", **parameters}
    return component(HetznerServer, component_id, **given)


INNER = network("inner")
OTHER = network("other", "10.2.0.0/16", "10.2.1.0/24")
DOOR = component(HetznerFirewall, "door", rules=[allow("22", "192.0.2.0/24")])
GATE = component(HetznerFirewall, "gate", rules=[allow("443", "0.0.0.0/0", "::/0")])
BOX = server("box", networks=["inner", "other"])
SPARE = server("spare", networks=["inner", "other"])

EXAMPLES: dict[type[Component], Example] = {
    HetznerNetwork: Example(
        components=[
            component(
                HetznerNetwork,
                "net",
                ipRange="10.0.0.0/16",
                subnets=[subnet("10.0.1.0/24")],
                routes=[{"destination": "10.100.1.0/24", "gateway": "10.0.1.2"}],
                exposeRoutesToVswitch=False,
                deleteProtection=False,
            )
        ],
        changes={
            "subnets": [subnet("10.0.1.0/25"), subnet("10.0.2.0/24")],
            "routes": [
                {"destination": "10.100.1.0/24", "gateway": "10.0.1.3"},
                {"destination": "10.100.2.0/24", "gateway": "10.0.1.2"},
            ],
            "exposeRoutesToVswitch": True,
            "deleteProtection": True,
            "ipRange": "10.0.0.0/8",
        },
    ),
    HetznerFirewall: Example(
        components=[
            component(
                HetznerFirewall,
                "wall",
                rules=[
                    allow("22", "192.0.2.0/24", description="operators"),
                    allow("8000-8010", "0.0.0.0/0", "::/0"),
                    {"direction": "out", "protocol": "icmp", "destinationIps": ["0.0.0.0/0"]},
                ],
            )
        ],
        changes={"rules": [allow("22", "198.51.100.0/24", description="operators")]},
    ),
    HetznerServer: Example(
        components=[
            INNER,
            OTHER,
            DOOR,
            GATE,
            server(
                "machine",
                enableIpv4=True,
                enableIpv6=True,
                userData="#cloud-config\npackages: [nginx]\n",
                networks=["inner"],
                firewalls=["door"],
                backups=False,
                deleteProtection=False,
                state="running",
            ),
        ],
        changes={
            "serverType": "cx33",
            "networks": ["other"],
            "firewalls": ["gate"],
            "backups": True,
            "deleteProtection": True,
            "state": "stopped",
        },
        immutable_changes={"image": "debian-12", "location": "nbg1", "enableIpv4": False, "enableIpv6": False},
    ),
    HetznerVolume: Example(
        components=[
            INNER,
            OTHER,
            BOX,
            SPARE,
            component(
                HetznerVolume, "disk", size=10, location="fsn1", format="ext4", server="box", deleteProtection=False
            ),
        ],
        changes={"server": "spare", "deleteProtection": True, "size": 20},
        immutable_changes={"format": "xfs", "location": "nbg1"},
    ),
    HetznerLoadBalancer: Example(
        components=[
            INNER,
            OTHER,
            BOX,
            SPARE,
            component(
                HetznerLoadBalancer,
                "front",
                loadBalancerType="lb11",
                location="fsn1",
                algorithm="round_robin",
                services=[
                    {
                        "protocol": "http",
                        "listenPort": 80,
                        "destinationPort": 8080,
                        "stickySessions": True,
                        "healthCheckProtocol": "http",
                        "healthCheckPath": "/health",
                    },
                    {"protocol": "tcp", "listenPort": 22, "destinationPort": 22},
                ],
                servers=["box"],
                labelSelectors=["pool=web"],
                ips=["203.0.113.7"],
                usePrivateIp=True,
                network="inner",
                publicInterface=False,
                deleteProtection=False,
            ),
        ],
        changes={
            "algorithm": "least_connections",
            "loadBalancerType": "lb21",
            "services": [
                {"protocol": "tcp", "listenPort": 80, "destinationPort": 8081, "proxyprotocol": True},
                {"protocol": "tcp", "listenPort": 5432, "destinationPort": 5432, "healthCheckInterval": 20},
            ],
            "servers": ["spare"],
            "labelSelectors": ["pool=api"],
            "ips": ["203.0.113.8", "203.0.113.9"],
            "network": "other",
            "publicInterface": True,
            "usePrivateIp": False,
            "deleteProtection": True,
        },
        immutable_changes={"location": "nbg1"},
    ),
}
