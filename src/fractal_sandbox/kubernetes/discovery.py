"""What the server says about itself: version, groups, kinds, and as much OpenAPI as `kubectl apply` wants to see.

The newer, aggregated discovery is not served: a client that asks for it also accepts the older one, which this is.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.kubernetes.errors import PageNotFound
from fractal_sandbox.kubernetes.kinds import Kind, Kinds

__all__ = ["OPENAPI_V2", "describe", "is_about_itself"]

_HEALTH = ("/healthz", "/readyz", "/livez")
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
# The field `swagger: "2.0"` of an OpenAPI document, in protobuf, the only format kubectl takes. Without definitions an
# older kubectl has nothing to validate against, and goes on.
OPENAPI_V2 = b"\x0a\x032.0"


def is_about_itself(path: str) -> bool:
    parts = path.strip("/").split("/")
    return (
        path in (*_HEALTH, "/version", "/")
        or parts[0] == "openapi"
        or (parts[0] == "api" and len(parts) <= 2)
        or (parts[0] == "apis" and len(parts) <= 3)
    )


def describe(path: str, kinds: Kinds, address: str) -> Any:
    """Return the document at a path: bytes, text, or what becomes JSON."""
    parts = path.strip("/").split("/")
    if path in _HEALTH:
        return "ok"
    if path == "/version":
        return _version()
    if parts[0] == "openapi":
        return _openapi(parts[1:], kinds)
    if parts[0] == "api":
        return _core(parts[1:], kinds, address)
    if parts[0] == "apis":
        return _groups(parts[1:], kinds)
    if path == "/":
        return {"paths": ["/api", "/apis", "/healthz", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]}
    raise PageNotFound


def _version() -> dict[str, str]:
    return {
        "major": "1",
        "minor": "32",
        "gitVersion": "v1.32.0+fractal-cloud-sandbox",
        "gitCommit": "0000000000000000000000000000000000000000",
        "gitTreeState": "clean",
        "buildDate": "2025-01-01T00:00:00Z",
        "goVersion": "go0",
        "compiler": "gc",
        "platform": "linux/amd64",
    }


def _core(parts: list[str], kinds: Kinds, address: str) -> Any:
    if not parts:
        return {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
        }
    return _resources("", parts[0], kinds)


def _groups(parts: list[str], kinds: Kinds) -> Any:
    groups = {name: _group(name, versions) for name, versions in kinds.groups().items() if name}
    if not parts:
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())}
    if len(parts) == 1:
        if parts[0] not in groups:
            raise PageNotFound
        return {"kind": "APIGroup", "apiVersion": "v1", **groups[parts[0]]}
    return _resources(parts[0], parts[1], kinds)


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resources(group: str, version: str, kinds: Kinds) -> dict[str, Any]:
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        raise PageNotFound
    resources = []
    for kind in served:
        whole = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.is_namespaced,
            "kind": kind.kind,
            "verbs": _VERBS,
            **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
            **({"categories": ["all"]} if kind.is_in_all else {}),
        }
        resources.append(whole)
        for name in kind.subresources:
            part = {**whole, "name": f"{kind.plural}/{name}", "singularName": "", "verbs": ["get", "patch", "update"]}
            for key in ("shortNames", "categories"):
                part.pop(key, None)
            if name == "scale":
                part |= {"group": "autoscaling", "version": "v1", "kind": "Scale"}
            resources.append(part)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": served[0].api_version,
        "resources": resources,
    }


def _openapi(parts: list[str], kinds: Kinds) -> Any:
    if parts == ["v2"]:
        return OPENAPI_V2
    if not parts or parts[0] != "v3":
        raise PageNotFound
    versions = {_path(kind): kind for kind in kinds}
    if len(parts) == 1:
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash=0"} for path in versions}}
    wanted = "/".join(parts[1:])
    if wanted not in versions:
        raise PageNotFound
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": _version()["gitVersion"]},
        "paths": {_address(kind): _operations(kind) for kind in kinds if _path(kind) == wanted},
        "components": {"schemas": {}},
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
