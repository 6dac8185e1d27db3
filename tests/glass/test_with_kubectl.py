"""Break the glass with kubectl, in the very words that the product prints."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.sandbox import Sandbox
from tests.glass.printed import Run, commands, terminal
from tests.offers.kubernetes.declaring import workload
from tests.offers.kubernetes.examples import EXAMPLES, Example
from tests.offers.kubernetes.real import cluster_world
from tests.offers.kubernetes.worlds import KubernetesWorld

PROVIDER = "kubernetes"

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    with cluster_world(session_sandbox, tmp_path) as made:
        yield made


@pytest.fixture
def kubectl(world: KubernetesWorld, tmp_path: Path) -> Run:
    """Runs one command of kubectl, as a person with a terminal would."""
    return terminal(tmp_path, world.kube.env)


@pytest.mark.rule("G1", "G7", "G12", "T8")
@pytest.mark.parametrize("example", EXAMPLES.values(), ids=[kind.__name__ for kind in EXAMPLES])
def test_every_offer_is_let_go_and_handed_back_by_the_printed_commands(
    world: KubernetesWorld, kubectl: Run, example: Example
) -> None:
    world.deploy("ls-a", *example.components)
    world.settle()
    component = example.components[-1]["id"]
    assert world.status("ls-a", component) == "Active"
    break_glass, readopt = commands(world, component)
    for command in break_glass:
        kubectl(command)
    world.cycle()
    assert world.status("ls-a", component) == "ManualOverride"
    for command in readopt:
        kubectl(command)
    world.settle()
    assert world.status("ls-a", component) == "Active"
    world.assert_safe()


@pytest.mark.rule("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12")
def test_a_whole_night_on_one_deployment(world: KubernetesWorld, kubectl: Run) -> None:
    world.deploy("ls-a", workload(replicas=1), workload("calm"))
    world.settle()
    uid = world.output("ls-a", "web", "uid")
    break_glass, readopt = commands(world, "web")
    at = f"kubectl --context {world.kube.context} -n default"
    scaled = {"replicas": {"declared": 1, "actual": 3}}

    def drift() -> dict[str, Any] | None:
        world.cycle()
        return world.drift("ls-a", "web")

    kubectl(f"{at} annotate deployment web team=payments")
    kubectl(break_glass[0])
    kubectl(f"{at} scale deployment web --replicas=3")
    assert drift() == scaled
    assert world.status("ls-a", "web") == "ManualOverride"
    assert world.status("ls-a", "calm") == "Active", "it concerns nobody else"

    world.deploy("ls-a", workload(replicas=1, image="web:2"), workload("calm"))
    assert drift() == {**scaled, "image": {"declared": "web:2", "actual": "web:1"}}, "a deploy changes only the report"

    world.deploy("ls-a", workload(replicas=3), workload("calm"))
    assert drift() is None
    before = len(world.writes())
    for command in readopt:
        kubectl(command)
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert [write.reason for write in world.writes()[before:]] == ["handshake"], "only the reconcile tag goes (G8)"
    assert world.kube.tags("deployments", "web")["team"] == "payments"

    kubectl(break_glass[0])
    kubectl(f"{at} set image deployment web main=web:9")
    assert drift() == {"image": {"declared": "web:1", "actual": "web:9"}}
    assert world.force_push("ls-a", "web").status_code == 202
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    assert world.output("ls-a", "web", "image") == "web:1"

    kubectl(break_glass[0])
    world.cycle()
    kubectl(f"{at} delete deployment web")
    world.cycle(2)
    assert world.status("ls-a", "web") == "ManualOverride"
    world.deploy("ls-a", workload(), workload("calm"))
    world.settle()
    assert world.output("ls-a", "web", "uid") != uid

    kubectl(f"{at} create deployment legacy --image=old:1")
    world.deploy("ls-a", workload(), workload("calm"), workload("legacy", image="old:1"))
    world.cycle()
    assert world.status("ls-a", "legacy") == "ManualOverride"
    for command in commands(world, "legacy")[1]:
        kubectl(command)
    world.settle()
    assert world.status("ls-a", "legacy") == "Active"
    assert world.kube.tags("deployments", "legacy")["fractal.cloud/owner"] == "ls-a"
    world.assert_safe()


@pytest.mark.rule("G13", "O11")
def test_glass_broken_through_the_product_takes_only_managed_by(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    assert world.glass("ls-a", "web", "break", reason="outage 4711").status_code == 202
    world.settle()
    tags = world.kube.tags("deployments", "web")
    assert "app.kubernetes.io/managed-by" not in tags
    assert tags["fractal.cloud/owner"] == "ls-a"
    assert world.component("ls-a", "web")["override"]["reason"] == "outage 4711"
    assert world.glass("ls-a", "web", "readopt").status_code == 202
    world.settle()
    assert world.status("ls-a", "web") == "Active"
    world.assert_safe()
