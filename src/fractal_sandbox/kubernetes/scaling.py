"""The `scale` part of a Deployment, which `kubectl scale` reads and writes: the number of replicas. Pure."""

from __future__ import annotations

from typing import Any

from fractal_sandbox.kubernetes.errors import bad_request
from fractal_sandbox.kubernetes.kinds import Object

__all__ = ["scale_of", "scaled"]


def scale_of(item: Object) -> Object:
    """Return the scale of a Deployment."""
    metadata = item["metadata"]
    selector = item["spec"]["selector"].get("matchLabels", {})
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            name: metadata[name]
            for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
            if name in metadata
        },
        "spec": {"replicas": item["spec"]["replicas"]},
        "status": {
            "replicas": item.get("status", {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
        },
    }


def scaled(item: Object, scale: Any) -> Object:
    """Return a Deployment with the number of replicas that a scale says."""
    if not isinstance(scale, dict) or not isinstance(scale.get("spec", {}), dict):
        raise bad_request("the object provided is unrecognized (must be of type Scale)")
    return {**item, "spec": {**item["spec"], "replicas": scale.get("spec", {}).get("replicas", 0)}}
