"""Workloads, services and policies as people write them: several containers and named ports, labels, peers."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.livesystem import LiveSystem
from fractal_cloud.model.component import ComponentError
from fractal_cloud.model.errors import DeclarationError
from fractal_cloud.offers.kubernetes.claim import KubernetesPersistentVolumeClaim
from fractal_cloud.offers.kubernetes.network_policy import KubernetesNetworkPolicy
from fractal_cloud.offers.kubernetes.pod_model import KubernetesClaimVolume, KubernetesVolume
from fractal_cloud.offers.kubernetes.policy_rules import KubernetesNetworkPolicyRule
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from tests.offers.kubernetes.declaring import policy, service, workload
from tests.offers.kubernetes.examples import CALLED
from tests.offers.kubernetes.worlds import KubernetesWorld

Json = dict[str, Any]
PORTS = [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090, "protocol": "tcp"}]
NAMED = [{"name": "http", "port": 80, "targetPort": "http"}, {"name": "metrics", "port": 9090}]


def spec_of(world: KubernetesWorld, plural: str, name: str) -> Json:
    found = world.kube.get(plural, name)
    assert found is not None
    spec: Json = found["spec"]
    return spec


def pod_of(world: KubernetesWorld, name: str = "web") -> Json:
    pod: Json = spec_of(world, "deployments", name)["template"]["spec"]
    return pod


def settled(world: KubernetesWorld, *components: Json) -> None:
    world.deploy("ls-a", *components)
    world.settle()
    for one in components:
        found = world.component("ls-a", one["id"])
        assert (found["status"], found["message"]) == ("Active", "as declared"), found
    before = len(world.writes())
    world.cycle(2)
    assert len(world.writes()) == before, "a settled cycle writes nothing (S20)"


@pytest.mark.rule("G3", "S20")
def test_a_workload_says_all_that_a_deployment_of_a_shop_says(world: KubernetesWorld) -> None:
    probe = {CALLED: {"port": 8080}, "initialDelaySeconds": 5}
    rights = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "privileged": False,
        "readOnlyRootFilesystem": True,
    }
    settled(
        world,
        workload(
            containerName="server",
            ports=PORTS,
            env={"PORT": "8080"},
            envValueFrom={"IP": {"fieldRef": {"fieldPath": "status.podIP"}}},
            cpu="100m",
            memory="64Mi",
            limits={"cpu": "200m", "memory": "128Mi"},
            livenessProbe=probe,
            readinessProbe=probe,
            securityContext=rights,
            podSecurityContext={"fsGroup": 1000, "runAsGroup": 1000, "runAsNonRoot": True, "runAsUser": 1000},
            volumes=[{"name": "cache", "emptyDir": {}}],
            volumeMounts=[{"name": "cache", "mountPath": "/cache"}],
            initContainers=[{"name": "wait", "image": "busybox:1", "command": ["true"], "securityContext": rights}],
            podLabels={"app": "web"},
            podAnnotations={"sidecar.istio.io/rewriteAppHTTPProbers": "true"},
            terminationGracePeriodSeconds=5,
            automountServiceAccountToken=False,
        ),
    )
    pod = pod_of(world)
    [main] = pod["containers"]
    assert (main["name"], [port["name"] for port in main["ports"]]) == ("server", ["http", "metrics"])
    assert main["resources"] == {
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "200m", "memory": "128Mi"},
    }
    assert [one["name"] for one in main["env"]] == ["IP", "PORT"], "plain values may speak of others"
    assert pod["initContainers"][0]["securityContext"] == rights
    labels = spec_of(world, "deployments", "web")["template"]["metadata"]["labels"]
    assert labels == {"app.kubernetes.io/name": "web", "app": "web"}


@pytest.mark.rule("S12", "G3")
def test_a_sidecar_of_ours_is_kept_and_one_of_others_is_left_alone(world: KubernetesWorld) -> None:
    log = {"name": "log", "image": "log:1", "env": {"LEVEL": "info"}}
    settled(world, workload(containers=[log]))
    item = world.kube.get("deployments", "web")
    assert item is not None
    containers = item["spec"]["template"]["spec"]["containers"]
    containers[1]["image"] = "log:2"
    containers.insert(0, {"name": "proxy", "image": "proxy:1"})
    world.kube.call("PUT", world.kube.path("deployments", "web"), item)
    world.settle()
    assert {one["name"]: one["image"] for one in pod_of(world)["containers"]} == {
        "proxy": "proxy:1",
        "main": "web:1",
        "log": "log:1",
    }
    settled(world, workload(containers=[]))
    assert [one["name"] for one in pod_of(world)["containers"]] == ["proxy", "main"]


@pytest.mark.rule("S12")
def test_the_container_that_is_declared_is_written_also_where_others_stand_first(world: KubernetesWorld) -> None:
    settled(world, workload(containerName="server"))
    item = world.kube.get("deployments", "web")
    assert item is not None
    item["spec"]["template"]["spec"]["containers"].insert(0, {"name": "proxy", "image": "proxy:1"})
    world.kube.call("PUT", world.kube.path("deployments", "web"), item)
    settled(world, workload(containerName="server", image="web:2", ports=PORTS))
    assert {one["name"]: one["image"] for one in pod_of(world)["containers"]} == {
        "proxy": "proxy:1",
        "server": "web:2",
    }
    assert "ports" not in pod_of(world)["containers"][0]


def test_a_service_has_several_named_ports(world: KubernetesWorld) -> None:
    settled(world, workload(podLabels={"app": "web"}, ports=PORTS), service(port=None, ports=NAMED))
    ports = spec_of(world, "services", "front")["ports"]
    assert [(one["name"], one["port"], one["targetPort"]) for one in ports] == [
        ("http", 80, "http"),
        ("metrics", 9090, 9090),
    ]
    changed = [{**NAMED[1], "port": 9191}, NAMED[0]]
    settled(world, workload(podLabels={"app": "web"}, ports=PORTS), service(port=None, ports=changed))
    ports = spec_of(world, "services", "front")["ports"]
    assert [(one["name"], one["port"], one["targetPort"]) for one in ports] == [
        ("http", 80, "http"),
        ("metrics", 9191, 9191),
    ], "a target that nobody chose follows its port"


@pytest.mark.rule("S12")
def test_ports_of_others_stay_and_one_that_was_ours_goes(world: KubernetesWorld) -> None:
    settled(world, workload(), service(port=None, ports=NAMED))
    item = world.kube.get("services", "front")
    assert item is not None
    item["spec"]["ports"].insert(0, {"name": "theirs", "port": 5005, "protocol": "TCP"})
    world.kube.call("PUT", world.kube.path("services", "front"), item)
    world.cycle()
    settled(world, workload(), service(port=None, ports=NAMED[:1]))
    assert [one["name"] for one in spec_of(world, "services", "front")["ports"]] == ["theirs", "http"]


def test_a_headless_service_keeps_no_address(world: KubernetesWorld) -> None:
    settled(world, workload(), service(clusterIP="None"))
    assert spec_of(world, "services", "front")["clusterIP"] == "None"


@pytest.mark.rule("G3")
def test_a_policy_lets_in_pods_by_labels_that_are_declared(world: KubernetesWorld) -> None:
    rules = [
        {"podSelector": {"app": "shop"}, "port": 8080, "protocol": "TCP"},
        {"podSelector": "app=admin", "port": 8080, "protocol": "tcp"},
        {"podSelector": "b=1,a=2", "namespaceSelector": ""},
    ]
    settled(world, workload(podLabels={"app": "web"}), policy(podSelector={"app": "web"}, ingress=rules))
    ingress = spec_of(world, "networkpolicies", "fence")["ingress"]
    assert [rule["from"][0]["podSelector"]["matchLabels"] for rule in ingress] == [
        {"app": "shop"},
        {"app": "admin"},
        {"a": "2", "b": "1"},
    ]


@pytest.mark.rule("T1")
def test_labels_of_the_object_are_added_to_those_of_others_and_never_replace_the_protocols(
    world: KubernetesWorld,
) -> None:
    settled(world, workload(labels={"team": "shop"}, annotations={"example.com/note": "one\ntwo"}))
    item = world.kube.get("deployments", "web")
    assert item is not None
    assert item["metadata"]["labels"] == {
        "team": "shop",
        "app.kubernetes.io/managed-by": "fractal-cloud",
        "fractal.cloud/owner": "ls-a",
    }
    with pytest.raises(DeclarationError, match="belongs to the protocol"):
        KubernetesWorkload(id="web", image="web:1", labels={"fractal.cloud/owner": "ls-b"})


REFUSED: list[tuple[Json, str]] = [
    ({"livenessProbe": {"periodSeconds": 3}}, "give exactly one of httpGet, tcpSocket, grpc, exec"),
    ({"volumes": [{"name": "a", "emptyDir": {}, "configMap": {"name": "b"}}]}, "give exactly one of emptyDir"),
    ({"ports": [{"containerPort": 80}, {"containerPort": 80}]}, "twice"),
    ({"containers": [{"name": "main", "image": "a"}]}, "two containers are called 'main'"),
    ({"containers": [{"name": "a"}]}, "image"),
    (
        {"env": {"A": "1"}, "envValueFrom": {"A": {"fieldRef": {"fieldPath": "x"}}}},
        "A stands in env and in envValueFrom",
    ),
    ({"podLabels": {"app.kubernetes.io/name": "other"}}, "is its name"),
    ({"requests": {"cpu": "1"}}, "declare `cpu`"),
    ({"readinessProbe": {"httpGet": {"prot": 80}}}, "did you mean 'port'"),
    ({"strategy": {"type": "Recreate", "rollingUpdate": {}}}, "leave it out"),
]


@pytest.mark.parametrize(("parameters", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_makes_no_sense_is_refused_where_it_is_declared(parameters: Json, said: str) -> None:
    with pytest.raises(ComponentError) as refused:
        KubernetesWorkload.from_parameters("web", {"image": "web:1", **parameters})
    assert any(said in message or said in path for path, message in refused.value.found), refused.value.found


def test_a_workload_and_its_service_may_have_one_name_and_the_error_about_ids_is_said_once(
    world: KubernetesWorld,
) -> None:
    both = [workload("web"), service("web", workload="web")]
    refused = world.api.put("/livesystems/ls-a", json={"id": "ls-a", "components": both})
    assert [one["path"] for one in refused.json()["errors"]] == ["components[1].id"]
    settled(world, workload("web"), service("web-service", workload="web", name="web"))
    assert spec_of(world, "services", "web")["selector"] == {"app.kubernetes.io/name": "web"}


@pytest.mark.rule("G3", "S20")
def test_a_peer_may_be_a_workload_of_the_same_live_system(world: KubernetesWorld) -> None:
    rule = {"podSelector": "${front.selector}", "port": 80, "protocol": "tcp"}
    settled(world, workload(), workload("front"), policy(workload="web", ingress=[rule]))
    [ingress] = spec_of(world, "networkpolicies", "fence")["ingress"]
    assert ingress == {
        "from": [{"podSelector": {"matchLabels": {"app.kubernetes.io/name": "front"}}}],
        "ports": [{"port": 80, "protocol": "TCP"}],
    }
    other = [{**ingress, "from": [{"podSelector": {"matchLabels": {"app": "somebody"}}}]}]
    world.kube.merge("networkpolicies", "fence", {"spec": {"ingress": other}})
    world.settle()
    assert spec_of(world, "networkpolicies", "fence")["ingress"] == [ingress]


def test_in_python_a_peer_and_a_claim_are_the_components_themselves() -> None:
    front = KubernetesWorkload(id="front", image="front:1")
    data = KubernetesPersistentVolumeClaim(id="data", storage="1Gi")
    rule = KubernetesNetworkPolicyRule(pod_selector=front, port=80)
    claim = KubernetesVolume(name="data", persistent_volume_claim=KubernetesClaimVolume(claim_name=data))
    web = KubernetesWorkload(id="web", image="web:1", volumes=[claim])
    fence = KubernetesNetworkPolicy(id="fence", workload=web, ingress=[rule])
    declared = LiveSystem(id="ls-a", components=[front, data, web, fence]).to_declaration()
    needs = {one.id: set(one.dependencies) for one in declared.components}
    assert needs == {"front": set(), "data": set(), "web": {"data"}, "fence": {"web", "front"}}
