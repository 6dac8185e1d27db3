"""The official Python client sees no difference: what the provider asks of it works against the sandbox."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.sandbox.kubernetes.conftest import GUARD, JSON_PATCH, deployment, mapping

kubernetes = pytest.importorskip("kubernetes", reason="the Python client is not installed: extra [kubernetes]")


@pytest.fixture
def client(sandbox: Sandbox, tmp_path: Path) -> Iterator[Any]:
    path = agent_env(sandbox.url, tmp_path)["KUBECONFIG"]
    made = kubernetes.config.new_client_from_config(path, context="sandbox")
    made.user_agent = "fractal-cloud/0.1.0 ls/ls-a component/web reason/deploy"
    yield made
    made.close()


def test_typed_calls_work_and_are_the_agents(client: Any, cluster: KubernetesCloud) -> None:
    apps = kubernetes.client.AppsV1Api(client)
    made = apps.create_namespaced_deployment("default", deployment("web"))
    assert made.metadata.uid
    assert made.spec.strategy.type == "RollingUpdate"
    changed = apps.patch_namespaced_deployment(
        "web", "default", [GUARD, {"op": "replace", "path": "/spec/replicas", "value": 2}]
    )
    assert changed.spec.replicas == 2
    page = apps.list_deployment_for_all_namespaces(limit=1, label_selector="app.kubernetes.io/managed-by")
    assert [item.metadata.name for item in page.items] == ["web"]
    with pytest.raises(kubernetes.client.exceptions.ApiException) as missing:
        apps.read_namespaced_deployment("other", "default")
    assert (missing.value.status, missing.value.reason) == (404, "Not Found")
    gone = apps.delete_namespaced_deployment(
        "web", "default", body=kubernetes.client.V1DeleteOptions(preconditions={"uid": made.metadata.uid})
    )
    assert gone["status"] == "Success"
    assert {call.actor for call in cluster.calls} == {"agent"}
    assert {call.origin.live_system for call in cluster.calls} == {"ls-a"}
    assert cluster.monitor.violations == []


def test_custom_objects_accept_a_json_patch_by_its_content_type(client: Any) -> None:
    custom = kubernetes.client.CustomObjectsApi(client)
    where = ("getambassador.io", "v3alpha1", "default", "mappings")
    custom.create_namespaced_custom_object(*where, mapping("front"))
    change = [GUARD, {"op": "replace", "path": "/spec/prefix", "value": "/other/"}]
    changed = custom.patch_namespaced_custom_object(*where, "front", change, _content_type=JSON_PATCH)
    assert changed["spec"]["prefix"] == "/other/"
    with pytest.raises(kubernetes.client.exceptions.ApiException, match="400"):
        custom.patch_namespaced_custom_object(*where, "front", change)


def test_the_fields_the_sandbox_knows_are_those_of_the_client() -> None:
    script = runpy.run_path(str(Path(__file__).parents[3] / "scripts/kubernetes_schema.py"))
    assert script["TARGET"].read_text() == script["schema"](), "run scripts/kubernetes_schema.py"


def test_versions_namespaces_and_watches_are_read(client: Any) -> None:
    assert kubernetes.client.VersionApi(client).get_code().major == "1"
    core = kubernetes.client.CoreV1Api(client)
    assert core.read_namespace("kube-system").metadata.uid
    watch = kubernetes.watch.Watch()
    seen = [event["object"].metadata.name for event in watch.stream(core.list_namespace, timeout_seconds=1)]
    assert {"default", "kube-system"} <= set(seen)
