"""What is peculiar to workloads: rollouts, containers of others, the environment and what links put into it."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload, KubernetesWorkloadOffer
from tests.offers.kubernetes.declaring import service, workload
from tests.offers.kubernetes.worlds import KubernetesWorld

Json = dict[str, Any]


def deployment(world: KubernetesWorld, name: str = "web") -> Json:
    found = world.kube.get("deployments", name)
    assert found is not None
    return found


def container(world: KubernetesWorld) -> Json:
    found: Json = deployment(world)["spec"]["template"]["spec"]["containers"][0]
    return found


def put(world: KubernetesWorld, item: Json) -> None:
    world.kube.call("PUT", world.kube.path("deployments", item["metadata"]["name"]), item)


def rollout(world: KubernetesWorld, *conditions: Json, **status: Any) -> None:
    """Say in the place of the cluster's controllers how a rollout is doing."""
    body = {"status": {**status, "conditions": list(conditions)}}
    world.kube.merge("deployments", "web", body, sub="status")


def condition(kind: str, status: str, reason: str, message: str = "") -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


STUCK = condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "web-1" has timed out progressing.')


@pytest.mark.rule("S13")
def test_a_rollout_that_fails_is_said_and_another_image_can_be_deployed_at_once(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(image="broken:1"))
    world.settle()
    rollout(world, STUCK, availableReplicas=0)
    world.cycle()
    web = world.component("ls-a", "web")
    assert web["status"] == "Failed"
    assert "ProgressDeadlineExceeded" in web["message"]
    assert "has timed out progressing" in web["message"]
    world.deploy("ls-a", workload(image="good:1"))
    world.settle()
    assert container(world)["image"] == "good:1"
    assert world.status("ls-a", "web") == "Active"


@pytest.mark.rule("S13", "O10")
def test_what_never_became_ready_can_be_deleted(world: KubernetesWorld) -> None:
    with world.slow_creation(60):
        world.deploy("ls-a", workload())
        world.cycle()
        assert world.status("ls-a", "web") == "Instantiating"
        world.deploy("ls-a", workload(replicas=3))
        world.cycle()
        assert deployment(world)["spec"]["replicas"] == 3, "a rollout under way takes changes"
        world.delete("ls-a")
        world.cycle()
    assert world.kube.get("deployments", "web") is None


@pytest.mark.rule("G3")
def test_defaults_of_the_api_server_and_everything_undeclared_are_no_drift(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    item = deployment(world)
    assert item["spec"]["replicas"] == 1, "a default acts at creation"
    item["spec"]["replicas"] = 5
    item["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "mesh:1"})
    item["spec"]["template"]["metadata"]["annotations"] = {"theirs": "1"}
    put(world, item)
    world.settle()
    assert world.drift("ls-a", "web") is None
    world.deploy("ls-a", workload(image="web:2"))
    world.settle()
    after = deployment(world)["spec"]
    assert after["replicas"] == 5, "and is not enforced afterwards"
    assert [one["image"] for one in after["template"]["spec"]["containers"]] == ["web:2", "mesh:1"]
    assert after["template"]["metadata"]["annotations"] == {"theirs": "1"}


def test_quantities_are_compared_by_their_value(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(cpu="0.5", memory="1024Mi"))
    world.settle()
    world.deploy("ls-a", workload(cpu="500m", memory="1Gi"))
    before = len(world.writes())
    world.settle()
    assert world.drift("ls-a", "web") is None
    assert len(world.writes()) == before


def test_the_environment_keeps_what_comes_from_elsewhere(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(env={"A": "1", "B": "2"}))
    world.settle()
    item = deployment(world)
    secret = {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}
    item["spec"]["template"]["spec"]["containers"][0]["env"] += [secret, {"name": "HAND", "value": "made"}]
    put(world, item)
    world.cycle()
    world.settle()
    assert container(world)["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, secret]
    world.deploy("ls-a", workload(env={"B": "3"}))
    world.settle()
    assert container(world)["env"] == [{"name": "B", "value": "3"}, secret]


@pytest.mark.rule("L17")
def test_what_a_link_brings_into_the_environment_is_marked_and_no_drift(world: KubernetesWorld) -> None:
    other = {"id": "stock", "type": KubernetesWorkload.type, "parameters": {"image": "stock:1"}}
    link = {"target": "stock", "settings": {"fromPort": 80}}
    world.deploy("ls-a", {**workload(env={"A": "1"}), "links": [link]}, other)
    world.cycle(6)
    brought = {"STOCK_HOST": "stock.default.svc", "STOCK_PORT": "80", "STOCK_PROTOCOL": "tcp"}
    assert {one["name"]: one["value"] for one in container(world)["env"]} == {"A": "1", **brought}
    assert world.output("ls-a", "web", "env") == {"A": "1"}
    assert world.output("ls-a", "web", "linkedEnv") == sorted(brought)
    journal = world.api.get("/livesystems/ls-a/components/web/journal").json()["items"]
    assert [entry["reason"] for entry in journal if "linkedEnv" in entry["after"]] == ["link"]
    assert world.drift("ls-a", "web") is None
    world.deploy("ls-a", workload(env={"A": "2"}), other)
    world.cycle(6)
    assert container(world)["env"] == [{"name": "A", "value": "2"}], "what is not brought any more goes"
    assert world.output("ls-a", "web", "linkedEnv") is None


@pytest.mark.rule("G11")
def test_a_deployment_of_somebody_else_is_brought_in_with_the_container_and_the_labels_it_has(
    world: KubernetesWorld,
) -> None:
    labels = {"app": "legacy"}
    pods = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "old", "image": "old:1"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": pods}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    world.kube.create("deployments", body)
    world.deploy("ls-a", workload(image="new:1", replicas=2), service())
    world.settle()
    assert world.status("ls-a", "web") == "ManualOverride"
    assert world.drift("ls-a", "web") == {"image": {"declared": "new:1", "actual": "old:1"}}
    front = world.kube.get("services", "front")
    assert front is not None
    assert front["spec"]["selector"] == labels, "a service finds the pods that are there"
    world.kube.hand_back("deployments", "web")
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert container(world) | {"image": "new:1", "name": "old"} == container(world)
    world.assert_safe()


def _item(generation: int, observed: int, **status: Any) -> Json:
    return {
        "metadata": {"generation": generation},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": observed, **status},
    }


AVAILABLE = condition("Available", "True", "MinimumReplicasAvailable")
DONE = condition("Progressing", "True", "NewReplicaSetAvailable")
FULL = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


@pytest.mark.rule("S13")
@pytest.mark.parametrize(
    ("item", "expected", "reason"),
    [
        (_item(1, 0), Condition.CREATING, "no controller has observed it yet"),
        (_item(1, 1, replicas=2, updatedReplicas=2), Condition.CREATING, "no pod is available yet"),
        (_item(1, 1, **FULL, conditions=[AVAILABLE, DONE]), Condition.SETTLED, "all is there"),
        (_item(2, 1, **FULL, conditions=[AVAILABLE, DONE]), Condition.CHANGING, "a change was not seen yet"),
        (
            _item(2, 2, **{**FULL, "replicas": 3}, conditions=[AVAILABLE]),
            Condition.CHANGING,
            "old pods are still there",
        ),
        (_item(2, 2, **{**FULL, "updatedReplicas": 1}), Condition.CHANGING, "only one runs what is declared"),
        (_item(1, 1, replicas=2, updatedReplicas=2, conditions=[DONE]), Condition.CHANGING, "it was ready once"),
        (_item(3, 3, **FULL, conditions=[STUCK]), Condition.BROKEN, "the rollout is given up"),
        (
            _item(1, 1, conditions=[condition("ReplicaFailure", "True", "FailedCreate", "exceeded quota")]),
            Condition.BROKEN,
            "no pod can be made",
        ),
    ],
)
def test_the_status_of_a_rollout_is_what_kubectl_would_say(item: Json, expected: Condition, reason: str) -> None:
    assert KubernetesWorkloadOffer().state(item, None)[0] is expected, reason
