"""Kinds by their own names through the whole product: declared, broken, handed back, adopted, deleted to nothing."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.tags import RECONCILE_VALUE
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from tests.offers.kubernetes.any_kind.cases import cases
from tests.offers.kubernetes.any_kind.test_every_kind import REAL
from tests.offers.kubernetes.declaring import component
from tests.offers.kubernetes.rights import AGENT, EVERYTHING, NAMESPACES, printed_rights
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

pytestmark = pytest.mark.skipif(bool(REAL), reason="a real server may lack these kinds, and is not emptied of them")
TYPES = (
    *("v1/Namespace", "v1/ConfigMap", "v1/ServiceAccount", "v1/Service", "batch/v1/CronJob", "apps/v1/StatefulSet"),
    *("rbac.authorization.k8s.io/v1/Role", "apps/v1/DaemonSet", "scheduling.k8s.io/v1/PriorityClass"),
)
CUSTOM = cases("custom.yaml")
OPTIONS = PolicyOptions(with_links=True, namespaces=NAMESPACES, types=TYPES)


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """A world whose agent has the rights that are printed for these kinds, and no others."""
    with (
        kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made,
        printed_rights(session_sandbox, OPTIONS),
    ):
        yield made
        made.assert_safe()


def cron_job(component_id: str = "nightly", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox:1", "envFrom": [{"configMapRef": {"name": "settings"}}]}
    pod = {"restartPolicy": "OnFailure", "containers": [container]}
    spec = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}, **more}
    return component("batch/v1/CronJob", component_id, spec=spec)


def config_map(component_id: str = "settings", **data: str) -> dict[str, Any]:
    return component("v1/ConfigMap", component_id, data={"mode": "fast", **data})


def item(world: KubernetesWorld, path: str) -> dict[str, Any]:
    found: dict[str, Any] = world.kube.call("GET", path)
    return found


CRON_JOB = "/apis/batch/v1/namespaces/default/cronjobs/nightly"
CONFIG_MAP = "/api/v1/namespaces/default/configmaps/settings"
MERGE = "application/merge-patch+json"


@pytest.mark.rule("T2", "S12", "G1", "G7", "S20")
def test_a_cron_job_is_declared_broken_and_handed_back_with_kubectls_words(world: KubernetesWorld) -> None:
    world.deploy("ls-a", config_map(), cron_job())
    world.settle()
    assert [world.status("ls-a", one) for one in ("settings", "nightly")] == ["Active", "Active"]
    made = item(world, CRON_JOB)
    assert made["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "fractal-cloud"
    world.kube.call("PATCH", CRON_JOB, {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, MERGE)
    world.kube.call("PATCH", CRON_JOB, {"spec": {"schedule": "0 9 * * *"}}, MERGE)
    world.settle()
    assert world.status("ls-a", "nightly") == "ManualOverride"
    assert list(world.drift("ls-a", "nightly") or {}) == ["spec.schedule"]
    back = {
        "labels": {"app.kubernetes.io/managed-by": "fractal-cloud"},
        "annotations": {"fractal.cloud/reconcile": RECONCILE_VALUE},
    }
    world.kube.call("PATCH", CRON_JOB, {"metadata": back}, MERGE)
    world.settle()
    assert world.status("ls-a", "nightly") == "Active"
    assert item(world, CRON_JOB)["spec"]["schedule"] == "0 3 * * *"
    world.assert_silent()


@pytest.mark.rule("S9", "S12", "T1")
def test_an_object_that_was_made_by_hand_is_adopted_and_only_what_is_declared_is_changed(
    world: KubernetesWorld,
) -> None:
    by_hand = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "labels": {"team": "shop"}, "annotations": {"note": "mine"}},
        "data": {"mode": "slow"},
        "immutable": False,
    }
    world.kube.call("POST", "/api/v1/namespaces/default/configmaps?fieldManager=kubectl-create", by_hand)
    tags = {
        "labels": {"app.kubernetes.io/managed-by": "fractal-cloud"},
        "annotations": {"fractal.cloud/reconcile": RECONCILE_VALUE},
    }
    world.kube.call("PATCH", CONFIG_MAP, {"metadata": tags}, MERGE)
    world.deploy("ls-a", config_map())
    world.settle()
    found = item(world, CONFIG_MAP)
    assert found["data"] == {"mode": "fast"}
    assert found["metadata"]["labels"]["team"] == "shop"
    assert found["metadata"]["annotations"]["note"] == "mine"
    assert world.status("ls-a", "settings") == "Active"


@pytest.mark.rule("S27")
def test_drift_says_who_owns_the_field_now(world: KubernetesWorld) -> None:
    world.deploy("ls-a", config_map(), cron_job())
    world.settle()
    world.kube.call("PATCH", CRON_JOB, {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, MERGE)
    world.kube.call("PATCH", f"{CRON_JOB}?fieldManager=helm", {"spec": {"schedule": "0 9 * * *"}}, MERGE)
    world.settle()
    shown = world.find_component("ls-a", "nightly")
    assert shown is not None
    assert {one["by"] for one in shown["changedBy"] if one["parameter"] == "spec.schedule"} == {"helm"}


@pytest.mark.rule("S3", "O15")
def test_what_lies_in_a_namespace_is_made_after_it_and_goes_before_it(world: KubernetesWorld) -> None:
    inside = config_map()
    inside["parameters"]["namespace"] = "shop"
    holder = component("v1/Namespace", "shop")
    world.deploy("ls-a", inside, holder)
    world.settle()
    assert [world.status("ls-a", one) for one in ("shop", "settings")] == ["Active", "Active"]
    assert item(world, "/api/v1/namespaces/shop/configmaps/settings")["data"] == {"mode": "fast"}


@pytest.mark.rule("O6")
def test_a_live_system_of_many_kinds_is_deleted_to_nothing(world: KubernetesWorld) -> None:
    role = component(
        "rbac.authorization.k8s.io/v1/Role",
        "reader",
        rules=[{"apiGroups": [""], "verbs": ["get"], "resources": ["pods"]}],
    )
    first = component("scheduling.k8s.io/v1/PriorityClass", "first", value=1000)
    world.deploy("ls-a", config_map(), cron_job(), role, first, component("v1/ServiceAccount", "runner"))
    world.settle()
    assert {world.status("ls-a", one) for one in ("settings", "nightly", "reader", "first", "runner")} == {"Active"}
    world.delete("ls-a")
    world.settle()
    assert not world.cloud.owned_resources()


@pytest.fixture
def wide(world: KubernetesWorld, session_sandbox: Sandbox) -> Iterator[KubernetesWorld]:
    """The same, where somebody granted the agent by hand what is printed for no kind of a definition."""
    with ExitStack() as stack:
        for cluster in (session_sandbox.kubernetes, session_sandbox.kubernetes_2):
            stack.enter_context(cluster.restrict_agent(AGENT, EVERYTHING))
        yield world


def until_active(world: KubernetesWorld, *components: str) -> None:
    deadline = time.monotonic() + 30
    while {world.status("ls-a", one) for one in components} != {"Active"}:
        assert time.monotonic() < deadline, [world.find_component("ls-a", one) for one in components]
        world.cycle()


def of_file(number: int, component_id: str) -> dict[str, Any]:
    case = CUSTOM[number]
    return component(case.type, component_id, **case.parameters)


@pytest.mark.rule("S3", "O6", "S20")
def test_a_definition_and_an_object_of_its_kind_are_declared_in_one_breath(wide: KubernetesWorld) -> None:
    definition, widget = of_file(0, "widgets"), of_file(1, "round")
    wide.deploy("ls-a", widget, definition)
    until_active(wide, "widgets", "round")  # the agent asks for the kind once its definition is there
    path = "/apis/shop.example/v1/namespaces/default/widgets/round"
    item(wide, path)
    wide.kube.call("PATCH", path, {"spec": {"size": 9}}, MERGE)
    wide.settle()
    assert item(wide, path)["spec"]["size"] == 3
    wide.assert_silent()
    wide.delete("ls-a")
    wide.settle()
    assert not wide.cloud.owned_resources()


def test_bad_fields_are_refused_at_deploy_with_their_path(world: KubernetesWorld) -> None:
    wrong = cron_job(schedul="* * * * *")
    wrong["parameters"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["imagePullPolicyy"] = (
        "Always"
    )
    with pytest.raises(AssertionError) as refused:
        world.deploy("ls-a", config_map(), wrong)
    text = str(refused.value)
    assert "spec.schedul" in text, text
    assert "imagePullPolicyy" in text, text
    definition, widget = of_file(0, "widgets"), of_file(1, "round")
    widget["parameters"] = {**widget["parameters"], "spec": {"size": "three"}}
    with pytest.raises(AssertionError) as refused:
        world.deploy("ls-a", definition, widget)
    assert "components[round].parameters.spec.size" in str(refused.value), str(refused.value)


@pytest.mark.rule("S3")
def test_what_a_new_object_names_and_is_not_there_is_said_in_the_servers_words(wide: KubernetesWorld) -> None:
    """A server looks up the role of a new binding, to see whether it may be granted."""
    message = 'clusterroles.rbac.authorization.k8s.io "reader" not found'
    details = {"name": "reader", "group": "rbac.authorization.k8s.io", "kind": "clusterroles"}
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
    said = json.dumps({**status, "message": message, "details": details})
    wide.cloud.knobs.answer(said, status=404, operation="create", actor="agent")
    api = "rbac.authorization.k8s.io"
    role = {"apiGroup": api, "kind": "ClusterRole", "name": "reader"}
    wide.deploy("ls-a", component(f"{api}/v1/ClusterRoleBinding", "reads", roleRef=role))
    wide.cycle(3)
    shown = wide.component("ls-a", "reads")
    assert message in shown["message"]
    assert "namespace" not in shown["message"]
    wide.cloud.knobs.reset()
    wide.survive(at_most=200)
    assert wide.status("ls-a", "reads") == "Active"


@pytest.mark.rule("G15", "S12")
def test_what_is_ignored_survives_an_apply_of_something_else(world: KubernetesWorld) -> None:
    declared = {**cron_job(suspend=True), "ignoreDrift": ["spec.suspend"]}
    world.deploy("ls-a", config_map(), declared)
    world.settle()
    assert item(world, CRON_JOB)["spec"]["suspend"] is True
    for schedule in ("0 4 * * *", "0 5 * * *"):
        world.kube.call("PATCH", CRON_JOB, {"spec": {"schedule": schedule}}, MERGE)
        world.settle()
        spec = item(world, CRON_JOB)["spec"]
        assert (spec["schedule"], spec["suspend"]) == ("0 3 * * *", True)
    world.kube.call("PATCH", CRON_JOB, {"spec": {"suspend": False, "schedule": "1 1 1 1 1"}}, MERGE)
    world.settle()
    spec = item(world, CRON_JOB)["spec"]
    assert (spec["schedule"], spec["suspend"]) == ("0 3 * * *", False)
    assert world.status("ls-a", "nightly") == "Active"


@pytest.mark.rule("A8", "S12")
def test_a_secret_is_declared_by_reference_and_its_value_is_shown_nowhere(
    wide: KubernetesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    value, path = "Tr0ub4dor-and-3", "/api/v1/namespaces/default/secrets/login"
    monkeypatch.setenv("FRACTAL_SECRET_PASSWORD", value)
    wide.deploy("ls-a", component("v1/Secret", "login", stringData={"password": {"$secret": "password"}}))
    wide.settle()
    assert wide.status("ls-a", "login") == "Active", wide.find_component("ls-a", "login")
    assert base64.b64decode(item(wide, path)["data"]["password"]).decode() == value
    other = base64.b64encode(b"somebody-elses").decode()
    wide.kube.call("PATCH", path, {"data": {"password": other, "more": other}}, MERGE)
    wide.settle()
    data = item(wide, path)["data"]
    assert base64.b64decode(data["password"]).decode() == value, "brought back"
    assert data["more"] == other, "entries of others are left alone"
    wide.assert_silent()
    seen = json.dumps([wide.find_component("ls-a", "login"), wide.events("ls-a")])
    for text in (value, "somebody-elses", other, base64.b64encode(value.encode()).decode()):
        assert text not in seen


@pytest.mark.rule("A8")
def test_a_value_of_a_secret_in_clear_is_refused_and_not_quoted(wide: KubernetesWorld) -> None:
    with pytest.raises(AssertionError) as refused:
        wide.deploy("ls-a", component("v1/Secret", "login", stringData={"password": "in-the-clear"}))
    assert "stringData.password" in str(refused.value)
    assert "in-the-clear" not in str(refused.value)


@pytest.mark.rule("C6", "C10", "S20")
def test_a_plan_asks_the_server_whether_it_would_accept_what_no_schema_forbids(world: KubernetesWorld) -> None:
    claim = component("v1/PersistentVolumeClaim", "disk", spec={"accessModes": ["ReadWriteOnce"]})
    world.cycle()  # it registers
    with ThreadPoolExecutor(max_workers=1) as pool:
        body = {"id": "ls-a", "components": [config_map(), claim]}
        asked = pool.submit(world.api.post, "/livesystems/ls-a/plan", json=body)
        while not asked.done():
            world.agent.run_once()
    found = {one["componentId"]: one for one in asked.result().json()["components"]}
    assert found["settings"]["action"] == "create", found["settings"]
    assert found["disk"]["action"] == "fail", found["disk"]
    assert found["disk"]["message"].startswith("would be refused: ")
    assert world.writes() == []
    listed = world.kube.call("GET", "/api/v1/namespaces/default/configmaps")["items"]
    assert "settings" not in {one["metadata"]["name"] for one in listed}, "nothing is kept of a plan"


@pytest.mark.rule("A8")
def test_what_kubectl_notes_on_a_secret_is_shown_nowhere(
    wide: KubernetesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRACTAL_SECRET_PASSWORD", "Tr0ub4dor-and-3")
    declared = component("v1/Secret", "login", stringData={"password": {"$secret": "password"}})
    declared["parameters"]["metadata"] = {"labels": {"team": "shop"}, "annotations": {"shop.example/note": "ours"}}
    wide.deploy("ls-a", declared)
    wide.settle()
    noted = '{"kind":"Secret","data":{"password":"VHIwdWI0ZG9yLWFuZC0z"}}'
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": noted}
    path = "/api/v1/namespaces/default/secrets/login"
    wide.kube.call("PATCH", path, {"metadata": {"annotations": annotations, "labels": {"other": "theirs"}}}, MERGE)
    wide.settle()
    shown = wide.find_component("ls-a", "login")
    assert shown is not None
    assert shown["status"] == "Active"
    assert "shop.example/note" in json.dumps(shown)
    assert "VHIwdWI0" not in json.dumps([shown, wide.events("ls-a")])
    assert "theirs" not in json.dumps(shown)
