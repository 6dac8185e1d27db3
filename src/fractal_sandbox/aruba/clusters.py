"""Kubernetes clusters (KaaS)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from fractal_sandbox.aruba import forms
from fractal_sandbox.aruba.collection import Collection, existing, find_by_uri
from fractal_sandbox.aruba.networks import CLUSTER, SUBNET, VPC
from fractal_sandbox.calls import Actor
from fractal_sandbox.managed_clusters import CLUSTERS, address, kubeconfig
from fractal_sandbox.rest import Body, Draft, Reply, Request

__all__ = ["COLLECTIONS", "DOWNLOAD", "download"]

DOWNLOAD: Final = "/projects/{project}/providers/Aruba.Container/kaas/{id}/download"
_ACTORS: Final[tuple[Actor, ...]] = ("person", "agent")

VERSIONS: Final = ("1.31.8", "1.32.4", "1.33.2")
_NEEDED: Final = ("nodeCidr", "securityGroup", "kubernetesVersion", "nodePools")


def _make(draft: Draft, body: Body) -> Body:
    given = body["properties"]
    missing = [name for name in _NEEDED if not given.get(name)]
    if missing:
        raise forms.invalid(missing[0], "is required")
    find_by_uri(draft, VPC, given.get("vpc"), "Vpc")
    find_by_uri(draft, SUBNET, given.get("subnet"), "Subnet")
    _check_version(given)
    made = {"ha": False, "podCidr": {"address": "10.96.0.0/16"}, **given}
    CLUSTERS.open(body["id"], {_token(body, actor): actor for actor in _ACTORS}.get)
    return {**made, "managementIp": f"203.0.113.{len(draft.everything(CLUSTER.name)) + 1}"}


def _token(body: Body, actor: Actor) -> str:
    return f"kaas-{body['id']}-{actor}"


def _gone(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del draft, query
    CLUSTERS.close(body["id"])


def download(request: Request, draft: Draft) -> Reply:
    """The kubeconfig of a cluster."""
    body = existing(draft, CLUSTER.name, request.words["id"])
    if body["uri"] != request.path.removesuffix("/download"):
        raise forms.not_found()
    if draft.phase(CLUSTER.name, body["id"]) == "creating":
        raise forms.in_use("The cluster is not ready.")
    server = address(urlsplit(request.base).netloc, body["id"])
    content = kubeconfig(body["name"], server, {"token": _token(body, request.actor)})
    return Reply(200, {"name": "kubeconfig.yaml", "content": content})


def _check_version(properties: Body) -> None:
    if properties["kubernetesVersion"].get("value") not in VERSIONS:
        raise forms.invalid("KubernetesVersion", f"must be one of {', '.join(VERSIONS)}")


def _change(before: Body, after: Body) -> None:
    _check_version(after)
    versions = [VERSIONS.index(one["kubernetesVersion"]["value"]) for one in (before, after)]
    if versions[1] < versions[0]:
        raise forms.invalid("KubernetesVersion", "cannot be lowered")
    if before["ha"] and not after["ha"]:
        raise forms.invalid("Ha", "cannot be switched off")


COLLECTIONS: Final = (
    Collection(
        CLUSTER,
        "Aruba.Container/kaas",
        "container",
        "KaasCluster",
        _make,
        changed=("kubernetesVersion", "nodesPool", "ha"),
        change=_change,
        answered={"nodePools": "nodesPool"},
        gone=_gone,
    ),
)
