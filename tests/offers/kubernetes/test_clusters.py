"""Several clusters, several namespaces, a cluster that is down, and one that lacks a definition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.offers.kubernetes.declaring import gateway, service, workload
from tests.offers.kubernetes.person import KubernetesPerson
from tests.offers.kubernetes.rights import AGENT, EVERYTHING
from tests.offers.kubernetes.worlds import KubernetesWorld


def other(world: KubernetesWorld, tmp_path: Path) -> KubernetesPerson:
    return KubernetesPerson(world.sandbox.url, tmp_path, "sandbox-2")


@pytest.mark.rule("O1")
def test_one_name_in_two_clusters_is_two_resources(world: KubernetesWorld, tmp_path: Path) -> None:
    world.deploy("ls-a", workload("one", name="web"), workload("two", name="web", cluster="sandbox-2", image="web:2"))
    world.settle()
    images = [
        found["spec"]["template"]["spec"]["containers"][0]["image"]
        for found in (person.get("deployments", "web") for person in (world.kube, other(world, tmp_path)))
        if found
    ]
    assert images == ["web:1", "web:2"]
    assert [world.output("ls-a", name, "context") for name in ("one", "two")] == ["sandbox", "sandbox-2"]
    world.assert_safe()


def test_a_service_follows_its_workload_into_cluster_and_namespace(world: KubernetesWorld, tmp_path: Path) -> None:
    second = other(world, tmp_path)
    second.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    world.deploy("ls-a", workload(cluster="sandbox-2", namespace="shop"), service())
    world.settle()
    assert second.get("services", "front", "shop") is not None
    assert world.kube.get("services", "front") is None
    assert world.output("ls-a", "front", "host") == "front.shop.svc"
    assert world.drift("ls-a", "front") is None


@pytest.mark.rule("S18")
@pytest.mark.parametrize("moved", [{"cluster": "sandbox-2"}, {"namespace": "kube-public"}])
def test_another_cluster_or_namespace_destroys_nothing_and_makes_nothing(
    world: KubernetesWorld, tmp_path: Path, moved: dict[str, str]
) -> None:
    world.deploy("ls-a", workload(cluster="sandbox"))
    world.settle()
    world.deploy("ls-a", workload(**{"cluster": "sandbox", "image": "web:2", **moved}))
    world.settle()
    web = world.component("ls-a", "web")
    assert web["status"] == "Failed"
    assert all(value in web["message"] for value in moved.values())
    assert other(world, tmp_path).get("deployments", "web") is None
    found = world.kube.get("deployments", "web")
    assert found is not None
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2", "the rest is still reconciled"
    world.deploy("ls-a", workload())
    world.settle()
    assert world.status("ls-a", "web") == "Active", "the current context is another name for the same cluster"


@pytest.mark.rule("S0")
def test_a_cluster_that_is_down_leaves_the_others_alone(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload("one"), workload("two", cluster="sandbox-2"))
    world.settle()
    world.sandbox.kubernetes_2.knobs.fail(cut=True, times=None, actor="agent")
    world.deploy("ls-a", workload("one", image="web:2"), workload("two", cluster="sandbox-2", image="web:2"))
    world.cycle(2)
    assert world.status("ls-a", "one") == "Active"
    two = world.component("ls-a", "two")
    assert (two["status"], two["observedGeneration"]) == ("Active", 1)
    assert "nothing is decided from it" in two["message"]
    world.sandbox.kubernetes_2.knobs.reset()
    world.settle()
    assert world.component("ls-a", "two")["observedGeneration"] == 2
    world.assert_safe()


@pytest.mark.rule("S0", "S21")
def test_a_missing_definition_concerns_only_its_own_type(world: KubernetesWorld) -> None:
    world.cloud.remove_crd("hosts.getambassador.io")
    world.cycle()
    world.deploy("ls-a", workload(), gateway())
    world.cycle(3)
    assert world.status("ls-a", "web") == "Active"
    gate = world.component("ls-a", "gate")
    assert "the cluster has no Host: install Emissary" in gate["message"]
    assert gate["status"] == "Instantiating"
    world.cloud.reset()


@pytest.mark.rule("S21")
def test_a_namespace_that_is_not_there_is_said(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload(namespace="nowhere"))
    with world.cloud.restrict_agent(AGENT, EVERYTHING):
        world.cycle(2)
    web = world.component("ls-a", "web")
    assert web["status"] == "Instantiating", "somebody may make it, and then it goes on"
    assert "there is no namespace 'nowhere'" in web["message"]


@pytest.mark.rule("T7")
def test_what_helm_manages_is_helms(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    world.kube.merge("deployments", "web", {"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}})
    world.deploy("ls-a", workload(image="web:2"))
    world.cycle(2)
    web = world.component("ls-a", "web")
    assert web["status"] == "ManualOverride"
    assert "'Helm'" in web["message"]
    world.force_push("ls-a", "web")
    world.cycle(2)
    assert world.kube.tags("deployments", "web")["app.kubernetes.io/managed-by"] == "Helm"
    world.assert_safe()


@pytest.mark.rule("S16")
def test_a_person_who_is_faster_than_the_patch_itself_wins(world: KubernetesWorld) -> None:
    world.deploy("ls-a", workload())
    world.settle()
    world.deploy("ls-a", workload(image="web:2"))
    world.cloud.knobs.before_call(
        lambda _: world.kube.break_glass("deployments", "web"), actor="agent", operation="patch"
    )
    world.cycle()
    world.cloud.knobs.reset()
    world.cycle()
    web = world.component("ls-a", "web")
    assert web["status"] == "ManualOverride"
    assert web["outputFields"]["drift"] == {"image": {"declared": "web:2", "actual": "web:1"}}
    events = [event["kind"] for event in world.events("ls-a")]
    assert "RaceLost" not in events
    world.assert_safe()
