"""Right before the agent's call a person takes the resource over: who wins, and what is said of it (S16)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.offers.azure.aks import AzureAks
from fractal_cloud.offers.azure.nsg import AzureNsg
from fractal_cloud.offers.azure.storage_account import AzureStorageAccount
from fractal_cloud.offers.azure.vm import AzureVm
from tests.offers.azure.examples import EXAMPLES
from tests.offers.azure.worlds import AzureWorld

GUARDED: dict[type, tuple[str, Any, str]] = {
    AzureNsg: ("flushConnection", True, "createOrUpdate*"),
    AzureVm: ("userData", "theirs", "update virtualMachines"),
    AzureAks: ("nodeCount", 5, "createOrUpdate managedClusters"),
}


def owned(world: AzureWorld, kind: Any) -> str:
    """The example of a type, managed by the agent; where it lies."""
    components = EXAMPLES[kind].components
    world.deploy("ls-a", *components)
    world.settle()
    name = components[-1]["id"]
    assert world.status("ls-a", name) == "Active"
    return str(world.component("ls-a", name)["resourceId"])


def events(world: AzureWorld) -> list[str]:
    """What happened."""
    return [event["kind"] for event in world.api.get("/events?limit=500").json()["items"]]


@pytest.mark.rule("S16")
@pytest.mark.parametrize("kind", GUARDED, ids=lambda kind: kind.__name__)
def test_an_update_with_an_etag_loses_no_race(world: AzureWorld, kind: Any) -> None:
    name, value, operation = GUARDED[kind]
    path = owned(world, kind)
    EXAMPLES[kind].edit(world.azure, path, name, value)
    world.cloud.knobs.before_call(
        lambda _: world.azure.untag(path, "managed-by"), operation=operation, actor="agent", times=1
    )
    world.settle()
    component = EXAMPLES[kind].components[-1]["id"]
    assert world.status("ls-a", component) == "ManualOverride"
    assert name in (world.drift("ls-a", component) or {}), "what the person set stands"
    assert "managed-by" not in world.azure.tags(path), "and nobody brought the tag back"
    assert world.cloud.monitor.lost_races == []
    assert "RaceLost" not in events(world)
    world.assert_safe()


@pytest.mark.rule("S16", "T3")
def test_without_an_etag_a_lost_race_is_reported_and_the_tag_is_not_brought_back(world: AzureWorld) -> None:
    path = owned(world, AzureStorageAccount)
    EXAMPLES[AzureStorageAccount].edit(world.azure, path, "accessTier", "Cool")
    world.cloud.knobs.before_call(
        lambda _: world.azure.untag(path, "managed-by"), operation="update storageAccounts", actor="agent", times=1
    )
    world.settle()
    assert world.status("ls-a", "store") == "ManualOverride"
    assert "managed-by" not in world.azure.tags(path)
    assert len(world.cloud.monitor.lost_races) == 1
    assert events(world).count("RaceLost") == 1
    world.assert_safe()


@pytest.mark.rule("S16", "T6")
def test_a_tag_change_has_no_precondition_and_a_lost_race_is_reported(world: AzureWorld) -> None:
    path = owned(world, AzureNsg)
    world.azure.tag(path, fractal_cloud="reconcile")
    world.cloud.knobs.before_call(
        lambda _: world.azure.untag(path, "managed-by"), operation="updateTags", actor="agent", times=1
    )
    world.settle()
    assert world.status("ls-a", "fence") == "ManualOverride"
    assert world.azure.tags(path) == {"fractal-cloud-owner": "ls-a"}
    assert events(world).count("RaceLost") == 1
    world.assert_safe()


@pytest.mark.rule("S16", "O10")
def test_a_clusters_deletion_carries_its_etag(world: AzureWorld) -> None:
    path = owned(world, AzureAks)
    world.cloud.knobs.before_call(
        lambda _: world.azure.untag(path, "managed-by"), operation="delete managedClusters", actor="agent", times=1
    )
    world.deploy("ls-a", *EXAMPLES[AzureAks].components[:-1])
    world.settle()
    assert world.azure.find(path) is not None
    assert world.cloud.monitor.lost_races == []
    world.assert_safe()
