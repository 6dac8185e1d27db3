"""What is peculiar to machines: what must be stopped for, whose metadata it is, and zones without capacity."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.gcp import vm_changes
from fractal_cloud.offers.gcp.cloud import GcpSession
from fractal_cloud.offers.gcp.vm import GcpVm
from fractal_cloud.offers.registry import installed
from tests.offers.gcp.examples import EXAMPLES, IMAGES
from tests.offers.gcp.person import ZONE, GcpPerson
from tests.offers.gcp.suite import GcpWorld


def machine(**parameters: Any) -> dict[str, Any]:
    given = {"zone": ZONE, "machineType": "e2-small", "image": f"{IMAGES}/debian-12-bookworm-v20250610", **parameters}
    return {"id": "box", "type": GcpVm.type, "provider": "gcp", "parameters": given}


def made(person: GcpPerson) -> dict[str, Any]:
    found = person.get(person.instance("box"))
    assert found is not None
    return found


def operations(world: GcpWorld) -> list[str]:
    return [one.operation for one in world.cloud.calls.find(actor="agent", writes_only=True)]


@pytest.mark.rule("S12", "S20")
def test_another_size_is_one_stop_one_change_and_one_start(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", machine())
    world.settle()
    world.cloud.calls.clear()
    world.deploy("ls-a", machine(machineType="e2-medium"))
    world.settle()
    assert operations(world) == ["stop", "setMachineType", "start"]
    assert made(person)["status"] == "RUNNING"
    world.assert_safe()


@pytest.mark.rule("S19", "O17")
def test_a_machine_that_somebody_labels_as_a_node_is_still_found_by_its_id(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", machine())
    world.settle()
    before = made(person)
    labels = {**before["labels"], "goog-gke-node": ""}
    here = f"{person.instance('box')}/setLabels"
    person.call("POST", here, {"labels": labels, "labelFingerprint": before["labelFingerprint"]})
    world.cycle(2)
    scope = Scope("gcp", str(world.output("ls-a", "box", "project")), ZONE)
    read = installed()[GcpVm.type].read(GcpSession().at(scope), "box")
    assert read is not None
    assert (read.resource_id, read.incarnation) == ("box", before["id"])


@pytest.mark.rule("T1")
def test_a_new_startup_script_leaves_everybodys_metadata(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", machine(startupScript="echo 1"))
    world.settle()
    metadata = made(person)["metadata"]
    items = [*metadata["items"], {"key": "ssh-keys", "value": "eve:ssh-ed25519 AAAA"}]
    here = f"{person.instance('box')}/setMetadata"
    person.call("POST", here, {"fingerprint": metadata["fingerprint"], "items": items})
    world.deploy("ls-a", machine(startupScript="echo 2"))
    world.settle()
    kept = {one["key"]: one["value"] for one in made(person)["metadata"]["items"]}
    assert kept == {"ssh-keys": "eve:ssh-ed25519 AAAA", "startup-script": "echo 2"}


@pytest.mark.rule("S17", "S21")
def test_a_zone_without_capacity_is_reported_and_tried_again(world: GcpWorld, person: GcpPerson) -> None:
    world.cloud.exhausted_zones.add(ZONE)
    world.deploy("ls-a", machine())
    for _ in range(30):
        world.cycle()
        if "enough resources available" in world.component("ls-a", "box")["message"]:
            break
    shown = world.component("ls-a", "box")
    assert "ZONE_RESOURCE_POOL_EXHAUSTED" in shown["message"], shown
    world.cloud.exhausted_zones.clear()
    world.survive(at_most=100)
    assert world.status("ls-a", "box") == "Active"
    assert made(person)["labels"] == {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a"}
    world.assert_safe()


@pytest.mark.rule("S21")
def test_a_start_that_failed_is_reported_and_tried_again_later(
    world: GcpWorld, person: GcpPerson, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.deploy("ls-a", machine())
    world.settle()
    person.call("POST", f"{person.instance('box')}/stop")
    world.cloud.exhausted_zones.add(ZONE)
    said: list[str] = []
    while (
        "enough resources available" not in "".join(said) and len(said) < 60
    ):  # once the start would have shown (S17, S27)
        world.cycle()
        said.append(world.component("ls-a", "box")["message"])
    assert "enough resources available" in said[-1], said
    world.cloud.exhausted_zones.clear()
    monkeypatch.setattr(vm_changes, "RETRY_SECONDS", 0.001)
    world.survive(at_most=100)
    assert made(person)["status"] == "RUNNING"
    assert world.status("ls-a", "box") == "Active"
    world.assert_safe()


@pytest.mark.rule("S15", "O10")
def test_a_node_that_bears_its_clusters_labels_is_nobodys_and_in_nobodys_way(
    world: GcpWorld, person: GcpPerson
) -> None:
    node = {
        "name": "gke-kube-default-pool-1",
        "machineType": "zones/z/machineTypes/e2-medium",
        "labels": {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-a", "goog-gke-node": ""},
        "disks": [{"initializeParams": {"sourceImage": f"{IMAGES}/i"}}],
        "networkInterfaces": [{}],
    }
    person.call("POST", person.instance("").rstrip("/"), node)
    world.deploy("ls-a", machine())
    world.settle()
    assert world.status("ls-a", "box") == "Active"
    world.delete("ls-a")
    world.settle()
    assert person.get(person.instance("gke-kube-default-pool-1")) is not None
    world.assert_safe()


@pytest.mark.rule("S12")
def test_what_somebody_suspended_is_resumed(world: GcpWorld, person: GcpPerson) -> None:
    world.deploy("ls-a", machine())
    world.settle()
    person.call("POST", f"{person.instance('box')}/suspend")
    world.cloud.calls.clear()
    world.settle()
    assert operations(world) == ["resume"]


@pytest.mark.rule("C6")
def test_a_plan_says_what_stops_the_machine() -> None:
    assert installed()[GcpVm.type].warnings(["machineType"]) == [
        "changing machineType stops the machine and starts it again"
    ]


def test_a_family_is_refused_at_declaration(world: GcpWorld) -> None:
    family = f"{IMAGES}/family/debian-12"
    answer = world.api.put("/livesystems/ls-a", json={"id": "ls-a", "components": [machine(image=family)]})
    assert answer.status_code == 422
    assert "image" in answer.text


def test_the_example_declares_every_parameter() -> None:
    declared = EXAMPLES[GcpVm].components[-1]["parameters"]
    assert set(GcpVm.parameter_fields()) - set(declared) == {"name", "project"}
