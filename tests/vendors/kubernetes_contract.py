"""Kubernetes' contract: the official client's operations, and custom resources by the definitions that were recorded.

A path of a custom group is an operation only where a definition names its group, version, plural and scope; what such
an object holds, the definition's own schema says. Rules in CEL are left to real servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.vendors.contract import Contract, Exchange
from tests.vendors.tables.form import Operation, Schema, ref
from tests.vendors.tables.kubernetes import partial_of

DEFINITIONS = re.compile(r"/apis/apiextensions\.k8s\.io/v1/customresourcedefinitions(/[^/]+)?")
CUSTOM = re.compile(
    r"/apis/(?P<group>[^/]+)/(?P<version>[^/]+)"
    r"(?:(?P<place>/namespaces/[^/]+)?/(?P<plural>[^/]+)(?P<name>/[^/]+)?(?:/(?P<part>status|scale))?)?"
)
METADATA_ALONE = re.compile(r"\bas=(PartialObjectMetadata(?:List)?)\b")
KEPT = frozenset(
    {
        *("type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
        *("exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "multipleOf", "minProperties", "maxProperties"),
        *("required", "properties", "items", "additionalProperties", "anyOf", "oneOf", "allOf", "not"),
    }
)
ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EVERY_OBJECT: dict[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


VENDORS = (
    ("kubevirt.io", "v1", "virtualmachines", ("status",)),
    ("getambassador.io", "v3alpha1", "hosts", ("status",)),
    ("getambassador.io", "v3alpha1", "listeners", ()),
    ("getambassador.io", "v3alpha1", "mappings", ("status",)),
)
"""Namespaced kinds of KubeVirt and Emissary, with their subresources: facts of the definitions that these install.

No package has the definitions, so of these objects the envelope alone is known.
"""


@dataclass
class CustomKind:
    """A kind in one version, as several definitions of the same name may describe it. ``parts``: its subresources."""

    is_namespaced: bool
    parts: set[str] = field(default_factory=set)
    forms: list[Schema] = field(default_factory=list)


class KubernetesContract(Contract):
    """Built-in kinds, and the custom ones that somebody defined."""

    learns_from = "customresourcedefinitions"

    def __init__(self, cloud: str, table: Mapping[str, Any]) -> None:
        super().__init__(cloud, table)
        self._custom: dict[tuple[str, str, str], CustomKind] = {}
        for group, version, plural, parts in VENDORS:
            self._add((group, version, plural), CustomKind(is_namespaced=True, parts=set(parts)), ANYTHING)

    def learn(self, exchange: Exchange) -> None:
        """Note what custom kinds there are."""
        if exchange.status < 300 and exchange.answer and DEFINITIONS.fullmatch(exchange.path):
            for definition in _definitions(json.loads(exchange.answer)):
                for version in definition["versions"]:
                    self._define(definition, version)

    def operation_of(self, method: str, path: str) -> Mapping[str, Any] | None:
        found = super().operation_of(method, path)
        if found is None or not found["name"].startswith("CustomObjectsApi."):
            return found
        place = CUSTOM.fullmatch(path)
        return self._of_custom(found, place) if place else None

    def _answered(self, found: Mapping[str, Any], exchange: Exchange) -> Mapping[str, Any] | None:
        wanted = METADATA_ALONE.search(exchange.headers.get("accept", ""))
        return ref(wanted.group(1)) if wanted and exchange.status < 300 else super()._answered(found, exchange)

    def _define(self, definition: Mapping[str, Any], version: Mapping[str, Any]) -> None:
        key = (definition["group"], version["name"], definition["names"]["plural"])
        is_namespaced = definition["scope"] == "Namespaced"
        kind = self._custom.get(key) or CustomKind(is_namespaced)
        kind.parts |= set(version.get("subresources") or ())
        self._add(key, kind, version["schema"]["openAPIV3Schema"])

    def _add(self, key: tuple[str, str, str], kind: CustomKind, schema: Schema) -> None:
        self._custom[key] = kind
        form = object_form(schema)
        if form not in kind.forms:
            kind.forms.append(form)
            name = "custom.{}.{}.{}".format(*key)
            self.schemas[name] = {"anyOf": kind.forms}
            self.schemas[f"partial.{name}"] = {"anyOf": [partial_of(one) for one in kind.forms]}

    def _of_custom(self, found: Mapping[str, Any], place: re.Match[str]) -> Mapping[str, Any] | None:
        group, version, plural = place["group"], place["version"], place["plural"]
        if plural is None:
            return found if any(key[:2] == (group, version) for key in self._custom) else None
        kind = self._custom.get((group, version, plural))
        if kind is None or (place["part"] and place["part"] not in kind.parts):
            return None
        is_of_all = kind.is_namespaced and place["place"] is None and place["name"] is None and found["method"] == "GET"
        if (place["place"] is not None) != kind.is_namespaced and not is_of_all:
            return None
        if place["part"] == "scale":
            return {**found, "answers": {"200": ref("V1Scale")}}
        return _with_forms(found, f"custom.{group}.{version}.{plural}", is_list=place["name"] is None)


def _with_forms(found: Mapping[str, Any], name: str, *, is_list: bool) -> Operation:
    """The client's operation on any custom object, of one kind."""
    whole, method = ref(name), found["method"]
    body: Any = found["body"]
    if method in ("POST", "PUT"):
        body = whole
    elif method == "PATCH":
        body = {"anyOf": [ref("JsonPatch"), ref(f"partial.{name}")]}
    answer = _list_of(whole) if is_list and method == "GET" else whole
    answers = dict.fromkeys(found["answers"], None if method == "DELETE" else answer)
    return {**found, "name": f"{found['name']} {name.removeprefix('custom.')}", "body": body, "answers": answers}


def _list_of(item: Schema) -> Schema:
    fields = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string", "pattern": "List$"},
        "metadata": ref("V1ListMeta"),
        "items": {"type": "array", "items": item},
    }
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def _definitions(answer: Any) -> Iterator[Mapping[str, Any]]:
    """The specs of definitions in an answer: of one, or of a list."""
    for one in answer.get("items", [answer]):
        if "spec" in one:  # not where metadata alone was asked for
            yield one["spec"]


def object_form(schema: Mapping[str, Any]) -> Schema:
    """The form of a whole object: what the definition says, and what every object has."""
    found = form_of(schema)
    every = {**EVERY_OBJECT, "metadata": ref("V1ObjectMeta")}
    required = sorted({*found.get("required", ()), *every})
    return {**found, "type": "object", "properties": {**found.get("properties", {}), **every}, "required": required}


def form_of(schema: Mapping[str, Any]) -> Schema:
    """A structural schema as JSON Schema that knows all fields: a server prunes the others."""
    made = {key: _inner(key, value) for key, value in schema.items() if key in KEPT}
    if schema.get("x-kubernetes-int-or-string"):
        made = {key: value for key, value in made.items() if key != "anyOf"} | {"type": ["integer", "string"]}
    if schema.get("x-kubernetes-embedded-resource"):
        made["properties"] = {**EVERY_OBJECT, **made.get("properties", {})}
    if "additionalProperties" not in made and schema.get("type") == "object":
        made["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made


def _inner(key: str, value: Any) -> Any:
    if key == "properties":
        return {name: form_of(one) for name, one in value.items()}
    if key in ("anyOf", "oneOf", "allOf"):
        return [form_of(one) for one in value]
    return form_of(value) if isinstance(value, Mapping) else value
