"""Google Cloud's table, from the discovery documents in ``google-api-python-client``."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

DOCUMENTS = {
    "compute.v1": r"/(networks|subnetworks|firewalls|instances|disks|operations|machineTypes|images|zones|regions)\b",
    "container.v1": r"/locations/",
    "sqladmin.v1beta4": r"",
    "storage.v1": r"",
    "run.v2": r"/(services|operations|locations)\b",
    "run.v1": r"/(services|namespaces|locations)\b",
    "iam.v1": r"/serviceAccounts\b",
    "cloudresourcemanager.v3": r"^/v3/projects",
    "cloudresourcemanager.v1": r"^/v1/projects",
}
"""Each document with the paths that are of interest to us."""

ERRORS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["error"],
        "additionalProperties": False,
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "additionalProperties": False,
                "properties": {
                    "code": {"type": "integer"},
                    "message": {"type": "string"},
                    "status": {"type": "string"},
                    "errors": {"type": "array"},
                    "details": {"type": "array"},
                },
            }
        },
    }
}
"""https://cloud.google.com/apis/design/errors: the envelope of all APIs, with `errors` in the older ones."""


def make() -> dict[str, Any]:
    """Return the whole table."""
    operations: list[Operation] = []
    schemas: dict[str, Schema] = dict(ERRORS)
    package = importlib.import_module("googleapiclient")
    assert package.__file__
    folder = Path(package.__file__).parent / "discovery_cache/documents"
    anywhere: set[str] = set()
    for name, paths in DOCUMENTS.items():
        document = json.loads((folder / f"{name}.json").read_text())
        anywhere |= set(document["parameters"])
        operations += [one for one in _operations(document, document, name) if re.search(paths, one["path"])]
        schemas |= {f"{name}.{key}": _form(one, name) for key, one in document["schemas"].items()}
    return table(operations, schemas, errors=ref("Error"), anywhere=sorted(anywhere))


def _operations(document: dict[str, Any], within: dict[str, Any], label: str) -> Iterator[Operation]:
    for method in within.get("methods", {}).values():
        words = {key: _word(one) for key, one in method.get("parameters", {}).items() if one["location"] == "query"}
        request = method.get("request", {}).get("$ref")
        body = ref(f"{label}.{request}") if request else None
        if request:
            needed = _needed(document["schemas"][request], method["id"])
            body = {"allOf": [body, {"required": needed}]} if needed else body
        answer = method.get("response", {}).get("$ref")
        path = "/" + document.get("servicePath", "") + method.get("flatPath", method["path"])
        yield operation(
            method["id"],
            method["httpMethod"],
            re.sub(r"\{\+?(\w+)\}", r"{\1}", path),
            query=words,
            body=body,
            answers={"200": ref(f"{label}.{answer}")} if answer else {"204": None, "200": None},
        )
    for inner in within.get("resources", {}).values():
        yield from _operations(document, inner, label)


def _needed(schema: dict[str, Any], method: str) -> list[str]:
    return [
        name
        for name, one in schema.get("properties", {}).items()
        if method in one.get("annotations", {}).get("required", ())
    ]


def _word(parameter: dict[str, Any]) -> Schema:
    found: Schema = {"type": {"integer": "integer", "boolean": "boolean"}.get(parameter["type"], "string")}
    if "enum" in parameter:
        found["enum"] = parameter["enum"]
    return {**found, "required": bool(parameter.get("required"))}


def _form(schema: dict[str, Any], label: str) -> Schema:
    if "$ref" in schema:
        return ref(f"{label}.{schema['$ref']}")
    kind = schema.get("type", "object")
    if kind == "array":
        return {"type": "array", "items": _form(schema["items"], label)}
    if kind == "object":
        extra = _form(schema["additionalProperties"], label) if "additionalProperties" in schema else False
        fields = {key: _form(one, label) for key, one in schema.get("properties", {}).items()}
        return {"type": "object", "properties": fields, "additionalProperties": extra}
    if kind == "any":
        return {}
    found: Schema = {"type": kind}
    if kind == "string" and schema.get("format") in ("int64", "uint64"):
        found["pattern"] = r"^-?[0-9]+$"
    if kind == "string" and "enum" in schema:
        found["enum"] = schema["enum"]
    if "pattern" in schema:
        found["pattern"] = f"^(?:{schema['pattern']})$"
    if schema.get("readOnly"):
        found["readOnly"] = True
    return found
