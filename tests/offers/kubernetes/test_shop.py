"""`examples/shop-on-kubernetes`: plain manifests converted, deployed, taken over by hand, handed back, and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fractal_cloud.cli.conversion.objects import convert
from fractal_cloud.cli.conversion.reading import read
from fractal_cloud.cli.conversion.writing import to_yaml
from fractal_cloud.cli.yaml_loader import Loader
from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import type_name
from fractal_cloud.offers.kubernetes.any_kind.selectors import warnings
from fractal_sandbox import Sandbox
from tests.offers.kubernetes.server import minor_version
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world

pytestmark = pytest.mark.skipif(minor_version() < 24, reason="its autoscaler came with 1.23, its probes with 1.24")
Json = dict[str, Any]
MANIFESTS: Final = Path(__file__).parents[3] / "examples" / "shop-on-kubernetes" / "manifests"
SECRETS: Final = ("shop-payment-provider-api-key", "shop-payment-provider-webhook-secret")
PLURALS: Final = {"NetworkPolicy": "networkpolicies", "Ingress": "ingresses"}


def _looser() -> Json:
    """The definition of the shop's own kind, with a lower bound."""
    (definition, _) = yaml.safe_load_all((MANIFESTS / "02-monitor.yaml").read_text())
    (version,) = definition["spec"]["versions"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["everySeconds"]["minimum"] = 1
    return {"spec": {"versions": [version]}}


EDITS: Final[dict[str, tuple[str, Json]]] = {
    "v1/Namespace": ("shop", {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}),
    "v1/ConfigMap": ("settings", {"data": {"LOG_LEVEL": "debug"}}),
    "v1/Secret": ("payment-provider", {"stringData": {"api-key": "somebody's"}}),
    "v1/ServiceAccount": ("payment", {"automountServiceAccountToken": True}),
    "v1/Service": ("catalog", {"spec": {"selector": {"app": "orders"}}}),
    "apps/v1/Deployment": ("checkout", {"spec": {"replicas": 7}}),
    "networking.k8s.io/v1/NetworkPolicy": ("payment", {"spec": {"ingress": []}}),
    "networking.k8s.io/v1/Ingress": ("storefront", {"spec": {"rules": []}}),
    "autoscaling/v2/HorizontalPodAutoscaler": ("storefront", {"spec": {"maxReplicas": 50}}),
    "apiextensions.k8s.io/v1/CustomResourceDefinition": ("servicechecks.monitoring.shop.example", _looser()),
    "monitoring.shop.example/v1/ServiceCheck": ("storefront", {"spec": {"everySeconds": 5}}),
}
"""One object of each kind, and what somebody does to it by hand."""


def shop() -> Json:
    declared: Json = yaml.load(to_yaml(convert(read([str(MANIFESTS)])), "shop"), Loader)
    return declared


def path_of(component_type: str, name: str) -> str:
    kind = type_name(component_type)
    assert kind is not None
    root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
    place = "" if kind.kind in ("Namespace", "CustomResourceDefinition") else "/namespaces/shop"
    return f"{root}{place}/{PLURALS.get(kind.kind, kind.kind.lower() + 's')}/{name}"


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    folder = tmp_path / "secrets" / "shop"
    folder.mkdir(parents=True, mode=0o700)
    for name in SECRETS:
        (folder / name).write_text(f"value of {name}")
    (tmp_path / "secrets").chmod(0o700)
    settings: Json = {"secrets_dir": tmp_path / "secrets"}
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld, has_all_rights=True, **settings) as made:
        yield made


@pytest.mark.rule("C10")
def test_all_selectors_of_the_shop_match_and_one_that_does_not_is_warned_about() -> None:
    """The labels that its policies and services ask for are those of its pods; a typing error would cut them off."""
    declared = [Declared(one["id"], one["type"], one["parameters"]) for one in shop()["components"]]
    assert list(warnings(declared)) == []
    odd = str(shop()).replace("{'app': 'checkout'}", "{'app': 'checkuot'}", 1)
    wrong = [Declared(one["id"], one["type"], one["parameters"]) for one in yaml.safe_load(odd)["components"]]
    (warning,) = warnings(wrong)
    assert "app=checkuot, which no workload declared in namespace 'shop' has: their pods have app=adverts" in warning


@pytest.mark.rule("G1", "G3", "G7", "G8", "O10", "S20")
def test_the_shop_is_converted_deployed_taken_over_handed_back_and_deleted_to_nothing(world: KubernetesWorld) -> None:
    components: list[Json] = shop()["components"]
    assert len(components) == 56
    assert {one["type"] for one in components} == set(EDITS), "the glass of every kind is broken below"
    world.deploy("shop", *components)
    world.settle(30)
    statuses = {one["id"]: world.component("shop", one["id"]) for one in components}
    odd = {name: (one["status"], one["message"]) for name, one in statuses.items() if one["status"] != "Active"}
    assert odd == {}
    before = len(world.writes())
    world.cycle(2)
    assert len(world.writes()) == before, "a settled cycle writes nothing"
    chosen = _chosen(components)
    for _, path, edit in chosen:
        world.kube.call("PATCH", path, {"metadata": {"labels": {"app.kubernetes.io/managed-by": None}}}, MERGE)
        world.kube.call("PATCH", path, edit, MERGE)
    world.cycle(2)
    for one, _, _ in chosen:
        found = world.component("shop", one["id"])
        assert found["status"] == "ManualOverride", (one["id"], found["message"])
        assert found["outputFields"].get("drift"), one["id"]
    assert len(world.writes()) == before, "what somebody took over is left alone"
    for _, path, _ in chosen:
        world.kube.call("PATCH", path, {"metadata": HAND_BACK}, MERGE)
    world.settle(20)
    for one, _, _ in chosen:
        found = world.component("shop", one["id"])
        assert (found["status"], found["outputFields"].get("drift")) == ("Active", None), (one["id"], found["message"])
    world.delete("shop")
    for _ in range(30):
        world.cycle()
        if world.api.get("/livesystems/shop").status_code == 404:
            break
    assert world.api.get("/livesystems/shop").status_code == 404
    assert world.kube.get("namespaces", "shop") is None
    left = world.kube.call("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")["items"]
    assert not [one for one in left if one["spec"]["group"] == "monitoring.shop.example"]
    world.assert_safe()


MERGE: Final = "application/merge-patch+json"
HAND_BACK: Final = {
    "labels": {"app.kubernetes.io/managed-by": "fractal-cloud"},
    "annotations": {"fractal.cloud/reconcile": "reconcile"},
}


def _chosen(components: list[Json]) -> list[tuple[Json, str, Json]]:
    found = []
    for component_type, (name, edit) in EDITS.items():
        one = next(c for c in components if c["type"] == component_type and c["parameters"]["name"] == name)
        found.append((one, path_of(component_type, name), edit))
    return found
