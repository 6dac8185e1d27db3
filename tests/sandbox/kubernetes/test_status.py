"""What controllers would bring about happens by itself, at once or as slowly as a knob says."""

from __future__ import annotations

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.sandbox.kubernetes.conftest import (
    CLAIMS,
    DEPLOYMENTS,
    MACHINES,
    MAPPINGS,
    SERVICES,
    Api,
    claim,
    deployment,
    machine,
    mapping,
    service,
)


def condition(item: dict, kind: str) -> str:  # type: ignore[type-arg]
    (found,) = [one for one in item["status"]["conditions"] if one["type"] == kind]
    return str(found["status"])


def test_a_deployment_becomes_available(person: Api, name: str) -> None:
    assert person.make(DEPLOYMENTS, deployment(name))["status"] == {}, "no controller has observed it yet"
    path = f"{DEPLOYMENTS}/{name}"
    seen = person.get(path).json
    assert condition(seen, "Available") == "True"
    assert (seen["status"]["readyReplicas"], seen["status"]["observedGeneration"]) == (1, 1)
    person.patch(path, {"spec": {"replicas": 3}})
    seen = person.get(path).json
    assert (seen["status"]["availableReplicas"], seen["status"]["observedGeneration"]) == (3, 2)


def test_a_deployment_carries_its_revision_which_nobody_declared(person: Api, name: str) -> None:
    person.make(DEPLOYMENTS, deployment(name))
    path = f"{DEPLOYMENTS}/{name}"
    revision = {"deployment.kubernetes.io/revision": "1"}
    assert person.get(path).json["metadata"]["annotations"] == revision
    person.patch(path, {"spec": {"replicas": 3}})
    seen = person.get(path).json["metadata"]
    assert (seen["annotations"], seen["generation"]) == (revision, 2), "controllers do not count as a change"


def test_a_slow_deployment_is_not_available_for_a_while(person: Api, name: str, cluster: KubernetesCloud) -> None:
    cluster.knobs.slow_creation(reads=2, kind="deployment")
    cluster.knobs.slow_modification(reads=1, kind="deployment")
    person.make(DEPLOYMENTS, deployment(name))
    path = f"{DEPLOYMENTS}/{name}"
    shown = [condition(person.get(path).json, "Available") for _ in range(3)]
    assert shown == ["False", "False", "True"]
    person.patch(path, {"metadata": {"labels": {"some": "label"}}})
    assert condition(person.get(path).json, "Available") == "True", "a label is nothing to roll out"
    person.patch(path, {"spec": {"replicas": 2}})
    shown = [condition(person.get(path).json, "Available") for _ in range(2)]
    assert shown == ["False", "True"]


def test_a_load_balancer_gets_an_address(person: Api, name: str, cluster: KubernetesCloud) -> None:
    path = f"{SERVICES}/{name}"
    cluster.knobs.slow_creation(reads=1, kind="service")
    person.make(SERVICES, service(name, type="LoadBalancer"))
    assert not person.get(path).json.get("status", {}).get("loadBalancer")
    first = person.get(path).json["status"]["loadBalancer"]["ingress"]
    person.patch(path, {"spec": {"ports": [{"port": 81}]}})
    assert person.get(path).json["status"]["loadBalancer"]["ingress"] == first, "it keeps its address"
    person.patch(path, {"spec": {"type": "ClusterIP"}})
    assert person.get(path).json["status"]["loadBalancer"] == {}


def test_a_claim_is_bound_and_only_grows(person: Api, name: str, cluster: KubernetesCloud) -> None:
    cluster.knobs.slow_creation(reads=1, kind="persistentvolumeclaim")
    person.make(CLAIMS, claim(name))
    path = f"{CLAIMS}/{name}"
    grow = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    assert person.patch(path, grow).outcome == (422, "Invalid"), "not while it is pending"
    assert person.get(path).json["status"] == {"phase": "Pending"}
    bound = person.get(path).json
    assert (bound["status"]["phase"], bound["status"]["capacity"]) == ("Bound", {"storage": "1Gi"})
    assert bound["spec"]["volumeName"] == f"pvc-{bound['metadata']['uid']}"
    assert person.patch(path, grow).status == 200
    assert person.get(path).json["status"]["capacity"] == {"storage": "2Gi"}
    assert person.patch(path, {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}).status == 422
    assert person.patch(path, {"spec": {"accessModes": ["ReadWriteMany"]}}).status == 422


def test_a_claim_without_a_class_gets_the_default_one(person: Api, name: str) -> None:
    wanted = claim(name)
    del wanted["spec"]["storageClassName"]
    assert person.make(CLAIMS, wanted)["spec"]["storageClassName"] == "standard"


@pytest.mark.parametrize(("strategy", "shown"), [("Always", "Running"), ("Halted", "Stopped"), ("Manual", "Stopped")])
def test_a_machine_follows_its_strategy(person: Api, name: str, strategy: str, shown: str) -> None:
    person.make(MACHINES, machine(name, runStrategy=strategy))
    assert person.get(f"{MACHINES}/{name}").json["status"]["printableStatus"] == shown


def test_a_slow_machine_is_provisioned_started_and_stopped(person: Api, name: str, cluster: KubernetesCloud) -> None:
    cluster.knobs.slow_creation(reads=1)
    cluster.knobs.slow_modification(reads=1)
    person.make(MACHINES, machine(name))
    path = f"{MACHINES}/{name}"
    shown = [person.get(path).json["status"]["printableStatus"] for _ in range(2)]
    person.patch(path, {"spec": {"runStrategy": "Halted"}})
    shown += [person.get(path).json["status"]["printableStatus"] for _ in range(2)]
    person.patch(path, {"spec": {"runStrategy": "Always"}})
    shown += [person.get(path).json["status"]["printableStatus"] for _ in range(2)]
    assert shown == ["Provisioning", "Running", "Stopping", "Stopped", "Starting", "Running"]


def test_a_slow_deletion_shows_what_is_dying(person: Api, name: str, cluster: KubernetesCloud) -> None:
    cluster.knobs.slow_deletion(reads=1)
    person.make(MAPPINGS, mapping(name))
    path = f"{MAPPINGS}/{name}"
    assert person.delete(path).json["metadata"]["deletionTimestamp"]
    assert person.delete(path).status == 200
    assert person.get(path).json["metadata"]["deletionTimestamp"]
    assert person.get(path).status == 404


def test_a_namespace_goes_with_all_that_is_in_it(person: Api, name: str, cluster: KubernetesCloud) -> None:
    where = DEPLOYMENTS.replace("default", name)
    assert person.post(where, deployment("web")).json["message"] == f'namespaces "{name}" not found'
    person.make("/api/v1/namespaces", {"metadata": {"name": name}})
    person.make(where, deployment("web"))
    cluster.knobs.slow_deletion(reads=1, kind="namespace")
    assert person.delete(f"/api/v1/namespaces/{name}").json["status"] == {"phase": "Terminating"}
    assert person.post(where, deployment("other")).outcome == (403, "Forbidden")
    person.get(f"/api/v1/namespaces/{name}")
    assert person.get(f"/api/v1/namespaces/{name}").status == 404
    assert person.get(f"{where}/web").status == 404


def test_a_cluster_without_a_definition_does_not_serve_its_kind(person: Api, name: str, sandbox: Sandbox) -> None:
    person.make(MAPPINGS, mapping(name))
    sandbox.kubernetes.remove_crd("mappings.getambassador.io")
    assert person.get(MAPPINGS).text == "404 page not found\n"
    assert person.post(MAPPINGS, mapping(name)).text == "404 page not found\n"
    sandbox.reset()
    assert person.get(MAPPINGS).json["items"] == []
    bare = KubernetesCloud(without=["virtualmachines.kubevirt.io"])
    names = [item["metadata"]["name"] for item in bare.objects("customresourcedefinitions")]
    assert "virtualmachines.kubevirt.io" not in names


def test_a_reset_keeps_what_distinguishes_clusters(person: Api, sandbox: Sandbox) -> None:
    path = "/api/v1/namespaces/kube-system"
    first = person.get(path).uid
    sandbox.reset()
    assert person.get(path).uid == first
    (other,) = [
        item for item in sandbox.kubernetes_2.objects("namespaces") if item["metadata"]["name"] == "kube-system"
    ]
    assert other["metadata"]["uid"] != first
