"""Kubernetes' table, from the official client, which is generated from the API server's OpenAPI document.

What custom resources hold, their own definitions say: of them only the envelope is known here.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import api, models
from pydantic import TypeAdapter

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

UNSTABLE = re.compile(r"_v\d+(alpha|beta)\d+_api$")
MODELS = frozenset(name for name in dir(models) if inspect.isclass(getattr(models, name)))
KINDS = re.compile(r"(\w*?)(V1|V2)(?!alpha|beta)|CoreV1|EventsV1|VersionInfo")
ALSO = [ref(name) for name in ("PartialObjectMetadata", "PartialObjectMetadataList", "partial.V1ObjectMeta")]
"""Schemas that no operation of the client's leads to."""
DOCUMENT = operation(
    "OpenApi.document",
    "GET",
    "/openapi/v3/{rest}",
    query={"hash": {"type": "string"}},
    answers={
        "200": {
            "type": "object",
            "required": ["openapi", "info", "paths"],
            "properties": {
                "openapi": {"type": "string", "pattern": r"^3\.\d+\.\d+$"},
                "info": {"type": "object", "required": ["title", "version"]},
                "paths": {"type": "object"},
                "components": {"type": "object"},
            },
        }
    },
)
"""One group's own document, which the client does not ask for: what OpenAPI demands of every document."""
PATCHES = (
    "application/json",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
OWN: dict[str, Schema] = {
    "JsonPatch": {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["op", "path"],
            "additionalProperties": False,
            "properties": {
                "op": {"enum": ["add", "remove", "replace", "move", "copy", "test"]},
                "path": {"type": "string", "pattern": "^(/.*)?$"},
                "from": {"type": "string"},
                "value": {},
            },
        },
    },
    "Custom": {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "properties": {
            "apiVersion": {"type": "string", "pattern": "^[a-z0-9.-]+/v[a-z0-9]+$"},
            "kind": {"type": "string"},
            "metadata": {"anyOf": [ref("V1ObjectMeta"), ref("V1ListMeta")]},
        },
    },
    "PartialObjectMetadata": {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": "meta.k8s.io/v1"},
            "kind": {"const": "PartialObjectMetadata"},
            "metadata": ref("V1ObjectMeta"),
        },
    },
    "PartialObjectMetadataList": {
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "items"],
        "additionalProperties": False,
        "properties": {
            "apiVersion": {"const": "meta.k8s.io/v1"},
            "kind": {"const": "PartialObjectMetadataList"},
            "metadata": ref("V1ListMeta"),
            "items": {"type": "array", "items": ref("PartialObjectMetadata")},
        },
    },
}
"""RFC 6902, what every object has, and the form in which a server answers who asks for metadata alone."""


def make() -> dict[str, Any]:
    """Return the whole table."""
    found: list[Operation] = [DOCUMENT]
    for module in pkgutil.iter_modules(api.__path__):
        if module.name.endswith("_api") and not UNSTABLE.search(module.name):
            apis = importlib.import_module(f"{api.__name__}.{module.name}")
            for group in vars(apis).values():
                if inspect.isclass(group) and group.__module__ == apis.__name__:
                    found += _operations(group)
    _, everything = TypeAdapter.json_schemas(
        [(name, "validation", TypeAdapter(getattr(models, name))) for name in sorted(MODELS) if KINDS.match(name)]
    )
    whole = {name: _strict(one) for name, one in everything["$defs"].items()}
    partial = {f"partial.{name}": partial_of(one) for name, one in whole.items()}
    schemas = whole | partial | OWN
    return table(found, schemas, errors=ref("V1Status"), anywhere=["pretty"], hasPlainRefusals=True, also=ALSO)


def _operations(group: type) -> Iterator[Operation]:
    for name, method in vars(group).items():
        serialize = vars(group).get(f"_{name}_serialize")
        if serialize is None or not inspect.isfunction(method):
            continue
        sent = inspect.getsource(serialize)
        verb, path = re.search(r"method='(\w+)'", sent), re.search(r"resource_path='([^']+)'", sent)
        assert verb, name
        assert path, name
        source = inspect.getsource(method)
        answers = dict(re.findall(r"'(2\d\d)': \"(\w+)\"", source))
        body = re.search(r"\bbody: (?:Annotated\[)?(?:Optional\[)?(\w+)", source)
        accepts = body.group(1) if body else ""
        answered = answers.get("200", "")
        yield operation(
            f"{group.__name__}.{name}",
            verb.group(1),
            path.group(1).rstrip("/") if path.group(1) != "/version/" else "/version",
            query={word: {} for word in re.findall(r"_query_params\.append\(\('(\w+)'", sent)},
            body=_body(verb.group(1), accepts, answered) if accepts else None,
            isBodyOptional=verb.group(1) == "DELETE",
            answers={status: None if verb.group(1) == "DELETE" else _known(kind) for status, kind in answers.items()},
            accepts=PATCHES,
            needs={"sendInitialEvents": "resourceVersionMatch"},  # as real servers of 1.27 and newer demand
        )


def _body(verb: str, accepts: str, answered: str) -> Schema:
    if verb == "PATCH":
        kind = {} if answered == "object" else ref(f"partial.{answered}")
        return {"anyOf": [ref("JsonPatch"), kind or {"type": "object"}]}
    return _known(accepts)


def _known(kind: str) -> Schema:
    if kind in MODELS:
        return ref(kind)
    return ref("Custom") if kind == "object" else {}


def _strict(schema: Any) -> Any:
    """A schema that knows all its fields."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: {name: _strict(inner) for name, inner in one.items()} if key == "properties" else _strict(one)
        for key, one in schema.items()
        if key not in ("default", "title", "description", "format")
    }
    return {**kept, "additionalProperties": False} if "properties" in kept else kept


def partial_of(schema: Any) -> Any:
    """A schema for a part of an object: nothing is required."""
    if isinstance(schema, list):
        return [partial_of(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept: Schema = {
        key: {name: partial_of(inner) for name, inner in one.items()} if key == "properties" else partial_of(one)
        for key, one in schema.items()
        if key != "required"
    }
    if isinstance(kept.get("$ref"), str):
        kept["$ref"] = kept["$ref"].replace("#/$defs/", "#/$defs/partial.")
    return kept
