"""Who changed it, on a cluster: from the managed fields of the object, asked before the agent overwrites them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.offers.kubernetes.declaring import service, workload
from tests.offers.kubernetes.real import KUBECONFIG
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

pytestmark = [
    pytest.mark.rule("C4"),
    pytest.mark.skipif(bool(KUBECONFIG), reason="a real server's times are not the sandbox's"),
]


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """A world of one cluster."""
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
        yield made


def _edit(world: KubernetesWorld, plural: str, name: str, body: dict[str, Any], manager: str) -> None:
    path = f"{world.kube.path(plural, name)}?fieldManager={manager}"
    world.kube.call("PATCH", path, body, "application/merge-patch+json")


def _replace(world: KubernetesWorld, plural: str, name: str, field: str, value: object) -> None:
    path = f"{world.kube.path(plural, name)}?fieldManager=kubectl-edit"
    change = [{"op": "replace", "path": field, "value": value}]
    world.kube.call("PATCH", path, change, "application/json-patch+json")


def _changed(world: KubernetesWorld, component: str = "web") -> dict[str, dict[str, Any]]:
    return {one["parameter"]: one for one in world.component("ls-a", component)["changedBy"]}


def test_two_people_who_changed_two_fields_are_each_named_for_theirs(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(replicas=2, image="web:1"))
    world.settle()
    world.kube.break_glass("deployments", "web")
    world.settle()
    _edit(world, "deployments", "web", {"spec": {"replicas": 5}}, "kubectl-scale")
    _replace(world, "deployments", "web", "/spec/template/spec/containers/0/image", "web:2")
    world.settle()
    found = _changed(world)
    assert (found["replicas"]["state"], found["replicas"]["by"]) == ("known", "kubectl-scale")
    assert (found["image"]["state"], found["image"]["by"]) == ("known", "kubectl-edit")
    for one in (found["replicas"], found["image"]):
        assert (one["stands"], one["source"], one["how"]) == (True, "managedFields", "Update")
        assert one["at"] is not None
    removed = found["managed-by"]
    assert (removed["state"], removed["by"]) == ("unknown", ""), "a cluster does not record who removed a label"
    assert removed["text"].startswith("seen by the agent at ")
    assert not any(result.changes for result in world.agent.run_once()), "nothing is asked or said again"


def test_who_changed_it_stays_known_after_the_agent_has_corrected_it(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(replicas=2))
    world.settle()
    _edit(world, "deployments", "web", {"spec": {"replicas": 5}}, "kubectl-scale")
    world.settle()
    assert world.drift("ls-a", "web") is None
    one = _changed(world)["replicas"]
    assert (one["by"], one["state"], one["stands"]) == ("kubectl-scale", "known", False)
    world.assert_safe()


def test_the_item_of_a_list_that_was_changed_is_found_by_its_key(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), service(port=80, targetPort=8080))
    world.settle()
    world.kube.break_glass("services", "front")
    world.settle()
    _replace(world, "services", "front", "/spec/ports/0/targetPort", 9090)
    world.settle()
    assert _changed(world, "front")["targetPort"]["by"] == "kubectl-edit"


def test_the_agent_is_never_named_and_an_importer_is_not_asked_about(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(replicas=2))
    world.settle()
    world.kube.break_glass("deployments", "web")
    world.settle()
    _edit(world, "deployments", "web", {"spec": {"replicas": 5}}, "fractal-cloud")
    world.deploy("ls-b", {**workload(replicas=1), "importOnly": True})
    world.settle()
    one = _changed(world)["replicas"]
    assert (one["state"], one["by"]) == ("unknown", "")
    assert one["text"].startswith("seen by the agent at ")
    assert world.component("ls-b", "web")["outputFields"]["drift"]
    assert world.component("ls-b", "web")["changedBy"] == []


def test_a_difference_that_a_deploy_makes_was_made_by_nobody(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(replicas=2))
    world.settle()
    world.kube.break_glass("deployments", "web")
    world.settle()
    world.deploy("ls-a", workload(replicas=7))
    world.settle()
    assert world.drift("ls-a", "web") == {"replicas": {"declared": 7, "actual": 2}}
    assert "replicas" not in _changed(world)
