"""Every kind of the files beside: no phantom drift, somebody's edit brought back and nothing else, no trace left.

Where ``KUBECONFIG_REAL`` names a server, the same is tried on that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.model.errors import Conflict, Unreadable
from fractal_cloud.offers.call_context import CallContext, calling_as
from fractal_cloud.offers.kubernetes.any_kind.family import KubernetesKinds
from fractal_cloud.offers.kubernetes.any_kind.offer import AnyKindOffer
from fractal_cloud.offers.kubernetes.calls import Call
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_sandbox import Sandbox, agent_env
from tests.offers.kubernetes.any_kind.cases import KindCase, cases
from tests.offers.kubernetes.any_kind.world import KindWorld
from tests.offers.kubernetes.person import KubernetesPerson

REAL = os.environ.get("KUBECONFIG_REAL", "")
BUILT_IN = cases("built_in.yaml")
CUSTOM = cases("custom.yaml")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


class RealPerson(KubernetesPerson):
    """The same person at a real server, through the official client."""

    def __init__(self, session: KubernetesSession) -> None:
        self._session = session

    def forget_definitions(self) -> None:
        """Take away what an earlier test left, and wait until the server has."""
        while left := [one for one in self.call("GET", DEFINITIONS)["items"] if one["spec"]["group"] == "shop.example"]:
            for one in left:
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
    if REAL:
        monkeypatch.setenv("KUBECONFIG", REAL)
        session = KubernetesSession()
        person = RealPerson(session)
        person.forget_definitions()
        yield KindWorld(session, person, KubernetesKinds())
        return
    session_sandbox.kubernetes.reset()
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
@pytest.mark.parametrize("case", BUILT_IN, ids=lambda case: case.type)
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
