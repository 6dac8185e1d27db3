"""A world for one kind, in which its example can be tried: what contract, crashes and histories stand on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError

import pytest

from fractal_cloud.model.errors import PolicyOptionError
from fractal_cloud.offers.family import Declared
from fractal_cloud.offers.kubernetes.any_kind.family import defined
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import type_name
from fractal_cloud.offers.kubernetes.any_kind.offer import AnyKindOffer
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.offers.policy import PolicyOptions
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.kubernetes.any_kind.cases import KindCase, cases
from tests.offers.kubernetes.any_kind.examples import SECRETS, example_of, object_kind
from tests.offers.kubernetes.any_kind.webhook import SHELVES, serving
from tests.offers.kubernetes.any_kind.webhook import definition as definition_of
from tests.offers.kubernetes.declaring import component
from tests.offers.kubernetes.rights import AGENT, EVERYTHING, NAMESPACES, printed_rights
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world
from tests.offers.suites import Stage

REAL: Final = os.environ.get("KUBECONFIG_REAL", "")
DEFINITION: Final = "apiextensions.k8s.io/v1/CustomResourceDefinition"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
Stages = Callable[[str], AbstractContextManager[tuple[Stage, AnyOffer]]]


def _built_in() -> dict[str, KindCase]:
    return {case.type: case for case in cases("built_in.yaml")}


def _custom() -> dict[str, tuple[KindCase, KindCase]]:
    """Objects of definitions, each with its definition, by their types."""
    found: dict[str, tuple[KindCase, KindCase]] = {}
    definition: KindCase | None = None
    for case in cases("custom.yaml"):
        if case.type == DEFINITION:
            definition = case
        elif definition is not None:
            found[case.type] = (definition, case)
    return found


BUILT_IN: Final[Mapping[str, KindCase]] = _built_in()
CUSTOM: Final = _custom()
KINDS: Final = (*BUILT_IN, *CUSTOM, *(one.type for one in SHELVES.values()))


def marked(names: Collection[str], quick: Collection[str]) -> list[Any]:
    """The kinds as parameters: those that are tried in the quick run too, and on a real server all."""
    return [pytest.param(one, marks=[] if REAL or one in quick else [pytest.mark.soak], id=one) for one in names]


@pytest.fixture
def stages(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stages:
    """Makes the stage of a kind."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    return lambda name: stage_of(session_sandbox, tmp_path, name)


class DefinedWorld(KubernetesWorld):
    """A world in whose clusters a kind is defined. ``sample``: one by which its agent learns it at once."""

    definition: KindCase
    sample: KindCase | None

    def open_control_plane(self, name: str = "control.db") -> None:
        self._define(self.definition.parameters)
        super().open_control_plane(name)
        if self.sample is not None:
            self._have_it_learned(self.sample)

    def _have_it_learned(self, sample: KindCase) -> None:
        absent = {**component(sample.type, "absent", **sample.parameters), "importOnly": True}
        absent["parameters"]["name"] = "absent"
        self.deploy("ls-learn", declared_definition(self.definition), absent)
        deadline = time.monotonic() + 20
        while self.status("ls-learn", "absent") != "Missing":
            assert time.monotonic() < deadline, self.find_component("ls-learn", "absent")
            self.cycle()
        self.delete("ls-learn")
        self.survive()

    def _define(self, definition: Mapping[str, Any]) -> None:
        spec = definition["spec"]
        metadata = {"name": definition["name"]}
        item = {"apiVersion": DEFINITION.rpartition("/")[0], "kind": "CustomResourceDefinition", "metadata": metadata}
        if self.kube.get(DEFINITIONS, definition["name"]) is None:
            self.kube.call("POST", DEFINITIONS, {**item, "spec": spec})
        for version in spec["versions"]:
            self._await(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")

    def _await(self, path: str) -> None:
        """A real server takes a moment until it answers for a kind."""
        deadline = time.monotonic() + 20
        while True:
            try:
                self.kube.call("GET", path)
            except HTTPError:
                assert time.monotonic() < deadline, f"{path} is not served"
                time.sleep(0.05)
            else:
                return


def declared_definition(definition: KindCase) -> dict[str, Any]:
    """A definition that somebody else looks after, declared beside what is of its kind."""
    return {**component(DEFINITION, "definition", **definition.parameters), "importOnly": True}


@contextmanager
def defined_world(
    sandbox: Sandbox, folder: Path, definition: KindCase, sample: KindCase | None = None, **settings: Any
) -> Iterator[KubernetesWorld]:
    """A world in whose clusters a kind is defined, and whose agent may do anything."""
    said = {"definition": definition, "sample": sample}
    of_kind: type[DefinedWorld] = type("DefinedWorld", (DefinedWorld,), said)
    with ExitStack() as stack:
        allow_all(stack, sandbox)
        yield stack.enter_context(kubernetes_world(sandbox, folder, of_kind, has_all_rights=True, **settings))


@contextmanager
def stage_of(sandbox: Sandbox, folder: Path, name: str) -> Iterator[tuple[Stage, AnyOffer]]:
    """One kind: with the rights that are printed for it, or all, where nobody prints any for kinds of definitions."""
    with ExitStack() as stack:
        if name in BUILT_IN:
            world = stack.enter_context(kubernetes_world(sandbox, folder, KubernetesWorld))
            _limit(stack, sandbox, name)
            kind = object_kind(name)
            if not _is_served(world, kind.path("default")):
                pytest.skip(f"the server has no {name}")
            yield Stage(world, example_of(BUILT_IN[name], kind, world.kube, [])), installed()[name]
            return
        definition, case = _defined(name, stack, folder)
        world = stack.enter_context(defined_world(sandbox, folder, definition, case))
        parent = declared_definition(definition)
        kind = object_kind(name, definition.parameters)
        yield Stage(world, example_of(case, kind, world.kube, [parent])), _offer_of(name, parent)


def _defined(name: str, stack: ExitStack, folder: Path) -> tuple[KindCase, KindCase]:
    """A definition and an object of its kind; those of shelves are kept in the version that is not declared."""
    if name in CUSTOM:
        return CUSTOM[name]
    version = name.split("/")[1]
    webhook = stack.enter_context(serving(folder))
    return definition_of(webhook, "v1" if version == "v2" else "v2"), SHELVES[version]


def _offer_of(name: str, parent: Mapping[str, Any]) -> AnyOffer:
    meant = type_name(name)
    assert meant is not None
    facts = defined(meant, [Declared(parent["id"], parent["type"], parent["parameters"])])
    assert facts is not None
    return AnyKindOffer.of_kind(facts)


def _limit(stack: ExitStack, sandbox: Sandbox, name: str) -> None:
    """Give the agent the rights that are printed for a kind, or all, where only somebody with these grants them.

    A server lets nobody grant what he does not have, and whoever deletes a namespace must see all that is in it.
    """
    if name.startswith("rbac.authorization.k8s.io/") or name == "v1/Namespace":
        allow_all(stack, sandbox)
        return
    try:
        stack.enter_context(printed_rights(sandbox, PolicyOptions(namespaces=NAMESPACES, types=(name,))))
    except PolicyOptionError:
        allow_all(stack, sandbox)


def allow_all(stack: ExitStack, sandbox: Sandbox) -> None:
    """Let the agent do anything in both clusters, while the stack stands."""
    for cluster in (sandbox.kubernetes, sandbox.kubernetes_2):
        stack.enter_context(cluster.restrict_agent(AGENT, EVERYTHING))


def _is_served(world: KubernetesWorld, path: str) -> bool:
    try:
        world.kube.call("GET", path)
    except HTTPError:
        return False
    return True
