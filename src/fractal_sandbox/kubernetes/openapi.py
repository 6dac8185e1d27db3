"""The schemas that the server publishes: OpenAPI in its second version, as one document, and in its third, by groups.

They are the recorded ones of a real server, and those of custom resource definitions. The second version is JSON for
who asks for JSON; kubectl asks for protobuf alone, and gets a document without definitions, with which it goes on.
"""

from __future__ import annotations

import json
from typing import Any

from fractal_sandbox.kubernetes.errors import PageNotFound
from fractal_sandbox.kubernetes.kinds import Kind, Kinds
from fractal_sandbox.kubernetes.published import definitions, published

__all__ = ["OPENAPI_V2", "openapi"]

# The field `swagger: "2.0"` of an OpenAPI document, in protobuf, the only format kubectl takes. Without definitions an
# older kubectl has nothing to validate against, and goes on.
OPENAPI_V2 = b"\x0a\x032.0"
_META = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


def openapi(parts: list[str], kinds: Kinds, version: str, accept: str) -> Any:
    """Return the document at `/openapi/…`."""
    if parts == ["v2"]:
        return _second(kinds, version) if "json" in accept and "protobuf" not in accept else OPENAPI_V2
    if not parts or parts[0] != "v3":
        raise PageNotFound
    versions = {_path(kind): kind for kind in kinds}
    if len(parts) == 1:
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=0"} for path in versions}}
    wanted = "/".join(parts[1:])
    if wanted not in versions:
        raise PageNotFound
    served = [kind for kind in kinds if _path(kind) == wanted]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": {_address(kind): _operations(kind) for kind in served},
        "components": {"schemas": _third(served)},
    }


def _second(kinds: Kinds, version: str) -> dict[str, Any]:
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": version},
        "paths": {_address(kind): _operations(kind) for kind in kinds},
        "definitions": {**definitions(), **dict(_schema(kind) for kind in kinds)},
    }


def _third(kinds: list[Kind]) -> dict[str, Any]:
    """The schemas of some kinds, and all that they refer to, under the names that the third version has for it."""
    found: dict[str, Any] = dict(_schema(kind) for kind in kinds)
    waiting = list(found.values())
    while waiting:
        text = json.dumps(waiting.pop())
        for piece in text.split('"#/definitions/')[1:]:
            name = piece.partition('"')[0]
            if name not in found:
                found[name] = definitions()[name]
                waiting.append(found[name])
    renamed: dict[str, Any] = json.loads(json.dumps(found).replace('"#/definitions/', '"#/components/schemas/'))
    return renamed


def _schema(kind: Kind) -> tuple[str, dict[str, Any]]:
    gvk = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
    if not kind.is_custom:
        name = "/".join(part for part in (kind.group, kind.version, kind.kind) if part)
        definition = str(published()["kinds"].get(name, {}).get("definition", name))
        return definition, {**definitions().get(definition, {}), "x-kubernetes-group-version-kind": gvk}
    schema = dict(kind.schema)
    properties = {**schema.get("properties", {}), "metadata": {"$ref": _META}} if schema.get("properties") else {}
    name = ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])
    return name, {
        **schema,
        **({"properties": properties} if properties else {}),
        "x-kubernetes-group-version-kind": gvk,
    }


def _path(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _address(kind: Kind) -> str:
    namespace = "namespaces/{namespace}/" if kind.is_namespaced else ""
    return f"/{_path(kind)}/{namespace}{kind.plural}/{{name}}"


def _operations(kind: Kind) -> dict[str, Any]:
    """Write what `kubectl apply` looks for: that the server validates fields itself, and knows dry runs."""
    parameters = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in ("dryRun", "fieldManager", "fieldValidation")
    ]
    gvk = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return {
        "patch": {
            "operationId": f"patch{kind.kind}",
            "parameters": parameters,
            "responses": {},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": gvk,
        }
    }
