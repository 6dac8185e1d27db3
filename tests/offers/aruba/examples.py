"""A complete valid declaration of every Aruba type with its parents, and other values for its parameters.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.aruba.block_storage import ArubaBlockStorage
from fractal_cloud.offers.aruba.cloud_server import ArubaCloudServer
from fractal_cloud.offers.aruba.kaas import ArubaKaas
from fractal_cloud.offers.aruba.security_group import ArubaSecurityGroup
from fractal_cloud.offers.aruba.subnet import ArubaSubnet
from fractal_cloud.offers.aruba.vpc import ArubaVpc

LOCATION = "ITBG-Bergamo"


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test.

    ``changes`` and ``immutable_changes``: another valid value for each parameter.
    """

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    immutable_changes: dict[str, Any]


def _component(kind: type[Component], component_id: str, /, **parameters: Any) -> dict[str, Any]:
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


VPC = _component(ArubaVpc, "main-net", location=LOCATION, project="team")
SUBNET = _component(ArubaSubnet, "part", vpc="main-net", kind="Advanced", address="192.168.1.0/24", dhcpEnabled=True)
OTHER_SUBNET = _component(
    ArubaSubnet, "rest", vpc="main-net", kind="Advanced", address="192.168.2.0/24", dhcpEnabled=True
)
GATE = _component(ArubaSecurityGroup, "gate", vpc="main-net")
BACK = _component(ArubaSecurityGroup, "back", vpc="main-net")
BOOTABLE = ("boot", "boot-a", "boot-b")
IN_TEAM = "/projects/66f0aaaaaaaaaaaaaaaaaa01/providers"
POOL = {"name": "workers", "nodes": 2, "instance": "K2A4", "dataCenter": "ITBG-1"}


def _disk(component_id: str, **parameters: Any) -> dict[str, Any]:
    return _component(ArubaBlockStorage, component_id, location=LOCATION, project="team", sizeGb=20, **parameters)


WEB = {"direction": "Ingress", "protocol": "TCP", "port": "443", "targetKind": "Ip", "target": "0.0.0.0/0"}
PING = {"direction": "Ingress", "protocol": "ICMP", "targetKind": "Ip", "target": "10.0.0.0/8"}
OUT = {"direction": "Egress", "protocol": "ANY", "targetKind": "Ip", "target": "0.0.0.0/0"}

EXAMPLES: dict[type[Component], Example] = {
    ArubaVpc: Example(components=[VPC], changes={}, immutable_changes={}),
    ArubaSubnet: Example(
        components=[
            VPC,
            SUBNET,
        ],
        changes={},
        immutable_changes={"address": "192.168.2.0/24", "dhcpEnabled": False},
    ),
    ArubaSecurityGroup: Example(
        components=[VPC, _component(ArubaSecurityGroup, "gate", vpc="main-net", rules=[WEB, PING])],
        changes={"rules": [WEB, OUT]},
        immutable_changes={},
    ),
    ArubaBlockStorage: Example(
        components=[
            _component(
                ArubaBlockStorage,
                "disk",
                location=LOCATION,
                project="team",
                dataCenter="ITBG-1",
                sizeGb=20,
                kind="Standard",
                billingPeriod="Hour",
                image="LU22-001",
            )
        ],
        changes={"billingPeriod": "Month", "sizeGb": 40},
        immutable_changes={"dataCenter": "ITBG-2", "kind": "Performance", "image": "LU24-001"},
    ),
    ArubaCloudServer: Example(
        components=[
            VPC,
            SUBNET,
            OTHER_SUBNET,
            GATE,
            BACK,
            *(_disk(name, image="LU22-001") for name in BOOTABLE),
            _disk("more"),
            _component(
                ArubaCloudServer,
                "server",
                vpc="main-net",
                subnets=["part"],
                securityGroups=["gate"],
                dataCenter="ITBG-1",
                flavorName="CSO2A4",
                bootVolume=BOOTABLE[0],
                dataVolumes=[],
                keyPair=f"{IN_TEAM}/Aruba.Compute/keyPairs/key-pair-of-01",
                state="running",
            ),
        ],
        changes={
            "state": "stopped",
            "securityGroups": ["gate", "back"],
            "subnets": ["part", "rest"],
            "dataVolumes": ["more"],
        },
        immutable_changes={"dataCenter": "ITBG-2", "flavorName": "CSO4A8", "bootVolume": "more"},
    ),
    ArubaKaas: Example(
        components=[
            VPC,
            SUBNET,
            _component(
                ArubaKaas,
                "cluster",
                vpc="main-net",
                subnet="part",
                nodeCidr="10.100.0.0/16",
                podCidr="10.96.0.0/16",
                securityGroupName="cluster-nodes",
                kubernetesVersion="1.32.3",
                nodePools=[POOL],
                ha=False,
            ),
        ],
        changes={"nodePools": [{**POOL, "nodes": 3}], "kubernetesVersion": "1.33.2", "ha": True},
        immutable_changes={
            "nodeCidr": "10.101.0.0/16",
            "podCidr": "10.97.0.0/16",
            "securityGroupName": "other-nodes",
        },
    ),
}
