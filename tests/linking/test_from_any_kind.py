"""Links from and to kinds by their own names: what describes pods is wired like a workload, Services as Services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fractal_sandbox import Sandbox
from tests.linking.test_aws_database import DATABASE
from tests.linking.test_aws_rules import LS, link
from tests.linking.two_clouds import POLICIES, SECRETS, TwoClouds, two_clouds, workload
from tests.offers.kubernetes.rights import AGENT, EVERYTHING
from tests.offers.kubernetes.server import minor_version

Object = dict[str, Any]
KINDS: Final = {
    "apps/v1/Deployment": ("spec.template", "/apis/apps/v1/namespaces/default/deployments"),
    "apps/v1/StatefulSet": ("spec.template", "/apis/apps/v1/namespaces/default/statefulsets"),
    "apps/v1/DaemonSet": ("spec.template", "/apis/apps/v1/namespaces/default/daemonsets"),
    "batch/v1/CronJob": ("spec.jobTemplate.spec.template", "/apis/batch/v1/namespaces/default/cronjobs"),
    "argoproj.io/v1alpha1/Rollout": ("spec.template", "/apis/argoproj.io/v1alpha1/namespaces/default/rollouts"),
    "shop.example/v1/Runner": ("spec.workers.pod", "/apis/shop.example/v1/namespaces/default/runners"),
}
SERVED: Final = tuple(kind for kind in KINDS if kind != "batch/v1/CronJob" or minor_version() >= 21)
"""Those that the server has: CronJobs of batch/v1 came with 1.21."""
ROLLED_OUT: Final[dict[str, Object]] = {
    "apps/v1/StatefulSet": {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1, "currentReplicas": 1},
    "apps/v1/DaemonSet": {
        "desiredNumberScheduled": 1,
        "currentNumberScheduled": 1,
        "numberMisscheduled": 0,
        "numberReady": 1,
        "numberAvailable": 1,
        "updatedNumberScheduled": 1,
    },
}
POD: Final[Object] = {
    "type": "object",
    "properties": {
        "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "spec": {
            "type": "object",
            "properties": {
                "containers": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "image": {"type": "string"},
                            "env": {
                                "type": "array",
                                "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            },
                        },
                    },
                }
            },
        },
    },
}


def definition(group: str, version: str, kind: str, spec: Object) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "properties": {"spec": spec}}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    said = {"group": group, "scope": "Namespaced", "names": names, "versions": versions}
    return {
        "id": f"{kind.lower()}s",
        "type": "apiextensions.k8s.io/v1/CustomResourceDefinition",
        "parameters": {"name": f"{plural}.{group}", "spec": said},
    }


ROLLOUTS: Final = definition(
    "argoproj.io",
    "v1alpha1",
    "Rollout",
    {
        "type": "object",
        "properties": {"selector": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "template": POD},
    },
)
RUNNERS: Final = definition(
    "shop.example", "v1", "Runner", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
)


def source(component_type: str, *links: Object, **more: Any) -> Object:
    """A component of a kind whose pods have a variable of their own."""
    name = component_type.rpartition("/")[2].lower()
    labels = {"app": name}
    container = {"name": "main", "image": "x:1", "env": [{"name": "MODE", "value": "fast"}]}
    inner: Any = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    if component_type == "batch/v1/CronJob":
        inner["spec"]["restartPolicy"] = "OnFailure"
    path = KINDS[component_type][0].split(".")
    for step in reversed(path[1:]):
        inner = {step: inner}
    spec = {**inner, **({"schedule": "0 3 * * *"} if "CronJob" in component_type else {})}
    if component_type.startswith("apps/") or "Rollout" in component_type:
        spec["selector"] = {"matchLabels": labels}
    if "StatefulSet" in component_type:
        spec["serviceName"] = name
    parameters = {"spec": spec, **({"podTemplate": "spec.workers.pod"} if "Runner" in component_type else {}), **more}
    return {"id": name, "type": component_type, "parameters": parameters, "links": list(links)}


def template(clouds: TwoClouds, component_type: str) -> Object:
    path, where = KINDS[component_type]
    found: Object = clouds.kube.call("GET", f"{where}/{component_type.rpartition('/')[2].lower()}")
    for step in path.split("."):
        found = found[step]
    return found


def env(clouds: TwoClouds, component_type: str) -> Object:
    (container,) = template(clouds, component_type)["spec"]["containers"]
    return {one["name"]: one for one in container.get("env") or []}


def deploy(clouds: TwoClouds, *components: Object) -> None:
    """Deploy, and cycle until nothing is left to do, with the controllers of the cluster at work beside it."""
    clouds.deploy(LS, *components)
    settle(clouds)


def settle(clouds: TwoClouds) -> None:
    for _ in range(20):
        for component_type in ROLLED_OUT:
            roll_out(clouds, component_type)
        results = clouds.cycle()
        if all(result.settled and not result.writes and not result.changes for result in results):
            return
    raise AssertionError("not settled after 20 cycles")


def roll_out(clouds: TwoClouds, component_type: str) -> None:
    """What the controller of a kind says once the pods of all its objects run."""
    where = KINDS[component_type][1]
    for one in clouds.kube.call("GET", where)["items"]:
        generation = one["metadata"]["generation"]
        if (one.get("status") or {}).get("observedGeneration") != generation:
            status = {"observedGeneration": generation, **ROLLED_OUT[component_type]}
            path = f"{where}/{one['metadata']['name']}/status"
            clouds.kube.call("PATCH", path, {"status": status}, "application/merge-patch+json")


@pytest.fixture
def clouds(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[TwoClouds]:
    """The agent of the cluster has all rights: those for kinds of definitions are granted by hand."""
    with (
        two_clouds(session_sandbox, tmp_path, TwoClouds) as made,
        session_sandbox.kubernetes.restrict_agent(AGENT, EVERYTHING),
    ):
        yield made


@pytest.mark.rule("L3", "L10", "L17", "S20")
def test_whatever_describes_pods_is_the_source_of_links_and_keeps_what_is_its_own(clouds: TwoClouds) -> None:
    wired = [source(kind, link("dashboard", fromPort=8080)) for kind in SERVED]
    deploy(clouds, ROLLOUTS, RUNNERS, workload("dashboard"), *wired)
    for kind in SERVED:
        component_id = kind.rpartition("/")[2].lower()
        assert clouds.status(LS, component_id) == "Active", clouds.component(LS, component_id)["message"]
        found = env(clouds, kind)
        assert found["DASHBOARD_HOST"]["value"] == "dashboard.default.svc", kind
        assert found["MODE"]["value"] == "fast"
        shown = clouds.component(LS, component_id)["outputFields"]
        assert shown["workloadLink.dashboard.port"] == 8080
        assert shown["linkedEnv"] == ["DASHBOARD_HOST", "DASHBOARD_PORT", "DASHBOARD_PROTOCOL"]
        assert "drift" not in shown
    let_in = [one["spec"]["ingress"][0]["from"][0]["podSelector"]["matchLabels"] for one in clouds.objects(POLICIES)]
    assert sorted(one["app"] for one in let_in) == sorted(kind.rpartition("/")[2].lower() for kind in SERVED)
    assert not any(result.writes for result in clouds.cycle())

    deploy(clouds, ROLLOUTS, RUNNERS, workload("dashboard"), *map(source, SERVED))
    for kind in SERVED:
        assert list(env(clouds, kind)) == ["MODE"], kind
        assert "fractal.cloud/linked-env" not in (template(clouds, kind)["metadata"].get("annotations") or {})
    assert clouds.objects(POLICIES) == []
    kinds = {event["kind"] for event in clouds.events(LS)}
    assert not kinds & {"DriftFound", "DriftCorrected"}, "nobody changed anything by hand"
    assert not any(result.writes for result in clouds.cycle())
    clouds.assert_safe()


@pytest.mark.rule("L9", "L14", "L17", "G3")
def test_a_stateful_set_reads_a_password_from_the_secret_of_its_link(clouds: TwoClouds, database: str) -> None:
    kind = "apps/v1/StatefulSet"
    deploy(clouds, DATABASE, source(kind, link("db", database="orders")))
    (secret,) = clouds.objects(SECRETS)
    reference = {"name": secret["metadata"]["name"], "key": "password"}
    assert env(clouds, kind)["DB_PASSWORD"]["valueFrom"]["secretKeyRef"] == reference
    mine = [{"op": "add", "path": "/spec/template/spec/containers/0/env/-", "value": {"name": "MINE", "value": "1"}}]
    path = f"{KINDS[kind][1]}/statefulset"
    clouds.kube.call("PATCH", path, mine, "application/json-patch+json")
    taken = [one for one in template(clouds, kind)["spec"]["containers"][0]["env"] if one["name"] != "DB_HOST"]
    change = [{"op": "replace", "path": "/spec/template/spec/containers/0/env", "value": taken}]
    clouds.kube.call("PATCH", path, change, "application/json-patch+json")
    settle(clouds)
    found = env(clouds, kind)
    assert found["DB_HOST"]["value"], "what a link brought comes back"
    assert found["MINE"]["value"] == "1", "what somebody else put there stays"
    deploy(clouds, DATABASE, source(kind))
    assert sorted(env(clouds, kind)) == ["MINE", "MODE"]
    assert clouds.objects(SECRETS) == []
    clouds.assert_safe()


@pytest.mark.rule("L3", "L10", "L14")
def test_a_link_to_a_service_lets_in_to_the_ports_of_the_pods_behind_it(clouds: TwoClouds) -> None:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}, {"name": "admin", "port": 81, "targetPort": "admin"}]
    service = {"id": "front", "type": "v1/Service", "parameters": {"spec": {"selector": {"app": "x"}, "ports": ports}}}
    deploy(clouds, service, source("apps/v1/Deployment", link("front", fromPort=80)))
    (policy,) = clouds.objects(POLICIES)
    assert policy["spec"]["podSelector"] == {"matchLabels": {"app": "x"}}
    assert policy["spec"]["ingress"][0]["ports"] == [{"port": 8080, "protocol": "TCP"}]
    found = env(clouds, "apps/v1/Deployment")
    assert (found["FRONT_HOST"]["value"], found["FRONT_PORT"]["value"]) == ("front.default.svc", "80")
    clouds.kube.call("DELETE", f"{POLICIES}/{policy['metadata']['name']}")
    deploy(clouds, service, source("apps/v1/Deployment", link("front", fromPort=81)))
    (policy,) = clouds.objects(POLICIES)
    assert policy["spec"]["ingress"][0]["ports"] == [{"port": "admin", "protocol": "TCP"}]
    clouds.deploy(LS, service, source("apps/v1/Deployment", link("front", fromPort=82)))
    clouds.cycle(6)
    assert "has no port 82/TCP; it has 80/TCP, 81/TCP" in clouds.component(LS, "front")["message"]
    clouds.assert_safe()


@pytest.mark.rule("L7")
def test_a_kind_whose_pods_nobody_knows_is_refused_as_a_source_with_its_path(clouds: TwoClouds) -> None:
    runner = source("shop.example/v1/Runner", link("dashboard", fromPort=80))
    lacking = {**runner, "parameters": {"spec": runner["parameters"]["spec"]}}
    wrong = {**runner, "parameters": {**runner["parameters"], "podTemplate": "spec.workers"}}
    for one, text in ((lacking, "is missing: say where its pods are described"), (wrong, "has no pods at")):
        answer = clouds.api.put(
            f"/livesystems/{LS}", json={"id": LS, "components": [RUNNERS, workload("dashboard"), one]}
        )
        assert answer.status_code == 422, answer.text
        (error,) = answer.json()["errors"]
        assert error["path"] == "components[runner].parameters.podTemplate"
        assert text in error["message"]
