"""One cluster as the offers of any kind see it, and what a person or a controller does to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.catalog import GLOBAL_PLACE
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.kubernetes.any_kind.family import KubernetesKinds
from fractal_cloud.offers.kubernetes.any_kind.offer import AnyKindOffer
from fractal_cloud.offers.kubernetes.calls import Kubernetes
from fractal_cloud.offers.kubernetes.cloud import KubernetesSession
from fractal_cloud.offers.offer import Query, Wanted
from fractal_cloud.offers.seen_pages import SeenPages
from fractal_cloud.rules.nested.compare import Comparison
from fractal_cloud.rules.nested.path import written
from fractal_cloud.rules.nested.shape import shape_of
from tests.offers.kubernetes.any_kind.cases import KindCase
from tests.offers.kubernetes.person import KubernetesPerson

TAGS = ProtocolTags.from_values("fractal-cloud", "true", "ls-kinds")


@dataclass
class KindWorld:
    """``family``: what an agent at this cluster knows of kinds. ``person``: somebody with rights of their own."""

    session: KubernetesSession
    person: KubernetesPerson
    family: KubernetesKinds

    def cloud(self, offer: AnyKindOffer) -> Kubernetes:
        """Where the objects of a kind lie."""
        place = "default" if offer.object_kind.is_namespaced else GLOBAL_PLACE
        return self.session.at(Scope("kubernetes", self.session.realms()[""], place))

    def offer(self, component_type: str) -> AnyKindOffer | None:
        """The offer of a kind, learned of this cluster; None where the cluster has no such kind."""
        somewhere = self.session.at(Scope("kubernetes", self.session.realms()[""], "default"))
        if self.family.learn(somewhere, component_type) is None:
            return None
        found = self.family.offer(component_type)
        assert isinstance(found, AnyKindOffer)
        return found

    def path(self, offer: AnyKindOffer, name: str) -> str:
        """Where a person finds an object."""
        return offer.object_kind.path("default", name)

    def make(self, offer: AnyKindOffer, case: KindCase) -> tuple[Sighting, Wanted[Any]]:
        """The object of a case, made by the offer."""
        wanted: Wanted[Any] = Wanted(offer.component.from_parameters("it", case.resolved()), "ls-kinds")
        return offer.create(self.cloud(offer), wanted, TAGS), wanted

    def read(self, offer: AnyKindOffer, sighting: Sighting) -> Sighting:
        """The object as it is now."""
        found = offer.read(self.cloud(offer), sighting.resource_id)
        assert found is not None
        return found

    def listed(self, offer: AnyKindOffer, *names: str, seen: Mapping[str, Sighting] | None = None) -> list[Sighting]:
        """What an observation shows, with what the last one saw."""
        query = Query(names=frozenset(names), seen_pages=SeenPages(seen or {}))
        return [one for one in offer.sightings(self.cloud(offer), query) if isinstance(one, Sighting)]

    def drift(self, offer: AnyKindOffer, case: KindCase, sighting: Sighting) -> dict[str, tuple[Any, Any]]:
        """Where what is declared differs from what is there."""
        declared = {k: v for k, v in case.resolved().items() if k not in ("name", "namespace", "cluster")}
        shown = offer.as_declared(sighting, case.resolved(), {})
        shape = shape_of(offer.facts().parameter_schema)
        found = Comparison().differences((), shape, declared, dict(shown.actual))
        return {written(one.path): (one.declared, one.actual) for one in found}
