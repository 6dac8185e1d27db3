"""What is tried on Hetzner: networks and firewalls, which are free. The token's project is the only place there is."""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.offers.hetzner.firewall import HetznerFirewall
from fractal_cloud.offers.hetzner.network import HetznerNetwork
from fractal_cloud.verifying.example import VerificationExample


def _allow(port: str, source: str) -> dict[str, Any]:
    return {"direction": "in", "protocol": "tcp", "port": port, "sourceIps": [source]}


def _subnet(block: str) -> dict[str, str]:
    return {"type": "cloud", "ipRange": block, "networkZone": "eu-central"}


EXAMPLES: Final = (
    VerificationExample(
        HetznerNetwork,
        lambda at: [
            at.declare(
                HetznerNetwork,
                "net",
                ipRange="10.255.0.0/16",
                subnets=[_subnet("10.255.1.0/24")],
            )
        ],
        needs=(),
        changes={"subnets": [_subnet("10.255.1.0/24"), _subnet("10.255.2.0/24")]},
    ),
    VerificationExample(
        HetznerFirewall,
        lambda at: [at.declare(HetznerFirewall, "wall", rules=[_allow("22", "192.0.2.0/24")])],
        needs=(),
        changes={"rules": [_allow("22", "198.51.100.0/24")]},
    ),
)
