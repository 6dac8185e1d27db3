"""The safety monitor judges the agent's writes to Kubernetes by the labels at its last read and at that instant."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.sandbox.kubernetes.conftest import (
    APPLY,
    DEPLOYMENTS,
    GUARD,
    JSON_PATCH,
    MANAGED,
    MAPPINGS,
    MERGE_PATCH,
    Api,
    agent_api,
    deployment,
    mapping,
)

ON_A_REAL_SERVER = True
WEB = f"{DEPLOYMENTS}/web"
UNLABEL = {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}
SCALE = [{"op": "replace", "path": "/spec/replicas", "value": 2}]


def rules(cluster: KubernetesCloud) -> tuple[list[str], list[str]]:
    """Return the rules that violations and lost races name."""
    monitor = cluster.monitor
    return [one.rule for one in monitor.violations], [one.rule for one in monitor.lost_races]


def labels(**changed: Any) -> dict[str, Any]:
    return {"metadata": {"labels": changed}}


@pytest.fixture
def web(person: Api, agent: Api) -> str:
    """A managed Deployment that the agent has seen."""
    person.make(DEPLOYMENTS, deployment("web"))
    agent.get(WEB)
    return WEB


@pytest.mark.rule("T2")
def test_a_creation_is_stamped(agent: Api, cluster: KubernetesCloud) -> None:
    agent.make(DEPLOYMENTS, deployment("good"))
    assert rules(cluster) == ([], [])
    agent.make(DEPLOYMENTS, deployment("unowned", **{"fractal.cloud/owner": "ls-b"}))
    agent.make(DEPLOYMENTS, {**deployment("bare"), "metadata": {"name": "bare"}})
    assert rules(cluster) == (["T2", "T2"], [])


def test_what_the_agent_owns_it_may_change_and_delete(agent: Api, web: str, cluster: KubernetesCloud) -> None:
    agent.patch(web, [GUARD, *SCALE], JSON_PATCH)
    agent.patch(web, {"metadata": {"annotations": {"fractal.cloud/reconcile": None}}})
    agent.delete(web)
    assert rules(cluster) == ([], [])


@pytest.mark.rule("S7", "S16")
def test_a_write_to_what_was_seen_unlabelled_is_a_violation(
    agent: Api, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    person.patch(web, UNLABEL)
    agent.get(DEPLOYMENTS)
    agent.patch(web, SCALE, JSON_PATCH)
    agent.patch(web, [GUARD, *SCALE], JSON_PATCH)
    agent.delete(web)
    assert rules(cluster) == (["S7", "S7", "S7"], []), "also the one that the server refused"


@pytest.mark.rule("S16")
def test_an_unguarded_write_loses_the_race_and_a_guarded_one_does_not(
    agent: Api, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    person.patch(web, UNLABEL)
    assert agent.patch(web, [GUARD, *SCALE], JSON_PATCH).status == 422
    assert rules(cluster) == ([], [])
    agent.patch(web, SCALE, JSON_PATCH)
    assert rules(cluster) == ([], ["S7"])


@pytest.mark.rule("S16")
def test_a_person_between_read_and_write_is_caught_by_a_hook(
    agent: Api, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    def unlabel(_: Call) -> None:
        person.patch(web, UNLABEL)

    cluster.knobs.before_call(unlabel, times=1, actor="agent", operation="delete")
    version = agent.get(web).version
    assert agent.delete(web, {"preconditions": {"resourceVersion": version}}).status == 409
    assert rules(cluster) == ([], [])


@pytest.mark.rule("S16")
def test_a_refused_write_is_judged_by_the_object_it_names_and_not_by_what_came_after_it(
    agent: Api, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    gone = agent.get(web).uid
    person.delete(web)
    person.make(DEPLOYMENTS, {**deployment("web"), "metadata": {"name": "web"}})
    about_it = {"op": "test", "path": "/metadata/uid", "value": gone}
    assert agent.delete(web, {"preconditions": {"uid": gone}}).status == 409
    assert agent.patch(web, [about_it, *SCALE], JSON_PATCH).status == 422
    assert agent.patch(web, {"metadata": {"uid": gone}, "spec": {"replicas": 4}}).status in (409, 422)
    assert rules(cluster) == ([], [])
    assert agent.delete(web).status == 200
    assert rules(cluster) == (["S7"], []), "without a uid it is about whatever bears the name"


@pytest.mark.rule("S6", "T7")
def test_what_is_somebody_elses_is_not_touched(
    agent: Api, sandbox: Sandbox, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    other = agent_api(sandbox, live_system="ls-b")
    other.get(web)
    other.patch(web, SCALE, JSON_PATCH)
    other.close()
    person.patch(web, labels(**{"app.kubernetes.io/managed-by": "Helm"}))
    agent.get(web)
    agent.patch(web, SCALE, JSON_PATCH)
    assert rules(cluster) == (["S6", "T7"], [])


@pytest.mark.rule("T1")
def test_other_labels_and_annotations_are_left_alone(agent: Api, web: str, cluster: KubernetesCloud) -> None:
    agent.patch(web, labels(team="blue"))
    agent.patch(web, {"metadata": {"annotations": {"note": "x"}}, "spec": {"replicas": 4}})
    assert rules(cluster) == (["T1", "T1"], [])


@pytest.mark.rule("T3", "G10")
def test_only_a_force_push_writes_the_handshake(sandbox: Sandbox, person: Api, web: str) -> None:
    cluster = sandbox.kubernetes
    person.patch(web, UNLABEL)
    handshake = {
        "metadata": {
            "labels": {"app.kubernetes.io/managed-by": "fractal-cloud"},
            "annotations": {"fractal.cloud/reconcile": "reconcile"},
        }
    }
    pushing, deploying = agent_api(sandbox, reason="force-push"), agent_api(sandbox)
    pushing.get(web)
    pushing.patch(web, handshake)
    assert rules(cluster) == ([], [])
    person.patch(web, UNLABEL)
    deploying.get(web)
    deploying.patch(web, handshake)
    assert rules(cluster) == (["T3"], [])
    pushing.close()
    deploying.close()


@pytest.mark.rule("O11")
def test_the_owner_stays(agent: Api, web: str, cluster: KubernetesCloud) -> None:
    agent.patch(web, labels(**{"fractal.cloud/owner": None}))
    assert rules(cluster) == (["O11"], [])


@pytest.mark.rule("T3", "T10")
def test_writing_everything_without_a_precondition_is_a_violation(
    agent: Api, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    seen = agent.get(web).json
    seen["spec"]["replicas"] = 5
    assert agent.put(web, seen).status == 200
    assert rules(cluster) == ([], [])
    del seen["metadata"]["resourceVersion"]
    agent.put(web, seen)
    assert rules(cluster) == (["T10"], [])
    person.patch(web, UNLABEL)
    agent.patch(web, deployment("web"), APPLY, fieldManager="fractal-cloud", force="true")
    assert rules(cluster)[0][1:] == ["T3"], "an apply brings the label back"


@pytest.mark.rule("C7")
def test_the_agent_says_for_whom_it_writes(sandbox: Sandbox, cluster: KubernetesCloud) -> None:
    silent = agent_api(sandbox, live_system="", component="")
    silent.make(DEPLOYMENTS, deployment("web"))
    silent.close()
    assert rules(cluster) == (["C7"], [])


def test_people_are_not_judged(person: Api, web: str, cluster: KubernetesCloud) -> None:
    person.patch(web, UNLABEL)
    person.patch(web, SCALE, JSON_PATCH)
    person.delete(web)
    assert rules(cluster) == ([], [])


def test_custom_resources_are_judged_alike(agent: Api, person: Api, cluster: KubernetesCloud) -> None:
    made = agent.make(MAPPINGS, mapping("front"))
    assert made["metadata"]["labels"] == MANAGED
    person.patch(f"{MAPPINGS}/front", UNLABEL)
    agent.patch(f"{MAPPINGS}/front", {"spec": {"prefix": "/x/"}}, MERGE_PATCH)
    assert rules(cluster) == ([], ["S7"])
    agent.get(f"{MAPPINGS}/front")
    agent.patch(f"{MAPPINGS}/front", {"spec": {"prefix": "/x/"}}, MERGE_PATCH)
    assert rules(cluster) == (["S7"], ["S7"]), "a write without effect is one all the same"


def test_one_made_anew_under_the_same_name_was_not_seen(
    agent: Api, person: Api, web: str, cluster: KubernetesCloud
) -> None:
    person.delete(web)
    person.make(DEPLOYMENTS, {**deployment("web"), "metadata": {"name": "web"}})
    agent.patch(web, SCALE, JSON_PATCH)
    assert rules(cluster) == (["S7"], [])
