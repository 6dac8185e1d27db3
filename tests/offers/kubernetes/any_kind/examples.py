"""The objects of the files beside as examples of the contract: declared, changed, and edited as a person does it.

Every kind has one change of its own, as its file says, and one of a label, which every kind can have.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from fractal_cloud.offers.kubernetes.any_kind.family import KubernetesKinds
from fractal_cloud.offers.kubernetes.any_kind.kind_facts import type_name
from fractal_cloud.offers.kubernetes.kinds import ObjectKind
from fractal_cloud.rules.nested.path import Element, parsed
from fractal_cloud.testing import MINE, Found, OfferExample
from tests.offers.kubernetes.any_kind.cases import KindCase
from tests.offers.kubernetes.examples import Example
from tests.offers.kubernetes.operator_actions import KubernetesActions
from tests.offers.kubernetes.person import KubernetesPerson

Object = dict[str, Any]
LABEL: Final = "declared.example.com/team"
SECRETS: Final = {"FRACTAL_SECRET_TOKEN": "s3cret-value", "FRACTAL_SECRET_OTHER": "0ther-value"}
_OTHER_SECRET: Final = {"stringData": {"token": {"$secret": "other"}}}
_IMMUTABLE: Final[Mapping[str, Mapping[str, Any]]] = {
    "scheduling.k8s.io/v1/PriorityClass": {"value": 2000},
    "node.k8s.io/v1/RuntimeClass": {"handler": "cage"},
    "storage.k8s.io/v1/StorageClass": {"provisioner": "shop.example/tapes"},
}
"""What of these never changes."""


class KindActions(KubernetesActions):
    """What a person does to objects of any kind."""

    def __init__(self, person: KubernetesPerson, example: Example, manifest: Object) -> None:
        super().__init__(person, example)
        self._manifest = manifest

    def make_anew(self, found: Found) -> None:
        """As somebody applies his manifest again: what a server filled in is not in it."""
        self._person.delete(self._example.plural, found.handle)
        self._person.create(self._example.plural, {**self._manifest, "metadata": {"name": found.handle}})


def example_of(case: KindCase, kind: ObjectKind, person: KubernetesPerson, parents: Sequence[Object]) -> OfferExample:
    """The example of a case."""
    name = str(kind.kind).lower()
    parameters = {**case.parameters, "metadata": _labelled(case.parameters, "shop")}
    parameters.pop("name")
    changes: dict[str, Any] = {"metadata": _labelled(case.parameters, "store"), **_change(case)}
    declaration = {"id": f"a-{name}", "type": case.type, "provider": "kubernetes", "parameters": parameters}
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, **case.resolved()}
    manifest.pop("name")
    immutable = _IMMUTABLE.get(case.type, {})
    beside = Example(
        [*parents, declaration], changes, kind.path("NAMESPACE").replace("NAMESPACE", "{}"), edit, immutable
    )
    return OfferExample(
        components=beside.components,
        changes=changes,
        immutable_changes=immutable,
        operator=KindActions(person, beside, manifest),
    )


def object_kind(component_type: str, definition: Mapping[str, Any] | None = None) -> ObjectKind:
    """Where objects of a type lie, by their definition or as a cluster has them built in."""
    name = type_name(component_type)
    assert name is not None
    if definition is not None:
        spec = definition["spec"]
        is_namespaced = spec["scope"] == "Namespaced"
        return ObjectKind(name.group, name.version, name.kind, spec["names"]["plural"], "", is_namespaced)
    offer = KubernetesKinds().offer(component_type)
    assert offer is not None
    found: ObjectKind = offer.object_kind  # type: ignore[attr-defined]
    return found


def edit(item: Object, parameter: str, value: Any) -> None:
    """Bring an object's field to what is declared, leaving what a server has filled in."""
    if parameter == "stringData":
        item["data"] = {key: base64.b64encode(_secret(one).encode()).decode() for key, one in value.items()}
    else:
        item[parameter] = merged(item.get(parameter), value)


def merged(there: Any, value: Any) -> Any:
    """A value put into what is there: maps by their keys, lists by the names of their elements where they have some."""
    if isinstance(there, dict) and isinstance(value, dict):
        return {**there, **{key: merged(there.get(key), one) for key, one in value.items()}}
    if isinstance(there, list) and isinstance(value, list) and all(_has_name(one) for one in [*there, *value]):
        known = {one["name"]: one for one in there}
        if {one["name"] for one in value} == known.keys():
            return [merged(known[one["name"]], one) for one in value]
    return value


def _has_name(element: Any) -> bool:
    return isinstance(element, dict) and "name" in element


def _secret(value: Any) -> str:
    return SECRETS[f"FRACTAL_SECRET_{value['$secret'].upper()}"] if isinstance(value, dict) else str(value)


def _labelled(parameters: Mapping[str, Any], team: str) -> Object:
    metadata: Object = deepcopy(parameters.get("metadata") or {})
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if key not in MINE}
    return {**metadata, "labels": {**labels, LABEL: team}}


def _change(case: KindCase) -> Object:
    """Another value of the field that the case changes."""
    if case.type == "v1/Secret":
        return deepcopy(_OTHER_SECRET)
    if case.change is None or case.is_silent:
        return {}
    *way, last = parsed(str(case.change["path"]))
    changed = deepcopy(dict(case.parameters))
    here: Any = changed
    for step in way:
        here = next(one for one in here if _is(one, step)) if isinstance(step, Element) else here[step]
    here[last] = case.change["value"]
    top = str(way[0] if way else last)
    return {top: changed[top]}


def _is(element: Mapping[str, Any], step: Element) -> bool:
    return all(str(element.get(name)) == text for name, text in step.keys)
