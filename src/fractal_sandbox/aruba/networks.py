"""VPCs, and what lies in them: subnets, security groups and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Final

from fractal_sandbox.aruba import common
from fractal_sandbox.aruba.collection import Collection
from fractal_sandbox.rest import Body, Draft

__all__ = ["ADDRESS", "CLUSTER", "COLLECTIONS", "GROUP", "RULE", "SERVER", "SUBNET", "VPC"]

VPC: Final = common.kind("vpc")
SUBNET: Final = common.kind("subnet")
GROUP: Final = common.kind("security-group")
RULE: Final = common.plain(
    "security-rule", speakers=lambda before, after: [(GROUP.name, (before or after or {})["scope"])]
)
CLUSTER: Final = common.kind("kaas")
SERVER: Final = common.kind("cloud-server")
ADDRESS: Final = common.plain("elastic-ip", tags=common.monitored_tags, offered=False)


def _inside(draft: Draft, body: Body, *kinds: str) -> list[str]:
    below = f"{body['uri']}/"
    return [one["uri"] for kind in kinds for _, one in draft.everything(kind) if one["uri"].startswith(below)]


def _machines(draft: Draft, body: Body) -> list[str]:
    every = [one for _, one in draft.everything(CLUSTER.name)]
    clusters = [one["uri"] for one in every if one["properties"]["subnet"]["uri"] == body["uri"]]
    return clusters + _servers(draft, body, "subnets")


def _servers(draft: Draft, body: Body, name: str) -> list[str]:
    every = [one for _, one in draft.everything(SERVER.name)]
    return [one["uri"] for one in every if body["uri"] in one["properties"][name]]


def _make_vpc(draft: Draft, body: Body) -> Body:
    del draft
    return {"default": bool(body["properties"].get("default"))}


def _make_subnet(draft: Draft, body: Body) -> Body:
    given = body["properties"]
    if given.get("type") not in ("Basic", "Advanced"):
        raise common.invalid("Type", "must be Basic or Advanced")
    taken = [
        IPv4Network(one["properties"]["network"]["address"])
        for _, one in draft.everything(SUBNET.name)
        if one["scope"] == body["scope"]
    ]
    if given["type"] == "Basic":
        free = (IPv4Network(f"10.{number}.0.0/24") for number in range(100, 200))
        block = next(one for one in free if not any(one.overlaps(other) for other in taken))
        return {"type": "Basic", "default": False, "network": {"address": str(block)}, "dhcp": {"enabled": True}}
    try:
        block = IPv4Network((given.get("network") or {}).get("address"))
    except ValueError as error:
        raise common.invalid("Network.Address", "is no block") from error
    if any(block.overlaps(other) for other in taken):
        raise common.invalid("Network.Address", "overlaps another subnet")
    dhcp = given.get("dhcp") or {"enabled": False}
    return {"type": "Advanced", "default": False, "network": {"address": str(block)}, "dhcp": dhcp}


def _make_rule(draft: Draft, body: Body) -> Body:
    given = body["properties"]
    twins = [one for _, one in draft.everything(RULE.name) if one["scope"] == body["scope"]]
    if any(one["properties"] == given for one in twins):
        raise common.invalid("Rule", "is there already")
    if given.get("direction") not in ("Ingress", "Egress") or not (given.get("target") or {}).get("value"):
        raise common.invalid("Rule", "needs a direction and a target")
    return dict(given)


def _drop_rules(draft: Draft, body: Body, query: Mapping[str, str]) -> None:
    del query
    for rule_id, rule in draft.everything(RULE.name):
        if rule["uri"].startswith(f"{body['uri']}/"):
            draft.remove(RULE.name, rule_id)


_VPCS = "Aruba.Network/vpcs"
COLLECTIONS: Final = (
    Collection(
        VPC,
        _VPCS,
        "network",
        "Vpc",
        _make_vpc,
        changed=("default",),
        linked=lambda draft, body: _inside(draft, body, SUBNET.name, GROUP.name),
    ),
    Collection(
        SUBNET,
        f"{_VPCS}/{{parent}}/subnets",
        "network",
        "Subnet",
        _make_subnet,
        parent=VPC,
        changed=("default",),
        linked=_machines,
    ),
    Collection(
        GROUP,
        f"{_VPCS}/{{parent}}/securityGroups",
        "network",
        "SecurityGroup",
        _make_vpc,
        parent=VPC,
        changed=("default",),
        linked=lambda draft, body: _servers(draft, body, "securityGroups"),
        on_delete=_drop_rules,
    ),
    Collection(
        RULE,
        f"{_VPCS}/{{vpc}}/securityGroups/{{parent}}/securityRules",
        "network",
        "SecurityRule",
        _make_rule,
        parent=GROUP,
    ),
)
