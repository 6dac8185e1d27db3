"""Another cluster behind the address of the one that is meant (S26): nothing is made there, nothing counts as gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox
from tests.agent_answers import answered_by_agent
from tests.offers.kubernetes.declaring import service, workload
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

TEN = [*(workload(f"web-{number}") for number in range(5)), *(service(f"front-{n}", f"web-{n}") for n in range(5))]


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:
        yield made


def objects(world: KubernetesWorld) -> list[str]:
    found = [*world.cloud.objects("deployments", "default"), *world.cloud.objects("services", "default")]
    return sorted(one["metadata"]["name"] for one in found if one["metadata"]["name"] != "kubernetes")


def components(world: KubernetesWorld) -> list[dict[str, Any]]:
    return [world.component("ls-a", part["id"]) for part in TEN]


@pytest.mark.rule("S26", "S0")
def test_a_fresh_cluster_behind_the_same_address_is_not_filled(world: KubernetesWorld) -> None:
    world.deploy("ls-a", *TEN)
    world.settle()
    assert len(objects(world)) == 10
    before = components(world)
    world.cloud.replace()
    world.cycle(4)
    assert objects(world) == []
    after = components(world)
    assert [one["status"] for one in after] == ["Active"] * 10, "what is unreadable is neither absent nor present"
    assert [one["resourceId"] for one in after] == [one["resourceId"] for one in before]
    assert all(" is now " in one["message"] and "it was" in one["message"] for one in after), after[0]["message"]
    assert not [event for event in world.events("ls-a") if event["kind"] == "ResourceLost"]
    kinds = [event["kind"] for event in world.events("ls-a")]
    assert kinds.count("RealmChanged") == 1


def replaced(world: KubernetesWorld, *more: dict[str, Any]) -> None:
    """A workload runs; then another cluster answers at the same address, and the agent has seen it."""
    world.deploy("ls-a", workload(), *more)
    world.settle()
    world.cloud.replace()
    world.cycle(3)


def accept(world: KubernetesWorld, name: str = "sandbox") -> dict[str, Any]:
    body = {"provider": "kubernetes", "name": name, "reason": "rebuilt"}
    answer = world.api.post("/realms/accept", json=body)
    assert answer.status_code == 200, answer.text
    done: dict[str, Any] = answer.json()
    return done


@pytest.mark.rule("S26")
def test_an_agent_that_starts_after_the_swap_makes_nothing_there_either(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    world.cloud.replace()
    world.restart_agent()
    world.cycle(3)
    world.deploy("ls-a", workload(image="web:2"), workload("new"))
    world.cycle(3)
    assert objects(world) == []
    assert world.status("ls-a", "web") == "Active"
    for name in ("web", "new"):
        assert "`fractal realm accept" in world.component("ls-a", name)["message"]


@pytest.mark.rule("S26")
def test_the_cluster_that_answers_again_is_served_as_if_nothing_had_been(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    bring_back = world.cloud.replace()
    world.cycle(3)
    assert " is now " in world.component("ls-a", "web")["message"]
    bring_back()
    world.cycle(2)
    world.settle()
    web = world.component("ls-a", "web")
    assert (web["status"], web["message"]) == ("Active", "as declared")
    assert objects(world) == ["web"]
    world.assert_safe()


@pytest.mark.rule("S26", "S0")
def test_a_cluster_that_does_not_say_which_it_is_is_unreadable(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    world.deploy("ls-a", workload(image="web:2"))
    world.cloud.knobs.fail(status=500, code="InternalError", times=None, actor="agent", service="namespaces")
    world.cycle(2)
    web = world.component("ls-a", "web")
    assert "could not be confirmed" in web["message"]
    assert web["status"] == "Active"
    assert not world.cloud.calls.find(actor="agent", operation="patch")
    world.cloud.knobs.reset()
    world.settle()
    assert world.cloud.calls.find(actor="agent", operation="patch")


@pytest.mark.rule("S26", "S20")
def test_confirming_is_one_call_in_a_cycle_that_decides_and_none_in_one_that_does_not(world: KubernetesWorld) -> None:
    world.deploy("ls-a", *TEN)
    world.settle()

    def asked() -> int:
        return len(world.cloud.calls.find(actor="agent", service="namespaces"))

    counts: list[int] = []
    while counts[-3:] != [asked()] * 3:  # what the cluster's own controllers still do is news
        assert len(counts) < 40, "cycles that find nothing new ask nothing"
        counts.append(asked())
        world.cycle()
    before = asked()
    world.deploy("ls-a", *(workload(f"web-{n}", image="web:2") for n in range(5)), *TEN[5:])
    world.cycle()
    assert asked() == before + 1


@pytest.mark.rule("S26", "C6")
def test_a_plan_against_another_cluster_plans_nothing_and_says_why(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    world.cloud.replace()
    assert planned(world) == {"web", "new"}, "asked before the agent has seen it"
    world.cycle(3)
    assert planned(world) == {"web", "new"}, "asked when everybody knows it"


def planned(world: KubernetesWorld) -> set[str]:
    body = {"id": "ls-a", "components": [workload(image="web:2"), workload("new")]}
    answer = answered_by_agent(lambda: world.api.post("/livesystems/ls-a/plan", json=body), world.agent._claim)
    assert answer.status_code == 200, answer.text
    found = answer.json()["components"]
    assert answer.json()["verdict"] == "Failed", "as the deploy would: it waits for a person"
    assert [one["action"] for one in found] == ["fail", "fail"]
    assert all(" is now " in one["message"] for one in found), found
    return {one["componentId"] for one in found}


@pytest.mark.rule("S26", "C8")
def test_a_deletion_waits_with_the_ways_out_and_ends_as_absent_once_it_is_accepted(world: KubernetesWorld) -> None:
    replaced(world)
    mutation = world.delete("ls-a")["mutationId"]
    world.cycle(3)
    web = world.component("ls-a", "web")
    assert "`fractal realm accept" in web["message"]
    assert "`fractal delete ls-a --forget web" in web["message"]
    assert world.mutation("ls-a", mutation)["status"] == "Failed"
    done = accept(world)
    assert (done["components"], done["ended"]) == (0, 1)
    assert world.api.get("/livesystems/ls-a").status_code == 404
    world.assert_safe()


@pytest.mark.rule("S26", "S3", "S12a")
def test_in_an_accepted_cluster_the_absent_is_missing_until_it_is_deployed_again(world: KubernetesWorld) -> None:
    replaced(world, service())
    done = accept(world)
    assert done["components"] == 2
    world.cycle(3)
    for name in ("web", "front"):
        assert world.status("ls-a", name) == "Missing", world.component("ls-a", name)
    assert objects(world) == []
    world.deploy("ls-a", workload(), service())
    world.settle()
    assert objects(world) == ["front", "web"]
    assert [world.status("ls-a", name) for name in ("web", "front")] == ["Active", "Active"]
    kinds = [event["kind"] for event in world.events("ls-a")]
    assert (kinds.count("RealmChanged"), kinds.count("RealmAccepted")) == (1, 1)
    world.assert_safe()


@pytest.mark.rule("S26", "S7", "S12a")
def test_in_an_accepted_cluster_the_present_is_as_its_tags_say(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(), workload("bare"))
    world.settle()
    kept = {name: world.kube.get("deployments", name) for name in ("web", "bare")}
    world.cloud.replace()
    for name, found in kept.items():
        assert found is not None
        labels = found["metadata"]["labels"] if name == "web" else {}
        spec = {**found["spec"], "replicas": 3}
        body = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}
        world.kube.create("deployments", {**body, "metadata": {"name": name, "labels": labels}})
    world.cycle(3)
    accept(world)
    world.settle()
    assert world.status("ls-a", "web") == "Active", "ours by its tags, noticed first"
    assert world.status("ls-a", "bare") == "ManualOverride", "nobody's by its tags"
    world.assert_safe()
