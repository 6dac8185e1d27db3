"""The real kubectl sees no difference: every gesture a person makes against a cluster of the sandbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fractal_sandbox import Sandbox, sandbox_env
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.sandbox.kubernetes.conftest import MANAGED, deployment, machine, mapping, service

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(
    KUBECTL is None, reason="kubectl is not installed: scripts/system-packages brings it on Debian"
)
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def kubectl(sandbox: Sandbox, tmp_path: Path) -> Run:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **sandbox_env(sandbox.url, tmp_path)}

    def run(*words: str, code: int = 0, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [str(KUBECTL), *words]
        ran = subprocess.run(command, env=env, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        assert ran.returncode == code, ran.stderr + ran.stdout
        return ran

    return run


def is_new(kubectl: Run) -> bool:
    """Whether this is a kubectl of our days; Debian's 1.20 lacks some of what is tried."""
    version = json.loads(kubectl("version", "--client", "-o", "json").stdout)["clientVersion"]
    return int(re.sub(r"\D", "", version["minor"])) >= 27


@pytest.fixture
def web(kubectl: Run) -> None:
    kubectl("create", "-f", "-", stdin=yaml.safe_dump(deployment("web")))


def test_it_gets_what_is_there(kubectl: Run, web: None) -> None:
    assert kubectl("get", "namespaces").stdout.split()[:3] == ["NAME", "STATUS", "AGE"]
    assert kubectl("get", "deployments").stdout.split()[5:9] == ["web", "1/1", "1", "1"]
    assert kubectl("get", "deploy", "-A").stdout.split()[:2] == ["NAMESPACE", "NAME"]
    assert json.loads(kubectl("get", "deployment", "web", "-o", "json").stdout)["metadata"]["labels"] == MANAGED
    assert kubectl("get", "deployment", "-l", "fractal.cloud/owner=ls-b").stderr.startswith("No resources found")
    assert "NotFound" in kubectl("get", "deployment", "other", code=1).stderr
    assert 'have a resource type "nonsense"' in kubectl("get", "nonsense", code=1).stderr
    assert kubectl("get", "deployments", "--chunk-size=1", "-o", "name").stdout == "deployment.apps/web\n"
    assert "deployment.apps/web\nreplicaset.apps/web-" in kubectl("get", "all", "-o", "name").stdout
    assert "web:1" in kubectl("describe", "deployment", "web").stdout


@pytest.mark.rule("G1")
def test_it_removes_labels_and_adds_them(kubectl: Run, web: None, cluster: KubernetesCloud) -> None:
    key = "app.kubernetes.io/managed-by"
    assert kubectl("label", "deployment", "web", f"{key}-").stdout.endswith("labeled\n")  # older ones say no «un»
    assert key not in cluster.objects("deployments")[0]["metadata"]["labels"]
    assert "not found" in kubectl("label", "deployment", "web", f"{key}-").stdout
    kubectl("label", "deployment", "web", f"{key}=fractal-cloud")
    assert "--overwrite" in kubectl("label", "deployment", "web", f"{key}=other", code=1).stderr
    annotated = kubectl("annotate", "deployment", "web", "fractal.cloud/reconcile=reconcile")
    assert annotated.stdout == "deployment.apps/web annotated\n"
    (kept,) = cluster.objects("deployments")
    assert kept["metadata"]["labels"] == MANAGED
    assert kept["metadata"]["annotations"]["fractal.cloud/reconcile"] == "reconcile"


def test_it_labels_custom_resources(kubectl: Run, cluster: KubernetesCloud) -> None:
    kubectl("create", "-f", "-", stdin=yaml.safe_dump_all([mapping("front"), machine("box")]))
    assert kubectl("label", "mapping", "front", "app.kubernetes.io/managed-by-").stdout.endswith("labeled\n")
    assert kubectl("annotate", "vm", "box", "fractal.cloud/reconcile=reconcile").stdout.endswith("annotated\n")
    assert kubectl("get", "vm").stdout.split()[4:7] == ["box", "Running", "True"]
    assert "app.kubernetes.io/managed-by" not in cluster.objects("mappings")[0]["metadata"]["labels"]


def test_it_applies_and_changes_and_keeps_a_label_of_somebody_else(kubectl: Run, cluster: KubernetesCloud) -> None:
    wanted = deployment("web")
    assert "created" in kubectl("apply", "-f", "-", stdin=yaml.safe_dump(wanted)).stdout
    kubectl("label", "deployment", "web", "team=blue")
    wanted["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "B", "value": "3"}]
    assert "configured" in kubectl("apply", "-f", "-", stdin=yaml.safe_dump(wanted)).stdout
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=yaml.safe_dump(wanted)).stdout
    (kept,) = cluster.objects("deployments")
    assert kept["spec"]["template"]["spec"]["containers"][0]["env"] == [{"name": "B", "value": "3"}]
    assert kept["metadata"]["labels"] == {**MANAGED, "team": "blue"}
    if is_new(kubectl):
        assert kubectl("diff", "-f", "-", stdin=yaml.safe_dump(wanted)).stdout == ""


def test_it_shows_a_misspelt_field(kubectl: Run) -> None:
    wanted = deployment("web")
    wanted["spec"]["replica"] = 3
    if is_new(kubectl):
        assert "spec.replica" in kubectl("apply", "-f", "-", stdin=yaml.safe_dump(wanted), code=1).stderr


def test_it_applies_on_the_servers_side(kubectl: Run, cluster: KubernetesCloud) -> None:
    for _ in range(2):
        done = kubectl("apply", "--server-side", "-f", "-", stdin=yaml.safe_dump_all([deployment("web"), mapping("m")]))
        assert done.stdout.count("serverside-applied") == 2
    assert len(cluster.objects("deployments")) == 1


def test_it_patches_in_all_three_ways(kubectl: Run, web: None, cluster: KubernetesCloud) -> None:
    image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}
    kubectl("patch", "deployment", "web", "-p", json.dumps(image))
    kubectl("patch", "deployment", "web", "--type=merge", "-p", '{"spec": {"replicas": 2}}')
    tested = [
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "replace", "path": "/spec/replicas", "value": 3},
    ]
    kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(tested))
    refused = kubectl("patch", "deployment", "web", "--type=json", "-p", json.dumps(tested), code=1)
    assert re.search("server rejected our request|request is invalid", refused.stderr)
    (kept,) = cluster.objects("deployments")
    (container,) = kept["spec"]["template"]["spec"]["containers"]
    assert (container["image"], len(container["env"]), kept["spec"]["replicas"]) == ("web:2", 2, 3)
    if is_new(kubectl):
        status = '{"status": {"replicas": 9}}'
        kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status)
        assert cluster.objects("deployments")[0]["status"]["replicas"] == 9


def test_it_scales_sets_an_image_and_waits(kubectl: Run, web: None, cluster: KubernetesCloud) -> None:
    cluster.knobs.slow_modification(seconds=0.3)
    kubectl("scale", "deployment", "web", "--replicas=3")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment", "web", "--timeout=20s").stdout
    kubectl("set", "image", "deployment/web", "web=web:3")
    assert "condition met" in kubectl("wait", "--for=condition=Available", "deploy/web", "--timeout=20s").stdout
    (kept,) = cluster.objects("deployments")
    assert kept["status"]["readyReplicas"] == 3


def test_it_rolls_back(kubectl: Run, web: None, cluster: KubernetesCloud) -> None:
    kubectl("set", "image", "deployment/web", "web=web:2")
    assert len(cluster.objects("replicasets")) == 2
    kubectl("rollout", "undo", "deployment/web")
    (kept,) = cluster.objects("deployments")
    assert kept["spec"]["template"]["spec"]["containers"][0]["image"] == "web:1"
    assert kept["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    assert "REVISION" in kubectl("rollout", "history", "deployment/web").stdout
    kubectl("rollout", "restart", "deployment/web")
    kubectl("delete", "deployment", "web")
    assert cluster.objects("replicasets") == []


def test_it_deletes_and_waits_until_it_is_gone(kubectl: Run, web: None, cluster: KubernetesCloud) -> None:
    kubectl("create", "-f", "-", stdin=yaml.safe_dump(service("web") | {"apiVersion": "v1", "kind": "Service"}))
    cluster.knobs.slow_deletion(seconds=0.3, kind="deployment")
    assert 'deployment.apps "web" deleted' in kubectl("delete", "deployment", "web").stdout
    assert cluster.objects("deployments") == []
    kubectl("delete", "service", "web", "--cascade=orphan")
    assert kubectl("delete", "service", "web", "--ignore-not-found").stdout == ""


def test_it_makes_what_it_has_commands_for(kubectl: Run, cluster: KubernetesCloud) -> None:
    kubectl("create", "namespace", "team-a")
    kubectl("-n", "team-a", "create", "secret", "generic", "keys", "--from-literal=a=b")
    kubectl("-n", "team-a", "create", "configmap", "settings", "--from-literal=a=b")
    kubectl("-n", "team-a", "create", "serviceaccount", "worker")
    kubectl("-n", "team-a", "create", "service", "loadbalancer", "web", "--tcp=80:8080")
    kubectl("-n", "team-a", "create", "deployment", "web", "--image=web:1", "--replicas=2", "--port=8080")
    kubectl("-n", "team-a", "expose", "deployment", "web", "--name=inside", "--port=80")
    assert cluster.objects("secrets", "team-a")[0]["data"] == {"a": "Yg=="}
    assert cluster.objects("configmaps", "team-a")[0]["data"] == {"a": "b"}
    inside, outside = cluster.objects("services", "team-a")
    assert (inside["spec"]["selector"], inside["spec"]["ports"][0]["targetPort"]) == ({"app": "web"}, 80)
    assert (outside["spec"]["type"], outside["spec"]["ports"][0]["targetPort"]) == ("LoadBalancer", 8080)
    (web,) = cluster.objects("deployments", "team-a")
    assert (web["spec"]["replicas"], web["status"]["readyReplicas"]) == (2, 2)
    assert web["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 8080, "protocol": "TCP"}]
    kubectl("delete", "namespace", "team-a")
    assert cluster.objects("secrets") == []


def test_a_definition_is_established_and_its_kind_served(kubectl: Run) -> None:
    assert "condition met" in kubectl("wait", "--for=condition=Established", "crd/mappings.getambassador.io").stdout
    assert "mappings" in kubectl("api-resources", "--api-group=getambassador.io").stdout
    kubectl("delete", "crd", "mappings.getambassador.io")
    assert "could not find the requested resource" in kubectl("get", "mappings", code=1).stderr


def test_it_watches(sandbox: Sandbox, kubectl: Run, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **sandbox_env(sandbox.url, tmp_path)}
    command = [str(KUBECTL), "get", "deployments", "--watch", "-o", "name"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        deadline = time.monotonic() + 20
        while not sandbox.kubernetes.calls.count("deployments.apps", "watch") and time.monotonic() < deadline:
            time.sleep(0.05)
        kubectl("create", "-f", "-", stdin=yaml.safe_dump(deployment("web")))
        assert watching.stdout.readline() == "deployment.apps/web\n"
        watching.terminate()


def test_people_are_distinguished_from_the_agent(kubectl: Run, web: None, cluster: KubernetesCloud) -> None:
    assert {call.actor for call in cluster.calls} == {"person"}
    assert kubectl("--context", "sandbox-2", "get", "deployments").stderr.startswith("No resources found")
