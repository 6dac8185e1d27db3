"""Kubernetes clusters (KaaS)."""

from __future__ import annotations

from typing import Final

from fractal_cloud.sandbox.aruba import forms
from fractal_cloud.sandbox.aruba.collection import Collection, find_by_uri
from fractal_cloud.sandbox.aruba.networks import CLUSTER, SUBNET, VPC
from fractal_cloud.sandbox.rest import Body, Draft

__all__ = ["COLLECTIONS"]

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
    return {**made, "managementIp": f"203.0.113.{len(draft.everything(CLUSTER.name)) + 1}"}


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
    ),
)
