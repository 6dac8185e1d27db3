"""Break the glass with kubectl, with the commands that the product prints."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.glass.override_scenario import OverrideScenario, play
from tests.glass.printed_commands import Run, break_and_hand_back, terminal
from tests.offers.kubernetes.declaring import workload
from tests.offers.kubernetes.examples import EXAMPLES, Example
from tests.offers.kubernetes.server import minor_version
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

PROVIDER = "kubernetes"
PATCH = '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "web:2"}]'

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
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
    break_and_hand_back(world, kubectl, component, world.settle)
    world.assert_safe()


@pytest.mark.rule("G1", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "P")
def test_a_whole_manual_override_of_one_deployment(world: KubernetesWorld, kubectl: Run) -> None:
    at = f"kubectl --context {world.kube.context} -n default"
    scenario = OverrideScenario(
        declare=workload,
        parameter="replicas",
        declared=1,
        edited=3,
        third=5,
        edit=lambda _: [f"{at} scale deployment mine --replicas=3"],
        delete=lambda _: [f"{at} delete deployment mine"],
        create=[f"{at} create deployment legacy --image=web:1"],
        label=lambda _: kubectl(f"{at} annotate deployment mine team=payments"),
        others=lambda _: {key: value for key, value in world.kube.tags("deployments", "mine").items() if key == "team"},
    )
    play(world, kubectl, scenario)


@pytest.mark.rule("G13", "O11")
def test_glass_broken_through_the_product_removes_only_managed_by(world: KubernetesWorld) -> None:
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


@pytest.mark.rule("C4")
def test_what_kubectl_changed_is_named_by_its_field_manager(world: KubernetesWorld, kubectl: Run) -> None:
    at = f"kubectl --context {world.kube.context} -n default"
    world.deploy("ls-a", workload(replicas=1, image="web:1"))
    world.settle()
    kubectl(f"{at} label deployment/web app.kubernetes.io/managed-by-")
    world.settle()
    kubectl(f"{at} scale deployment web --replicas=3")
    kubectl(f"{at} patch deployment web --field-manager=bea --type=json -p '{PATCH}'")
    world.settle()
    found = {one["parameter"]: one["by"] for one in world.component("ls-a", "web")["changedBy"]}
    # Servers record who scaled through the part ``scale`` from 1.22 on.
    assert found["replicas"].startswith("kubectl") if minor_version() >= 22 else found["replicas"] == ""
    assert found["image"] == "bea"
    assert found["managed-by"] == ""
