"""What the server says about itself: version, groups and kinds. The schemas it publishes are in `openapi.py`.

Discovery is answered in both forms: plain, group by group, and aggregated, where a client asks for that.
"""

from __future__ import annotations

from typing import Any

from fractal_sandbox.kubernetes.errors import PageNotFound
from fractal_sandbox.kubernetes.kinds import Kind, Kinds
from fractal_sandbox.kubernetes.openapi import openapi

__all__ = ["AGGREGATED", "aggregated", "describe", "is_about_itself"]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_HEALTH = ("/healthz", "/readyz", "/livez")
_VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


def is_about_itself(path: str) -> bool:
    parts = path.strip("/").split("/")
    return (
        path in (*_HEALTH, "/version", "/")
        or parts[0] == "openapi"
        or (parts[0] == "api" and len(parts) <= 2)
        or (parts[0] == "apis" and len(parts) <= 3)
    )


def describe(path: str, kinds: Kinds, address: str, accept: str = "") -> Any:
    """Return the document at a path: bytes, text, or what becomes JSON."""
    parts = path.strip("/").split("/")
    if path in _HEALTH:
        return "ok"
    if path == "/version":
        return _version()
    if parts[0] == "openapi":
        return openapi(parts[1:], kinds, _version()["gitVersion"], accept)
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


def aggregated(path: str, kinds: Kinds) -> dict[str, Any]:
    """Return all groups with all their kinds, as clients ask for it in one document: the core at `/api`."""
    wanted = [group for group in kinds.groups() if bool(group) == (path == "/apis")]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [_aggregated_group(group, kinds) for group in wanted],
    }


def _aggregated_group(group: str, kinds: Kinds) -> dict[str, Any]:
    versions = []
    for version in kinds.groups()[group]:
        served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
        resources = [_aggregated_kind(kind) for kind in served]
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_kind(kind: Kind) -> dict[str, Any]:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    parts = [
        {"subresource": name, "responseKind": gvk, "verbs": ["get", "patch", "update"]} for name in kind.subresources
    ]
    return {
        "resource": kind.plural,
        "responseKind": gvk,
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _VERBS,
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": ["all"]} if kind.is_in_all else {}),
        **({"subresources": parts} if parts else {}),
    }
