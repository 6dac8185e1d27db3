"""A write that does not stick is not a fight to win: admission policies and autoscalers of a cluster (S27)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.manual_clock import ManualClock
from tests.offers.kubernetes.declaring import workload
from tests.offers.kubernetes.real import KUBECONFIG
from tests.offers.kubernetes.test_workload import container, deployment
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

pytestmark = [
    pytest.mark.rule("S27"),
    pytest.mark.skipif(bool(KUBECONFIG), reason="a real server has no policies that a test could write"),
]
MINUTE = 60.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """Time passes when the test says so."""
    return ManualClock(monkeypatch)


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, clock: ManualClock) -> Iterator[KubernetesWorld]:
    """A world with a cycle of a minute."""
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, cycle_seconds=MINUTE) as made:
        clock.drive(made)
        yield made


def _writes(world: KubernetesWorld) -> int:
    return int(world.cloud.calls.count(operation="patch", actor="agent"))


def _pass_cycles(world: KubernetesWorld, clock: ManualClock, cycles: int, wakes: int = 4) -> None:
    """Cycles, with wakes in between: every write of the agent itself wakes a watch."""
    for _ in range(cycles * wakes):
        clock.advance(MINUTE / wakes)
        world.agent.run_once()


def _scale(world: KubernetesWorld, replicas: int) -> None:
    """What the controller of a HorizontalPodAutoscaler does."""
    path = f"{world.kube.path('deployments', 'web')}/scale?fieldManager=kube-controller-manager"
    world.kube.call("PATCH", path, {"spec": {"replicas": replicas}}, "application/merge-patch+json")


def test_an_admission_policy_is_not_fought_for_ever(world: KubernetesWorld, clock: ManualClock) -> None:
    world.cloud.admission.override("Deployment", replicas=1)
    world.deploy("ls-a", workload(replicas=3, image="web:1"))
    _pass_cycles(world, clock, 12)
    shown = world.component("ls-a", "web")
    assert shown["status"] == "Failed"
    assert "replicas was set back 3 times by an admission policy of the cluster" in shown["message"]
    assert "ignoreDrift: [replicas]" in shown["message"]
    assert shown["outputFields"]["drift"] == {"replicas": {"declared": 3, "actual": 1}}
    assert _writes(world) == 3
    world.restart_agent()
    _pass_cycles(world, clock, 12)
    assert _writes(world) == 3, "another agent does not begin again"
    item = deployment(world)
    item["spec"]["template"]["spec"]["containers"][0]["image"] = "web:2"
    world.kube.call("PUT", world.kube.path("deployments", "web"), item)
    _pass_cycles(world, clock, 1)
    assert container(world)["image"] == "web:1", "the other parameters are still reconciled"
    assert world.status("ls-a", "web") == "Failed"
    world.cloud.admission.reset()
    world.deploy("ls-a", workload(replicas=3, image="web:1"))
    _pass_cycles(world, clock, 1)
    assert deployment(world)["spec"]["replicas"] == 3
    assert world.status("ls-a", "web") == "Active", "a new declaration ends it"
    world.assert_safe()


def test_an_autoscaler_is_named_and_ignore_drift_ends_it(world: KubernetesWorld, clock: ManualClock) -> None:
    world.deploy("ls-a", workload(replicas=2))
    world.agent.run_once()
    for number in range(20):
        _scale(world, 5 + number % 2)
        _pass_cycles(world, clock, 1, wakes=1)
    shown = world.component("ls-a", "web")
    assert shown["status"] == "Failed"
    assert "replicas was set back 3 times by an autoscaler (kube-controller-manager)" in shown["message"]
    assert _writes(world) == 3
    world.deploy("ls-a", {**workload(replicas=2), "ignoreDrift": ["replicas"]})
    _pass_cycles(world, clock, 2)
    assert world.status("ls-a", "web") == "Active"
    assert deployment(world)["spec"]["replicas"] == 6, "left to the autoscaler"


def test_a_policy_that_holds_up_a_handshake_fails_it_and_the_tag_stays(
    world: KubernetesWorld, clock: ManualClock
) -> None:
    world.deploy("ls-a", workload(replicas=3))
    world.agent.run_once()
    world.kube.break_glass("deployments", "web")
    world.agent.run_once()
    world.cloud.admission.override("Deployment", replicas=1)
    world.kube.hand_back("deployments", "web")
    _pass_cycles(world, clock, 20)
    shown = world.component("ls-a", "web")
    assert shown["status"] == "Failed"
    assert "replicas was set back 3 times" in shown["message"]
    assert _writes(world) == 3
    assert deployment(world)["metadata"]["annotations"]["fractal.cloud/reconcile"] == "reconcile"
    world.cloud.admission.reset()
    assert world.force_push("ls-a", "web").status_code == 202
    _pass_cycles(world, clock, 2)
    assert world.status("ls-a", "web") == "Active", "a Force Push begins anew"
    assert deployment(world)["spec"]["replicas"] == 3
