"""Kubernetes clusters (KaaS)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from fractal_sandbox.aruba import common
from fractal_sandbox.aruba.collection import Collection, existing, find_by_uri
from fractal_sandbox.aruba.networks import CLUSTER, SUBNET, VPC
from fractal_sandbox.calls import Actor
from fractal_sandbox.managed_clusters import CLUSTERS, address, kubeconfig
from fractal_sandbox.rest import Body, Draft, Reply, Request

__all__ = ["COLLECTIONS", "DOWNLOAD", "download"]

DOWNLOAD: Final = "/projects/{project}/providers/Aruba.Container/kaas/{id}/download"
_ACTORS: Final[tuple[Actor, ...]] = ("person", "agent")

# The versions of the vendor's catalogue.
VERSIONS: Final = ("1.32.3", "1.33.2", "1.34.1")
_POOL_FIELDS: Final = frozenset({"name", "nodes", "instance", "dataCenter", "autoscaling", "minCount", "maxCount"})
_NEEDED: Final = ("nodeCidr", "securityGroup", "kubernetesVersion", "nodePools")


def _make(draft: Draft, body: Body) -> Body:
    given = body["properties"]
    missing = [name for name in _NEEDED if not given.get(name)]
    if missing:
        raise common.invalid(missing[0], "is required")
    find_by_uri(draft, VPC, given.get("vpc"), "Vpc")
    find_by_uri(draft, SUBNET, given.get("subnet"), "Subnet")
    _check_version(given)
    made = {"ha": False, "podCidr": "10.96.0.0/16", **given}
    CLUSTERS.open(body["id"], {_token(body, actor): actor for actor in _ACTORS}.get)
    return {**made, "managementIp": f"203.0.113.{len(draft.everything(CLUSTER.name)) + 1}"}


def _accepted(given: Body) -> Body:
    """The properties of a request; what a pool leaves out is off, and answers' spellings are refused."""
    for name in ("nodecidr", "podcidr", "nodesPool"):
        if name in given:
            raise common.invalid(name, "is not a property of requests")
    if not isinstance(given.get("podCidr", ""), str):
        raise common.invalid("PodCidr", "must be text")
    pools = [_accepted_pool(one) for one in given.get("nodePools") or ()]
    return {**given, **({"nodePools": pools} if "nodePools" in given else {})}


def _accepted_pool(given: Body) -> Body:
    unknown = sorted(set(given) - _POOL_FIELDS)
    if unknown:
        raise common.invalid(f"NodePools.{unknown[0]}", "is not a property of a pool")
    for name in ("name", "instance", "dataCenter"):
        if not isinstance(given.get(name), str):
            raise common.invalid(f"NodePools.{name}", "must be text")
    pool = {"autoscaling": False, "minCount": None, "maxCount": None, **given}
    if pool["autoscaling"] and (pool["minCount"] is None or pool["maxCount"] is None):
        raise common.invalid("NodePools.minCount", "is required with autoscaling")
    return pool


def _answered(stored: Body) -> Body:
    """The properties in the spelling of answers, which is another one than that of requests."""
    renamed = ("nodeCidr", "podCidr", "nodePools")
    return {
        **{name: value for name, value in stored.items() if name not in renamed},
        "nodecidr": {**stored["nodeCidr"], "uri": None},
        "podcidr": {"address": stored["podCidr"]},
        "nodesPool": [
            {
                **pool,
                "instance": {"name": pool["instance"], "cpu": "2", "ram": "4", "diskSizeGb": "40", "price": None},
                "dataCenter": {"code": pool["dataCenter"], "name": pool["dataCenter"]},
                "creationDate": None,
            }
            for pool in stored["nodePools"]
        ],
    }


def _token(body: Body, actor: Actor) -> str:
    return f"kaas-{body['id']}-{actor}"


def _close_cluster(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del draft, query
    CLUSTERS.close(body["id"])


def download(request: Request, draft: Draft) -> Reply:
    """The kubeconfig of a cluster."""
    body = existing(draft, CLUSTER.name, request.words["id"])
    if body["uri"] != request.path.removesuffix("/download"):
        raise common.not_found()
    if draft.phase(CLUSTER.name, body["id"]) == "creating":
        raise common.in_use("The cluster is not ready.")
    server = address(urlsplit(request.base).netloc, body["id"])
    content = kubeconfig(body["name"], server, {"token": _token(body, request.actor)})
    return Reply(200, {"name": "kubeconfig.yaml", "content": content})


def _check_version(properties: Body) -> None:
    if properties["kubernetesVersion"].get("value") not in VERSIONS:
        raise common.invalid("KubernetesVersion", f"must be one of {', '.join(VERSIONS)}")


def _change(before: Body, after: Body) -> None:
    _check_version(after)
    versions = [VERSIONS.index(one["kubernetesVersion"]["value"]) for one in (before, after)]
    if versions[1] < versions[0]:
        raise common.invalid("KubernetesVersion", "cannot be lowered")
    if before["ha"] and not after["ha"]:
        raise common.invalid("Ha", "cannot be switched off")


COLLECTIONS: Final = (
    Collection(
        CLUSTER,
        "Aruba.Container/kaas",
        "container",
        "KaasCluster",
        _make,
        changed=("kubernetesVersion", "nodePools", "ha", "storage", "billingPlan", "apiServerAccessProfile"),
        change=_change,
        accepted=_accepted,
        answered=_answered,
        on_delete=_close_cluster,
    ),
)
