"""The family of every kind that a cluster has, by its own name."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.wording import closest
from fractal_cloud.offers.family import Declared, Family, TypeSummary
from fractal_cloud.offers.kubernetes.any_kind import catalogue, linked_pods, order, selectors
from fractal_cloud.offers.kubernetes.any_kind.discovery import kind_served
from fractal_cloud.offers.kubernetes.any_kind.facts import FAMILY, facts_of
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import NEEDED, KindFacts, Schema, TypeName, type_name
from fractal_cloud.offers.kubernetes.any_kind.offer import AnyKindOffer
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.service import KubernetesService
from fractal_cloud.offers.kubernetes.workload import KubernetesWorkload
from fractal_cloud.offers.offer import AnyOffer, Cloud

_SERVICE: Final = "Service"
_DEFINITION: Final = "CustomResourceDefinition"


class KubernetesKinds(Family):
    """`group/version/Kind`, and `v1/Kind` for the core: built in, learned of a cluster, or declared beside it."""

    name = FAMILY
    provider = "kubernetes"
    title = "Every kind of a cluster"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._learned: dict[str, KindFacts] = {}

    def covers(self, component_type: str) -> bool:
        """Whether a type's name is written like that."""
        return type_name(component_type) is not None

    def offer(self, component_type: str) -> AnyOffer | None:
        """The offer of a kind that is built in, or was learned."""
        kind = self._known(component_type)
        return None if kind is None or kind.lacks else AnyKindOffer.of_kind(kind)

    def _known(self, component_type: str) -> KindFacts | None:
        """What a cluster said counts before the catalogue, unless it publishes no schemas."""
        with self._lock:
            learned = self._learned.get(component_type)
        built_in = catalogue.find(component_type)
        return learned if learned is not None and (learned.is_known or built_in is None) else built_in

    def refusal(self, component_type: str) -> str:
        """What is there instead, or why the protocol cannot be kept for it."""
        kind = self._known(component_type)
        if kind is not None:
            lacks = ", ".join(kind.lacks)
            return f"cannot be declared: the server has no {lacks} for its objects, which are answers and not kept"
        meant = closest(component_type, catalogue.names())
        hint = f"; did you mean {meant!r}?" if meant else ""
        return (
            f"is no kind that Kubernetes {catalogue.release()} has built in, and no cluster was heard of that has it"
            f"{hint} Declare its CustomResourceDefinition in the same LiveSystem, or run an agent at the cluster"
        )

    def types(self) -> Iterator[TypeSummary]:
        """The built-in kinds that can be declared."""
        for name, description in catalogue.descriptions():
            kind = catalogue.find(name)
            if kind is not None and not kind.lacks:
                yield TypeSummary(name, self.provider, kind.name.kind, description)

    def as_of(self) -> str:
        """The day of the packaged catalogue."""
        return catalogue.as_of()

    def learn(self, cloud: Cloud, component_type: str) -> TypeFacts | None:
        """Ask a cluster for a kind: its discovery, and the schema that it publishes."""
        name = type_name(component_type)
        if name is None or not isinstance(cloud, Kubernetes):
            return None
        kind = kind_served(cloud, name)
        if kind is None or kind.lacks:
            return None
        with self._lock:
            self._learned[component_type] = kind
        known = self._known(component_type)
        return None if known is None else facts_of(known)

    def declared(self, component_type: str, others: Sequence[Declared]) -> TypeFacts | None:
        """A kind whose definition is declared beside it: its scope and its schema stand there."""
        name = type_name(component_type)
        found = None if name is None else defined(name, others)
        return None if found is None else facts_of(found)

    def dependencies(self, component: Declared, others: Sequence[Declared]) -> list[str]:
        """What its manifest names, its namespace, and the definition of its kind."""
        return order.dependencies(component, others)

    def links_as(self, component_type: str) -> str:
        """What describes pods is wired like a workload, and a Service like a Service."""
        name = type_name(component_type)
        if name is None:
            return ""
        if name.unversioned == _SERVICE:
            return KubernetesService.type
        return KubernetesWorkload.type if linked_pods.may_run_pods(name) else ""

    def warnings(self, components: Sequence[Declared]) -> Iterator[str]:
        """Selectors that match no pods of what is declared beside them, also of the types with classes."""
        return selectors.warnings(components)

    def source_errors(self, component: Declared, others: Sequence[Declared]) -> Iterator[tuple[str, str]]:
        """Whether it is known where its pods are described."""
        name = type_name(component.type)
        kind = self._known(component.type) or (None if name is None else defined(name, others))
        if name is not None and linked_pods.may_run_pods(name):
            yield from linked_pods.errors(component, "" if kind is None else linked_pods.place_of(kind))


def defined(name: TypeName, others: Sequence[Declared]) -> KindFacts | None:
    """What a definition among these components says of a kind; None where none defines it."""
    for other in others:
        meant = type_name(other.type)
        spec = other.parameters.get("spec")
        if meant is None or meant.kind != _DEFINITION or not isinstance(spec, Mapping):
            continue
        names = spec.get("names")
        if spec.get("group") != name.group or not isinstance(names, Mapping) or names.get("kind") != name.kind:
            continue
        for version in spec.get("versions") or ():
            if isinstance(version, Mapping) and version.get("name") == name.version and version.get("served", True):
                return _of_definition(name, spec, names, version)
    return None


def _of_definition(
    name: TypeName, spec: Mapping[str, Any], names: Mapping[str, Any], version: Mapping[str, Any]
) -> KindFacts:
    published = version.get("schema")
    said = published.get("openAPIV3Schema") if isinstance(published, Mapping) else None
    schema: Schema = dict(said) if isinstance(said, Mapping) else {}
    return KindFacts(
        name=name,
        plural=str(names.get("plural")),
        is_namespaced=spec.get("scope") == "Namespaced",
        verbs=NEEDED,
        schema=schema,
        description=str(schema.get("description") or "").partition(". ")[0],
        is_custom=True,
    )


family = KubernetesKinds()
