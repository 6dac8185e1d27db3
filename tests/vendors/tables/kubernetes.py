"""Kubernetes' table, from the official client, which is generated from the API server's OpenAPI document.

What custom resources hold, their own definitions say: of them only the envelope is known here.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from kubernetes.client import models
from pydantic import TypeAdapter

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

MODULES = ("core_v1", "apps_v1", "networking_v1", "storage_v1", "apiextensions_v1", "custom_objects", "version")
WANTED = re.compile(
    r"/(namespaces|persistentvolumeclaims|persistentvolumes|pods|secrets|services|serviceaccounts|configmaps|deployments"
    r"|networkpolicies|storageclasses|customresourcedefinitions|scale|status|\{plural\})(/\{\w+\})?$|^/version/?$"
)
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
}
"""RFC 6902, and what every object has."""


def make() -> dict[str, Any]:
    """Return the whole table."""
    found: list[Operation] = []
    for module in MODULES:
        api = importlib.import_module(f"kubernetes.client.api.{module}_api")
        for group in vars(api).values():
            if inspect.isclass(group) and group.__module__ == api.__name__:
                found += [one for one in _operations(group) if WANTED.search(one["path"])]
    names = {name for name in dir(models) if inspect.isclass(getattr(models, name))}
    _, everything = TypeAdapter.json_schemas(
        [(name, "validation", TypeAdapter(getattr(models, name))) for name in sorted(names) if name.startswith("V1")]
        + [("VersionInfo", "validation", TypeAdapter(models.VersionInfo))]
    )
    whole = {name: _strict(one) for name, one in everything["$defs"].items()}
    partial = {f"partial.{name}": _partial(one) for name, one in whole.items()}
    return table(found, whole | partial | OWN, errors=ref("V1Status"), anywhere=["pretty"], hasPlainRefusals=True)


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
    if kind.startswith("V1") or kind == "VersionInfo":
        return ref(kind)
    return ref("Custom") if kind == "object" else {}


def _strict(schema: Any) -> Any:
    """A schema that knows all its fields."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _strict(one) for key, one in schema.items() if key not in ("default", "title", "description", "format")
    }
    return {**kept, "additionalProperties": False} if "properties" in kept else kept


def _partial(schema: Any) -> Any:
    """A schema for a part of an object: nothing is required."""
    if isinstance(schema, list):
        return [_partial(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _partial(one) for key, one in schema.items() if key != "required"}
    if isinstance(kept.get("$ref"), str):
        kept["$ref"] = kept["$ref"].replace("#/$defs/", "#/$defs/partial.")
    return kept
