"""The knobs turn Kubernetes as they turn AWS: slow, throttled, failing, forgetful, and late."""

from __future__ import annotations

import time

import httpx2
import pytest

from fractal_sandbox import Sandbox
from fractal_sandbox.calls import Call
from fractal_sandbox.kubernetes.cloud import KubernetesCloud
from tests.sandbox.conftest import http
from tests.sandbox.kubernetes.conftest import CONFIG_MAPS, DEPLOYMENTS, Api, deployment

ON_A_REAL_SERVER = True


def config(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}}


def test_throttling_is_refused_as_priority_and_fairness_does(person: Api, cluster: KubernetesCloud) -> None:
    cluster.knobs.throttle(next_calls=1, service="deployments.apps", operation="list")
    refused = person.get(DEPLOYMENTS)
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert person.get(DEPLOYMENTS).status == 200


def test_a_call_fails_before_or_after_its_effect(person: Api, cluster: KubernetesCloud, name: str) -> None:
    cluster.knobs.fail(operation="create", status=503, code="ServiceUnavailable")
    assert person.post(CONFIG_MAPS, config(name)).outcome == (503, "ServiceUnavailable")
    cluster.knobs.fail(operation="create", when="after", cut=True)
    with pytest.raises(httpx2.TransportError):
        person.post(CONFIG_MAPS, config(name))
    assert [call.effect for call in cluster.calls.find(operation="create")] == [False, True]
    assert person.get(f"{CONFIG_MAPS}/{name}").status == 200


def test_latency_and_hooks(person: Api, cluster: KubernetesCloud) -> None:
    cluster.knobs.latency(0.1, operation="get")
    seen: list[Call] = []
    cluster.knobs.before_call(seen.append, operation="get")
    began = time.monotonic()
    person.get(f"{CONFIG_MAPS}/absent")
    assert time.monotonic() - began >= 0.1
    assert [(call.service, call.resource_ids) for call in seen] == [("configmaps", ("default/absent",))]


def test_pages_are_small_and_one_of_them_fails(person: Api, cluster: KubernetesCloud) -> None:
    for number in range(3):
        person.make(CONFIG_MAPS, config(f"c{number}"))
    cluster.knobs.page_size = 2
    cluster.knobs.fail_page(2, operation="list")
    first = person.get(CONFIG_MAPS, limit=500).json
    assert len(first["items"]) == 2
    token = first["metadata"]["continue"]
    assert person.get(CONFIG_MAPS, limit=500, **{"continue": token}).status == 500
    again = person.get(CONFIG_MAPS, limit=500, **{"continue": token}).json
    assert [item["metadata"]["name"] for item in again["items"]] == ["c2"]


def test_what_is_new_shows_late(person: Api, cluster: KubernetesCloud) -> None:
    cluster.knobs.late_visibility(reads=2, kind="configmap")
    person.make(CONFIG_MAPS, config("late"))
    assert person.get(CONFIG_MAPS).json["items"] == []
    assert person.get(f"{CONFIG_MAPS}/late").status == 404
    assert person.get(f"{CONFIG_MAPS}/late").status == 200
    assert person.post(CONFIG_MAPS, config("late")).outcome == (409, "AlreadyExists")


def test_the_control_surface_reaches_both_clusters(sandbox: Sandbox, person: Api) -> None:
    surface = f"{sandbox.url}/_sandbox"
    http("PUT", f"{surface}/kubernetes/knobs", {"fail": [{"operation": "list", "status": 500}]})
    assert person.get(DEPLOYMENTS).status == 500
    person.make(DEPLOYMENTS, deployment("web"))
    (made,) = http("GET", f"{surface}/kubernetes/calls?operation=create")["calls"]
    assert (made["service"], made["resourceIds"], made["actor"]) == ("deployments.apps", ["default/web"], "person")
    assert http("GET", f"{surface}/kubernetes-2/calls") == {"calls": []}
    assert http("GET", f"{surface}/kubernetes/monitor") == {"violations": [], "lostRaces": []}
    http("POST", f"{surface}/kubernetes/reset")
    assert person.get(DEPLOYMENTS).json["items"] == []


def test_who_is_not_known_is_not_let_in(sandbox: Sandbox) -> None:
    url = f"{sandbox.url}/kubernetes/api/v1/namespaces"
    with httpx2.Client(trust_env=False) as client:
        assert client.get(url).status_code == 401
        assert client.get(url, headers={"Authorization": "Bearer other"}).json()["reason"] == "Unauthorized"
        assert client.get(url, headers={"Authorization": "Bearer sandbox-person"}).status_code == 200
        assert client.get(f"{sandbox.url}/kubernetes/readyz").text == "ok"


def test_a_dry_run_changes_nothing(person: Api, cluster: KubernetesCloud) -> None:
    assert person.post(CONFIG_MAPS, config("never"), dryRun="All").status == 201
    person.make(CONFIG_MAPS, config("kept"))
    assert person.patch(f"{CONFIG_MAPS}/kept", {"data": {"a": "b"}}, dryRun="All").json["data"] == {"a": "b"}
    own = [item for item in cluster.objects("configmaps") if item["metadata"]["namespace"] == "default"]
    assert [item["metadata"]["name"] for item in own] == ["kept"]
    assert "data" not in own[0]
