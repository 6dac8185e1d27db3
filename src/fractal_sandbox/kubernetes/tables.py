"""Tables for `kubectl get`: the columns of each kind, and their cells.

Pure, and only for people's eyes: nothing of ours reads a table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Kind, Object

__all__ = ["table"]

_Column = tuple[str, Callable[[Object], Any]]


def table(kind: Kind, items: list[Object], metadata: Mapping[str, Any], query: Mapping[str, str]) -> Object:
    """Return the table of some objects of one kind."""
    columns: list[_Column] = [("Name", lambda item: item["metadata"]["name"]), *_columns(kind), ("Age", _age)]
    whole = query.get("includeObject") == "Object"
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [
            {
                "name": name,
                "type": "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": 0,
            }
            for name, _ in columns
        ],
        "rows": [
            {
                "cells": [cell(item) for _, cell in columns],
                "object": item
                if whole
                else {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": item["metadata"],
                },
            }
            for item in items
        ],
    }


def _columns(kind: Kind) -> list[_Column]:
    if kind.is_custom:
        return [(name, _at(path)) for name, _, path in kind.columns]
    return _BUILT_IN.get(kind.kind, [])


def _at(path: str) -> Callable[[Object], Any]:
    """Read a simple JSON path, `.spec.hostname`."""
    words = [word for word in path.split(".") if word]

    def cell(item: Object) -> Any:
        value: Any = item
        for word in words:
            value = value.get(word) if isinstance(value, dict) else None
        return "" if value is None else str(value)

    return cell


def _age(item: Object) -> str:
    made = datetime.strptime(item["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    seconds = max(int((datetime.now(UTC) - made).total_seconds()), 0)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _status(item: Object) -> dict[str, Any]:
    status: dict[str, Any] = item.get("status") or {}
    return status


def _ready(item: Object) -> str:
    return f"{_status(item).get('readyReplicas', 0)}/{item['spec']['replicas']}"


def _outside(item: Object) -> str:
    if item["spec"]["type"] == "ExternalName":
        return str(item["spec"].get("externalName", ""))
    ingress = _status(item).get("loadBalancer", {}).get("ingress", [])
    if ingress:
        return ",".join(one.get("ip") or one.get("hostname", "") for one in ingress)
    return "<pending>" if item["spec"]["type"] == "LoadBalancer" else "<none>"


def _ports(item: Object) -> str:
    ports = item["spec"].get("ports", [])
    shown = [
        f"{port['port']}{':' + str(port['nodePort']) if 'nodePort' in port else ''}/{port['protocol']}"
        for port in ports
    ]
    return ",".join(shown) or "<none>"


def _pairs(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"


def _count(item: Object) -> str:
    return str(len({**(item.get("data") or {}), **(item.get("binaryData") or {})}))


_MODES: Final = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_BUILT_IN: Final[dict[str, list[_Column]]] = {
    "Namespace": [("Status", lambda item: _status(item).get("phase", ""))],
    "Deployment": [
        ("Ready", _ready),
        ("Up-to-date", lambda item: str(_status(item).get("updatedReplicas", 0))),
        ("Available", lambda item: str(_status(item).get("availableReplicas", 0))),
    ],
    "ReplicaSet": [("Desired", lambda item: str(item["spec"]["replicas"])), ("Ready", _at(".status.replicas"))],
    "Service": [
        ("Type", _at(".spec.type")),
        ("Cluster-IP", lambda item: item["spec"].get("clusterIP") or "<none>"),
        ("External-IP", _outside),
        ("Port(s)", _ports),
    ],
    "PersistentVolumeClaim": [
        ("Status", _at(".status.phase")),
        ("Volume", _at(".spec.volumeName")),
        ("Capacity", _at(".status.capacity.storage")),
        ("Access Modes", lambda item: ",".join(_MODES.get(mode, mode) for mode in item["spec"].get("accessModes", []))),
        ("StorageClass", _at(".spec.storageClassName")),
    ],
    "Secret": [("Type", _at(".type")), ("Data", _count)],
    "ConfigMap": [("Data", _count)],
    "ServiceAccount": [("Secrets", lambda item: str(len(item.get("secrets", []))))],
    "Pod": [("Status", lambda item: _status(item).get("phase", "Pending"))],
    "NetworkPolicy": [
        ("Pod-Selector", lambda item: _pairs(item["spec"].get("podSelector", {}).get("matchLabels", {}))),
    ],
    "CustomResourceDefinition": [("Created At", _at(".metadata.creationTimestamp"))],
}
