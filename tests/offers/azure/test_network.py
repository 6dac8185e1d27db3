"""Networks and their subnets: other people's subnets, untaggable types, and names that differ by case."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.component import ComponentError
from fractal_cloud.offers.azure.nsg import AzureNsg
from fractal_cloud.offers.azure.nsg_rules import AzureSecurityRule, from_items
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount
from fractal_cloud.offers.azure.subnet import AzureSubnet
from fractal_cloud.offers.azure.vnet import AzureVnet
from tests.offers.azure.examples import EXAMPLES, GROUP, LOCATION, NETWORK, WEB, component
from tests.offers.azure.worlds import AzureWorld

KIND = EXAMPLES[AzureVnet].kind


def network(**parameters: Any) -> dict[str, Any]:
    """The network with other parameters."""
    return {**NETWORK, "parameters": {**NETWORK["parameters"], **parameters}}


def blocks(world: AzureWorld) -> dict[str, str]:
    """The subnets there are."""
    item = world.azure.call("GET", world.azure.path(KIND, "net"))
    return {one["name"]: one["properties"]["addressPrefix"] for one in item["properties"]["subnets"]}


@pytest.mark.rule("T1", "S12")
def test_subnets_of_others_are_neither_drift_nor_touched(world: AzureWorld) -> None:
    world.deploy("ls-a", NETWORK)
    world.settle()
    path = world.azure.path(KIND, "net")
    guard = {"name": "db", "properties": {"serviceName": "Microsoft.DBforPostgreSQL/flexibleServers"}}
    theirs = {"properties": {"addressPrefix": "10.0.9.0/24", "delegations": [guard]}}
    world.azure.call("PUT", f"{path}/subnets/theirs", theirs)
    before = len(world.writes())
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert len(world.writes()) == before
    world.deploy("ls-a", network(addressPrefixes=["10.0.0.0/16", "10.1.0.0/16"], subnets={"front": "10.0.5.0/24"}))
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert blocks(world) == {"front": "10.0.5.0/24", "back": "10.0.2.0/24", "theirs": "10.0.9.0/24"}
    subnet = world.azure.call("GET", f"{path}/subnets/theirs")
    assert subnet["properties"]["delegations"][0]["name"] == "db"
    world.assert_safe()


@pytest.mark.rule("S12")
def test_what_others_put_on_our_subnet_stays_when_its_block_is_corrected(world: AzureWorld) -> None:
    world.deploy("ls-a", NETWORK)
    world.settle()
    path = f"{world.azure.path(KIND, 'net')}/subnets/front"
    endpoints = [{"service": "Microsoft.Storage"}]
    world.azure.call("PUT", path, {"properties": {"addressPrefix": "10.0.7.0/24", "serviceEndpoints": endpoints}})
    world.settle()
    assert world.azure.call("GET", path)["properties"]["addressPrefix"] == "10.0.1.0/24"
    assert world.azure.call("GET", path)["properties"]["serviceEndpoints"] == endpoints
    world.assert_safe()


EMPTY = network(subnets={})
MADE = component(AzureSubnet, "made", vnet="net", addressPrefix="10.0.3.0/24")


@pytest.mark.rule("S25")
def test_a_subnet_lives_and_dies_with_the_network_that_it_is_part_of(world: AzureWorld) -> None:
    world.deploy("ls-a", EMPTY, MADE)
    world.settle()
    assert (world.status("ls-a", "net"), world.status("ls-a", "made")) == ("Active", "Active")
    path = f"{world.azure.path(KIND, 'net')}/subnets/made"
    endpoints = [{"service": "Microsoft.Storage"}]
    world.azure.call("PUT", path, {"properties": {"addressPrefix": "10.0.8.0/24", "serviceEndpoints": endpoints}})
    world.settle()
    there = world.azure.call("GET", path)["properties"]
    assert (there["addressPrefix"], there["serviceEndpoints"]) == ("10.0.3.0/24", endpoints)
    world.azure.call("PUT", path, {"properties": {"addressPrefix": "10.0.3.0/24"}})
    world.deploy("ls-a", EMPTY)
    world.settle()
    assert blocks(world) == {}, "taken out of the declaration, it is deleted by itself"
    world.deploy("ls-a", EMPTY, MADE)
    world.settle()
    world.delete("ls-a")
    world.settle()
    assert world.azure.find(world.azure.path(KIND, "net")) is None
    world.assert_safe()


@pytest.mark.rule("S25", "G1", "S16")
def test_breaking_the_glass_of_a_network_protects_its_subnets(world: AzureWorld) -> None:
    world.deploy("ls-a", EMPTY, MADE)
    world.settle()
    network_path = world.azure.path(KIND, "net")
    world.azure.untag(network_path, "managed-by")
    path = f"{network_path}/subnets/made"
    world.azure.call("PUT", path, {"properties": {"addressPrefix": "10.0.8.0/24"}})
    world.settle()
    shown = world.component("ls-a", "made")
    assert shown["status"] == "ManualOverride"
    assert "'net'" in shown["message"]
    assert world.drift("ls-a", "made") == {"addressPrefix": {"declared": "10.0.3.0/24", "actual": "10.0.8.0/24"}}
    world.azure.call("DELETE", path)
    world.settle()
    assert world.status("ls-a", "made") == "ManualOverride"
    assert blocks(world) == {}, "nothing is made in a network that somebody holds"
    world.azure.tag(network_path, **{"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"})
    world.settle()
    assert blocks(world) == {"made": "10.0.3.0/24"}
    world.assert_safe()


@pytest.mark.rule("S25", "O3")
def test_a_subnet_of_a_network_of_others_is_only_read(world: AzureWorld) -> None:
    world.deploy("ls-a", NETWORK)
    world.settle()
    theirs = component(AzureSubnet, "front", vnet="net", addressPrefix="10.0.8.0/24")
    world.deploy("ls-b", network(), theirs, component(AzureSubnet, "nowhere", vnet="net", addressPrefix="10.0.9.0/24"))
    world.settle()
    assert world.status("ls-b", "front") == "ExternallyManaged"
    assert world.status("ls-b", "nowhere") == "Missing"
    assert world.drift("ls-b", "front") == {"addressPrefix": {"declared": "10.0.8.0/24", "actual": "10.0.1.0/24"}}
    world.delete("ls-b")
    world.settle()
    assert set(blocks(world)) == {"front", "back"}
    assert not [write for write in world.writes() if write.component in ("front", "nowhere")]
    world.assert_safe()


@pytest.mark.rule("O1", "T8")
def test_names_that_differ_by_case_are_one_resource(world: AzureWorld) -> None:
    body = {"location": "West Europe", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}}
    tags = {"Managed-By": "fractal-cloud", "FRACTAL-CLOUD-OWNER": "ls-a"}
    world.azure.call("PUT", world.azure.path(KIND, "Net", "SandBox"), {**body, "tags": tags})
    world.deploy("ls-a", network(subnets={}))
    world.settle()
    assert world.status("ls-a", "net") == "Active"
    assert world.output("ls-a", "net", "location") == LOCATION
    assert not world.writes()


@pytest.mark.rule("S16")
def test_a_name_that_appears_right_before_the_creation_is_not_overwritten(world: AzureWorld) -> None:
    path = world.azure.path(KIND, "net")
    body = {"location": LOCATION, "properties": {"addressSpace": {"addressPrefixes": ["172.16.0.0/12"]}}}
    world.before_next_write(lambda: world.azure.call("PUT", path, body))
    world.deploy("ls-a", NETWORK)
    world.settle()
    assert world.status("ls-a", "net") == "ManualOverride"
    assert world.azure.tags(path) == {}
    assert world.azure.call("GET", path)["properties"]["addressSpace"] == {"addressPrefixes": ["172.16.0.0/12"]}
    world.assert_safe()


def test_a_group_that_is_missing_is_named_until_somebody_makes_it(world: AzureWorld) -> None:
    world.deploy("ls-a", network(resourceGroup="later"))
    world.cycle(2)
    shown = world.component("ls-a", "net")
    assert shown["status"] == "Failed"
    assert "Resource group 'later' could not be found" in shown["message"]
    world.azure.make_group("later")
    world.settle()
    assert world.status("ls-a", "net") == "Active"


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (AzureVnet, {"resource_group": "Shop"}, "write 'shop'"),
        (AzureVnet, {"name": "Net"}, "no name for a network resource"),
        (AzureVnet, {"address_prefixes": ["10.0.0.1/16"]}, "'10.0.0.0/16'"),
        (AzureVnet, {"subnets": {"A": "10.0.0.0/24"}}, "no name for a network resource"),
        (AzureStorageAccount, {}, "no name for a storage account"),
    ],
)
def test_what_azure_would_spell_otherwise_is_refused_with_its_spelling(
    kind: Any, parameters: dict[str, Any], words: str
) -> None:
    given: dict[str, Any] = {"id": "my-net", "resource_group": GROUP, "location": LOCATION}
    if kind is AzureVnet:
        given |= {"address_prefixes": ["10.0.0.0/16"]}
    with pytest.raises(ComponentError, match=words):
        kind(**{**given, **parameters})


def test_a_rule_is_declared_as_it_is_compared() -> None:
    both: dict[str, Any] = {**WEB, "destinationPortRange": "443,80"}
    assert AzureSecurityRule(**both).flat() == both
    with pytest.raises(ValueError, match="one spelling"):
        AzureSecurityRule(**{**WEB, "destinationPortRange": "80,443"})
    with pytest.raises(ValueError, match="pattern"):
        AzureSecurityRule(**{**WEB, "sourceAddressPrefix": "*"})


@pytest.mark.parametrize("protocol", ["Tcp", "TCP", "tcp"])
def test_a_protocol_is_read_in_one_spelling(protocol: str) -> None:
    properties = {"priority": 100, "direction": "Inbound", "access": "Allow", "protocol": protocol}
    [rule] = from_items([{"name": "ssh", "properties": properties}])
    assert rule["protocol"] == "Tcp"


def test_two_rules_of_one_priority_are_refused() -> None:
    rules: Any = [WEB, {**WEB, "name": "other"}]
    with pytest.raises(ComponentError, match="two rules have the priority 100"):
        AzureNsg(id="fence", resource_group=GROUP, location=LOCATION, security_rules=rules)
