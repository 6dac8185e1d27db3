"""What is tried on Azure, in a resource group that exists. Networks and security groups are free."""

from __future__ import annotations

from typing import Any, Final

from fractal_cloud.offers.azure.nsg import AzureNsg
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount
from fractal_cloud.offers.azure.subnet import AzureSubnet
from fractal_cloud.offers.azure.vnet import AzureVnet
from fractal_cloud.verifying.example import Declaration, Place, VerificationExample

_WORDS: Final = ("resourceGroup", "location")
_WEB: Final = {
    "name": "web",
    "priority": 100,
    "direction": "Inbound",
    "access": "Allow",
    "protocol": "Tcp",
    "destinationPortRange": "443",
}


def _in_group(at: Place) -> dict[str, str]:
    given = {"resourceGroup": at["resourceGroup"], "location": at["location"]}
    return given | ({"subscription": at["subscription"]} if "subscription" in at.words else {})


def _network(at: Place, **parameters: Any) -> Declaration:
    return at.declare(
        AzureVnet,
        "net",
        **_in_group(at),
        addressPrefixes=["10.255.0.0/24"],
        subnets={"front": "10.255.0.0/26"},
        **parameters,
    )


EXAMPLES: Final = (
    VerificationExample(
        AzureVnet,
        lambda at: [_network(at, dnsServers=["10.255.0.10"], flowTimeoutInMinutes=10)],
        needs=_WORDS,
        changes={
            "flowTimeoutInMinutes": 20,
            "dnsServers": ["10.255.0.11"],
            "addressPrefixes": ["10.255.0.0/24", "10.255.1.0/24"],
        },
        guarded="flowTimeoutInMinutes",
    ),
    VerificationExample(
        AzureSubnet,
        lambda at: [
            _network(at),
            at.declare(AzureSubnet, "back", name="back", vnet=at.name("net"), addressPrefix="10.255.0.64/26"),
        ],
        needs=_WORDS,
        changes={"addressPrefix": "10.255.0.128/26"},
    ),
    VerificationExample(
        AzureNsg,
        lambda at: [at.declare(AzureNsg, "group", **_in_group(at), securityRules=[_WEB])],
        needs=_WORDS,
        changes={"securityRules": [{**_WEB, "sourceAddressPrefix": "10.0.0.0/8"}]},
        guarded="securityRules",
    ),
    VerificationExample(
        AzureStorageAccount,
        lambda at: [
            at.declare(
                AzureStorageAccount,
                "store",
                name=at.compact_name("store"),
                **_in_group(at),
                sku="Standard_LRS",
                accessTier="Hot",
                minimumTlsVersion="TLS1_2",
                allowBlobPublicAccess=False,
                allowSharedKeyAccess=True,
            )
        ],
        needs=_WORDS,
        changes={"accessTier": "Cool", "allowSharedKeyAccess": False},
        cost="an empty storage account for some minutes: nothing is stored, so nothing is billed but its calls",
    ),
)
