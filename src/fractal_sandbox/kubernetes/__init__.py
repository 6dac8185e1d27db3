"""Kubernetes on this machine: an API server of our own, good enough for kubectl and the official client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fractal_sandbox.calls import Actor
from fractal_sandbox.config_files import written
from fractal_sandbox.registry import Mount, nothing

if TYPE_CHECKING:
    from fractal_sandbox.kubernetes.cloud import KubernetesCloud
    from fractal_sandbox.managed_clusters import Clusters

PERSON_TOKEN = "sandbox-person"
AGENT_TOKEN = "sandbox-agent"
# The contexts of a kubeconfig, and the paths at which they answer.
CLUSTERS = {"sandbox": "/kubernetes", "sandbox-2": "/kubernetes-2"}


def _load() -> KubernetesCloud:
    from fractal_sandbox.kubernetes.cloud import KubernetesCloud

    return KubernetesCloud()


def _load_clusters() -> Clusters:
    from fractal_sandbox.managed_clusters import CLUSTERS as OPEN

    return OPEN


def kubeconfig(url: str, actor: Actor) -> str:
    """Return a kubeconfig whose contexts are the sandbox's clusters; the current one is `sandbox`.

    The path names the caller too: over plain HTTP, kubectl sends no token.
    """
    token = AGENT_TOKEN if actor == "agent" else PERSON_TOKEN
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": f"{url}{path}/as/{actor}"}} for name, path in CLUSTERS.items()
        ],
        "users": [{"name": actor, "user": {"token": token}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": actor, "namespace": "default"}} for name in CLUSTERS
        ],
        "current-context": "sandbox",
    }
    return json.dumps(content, indent=2) + "\n"


def environment(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What points `kubectl` and the clients here: a file, so there is nothing without a folder."""
    if folder is None:
        return {}
    return {"KUBECONFIG": str(written(folder, f"kubeconfig-{actor}", kubeconfig(url, actor)))}


def allowed(url: str, actor: Actor, folder: Path | None) -> Mapping[str, str]:
    """What lets an agent send its credentials to the vendors' clusters, which answer at the sandbox's own address."""
    del folder
    return {"FRACTAL_ENDPOINT_HOSTS": urlsplit(url).netloc} if actor == "agent" else {}


MOUNTS = (
    Mount("kubernetes", "kubernetes", "Kubernetes", CLUSTERS["sandbox"], _load, environment),
    Mount("kubernetes-2", "kubernetes", "Kubernetes", CLUSTERS["sandbox-2"], _load, nothing),
    Mount("clusters", "kubernetes", "Kubernetes", "/api-servers", _load_clusters, allowed),
)
