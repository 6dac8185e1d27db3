"""Where the names of a type are unique within an account: in a region, or, for global services, everywhere.

Sources: «Global services» in
https://docs.aws.amazon.com/whitepapers/latest/aws-fault-isolation-boundaries/global-services.html (partitional
services and those in the edge network, whose control planes are in one region, `us-east-1` in the partition `aws`).
"""

from __future__ import annotations

from typing import Final

IN_REGION: Final = ("region",)
EVERYWHERE: Final[tuple[str, ...]] = ()

# Services whose every type is global: partitional (IAM, Organizations, Account, Route 53 ARC's control, Network
# Manager) or in the edge network (Route 53, CloudFront, Global Accelerator, Shield).
GLOBAL_SERVICES: Final = frozenset(
    {
        "IAM",
        "Organizations",
        "Route53",
        "Route53RecoveryControl",
        "CloudFront",
        "GlobalAccelerator",
        "Shield",
        "NetworkManager",
        "Budgets",
        "CE",
        "BCMDataExports",
        "BillingConductor",
        "Billing",
    }
)
# Called in one region though their names are unique in the whole account.
HOME_REGIONS: Final[dict[str, str]] = {
    "GlobalAccelerator": "us-west-2",
    "NetworkManager": "us-west-2",
    "Route53RecoveryControl": "us-west-2",
}
DEFAULT_HOME: Final = "us-east-1"
# The home region of the other partitions, by the beginning of their regions' names.
PARTITION_HOMES: Final[dict[str, str]] = {"cn-": "cn-north-1", "us-gov-": "us-gov-west-1", "eusc-": "eusc-de-east-1"}


def place(name: str) -> tuple[str, ...]:
    """The parameters that say where a name of this type is unique."""
    return EVERYWHERE if name.split("::")[1] in GLOBAL_SERVICES else IN_REGION


def home_region(name: str, region: str = "") -> str:
    """The region in which calls for a global type are made, for an agent that is in ``region``."""
    for beginning, home in PARTITION_HOMES.items():
        if region.startswith(beginning):
            return home
    return HOME_REGIONS.get(name.split("::")[1], DEFAULT_HOME)
