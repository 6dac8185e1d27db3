"""Variables of a workload that are secrets, beside those that are not (A8)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

REFERENCE = {"$secret": "db"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the agent finds secrets."""
    made = tmp_path / "secrets"
    (made / "ls-a").mkdir(parents=True)
    (made / "ls-a" / "db").write_text("hunter2-first")
    return made


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, folder: Path) -> Iterator[KubernetesWorld]:
    """The whole product over a cluster, and an agent with a folder of secrets."""
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, secrets_dir=folder) as made:
        yield made


def _workload(**env: Any) -> dict[str, Any]:
    kind = "CustomWorkloads.CaaS.KubernetesWorkload"
    return {"id": "web", "type": kind, "parameters": {"image": "web:1", "env": env}}


def _in_the_cluster(world: KubernetesWorld) -> dict[str, str]:
    found = world.kube.get("deployments", "web")
    assert found is not None
    return {one["name"]: one["value"] for one in found["spec"]["template"]["spec"]["containers"][0]["env"]}


def _everything(world: KubernetesWorld) -> str:
    base = "/livesystems/ls-a"
    paths = (base, f"{base}/components", f"{base}/components/web/journal", f"{base}/events?limit=200")
    return "\n".join(world.api.get(path).text for path in paths)


@pytest.mark.rule("A8", "G3")
def test_one_variable_is_a_secret_and_the_others_are_shown(world: KubernetesWorld, folder: Path) -> None:
    world.deploy("ls-a", _workload(LEVEL="info", DB=REFERENCE))
    world.settle()
    assert _in_the_cluster(world) == {"LEVEL": "info", "DB": "hunter2-first"}
    assert world.output("ls-a", "web", "env") == {"LEVEL": "info", "DB": REFERENCE}
    (folder / "ls-a" / "db").write_text("hunter2-second")
    world.settle()
    assert _in_the_cluster(world)["DB"] == "hunter2-second", "a new value is written"
    assert "hunter2" not in _everything(world)
    world.assert_safe()


@pytest.mark.rule("A8")
def test_a_variable_that_was_a_secret_is_not_shown_when_it_is_declared_in_clear(world: KubernetesWorld) -> None:
    world.deploy("ls-a", _workload(DB=REFERENCE))
    world.settle()
    world.kube.merge("deployments", "web", {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}})
    world.cycle()
    world.deploy("ls-a", _workload(DB="clear", LEVEL="info"))
    world.settle()
    assert world.drift("ls-a", "web") == {
        "env": {"declared": {"DB": "clear", "LEVEL": "info"}, "actual": {"DB": "(sensitive: differs)"}}
    }
    assert "hunter2" not in _everything(world)
