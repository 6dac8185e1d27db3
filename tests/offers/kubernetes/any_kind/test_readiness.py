"""When an object of a kind is ready: what its documented status means, and what the sandbox's controllers write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.kubernetes.any_kind.status import state_of
from fractal_sandbox import Sandbox
from fractal_sandbox.kubernetes.kinds import BUILT_IN as SERVED
from fractal_sandbox.kubernetes.structure import held_against
from tests.offers.kubernetes.any_kind.stages import BUILT_IN, REAL, allow_all
from tests.offers.kubernetes.any_kind.test_every_kind import world as kinds
from tests.offers.kubernetes.any_kind.world import KindWorld
from tests.offers.kubernetes.declaring import component
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

__all__ = ["kinds"]

Object = dict[str, Any]
SETTLED, CREATING, CHANGING, BROKEN = Condition.SETTLED, Condition.CREATING, Condition.CHANGING, Condition.BROKEN
ROLLED = {"observedGeneration": 2, "replicas": 3, "readyReplicas": 3, "currentRevision": "a", "updateRevision": "b"}
NODES = {"observedGeneration": 2, "desiredNumberScheduled": 3, "numberAvailable": 3, "updatedNumberScheduled": 3}


def by_hand() -> Object:
    return {"updateStrategy": {"type": "OnDelete"}}


def partition(number: int) -> Object:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


def said(kind: str, status: str = "True", reason: str = "", message: str = "") -> Object:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


STATES: list[tuple[str, int, Object, Object, Condition, str]] = [
    # kind, generation, spec, status, what it means, a word of why
    ("apps/StatefulSet", 1, {"replicas": 3}, {}, CREATING, "0 of 3 replicas are ready"),
    ("apps/StatefulSet", 2, {"replicas": 3}, {**ROLLED, "observedGeneration": 1, "updatedReplicas": 3}, CHANGING, ""),
    ("apps/StatefulSet", 2, {"replicas": 3}, {**ROLLED, "updatedReplicas": 3}, SETTLED, ""),
    ("apps/StatefulSet", 2, {"replicas": 3}, {**ROLLED, "updatedReplicas": 1}, CHANGING, "1 of 3 replicas have"),
    ("apps/StatefulSet", 2, {"replicas": 3} | partition(2), {**ROLLED, "updatedReplicas": 1}, SETTLED, ""),
    ("apps/StatefulSet", 2, {"replicas": 3} | partition(1), {**ROLLED, "updatedReplicas": 1}, CHANGING, "1 of 2"),
    ("apps/StatefulSet", 2, {"replicas": 3} | by_hand(), ROLLED, SETTLED, "when somebody deletes them"),
    ("apps/StatefulSet", 2, {"replicas": 2}, {**ROLLED, "updatedReplicas": 3}, CHANGING, "3 are there"),
    ("apps/StatefulSet", 2, {"replicas": 0}, {"observedGeneration": 2, "replicas": 0}, SETTLED, ""),
    ("apps/DaemonSet", 2, {}, NODES, SETTLED, ""),
    ("apps/DaemonSet", 1, {}, {}, CREATING, ""),
    ("apps/DaemonSet", 2, {}, {**NODES, "numberAvailable": 2}, CHANGING, "2 of 3 nodes run it"),
    ("apps/DaemonSet", 2, {}, {**NODES, "updatedNumberScheduled": 1}, CHANGING, ""),
    ("apps/DaemonSet", 2, by_hand(), {**NODES, "updatedNumberScheduled": 1}, SETTLED, "when somebody deletes them"),
    ("apps/DaemonSet", 1, {}, {"observedGeneration": 1, "desiredNumberScheduled": 0}, SETTLED, ""),
    ("batch/Job", 1, {}, {}, CREATING, "0 of 1 completions"),
    ("batch/Job", 1, {"completions": 5}, {"active": 2, "succeeded": 3}, CREATING, "3 of 5 completions"),
    ("batch/Job", 1, {}, {"succeeded": 1} | said("Complete"), SETTLED, ""),
    ("batch/Job", 1, {}, said("Complete", "False"), CREATING, ""),
    ("batch/Job", 1, {}, said("Failed", reason="BackoffLimitExceeded"), BROKEN, "BackoffLimitExceeded"),
    ("batch/Job", 1, {}, said("FailureTarget", reason="PodFailurePolicy"), BROKEN, "PodFailurePolicy"),
    ("batch/Job", 1, {"suspend": True}, said("Suspended"), SETTLED, "is suspended"),
    ("apps/ReplicaSet", 1, {"replicas": 2}, {"observedGeneration": 1, "replicas": 2}, CREATING, "0 of 2"),
    ("apps/ReplicaSet", 1, {"replicas": 2}, said("ReplicaFailure", reason="FailedCreate"), BROKEN, "FailedCreate"),
    ("ReplicationController", 1, {}, {"observedGeneration": 1, "replicas": 1, "readyReplicas": 1}, SETTLED, ""),
]


@pytest.mark.rule("S13")
@pytest.mark.parametrize(("kind", "generation", "spec", "status", "condition", "why"), STATES)
def test_a_status_means_what_its_kind_documents(
    kind: str, generation: int, spec: Object, status: Object, condition: Condition, why: str
) -> None:
    found, detail = state_of(kind, {"metadata": {"generation": generation}, "spec": spec, "status": status})
    assert found is condition
    assert why in detail


@pytest.mark.skipif(bool(REAL), reason="a real server holds them against its own schemas")
def test_what_the_sandboxs_controllers_write_stands_in_the_published_schemas(kinds: KindWorld) -> None:
    reported = set()
    for case in BUILT_IN.values():
        offer = kinds.offer(case.type)
        if offer is None:
            continue
        kinds.make(offer, case)
        item = kinds.person.call("GET", kinds.path(offer, case.name))
        meant = offer.object_kind
        kind = next(one for one in SERVED if (one.group, one.kind) == (meant.group, meant.kind))
        _, found = held_against(kind.node, item, is_custom=False)
        wrong = [one for one in found.unknown if one.startswith("status")] + [str(one) for one in found.wrong]
        assert not wrong, f"{case.type}: {wrong}"
        missing = [cause for cause in found.causes if str(cause).startswith("status")]
        assert not missing, f"{case.type}: {missing}"
        reported |= {case.type} if item.get("status") else set()
    assert {"apps/v1/StatefulSet", "apps/v1/DaemonSet", "batch/v1/Job", "policy/v1/PodDisruptionBudget"} <= reported


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """A world whose agent may do anything."""
    with ExitStack() as stack:
        made = stack.enter_context(kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, has_all_rights=True))
        allow_all(stack, session_sandbox)
        yield made


def declared(component_type: str, component_id: str, **spec: Any) -> Object:
    found = dict(BUILT_IN[component_type].parameters)
    found.pop("name")
    return component(component_type, component_id, **{**found, "spec": {**found["spec"], **spec}})


@pytest.mark.rule("S13")
def test_what_the_cluster_works_on_is_instantiating_until_it_is_ready(world: KubernetesWorld) -> None:
    types = {"store": "apps/v1/StatefulSet", "everywhere": "apps/v1/DaemonSet", "once": "batch/v1/Job"}
    world.cloud.knobs.slow_creation(reads=9)
    specs: dict[str, Object] = {"store": {"replicas": 2}}
    world.deploy("ls-a", *(declared(one, name, **specs.get(name, {})) for name, one in types.items()))
    world.cycle(2)
    assert {world.status("ls-a", name) for name in types} == {"Instantiating"}
    assert "of 2 replicas are ready" in world.component("ls-a", "store")["message"]
    assert "0 of 1 completions are done" in world.component("ls-a", "once")["message"]
    for _ in range(12):
        world.cycle()
    assert {world.status("ls-a", name) for name in types} == {"Active"}
    world.assert_safe()


@pytest.mark.rule("S13", "S12")
def test_a_job_that_failed_is_failed_and_says_why_and_is_not_made_again(world: KubernetesWorld) -> None:
    world.cloud.knobs.slow_creation(seconds=600)
    world.deploy("ls-a", declared("batch/v1/Job", "once"))
    world.cycle(2)
    path = "/apis/batch/v1/namespaces/default/jobs/once"
    reason = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
    failed = {"conditions": [{"type": "Failed", "status": "True", **reason}], "failed": 1}
    before = world.kube.call("GET", path)["metadata"]["uid"]
    world.kube.call("PATCH", f"{path}/status", {"status": failed}, "application/merge-patch+json")
    writes = len(world.writes())
    world.cycle(3)
    shown = world.component("ls-a", "once")
    assert shown["status"] == "Failed"
    assert "BackoffLimitExceeded: Job has reached the specified backoff limit" in shown["message"]
    assert world.kube.call("GET", path)["metadata"]["uid"] == before
    assert len(world.writes()) == writes
    world.assert_safe()
