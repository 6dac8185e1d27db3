"""Every kind of the files beside: no phantom drift, somebody's edit brought back and nothing else, no trace left.

Where ``KUBECONFIG_REAL`` names a server, the same is tried on that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import CloudError, Conflict, NotFound, Overtaken, Unreadable
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_cloud.offers.history import Asked
from fractal_cloud.offers.kubernetes.any_kind import discovery
from fractal_cloud.offers.kubernetes.any_kind.family import KubernetesKinds
from fractal_cloud.offers.kubernetes.any_kind.offer import AnyKindOffer
from fractal_cloud.offers.kubernetes.any_kind.owned_fields import FIELD_MANAGER, configuration
from fractal_cloud.offers.kubernetes.calls import Call
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_cloud.rules.nested.path import parsed
from fractal_sandbox import Sandbox, agent_env
from tests.offers.kubernetes.any_kind.cases import VALUE, KindCase, cases
from tests.offers.kubernetes.any_kind.world import KindWorld
from tests.offers.kubernetes.person import KubernetesPerson

REAL = os.environ.get("KUBECONFIG_REAL", "")
BUILT_IN = cases("built_in.yaml")
CUSTOM = cases("custom.yaml")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


# One of each way of being compared; the other kinds are tried in the long run, and on a real server always.
QUICK = frozenset(
    {
        *("v1/ConfigMap", "v1/Secret", "v1/Service", "v1/ResourceQuota", "v1/LimitRange", "v1/PersistentVolumeClaim"),
        *("apps/v1/Deployment", "apps/v1/StatefulSet", "batch/v1/CronJob", "batch/v1/Job"),
        *("networking.k8s.io/v1/NetworkPolicy", "policy/v1/PodDisruptionBudget", "storage.k8s.io/v1/StorageClass"),
        *("rbac.authorization.k8s.io/v1/RoleBinding", "scheduling.k8s.io/v1/PriorityClass"),
        "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration",
    }
)


def soaking(case: KindCase) -> list[pytest.MarkDecorator]:
    """How a case is marked that the quick run leaves out."""
    return [] if REAL or case.type in QUICK else [pytest.mark.soak]


class RealPerson(KubernetesPerson):
    """The same person at a real server, through the official client."""

    def __init__(self, session: KubernetesSession) -> None:
        self._session = session

    def forget_definitions(self) -> None:
        """Take away what an earlier test left, and wait until the server has."""
        while left := [one for one in self.call("GET", DEFINITIONS)["items"] if one["spec"]["group"] == "shop.example"]:
            for one in left:
                with suppress(AssertionError):  # it has just gone
                    self.call("DELETE", f"{DEFINITIONS}/{one['metadata']['name']}")
            time.sleep(0.2)

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        call = Call(method, path, {"fieldManager": "somebody"} if method != "DELETE" else {}, body, kind)
        answer = self._session.enter("").send(call)
        assert answer.is_good, answer.text
        return answer.body()


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KindWorld]:
    """An empty cluster."""
    session_sandbox.kubernetes.reset()
    if REAL:
        monkeypatch.setenv("KUBECONFIG", REAL)
        session = KubernetesSession()
        person = RealPerson(session)
        person.forget_definitions()
        yield KindWorld(session, person, KubernetesKinds())
        return
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    with calling_as(CallContext("ls-kinds", "it", "drift")):
        yield KindWorld(KubernetesSession(), KubernetesPerson(session_sandbox.url, tmp_path), KubernetesKinds())
    assert not session_sandbox.kubernetes.monitor.violations, session_sandbox.kubernetes.monitor.violations


def offer_of(world: KindWorld, component_type: str) -> AnyKindOffer:
    offer = world.offer(component_type)
    if offer is None:
        pytest.skip(f"the cluster has no {component_type}")
    return offer


def served(world: KindWorld, component_type: str) -> AnyKindOffer:
    """The offer of a kind that was just defined, once the cluster answers for it: some time after it is listed."""
    deadline = time.monotonic() + 20
    while True:
        offer = world.offer(component_type)
        with suppress(Unreadable):
            if offer is not None:
                world.listed(offer)
                return offer
        assert time.monotonic() < deadline, f"{component_type} is not served"
        time.sleep(0.05)


def lead_a_life(world: KindWorld, case: KindCase) -> None:
    """Make it, look for phantom drift, have it edited, bring that back, and take it away."""
    offer = offer_of(world, case.type)
    made, wanted = world.make(offer, case)
    try:
        sighting = world.read(offer, made)
        assert world.drift(offer, case, sighting) == {}, "drift that nobody made"
        before = world.person.call("GET", world.path(offer, case.name))
        if case.change is not None:
            world.person.call("PUT", world.path(offer, case.name), case.edited(before))
            sighting = world.read(offer, made)
            found = world.drift(offer, case, sighting)
            assert bool(found) is not case.is_silent, found
            for _ in range(2):
                if found:
                    offer.update(world.cloud(offer), sighting, wanted, list(found))
                    sighting = world.read(offer, made)
                    found = world.drift(offer, case, sighting)
            assert found == {}
            after = world.person.call("GET", world.path(offer, case.name))
            if not case.is_silent:
                assert without_versions(after) == without_versions(before), "something else was written, too"
    finally:
        # A server without controllers would wait for ever for what is to be orphaned.
        world.person.call("DELETE", world.path(offer, case.name), {"propagationPolicy": "Background"})


def without_versions(item: dict[str, Any]) -> dict[str, Any]:
    """An object without what every write changes."""
    metadata = {k: v for k, v in item["metadata"].items() if k in ("name", "labels", "uid")}  # a server counts, too
    return {**{key: value for key, value in item.items() if key != "status"}, "metadata": metadata}


@pytest.mark.rule("S12", "S14", "T1")
@pytest.mark.parametrize("case", [pytest.param(one, marks=soaking(one), id=one.type) for one in BUILT_IN])
def test_an_object_of_a_built_in_kind_has_no_phantom_drift_and_every_edit_is_brought_back(
    world: KindWorld, case: KindCase
) -> None:
    lead_a_life(world, case)


@pytest.mark.rule("S12", "O15")
def test_kinds_of_definitions_in_one_breath_with_them(world: KindWorld) -> None:
    made = []
    for case in CUSTOM:
        if case.type == DEFINITION:
            offer = offer_of(world, case.type)
            sighting, _ = world.make(offer, case)
            made.append((offer, sighting, case))
            continue
        served(world, case.type)
        lead_a_life(world, case)
    for offer, sighting, case in made:
        assert world.drift(offer, case, world.read(offer, sighting)) == {}
        offer.delete(world.cloud(offer), world.read(offer, sighting))


@pytest.mark.rule("O6", "O15")
def test_a_definition_and_a_namespace_stay_while_anything_of_somebody_is_left_in_them(world: KindWorld) -> None:
    definition, widget = CUSTOM[0], CUSTOM[1]
    offer = offer_of(world, definition.type)
    sighting, _ = world.make(offer, definition)
    of_widgets = served(world, widget.type)
    made, _ = world.make(of_widgets, widget)
    with pytest.raises(Conflict, match=r"widgets 'default/round' would be deleted with it"):
        offer.delete(world.cloud(offer), world.read(offer, sighting))
    namespaces = offer_of(world, "v1/Namespace")
    default = next(one for one in world.listed(namespaces, "default") if one.name == "default")
    with pytest.raises(Conflict, match="widget 'round'"):
        namespaces.delete(world.cloud(namespaces), default)
    of_widgets.delete(world.cloud(of_widgets), world.read(of_widgets, made))
    offer.delete(world.cloud(offer), world.read(offer, sighting))


@pytest.mark.rule("O6", "O15")
@pytest.mark.parametrize("accepted", [discovery.ACCEPTED, "application/json"], ids=["aggregated", "plain"])
def test_a_namespace_stays_for_a_kind_that_is_in_no_preferred_version(
    world: KindWorld, accepted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "ACCEPTED", accepted)
    for plural, kind, version in (("lamps", "Lamp", "v1"), ("wicks", "Wick", "v1alpha1")):
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        spec = {
            "group": "shop.example",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        }
        world.make(offer_of(world, DEFINITION), KindCase(DEFINITION, {"name": f"{plural}.shop.example", "spec": spec}))
    served(world, "shop.example/v1/Lamp")
    wicks = served(world, "shop.example/v1alpha1/Wick")
    made, _ = world.make(wicks, KindCase("shop.example/v1alpha1/Wick", {"name": "long", "spec": {}}))
    namespaces = offer_of(world, "v1/Namespace")
    default = next(one for one in world.listed(namespaces, "default") if one.name == "default")
    with pytest.raises(Conflict, match="wick 'long'"):
        namespaces.check_deletion(world.cloud(namespaces), default)
    wicks.delete(world.cloud(wicks), world.read(wicks, made))


def web(world: KindWorld) -> tuple[AnyKindOffer, KindCase]:
    case = next(one for one in BUILT_IN if one.type == "apps/v1/Deployment")
    return offer_of(world, case.type), case


def patched(world: KindWorld, offer: AnyKindOffer, case: KindCase, manager: str, **spec: Any) -> None:
    path = f"{world.path(offer, case.name)}?fieldManager={manager}"
    world.person.call("PATCH", path, {"spec": spec}, "application/merge-patch+json")


@pytest.mark.skipif(bool(REAL), reason="the person at a real server has a name of his own")
@pytest.mark.rule("G15", "S27")
def test_an_apply_writes_what_differs_and_leaves_what_is_ignored_or_anybody_elses(world: KindWorld) -> None:
    offer, case = web(world)
    made, wanted = world.make(offer, case)
    patched(world, offer, case, "autoscaler", replicas=7)
    for image in ("nginx:1", "nginx:2"):  # the second apply must not take away what the first one did not name
        world.person.call("PUT", world.path(offer, case.name), changed_image(world, offer, case, image))
        path = "spec.template.spec.containers[name=web].image"
        ignoring = replace(wanted, ignored=frozenset({"spec.replicas"}))
        offer.update(world.cloud(offer), world.read(offer, made), ignoring, [path])
        spec = world.person.call("GET", world.path(offer, case.name))["spec"]
        assert spec["replicas"] == 7, "ignored: whoever has it keeps it"
        names = [one["name"] for one in spec["template"]["spec"]["containers"]]
        assert names == ["web", "side"], "what was set at creation is still there"
        assert spec["template"]["spec"]["containers"][0]["image"] == "nginx:1.29"
    sighting = world.read(offer, made)
    asked = [Asked("spec.replicas", datetime.now(UTC), "7", None)]
    assert offer.changed_by(world.cloud(offer), sighting, wanted, asked)["spec.replicas"].by == "autoscaler"


def changed_image(world: KindWorld, offer: AnyKindOffer, case: KindCase, image: str) -> dict[str, Any]:
    item: dict[str, Any] = world.person.call("GET", world.path(offer, case.name))
    item["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return item


@pytest.mark.rule("S16")
def test_an_apply_rests_on_the_very_object_that_was_read(world: KindWorld) -> None:
    offer, case = web(world)
    made, wanted = world.make(offer, case)
    seen = world.read(offer, made)
    body = configuration({**world.person.call("GET", world.path(offer, case.name))}, [parsed("spec.replicas")])
    world.person.call("PUT", world.path(offer, case.name), changed_image(world, offer, case, "nginx:9"))
    with pytest.raises(Overtaken):
        world.cloud(offer).apply(offer.object_kind, case.name, body, FIELD_MANAGER)
    offer.delete(world.cloud(offer), world.read(offer, made))
    with pytest.raises(CloudError):
        world.cloud(offer).apply(offer.object_kind, case.name, body, FIELD_MANAGER)
    assert not [one for one in world.listed(offer) if one.name == case.name], "nothing is made anew"
    with pytest.raises(NotFound):
        offer.update(world.cloud(offer), seen, wanted, ["spec.replicas"])


@pytest.mark.rule("A8")
def test_of_a_secret_nothing_is_seen_but_what_is_declared(world: KindWorld) -> None:
    case = next(one for one in BUILT_IN if one.type == "v1/Secret")
    offer = offer_of(world, case.type)
    made, _ = world.make(offer, case)
    path = world.path(offer, case.name)
    world.person.call("PATCH", path, {"data": {"other": "cGFzcw=="}}, "application/merge-patch+json")
    shown = offer.as_declared(world.read(offer, made), case.resolved(), {})
    assert shown.actual["stringData"] == {"token": VALUE}
    assert "pass" not in str(shown), "what nobody declared goes no further"
    assert not world.drift(offer, case, world.read(offer, made)), "entries of others are left alone"
    world.person.call("DELETE", path)


@pytest.mark.skipif(bool(REAL), reason="calls are counted by the sandbox")
@pytest.mark.rule("O4", "S23")
def test_an_idle_observation_reads_no_object_and_a_change_is_one_read(
    world: KindWorld, session_sandbox: Sandbox
) -> None:
    case = next(one for one in BUILT_IN if one.type == "v1/ConfigMap")
    offer = offer_of(world, case.type)
    names = [f"map-{number}" for number in range(40)]
    for name in names:
        world.make(offer, KindCase(case.type, {**case.parameters, "name": name}))
    first = {one.resource_id: one for one in world.listed(offer, *names)}
    assert read_since(session_sandbox, 0)[-2:] == ["list", "list"], "in one list, not one by one"
    before = len(session_sandbox.kubernetes.calls)
    second = {one.resource_id: one for one in world.listed(offer, *names, seen=first)}
    assert read_since(session_sandbox, before) == ["list"], "metadata alone"
    assert all(second[key] is one for key, one in first.items() if one.name in names)
    world.person.call("PATCH", world.path(offer, "map-7"), {"data": {"mode": "x"}}, "application/merge-patch+json")
    before = len(session_sandbox.kubernetes.calls)
    third = {one.name: one for one in world.listed(offer, *names, seen=second)}
    assert read_since(session_sandbox, before) == ["list", "get"]
    assert third["map-7"].actual["data"]["mode"] == "x"


def read_since(sandbox: Sandbox, number: int) -> list[str]:
    calls = sandbox.kubernetes.calls.all()[number:]
    return [one.operation for one in calls if one.actor == "agent" and one.service == "configmaps" and not one.is_write]
