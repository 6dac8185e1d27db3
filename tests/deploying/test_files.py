"""What stands in ``deploy/`` is what Kubernetes, systemd and the program itself understand."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from kubernetes import client

from fractal_cloud.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
MODELS = {
    "Namespace": "V1Namespace",
    "ServiceAccount": "V1ServiceAccount",
    "Deployment": "V1Deployment",
    "Service": "V1Service",
    "PodDisruptionBudget": "V1PodDisruptionBudget",
    "HorizontalPodAutoscaler": "V2HorizontalPodAutoscaler",
}


def _objects() -> Iterator[dict[str, Any]]:
    for path in MANIFESTS:
        yield from yaml.safe_load_all(path.read_text())


def _named(kind: str, name: str) -> dict[str, Any]:
    return next(item for item in _objects() if (item["kind"], item["metadata"]["name"]) == (kind, name))


@pytest.mark.parametrize("item", list(_objects()), ids=lambda item: f"{item['kind']}-{item['metadata']['name']}")
def test_kubernetes_own_models_know_every_field_and_miss_none(item: dict[str, Any]) -> None:
    """A field they do not know would be dropped on the way there and back; one they demand would be refused."""
    api: Any = client.ApiClient()
    made = api._ApiClient__deserialize(item, MODELS[item["kind"]])
    assert api.sanitize_for_serialization(made) == item


def test_the_control_planes_probes_scaling_and_disruption_budget_agree() -> None:
    name = "fractal-control-plane"
    pod = _named("Deployment", name)["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    scaling = _named("HorizontalPodAutoscaler", name)["spec"]
    assert scaling["minReplicas"] > _named("PodDisruptionBudget", name)["spec"]["minAvailable"]
    own = int(next(env["value"] for env in container["env"] if env["name"] == "FRACTAL_DATABASE_CONNECTIONS"))
    most = (scaling["maxReplicas"] + 1) * (own + 1)  # one more while a rollout goes on, and one more each that listens
    assert most <= 120, "more than the page on deploying asks max_connections to be"
    for kind in ("Service", "PodDisruptionBudget"):
        selector = _named(kind, name)["spec"]["selector"]
        assert selector.get("matchLabels", selector) == pod["metadata"]["labels"]


def test_no_secret_stands_in_a_manifest() -> None:
    assert not any(item["kind"] == "Secret" for item in _objects())


def _settings(command: Any) -> set[str]:
    found = {param.envvar for param in command.params if isinstance(param.envvar, str)}
    for sub in getattr(command, "commands", {}).values():
        found |= _settings(sub)
    return found


@pytest.mark.parametrize("path", [*MANIFESTS, *UNITS, DEPLOY / "compose.yaml"], ids=lambda path: path.name)
def test_every_setting_that_is_named_is_one_of_the_programs(path: Path) -> None:
    known = _settings(typer.main.get_command(app)) | {"FRACTAL_AGENT_TOKEN"}  # compose's own, for the agents
    assert set(re.findall(r"FRACTAL_[A-Z_]+", path.read_text())) <= known


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.name)
def test_systemd_understands_the_units(unit: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze: install Debian's systemd")
    command = ["systemd-analyze", "verify", str(unit)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    errors = [line for line in result.stderr.splitlines() if f"{unit.name.partition('@')[0]}" in line]
    assert [line for line in errors if "is not executable" not in line] == []  # it is not installed here


def test_compose_has_two_control_planes_two_agents_and_a_database_that_is_waited_for() -> None:
    services = COMPOSE["services"]
    planes = [name for name in services if name.startswith("control-plane")]
    agents = [name for name in services if name.startswith("agent")]
    assert (len(planes), len(agents)) == (2, 2)
    for name in planes:
        assert services[name]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
        assert services[name]["networks"]["default"]["aliases"] == ["control-plane"]
    for name in agents:
        assert services[name]["environment"]["FRACTAL_URL"] == "http://control-plane:8600"
