"""What is peculiar to machines, clusters, accounts and servers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fractal_cloud.model.errors import Invalid
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.azure.aks import AzureAks
from fractal_cloud.offers.azure.arm import Azure
from fractal_cloud.offers.azure.postgres import AzurePostgresDbms
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount
from fractal_cloud.offers.azure.vm import AzureVm
from fractal_cloud.offers.cluster_versions import next_version
from fractal_cloud.offers.rest import Answer, Call, RestClient
from tests.offers.azure.examples import EXAMPLES
from tests.offers.azure.worlds import AzureWorld


def declared(kind: Any, **parameters: Any) -> list[dict[str, Any]]:
    """The example of a type with other parameters."""
    *parents, last = EXAMPLES[kind].components
    return [*parents, {**last, "parameters": {**last["parameters"], **parameters}}]


def operations(world: AzureWorld, component: str) -> list[str]:
    """What was written for a component."""
    return [write.operation.partition(":")[2] for write in world.writes() if write.component == component]


@pytest.mark.rule("S12")
def test_another_size_stops_the_machine_changes_it_and_starts_it_again(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzureVm))
    world.settle()
    before = len(operations(world, "box"))
    world.deploy("ls-a", *declared(AzureVm, vmSize="Standard_B4ms"))
    world.settle()
    done = ["switch virtualMachines", "update virtualMachines", "switch virtualMachines"]
    assert operations(world, "box")[before:] == done
    assert world.output("ls-a", "box", "powerState") == "running"
    world.assert_safe()


@pytest.mark.rule("S17")
def test_a_machine_that_was_left_stopped_is_started(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzureVm))
    world.settle()
    path = world.component("ls-a", "box")["resourceId"]
    world.azure.call("POST", f"{path}/powerOff")
    world.settle()
    assert world.output("ls-a", "box", "powerState") == "running"


@pytest.mark.rule("G3", "S12")
def test_a_stopped_machine_does_not_report_its_disks_size_and_that_is_no_drift(world: AzureWorld) -> None:
    stopped = declared(AzureVm, osDiskSizeGB=64, state="stopped")
    world.deploy("ls-a", *stopped)
    world.settle()
    item = world.azure.find(world.component("ls-a", "box")["resourceId"])
    assert item is not None
    assert "diskSizeGB" not in item["properties"]["storageProfile"]["osDisk"]
    assert world.status("ls-a", "box") == "Active"
    assert "drift" not in world.component("ls-a", "box")["outputFields"]
    world.assert_safe()


@pytest.mark.rule("S17")
@pytest.mark.parametrize("kind", [AzureStorageAccount, AzurePostgresDbms])
def test_a_creation_that_was_answered_without_the_resource_is_no_lost_answer(world: AzureWorld, kind: Any) -> None:
    component = declared(kind)[-1]["id"]
    world.cloud.knobs.late_visibility(reads=3)
    world.deploy("ls-a", *declared(kind))
    world.cycle()
    message = world.component("ls-a", component)["message"]
    assert "lost" not in message, message
    assert "accepted" in message, message
    world.settle()
    assert world.status("ls-a", component) == "Active"
    [created] = [one for one in operations(world, component) if one.startswith("createOrUpdate")]
    assert created
    world.assert_safe()


def test_a_deleted_machine_deletes_what_it_made_and_nothing_else(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzureVm))
    world.settle()
    disk = world.azure.path("Microsoft.Compute/disks", "theirs")
    world.azure.call("PUT", disk, {"location": "westeurope", "properties": {"diskSizeGB": 8}})
    interface = world.output("ls-a", "box", "networkInterfaceId")
    assert world.azure.find(interface) is not None
    world.deploy("ls-a", *declared(AzureVm)[:-1])
    world.settle()
    assert world.azure.find(interface) is None
    assert world.azure.find(world.azure.path("Microsoft.Compute/disks", "box_OsDisk")) is None
    assert world.azure.find(disk) is not None
    world.assert_safe()


@pytest.mark.rule("S12", "S13")
def test_a_version_rises_one_minor_version_at_a_time(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzureAks))
    world.settle()
    before = len(operations(world, "cluster"))
    world.deploy("ls-a", *declared(AzureAks, kubernetesVersion="1.34"))
    world.settle()
    assert world.output("ls-a", "cluster", "kubernetesVersion") == "1.34"
    assert operations(world, "cluster")[before:] == ["createOrUpdate managedClusters"] * 2


@pytest.mark.rule("S12", "G15")
def test_pools_that_somebody_else_puts_first_are_left_alone(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzureAks))
    world.settle()
    path = str(world.output("ls-a", "cluster", "id"))
    item = world.azure.find(path)
    assert item is not None
    [ours] = item["properties"]["agentPoolProfiles"]
    theirs = {**ours, "name": "batch", "mode": "User", "count": 7, "orchestratorVersion": "1.31"}
    item["properties"]["agentPoolProfiles"] = [theirs, ours]
    world.azure.call("PUT", path, item)
    world.settle()
    assert world.drift("ls-a", "cluster") is None
    world.deploy("ls-a", *declared(AzureAks, nodeCount=4, kubernetesVersion="1.34"))
    world.settle()
    item = world.azure.find(path)
    assert item is not None
    first, second = item["properties"]["agentPoolProfiles"]
    assert first == theirs
    assert (second["name"], second["count"], second["orchestratorVersion"]) == (ours["name"], 4, "1.34")


def test_an_update_of_what_reports_no_etag_never_turns_into_create_only() -> None:
    sent: list[dict[str, str]] = []

    class Listening:
        def write(self, method: str, path: str, body: Any, query: Any, headers: dict[str, str]) -> Answer:
            sent.append(headers)
            return Answer(Call(method, path, query), 200, {}, b"{}")

    cloud = Azure(cast("RestClient", Listening()), Scope("azure", "sub", "shop"))
    cloud.put("/x", "1", {}, None)
    cloud.put("/x", "1", {}, 'W/"1"')
    cloud.put("/x", "1", {}, is_new=True)
    assert sent == [{}, {"if-match": 'W/"1"'}, {"if-none-match": "*"}]


@pytest.mark.parametrize(
    ("actual", "wanted", "following"),
    [
        ("1.32", "1.33", "1.33"),
        ("1.32.4", "1.34.1", "1.33"),
        ("1.32.4", "1.32.9", "1.32.9"),
        ("1.32", "1.32.5", "1.32.5"),
    ],
)
def test_the_next_version_is_at_most_one_minor_version_away(actual: str, wanted: str, following: str) -> None:
    assert next_version(actual, wanted) == following


@pytest.mark.parametrize(("actual", "wanted"), [("1.33", "1.32"), ("1.33.4", "1.33.2")])
def test_a_version_never_falls(actual: str, wanted: str) -> None:
    with pytest.raises(Invalid, match="cannot fall"):
        next_version(actual, wanted)


@pytest.mark.rule("L9")
def test_a_server_knows_no_password(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzurePostgresDbms))
    world.settle()
    item = world.azure.call("GET", world.component("ls-a", "orders")["resourceId"])
    assert item["properties"]["authConfig"] == {"activeDirectoryAuth": "Enabled", "passwordAuth": "Disabled"}
    assert not [name for name in item["properties"] if "assword" in name]


@pytest.mark.rule("S4a")
def test_a_server_that_vanished_is_not_replaced_by_an_empty_one(world: AzureWorld) -> None:
    world.deploy("ls-a", *declared(AzurePostgresDbms))
    world.settle()
    world.azure.call("DELETE", world.component("ls-a", "orders")["resourceId"])
    world.cycle(3)
    assert world.status("ls-a", "orders") == "Missing"
