"""How a person would edit each parameter of each Azure type: by plain requests, no line of the offers."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

from fractal_cloud.offers.azure.postgres import ADMINISTRATOR
from tests.offers.azure.person import AzurePerson, Item

Edit = Callable[[AzurePerson, str, str, Any], None]
"""Edit one parameter of the resource at a path."""

OPEN = {
    "protocol": "*",
    "sourceAddressPrefix": "*",
    "sourcePortRange": "*",
    "destinationAddressPrefix": "*",
    "destinationPortRange": "*",
}


def left_alone(person: AzurePerson, path: str, name: str, value: Any) -> None:
    """Nobody edits what is only read."""
    raise AssertionError(f"{name} of {path} is only read, and was to become {value!r}: {person}")


def _rewrite(change: Callable[[Item, str, Any], None]) -> Edit:
    """Read it, change it, write all of it back."""

    def edit(person: AzurePerson, path: str, name: str, value: Any) -> None:
        item = person.call("GET", path)
        change(item, name, value)
        person.call("PUT", path, item)

    return edit


def _change_network(item: Item, name: str, value: Any) -> None:
    properties = item["properties"]
    if name == "addressPrefixes":
        properties["addressSpace"]["addressPrefixes"] = value
    elif name == "dnsServers":
        properties["dhcpOptions"]["dnsServers"] = value
    elif name == "flowTimeoutInMinutes":
        properties["flowTimeoutInMinutes"] = value
    else:
        for subnet in properties["subnets"]:
            subnet["properties"]["addressPrefix"] = value[subnet["name"]]


def _change_group(item: Item, name: str, value: Any) -> None:
    properties = item["properties"]
    if name == "flushConnection":
        properties["flushConnection"] = value
    else:
        properties["securityRules"] = [
            {"name": rule["name"], "properties": {**OPEN, **{k: v for k, v in rule.items() if k != "name"}}}
            for rule in value
        ]


def machine(person: AzurePerson, path: str, name: str, value: Any) -> None:
    """Its size, its user data, or whether it runs."""
    if name == "state":
        person.call("POST", f"{path}/{'start' if value == 'running' else 'deallocate'}")
    elif name == "vmSize":
        person.call("PATCH", path, {"properties": {"hardwareProfile": {"vmSize": value}}})
    else:
        person.call("PATCH", path, {"properties": {"userData": b64encode(value.encode()).decode()}})


def account(person: AzurePerson, path: str, name: str, value: Any) -> None:
    """Its settings, or how it is copied."""
    if name == "sku":
        person.call("PATCH", path, {"sku": {"name": value}})
    else:
        key = {"enableHttpsTrafficOnly": "supportsHttpsTrafficOnly"}.get(name, name)
        person.call("PATCH", path, {"properties": {key: value}})


def _change_cluster(item: Item, name: str, value: Any) -> None:
    properties = item["properties"]
    if name == "nodeCount":
        properties["agentPoolProfiles"][0]["count"] = value
    elif name == "skuTier":
        item["sku"]["tier"] = value
    elif name == "authorizedIPRanges":
        properties["apiServerAccessProfile"] = {"authorizedIPRanges": value}
    elif name == "upgradeChannel":
        properties["autoUpgradeProfile"] = {"upgradeChannel": value}
    else:
        properties["kubernetesVersion"] = value


def server(person: AzurePerson, path: str, name: str, value: Any) -> None:
    """Its size and settings; the two words of its size are sent together."""
    sku = person.call("GET", path)["sku"] if name.startswith("sku") else {}
    parts: dict[str, Item] = {
        "version": {"properties": {"version": value}},
        "skuName": {"sku": {**sku, "name": value}},
        "skuTier": {"sku": {**sku, "tier": value}},
        "storageSizeGB": {"properties": {"storage": {"storageSizeGB": value}}},
        "storageAutoGrow": {"properties": {"storage": {"autoGrow": value}}},
        "backupRetentionDays": {"properties": {"backup": {"backupRetentionDays": value}}},
        "highAvailability": {"properties": {"highAvailability": {"mode": value}}},
        "publicNetworkAccess": {"properties": {"network": {"publicNetworkAccess": value}}},
        "passwordAuth": {
            "properties": {
                "authConfig": {"passwordAuth": value},
                "administratorLogin": ADMINISTRATOR,
                "administratorLoginPassword": "Of-a-person-1",
            }
        },
    }
    person.call("PATCH", path, parts[name])


network = _rewrite(_change_network)
group = _rewrite(_change_group)
cluster = _rewrite(_change_cluster)
