"""A complete valid declaration of every Azure type with its parents, other values for its parameters, and how a person
would edit each of them.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.azure.aks import AzureAks
from fractal_cloud.offers.azure.nsg import AzureNsg
from fractal_cloud.offers.azure.postgres import AzurePostgresDbms
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount
from fractal_cloud.offers.azure.subnet import AzureSubnet
from fractal_cloud.offers.azure.vm import AzureVm
from fractal_cloud.offers.azure.vnet import AzureVnet
from tests.offers.azure import edits

GROUP, LOCATION = "sandbox", "westeurope"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJqfakefakefakefakefakefakefakefakefakefakefake me@home"


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test; ``kind``: what Azure calls it."""

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    kind: str
    edit: edits.Edit = edits.left_alone
    immutable_changes: Mapping[str, Any] = field(default_factory=dict)
    as_name: Callable[[str], str] = str


def component(kind: type[Component], component_id: str, /, **parameters: Any) -> dict[str, Any]:
    """A declaration."""
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


WEB: dict[str, Any] = {
    "name": "web",
    "priority": 100,
    "direction": "Inbound",
    "access": "Allow",
    "protocol": "Tcp",
    "destinationPortRange": "443",
}
OUT: dict[str, Any] = {
    "name": "out",
    "priority": 200,
    "direction": "Outbound",
    "access": "Deny",
    "description": "nothing leaves",
}
NETWORK = component(
    AzureVnet,
    "net",
    resourceGroup=GROUP,
    location=LOCATION,
    addressPrefixes=["10.0.0.0/16"],
    subnets={"front": "10.0.1.0/24", "back": "10.0.2.0/24"},
)
FRONT = component(AzureSubnet, "front", vnet="net")
BACK = component(AzureSubnet, "back", vnet="net")

EXAMPLES: dict[type[Component], Example] = {
    AzureVnet: Example(
        components=[
            component(
                AzureVnet,
                "net",
                resourceGroup=GROUP,
                location=LOCATION,
                addressPrefixes=["10.0.0.0/16"],
                dnsServers=["10.0.0.10"],
                flowTimeoutInMinutes=10,
                subnets={"front": "10.0.1.0/24", "back": "10.0.2.0/24"},
            )
        ],
        changes={
            "addressPrefixes": ["10.0.0.0/16", "10.1.0.0/16"],
            "dnsServers": ["10.0.0.11", "10.0.0.10"],
            "flowTimeoutInMinutes": 20,
            "subnets": {"front": "10.0.3.0/24", "back": "10.0.4.0/24"},
        },
        kind="Microsoft.Network/virtualNetworks",
        edit=edits.network,
        immutable_changes={"location": "northeurope"},
    ),
    AzureSubnet: Example(
        components=[NETWORK, component(AzureSubnet, "front", vnet="net", addressPrefix="10.0.1.0/24")],
        changes={},
        kind="Microsoft.Network/virtualNetworks/subnets",
    ),
    AzureNsg: Example(
        components=[
            component(
                AzureNsg,
                "fence",
                resourceGroup=GROUP,
                location=LOCATION,
                securityRules=[WEB, OUT],
                flushConnection=False,
            )
        ],
        changes={
            "securityRules": [{**WEB, "sourceAddressPrefix": "10.0.0.0/8,192.0.2.0/24"}, {**OUT, "priority": 300}],
            "flushConnection": True,
        },
        kind="Microsoft.Network/networkSecurityGroups",
        edit=edits.group,
        immutable_changes={"location": "northeurope"},
    ),
    AzureVm: Example(
        components=[
            NETWORK,
            FRONT,
            BACK,
            component(
                AzureVm,
                "box",
                location=LOCATION,
                subnet="front",
                vmSize="Standard_B2s",
                imageReference="Canonical:ubuntu-24_04-lts:server:latest",
                adminUsername="ops",
                sshPublicKey=KEY,
                osDiskSizeGB=64,
                zone="1",
                userData="#cloud-config\n",
                state="running",
            ),
        ],
        changes={"vmSize": "Standard_B4ms", "userData": "hello", "state": "stopped"},
        kind="Microsoft.Compute/virtualMachines",
        edit=edits.machine,
        immutable_changes={
            "location": "northeurope",
            "subnet": "back",
            "imageReference": "Debian:debian-13:13:latest",
            "adminUsername": "root2",
            "osDiskSizeGB": 128,
            "zone": "2",
        },
    ),
    AzureStorageAccount: Example(
        components=[
            component(
                AzureStorageAccount,
                "store",
                resourceGroup=GROUP,
                location=LOCATION,
                kind="StorageV2",
                sku="Standard_LRS",
                accessTier="Hot",
                minimumTlsVersion="TLS1_2",
                allowBlobPublicAccess=False,
                allowSharedKeyAccess=True,
                publicNetworkAccess="Enabled",
                enableHttpsTrafficOnly=True,
                isHnsEnabled=False,
            )
        ],
        changes={
            "sku": "Standard_GRS",
            "accessTier": "Cool",
            "minimumTlsVersion": "TLS1_3",
            "allowBlobPublicAccess": True,
            "allowSharedKeyAccess": False,
            "publicNetworkAccess": "Disabled",
            "enableHttpsTrafficOnly": False,
        },
        kind="Microsoft.Storage/storageAccounts",
        edit=edits.account,
        immutable_changes={"location": "northeurope", "kind": "BlockBlobStorage", "isHnsEnabled": True},
        as_name=lambda text: text.replace("-", ""),
    ),
    AzureAks: Example(
        components=[
            NETWORK,
            FRONT,
            BACK,
            component(
                AzureAks,
                "cluster",
                location=LOCATION,
                kubernetesVersion="1.32",
                dnsPrefix="cluster",
                vmSize="Standard_D4s_v5",
                nodeCount=2,
                subnet="front",
                networkPlugin="azure",
                skuTier="Free",
                authorizedIPRanges=["192.0.2.0/24"],
                upgradeChannel="patch",
            ),
        ],
        changes={
            "nodeCount": 3,
            "skuTier": "Standard",
            "authorizedIPRanges": ["192.0.2.0/24", "198.51.100.0/24"],
            "upgradeChannel": "stable",
            "kubernetesVersion": "1.33",
        },
        kind="Microsoft.ContainerService/managedClusters",
        edit=edits.cluster,
        immutable_changes={
            "location": "northeurope",
            "dnsPrefix": "other",
            "vmSize": "Standard_D8s_v5",
            "subnet": "back",
            "networkPlugin": "kubenet",
        },
    ),
    AzurePostgresDbms: Example(
        components=[
            component(
                AzurePostgresDbms,
                "orders",
                resourceGroup=GROUP,
                location=LOCATION,
                version="16",
                skuName="Standard_D2ds_v5",
                skuTier="GeneralPurpose",
                storageSizeGB=64,
                storageAutoGrow="Disabled",
                backupRetentionDays=7,
                geoRedundantBackup="Disabled",
                highAvailability="Disabled",
                publicNetworkAccess="Disabled",
                passwordAuth="Disabled",
            )
        ],
        changes={
            "skuName": "Standard_E2ds_v5",
            "skuTier": "MemoryOptimized",
            "backupRetentionDays": 14,
            "highAvailability": "ZoneRedundant",
            "publicNetworkAccess": "Enabled",
            "passwordAuth": "Enabled",
            "storageSizeGB": 128,
            "storageAutoGrow": "Enabled",
            "version": "17",
        },
        kind="Microsoft.DBforPostgreSQL/flexibleServers",
        edit=edits.server,
        immutable_changes={"location": "northeurope", "geoRedundantBackup": "Enabled"},
    ),
}
