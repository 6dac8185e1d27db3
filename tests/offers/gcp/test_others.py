"""What is peculiar to clusters, services, databases and buckets; and to the rights the agent asks for."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.component import Component, ComponentError
from fractal_cloud.model.errors import Invalid
from fractal_cloud.offers.cluster_versions import next_version
from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun
from fractal_cloud.offers.gcp.gke import GcpGke
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_cloud.offers.gcp.vm import GcpVm
from fractal_sandbox.gcp import PROJECT
from tests.offers.gcp.examples import EXAMPLES
from tests.offers.gcp.person import GcpPerson
from tests.offers.gcp.suite import GcpWorld


def changed(kind: type[Component], **parameters: Any) -> list[dict[str, Any]]:
    *parents, one = EXAMPLES[kind].components
    return [*parents, {**one, "parameters": {**one["parameters"], **parameters}}]


# --- buckets


@pytest.mark.rule("S0")
def test_numbers_of_64_bits_travel_as_text(world: GcpWorld) -> None:
    world.deploy("ls-a", *changed(GcpGcsBucket, softDeleteSeconds=700_000))
    world.settle()
    world.deploy("ls-a", *changed(GcpGcsBucket, softDeleteSeconds=800_000))
    world.settle()
    calls = world.cloud.calls.find(service="storage", writes_only=True)
    policies = [one.call.parameters["body"].get("softDeletePolicy") for one in calls]
    assert policies == [{"retentionDurationSeconds": "700000"}, {"retentionDurationSeconds": "800000"}]


# --- GKE


@pytest.mark.rule("S12")
def test_a_version_is_raised_one_by_one(world: GcpWorld) -> None:
    world.deploy("ls-a", *changed(GcpGke))
    world.settle()
    world.deploy("ls-a", *changed(GcpGke, version="1.33"))
    world.settle()
    sent = [one.call.parameters["body"]["update"] for one in world.cloud.calls.find(operation="updateCluster")]
    assert [one["desiredMasterVersion"] for one in sent] == ["1.32", "1.33"]
    assert all(one["etag"] for one in sent)


@pytest.mark.rule("S18")
def test_a_version_never_falls() -> None:
    with pytest.raises(Invalid, match=r"cannot fall from '1.32' to '1.31'"):
        next_version("1.32", "1.31")


@pytest.mark.rule("S13")
def test_while_google_works_on_a_cluster_nothing_else_is_asked(world: GcpWorld) -> None:
    world.deploy("ls-a", *changed(GcpGke))
    world.settle()
    knob = world.cloud.knobs.slow_modification(seconds=0.5, kind="cluster")
    world.deploy("ls-a", *changed(GcpGke, releaseChannel="STABLE", logging=[]))
    world.cycle()
    assert world.status("ls-a", "kube") == "Mutating"
    world.cloud.knobs.remove(knob)
    world.survive(at_most=200)
    refused = [one for one in world.cloud.calls.find(actor="agent", writes_only=True) if one.status >= 400]
    assert refused == []
    assert world.status("ls-a", "kube") == "Active"


# --- Cloud Run


@pytest.mark.rule("T1")
def test_what_others_put_into_a_template_stays(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", *changed(GcpCloudRun))
    world.settle()
    here = person.service("shop")
    template = person.call("GET", here)["template"]
    secret = {"name": "KEY", "valueSource": {"secretKeyRef": {"secret": "key", "version": "latest"}}}
    template["containers"][0]["env"].append(secret)
    template["containers"].append({"name": "sidecar", "image": "proxy:1"})
    template["revision"] = "shop-by-hand"
    person.call("PATCH", here, {"template": template}, updateMask="template")
    world.deploy("ls-a", *changed(GcpCloudRun, env={"MODE": "test"}))
    world.settle()
    after = person.call("GET", here)["template"]
    assert after["containers"][0]["env"] == [{"name": "MODE", "value": "test"}, secret]
    assert after["containers"][1]["image"] == "proxy:1"
    assert "revision" not in after
    world.assert_safe()


# --- Cloud SQL


@pytest.mark.rule("O15")
def test_a_deleted_database_leaves_a_final_backup(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", *changed(GcpPostgresDbms))
    world.settle()
    world.delete("ls-a")
    world.settle()
    [backup] = person.call("GET", f"/sql/v1beta4/projects/{PROJECT}/backups")["backups"]
    assert (backup["instance"], backup["type"], backup["ttlDays"]) == ("orders", "FINAL", "365")


@pytest.mark.rule("G3", "S12")
def test_storage_that_google_let_grow_is_no_drift_until_that_is_switched_off(
    world: GcpWorld, person: GcpPerson
) -> None:
    [database] = EXAMPLES[GcpPostgresDbms].components
    parameters = {**database["parameters"], "diskSizeGb": 20, "storageAutoResize": True}
    world.deploy("ls-a", {**database, "parameters": parameters})
    world.settle()
    person.call("PATCH", person.database("orders"), {"settings": {"dataDiskSizeGb": "35"}})
    world.settle()
    assert world.status("ls-a", "orders") == "Active"
    assert "drift" not in world.component("ls-a", "orders")["outputFields"]
    world.deploy("ls-a", {**database, "parameters": {**parameters, "diskSizeGb": 50}})
    world.settle()
    assert person.call("GET", person.database("orders"))["settings"]["dataDiskSizeGb"] == "50"
    world.deploy("ls-a", {**database, "parameters": {**parameters, "storageAutoResize": False}})
    world.cycle(6)
    assert world.status("ls-a", "orders") == "Failed"
    assert "diskSizeGb cannot shrink from 50 to 20 GB" in world.component("ls-a", "orders")["message"]
    world.assert_safe()


@pytest.mark.rule("S15")
def test_a_mysql_of_that_name_is_no_postgres(world: GcpWorld, person: GcpPerson) -> None:
    mysql = {"name": "orders", "region": "europe-west1", "databaseVersion": "MYSQL_8_0", "settings": {"tier": "db-f1"}}
    person.call("POST", person.database("").rstrip("/"), mysql)
    world.deploy("ls-a", *changed(GcpPostgresDbms))
    world.cycle(3)
    shown = world.component("ls-a", "orders")
    assert shown["status"] == "Failed"
    assert "already exists" in shown["message"]
    world.assert_safe()


# --- names


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (GcpVm, "1box"),
        (GcpVm, "Box"),
        (GcpGke, "a" * 64),
        (GcpCloudRun, "a" * 50),
        (GcpGcsBucket, "google-like"),
        (GcpGcsBucket, "a"),
        (GcpPostgresDbms, "orders-"),
    ],
)
def test_a_name_google_would_refuse_is_refused_at_declaration(kind: type[Component], name: str) -> None:
    parameters = {**EXAMPLES[kind].components[-1]["parameters"], "name": name}
    with pytest.raises(ComponentError, match=f"{name!r} is no "):
        kind.from_parameters("some", parameters)
