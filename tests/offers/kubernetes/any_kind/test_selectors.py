"""Selectors that match no pods of what is declared beside them are warned about, in deploys and plans (C10)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.kubernetes.any_kind.selectors import warnings
from tests.offers.kubernetes.any_kind.test_taken_out import planned
from tests.offers.kubernetes.worlds import KubernetesWorld

CART = {"app": "cart", "tier": "back"}


def deployment(component_id: str = "cart", labels: dict[str, str] | None = None, **more: Any) -> Declared:
    template = {"metadata": {"labels": labels or CART}, "spec": {"containers": []}}
    return Declared(component_id, "apps/v1/Deployment", {"spec": {"template": template}, **more})


def typed(component_id: str, kind: str, **parameters: Any) -> Declared:
    return Declared(component_id, kind, parameters)


def policy(*peers: dict[str, Any], **spec: Any) -> Declared:
    rules = [{"from": list(peers)}]
    said = {"podSelector": {}, "ingress": rules, **spec}
    return Declared("policy", "networking.k8s.io/v1/NetworkPolicy", {"spec": said})


def service(**selector: str) -> Declared:
    return Declared("front", "v1/Service", {"spec": {"selector": selector}})


WORKLOAD = typed("shop", "CustomWorkloads.CaaS.KubernetesWorkload", podLabels={"app": "web"})
SERVICE, POLICY = "NetworkAndCompute.CaaS.KubernetesService", "NetworkAndCompute.CaaS.KubernetesNetworkPolicy"
SHOP = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}


@pytest.mark.rule("C10")
@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            service(app="front"),
            "'front': its selector has app=front, which no workload declared in namespace 'default'",
        ),
        (policy({"podSelector": {"matchLabels": {"app": "web"}}}), "a peer in ingress has app=web"),
        (policy(podSelector={"matchLabels": {"app": "web"}}), "its podSelector has app=web"),
        (
            policy({"podSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}]}}),
            "a peer in ingress has tier In (front)",
        ),
        (
            Declared("budget", "policy/v1/PodDisruptionBudget", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
            "'budget': its selector has a=b",
        ),
        (
            Declared(
                "scaler",
                "autoscaling/v2/HorizontalPodAutoscaler",
                {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "carts"}}},
            ),
            "it scales apps/Deployment 'carts', which is not declared in namespace 'default': declared there are apps/",
        ),
        (typed("front", SERVICE, selector={"app": "front"}), "'front': its selector has app=front"),
        (typed("policy", POLICY, podSelector={"app": "web"}), "its podSelector has app=web"),
        (
            typed("policy", POLICY, podSelector={}, ingress=[{"podSelector": "app=web"}]),
            "a peer in ingress has app=web",
        ),
    ],
)
def test_what_matches_no_declared_pod_is_said_with_the_labels_that_there_are(one: Declared, text: str) -> None:
    (found,) = warnings([one, deployment(), deployment("other", {"app": "cart", "tier": "back"})])
    assert text in found
    assert found.endswith("app=cart,tier=back") or "scales" in found


@pytest.mark.rule("C10")
@pytest.mark.parametrize(
    "one",
    [
        service(app="cart"),
        service(),
        service(app="${cart.name}"),
        Declared("front", "v1/Service", {"spec": {"selector": {"$output": "cart.selector"}}}),
        policy({"podSelector": {}}, {"ipBlock": {"cidr": "10.0.0.0/8"}}, {"namespaceSelector": {}}),
        policy({"podSelector": {"matchLabels": {"app": "x"}}, "namespaceSelector": {"matchLabels": {"team": "x"}}}),
        policy({"podSelector": {"matchLabels": {"app": "x"}}, **SHOP}),
        policy({"podSelector": {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}}),
        typed("policy", POLICY, podSelector={}, ingress=[{"podSelector": "${cart.selector}"}, {"cidr": "10.0.0.0/8"}]),
        typed("front", SERVICE, workload="shop"),
        Declared("front", "v1/Service", {"namespace": "elsewhere", "spec": {"selector": {"app": "x"}}}),
        Declared("front", "v1/Service", {"cluster": "other", "spec": {"selector": {"app": "x"}}}),
    ],
)
def test_nothing_is_said_of_what_matches_or_means_all_or_is_elsewhere(one: Declared) -> None:
    assert list(warnings([one, deployment()])) == []


@pytest.mark.rule("C10")
def test_pods_of_typed_workloads_and_of_every_kind_count() -> None:
    assert list(warnings([service(app="web"), WORKLOAD])) == []
    assert list(warnings([service(**{"app.kubernetes.io/name": "shop"}), WORKLOAD])) == []
    runner = Declared(
        "runner",
        "shop.example/v1/Runner",
        {"podTemplate": "spec.pod", "spec": {"pod": {"metadata": {"labels": {"app": "web"}}, "spec": {}}}},
    )
    assert list(warnings([service(app="web"), deployment(), runner])) == []


@pytest.mark.rule("C10", "C6")
def test_a_deploy_and_its_plan_say_so(world: KubernetesWorld) -> None:
    workload = {"id": "cart", "type": WORKLOAD.type, "parameters": {"image": "x:1", "podLabels": CART}}
    front = {"id": "front", "type": SERVICE, "parameters": {"port": 80, "selector": {"app": "front"}}}
    body = {"id": "ls-a", "components": [workload, front]}
    of_deploy = world.api.put("/livesystems/ls-a", json=body).json()["warnings"]
    of_plan = planned(world, workload, front)["warnings"]
    (warning,) = {one for one in of_deploy if one in of_plan and "'front'" in one}
    assert warning.startswith("'front': its selector has app=front, which no workload declared in namespace 'default'")
    assert "app=cart,app.kubernetes.io/name=cart,tier=back" in warning
