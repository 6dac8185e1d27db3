"""Links to what runs on AWS: a rule in the target's security group, and nothing else in it (L17).

The rule bears the link's mark as its description, by which it is found again; the group's own rules are its offer's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.aws.rules import LINK_MARK, Rule, rules_with_marks, to_permissions
from fractal_cloud.offers.aws.tags import from_list
from fractal_cloud.offers.link import (
    InboundHandler,
    InboundLink,
    OutboundHandler,
    OutboundLink,
    Published,
    inbound,
    outbound,
)
from fractal_cloud.offers.link_types import WORKLOAD_LINK, WorkloadLink, WorkloadSource

LONGEST_DESCRIPTION: Final = 255
GROUPS_PER_CALL: Final = 200


def mark_of(link: InboundLink[WorkloadLink]) -> str:
    """The description of the rule a link makes; AWS allows no ``<`` in it, and 255 characters."""
    text = LINK_MARK + link.mark.replace("<", "=")
    if len(text) > LONGEST_DESCRIPTION:
        text = LINK_MARK + hashlib.sha256(link.mark.encode()).hexdigest()
    return text


def open_port(link: InboundLink[WorkloadLink]) -> Published | None:
    """Let the source in: one rule in the target's first security group, for the source's address or group."""
    group_id = _group_of(link)
    peer = _peer_of(link)
    if group_id is None or peer is None:
        return None
    rule = _rule(link, peer)
    actual = _managed_group(link, group_id)
    stale = [other for other in _marked(actual, mark_of(link)) if other != rule]
    if rule not in rules_with_marks(actual["IpPermissions"]):
        _authorize(link.cloud, group_id, rule)
    if stale:
        link.cloud.call("ec2", "revoke_security_group_ingress", GroupId=group_id, IpPermissions=to_permissions(stale))
    settings = link.settings
    return {
        "securityGroupId": group_id,
        "host": str(link.there.outputs.get("privateIp") or link.there.name),
        "port": settings.from_port,
        "toPort": settings.last_port,
        "protocol": settings.protocol,
    }


def close_port(link: InboundLink[WorkloadLink]) -> None:
    """Take the rule out again; whoever took it out already, or the whole group, has done it."""
    group_id = str(link.fields.get("securityGroupId") or _group_of(link) or "")
    found = link.cloud.find("ec2", "describe_security_groups", GroupIds=[group_id]) if group_id else None
    if not found:
        return
    group = found["SecurityGroups"][0]
    rules = list(_marked(group, mark_of(link)))
    if rules:
        _check_managed(link, group)
        link.cloud.find("ec2", "revoke_security_group_ingress", GroupId=group_id, IpPermissions=to_permissions(rules))


def ports_open(links: Sequence[InboundLink[WorkloadLink]]) -> Iterator[InboundLink[WorkloadLink]]:
    """Those whose rule is still there: two hundred groups a call."""
    by_group: dict[str, list[InboundLink[WorkloadLink]]] = {}
    for link in links:
        by_group.setdefault(str(link.fields.get("securityGroupId", "")), []).append(link)
    for group in _read_groups(links[0].cloud if links else None, [name for name in by_group if name]):
        there = rules_with_marks(group["IpPermissions"])
        for link in by_group[group["GroupId"]]:
            peer = _peer_of(link)
            if peer is not None and _without_mark(_rule(link, peer)) in [_without_mark(rule) for rule in there]:
                yield link
    yield from by_group.get("", [])  # nothing could be opened yet, so nothing can be gone


def _read_groups(cloud: Aws | None, group_ids: list[str]) -> Iterator[Mapping[str, Any]]:
    for start in range(0, len(group_ids), GROUPS_PER_CALL):
        some = [{"Name": "group-id", "Values": group_ids[start : start + GROUPS_PER_CALL]}]
        assert cloud is not None, "links that opened something have a cloud"
        for page in cloud.pages("ec2", "describe_security_groups", "SecurityGroups", Filters=some):
            yield from page


def _group_of(link: InboundLink[WorkloadLink]) -> str | None:
    groups = link.there.actual.get("securityGroups") if link.sighting is not None else None
    return str(groups[0]) if groups else None


def _peer_of(link: InboundLink[WorkloadLink]) -> dict[str, str] | None:
    """Who is let in: the source's own address where it publishes one, else its security group."""
    address = link.outputs.get("privateIp")
    if address:
        return {"cidrIp": f"{address}/32"}
    groups = link.outputs.get("securityGroups")
    if groups and not link.is_cross_cloud():
        return {"referencedGroupId": str(groups[0])}
    return None


def _rule(link: InboundLink[WorkloadLink], peer: Mapping[str, str]) -> Rule:
    settings = link.settings
    ports = {"ipProtocol": settings.protocol, "fromPort": settings.from_port, "toPort": settings.last_port}
    return {**ports, **peer, "description": mark_of(link)}


def _without_mark(rule: Rule) -> Rule:
    return {name: value for name, value in rule.items() if name != "description"}


def _marked(group: Mapping[str, Any], mark: str) -> Iterable[Rule]:
    return (rule for rule in rules_with_marks(group["IpPermissions"]) if rule.get("description") == mark)


def _managed_group(link: InboundLink[WorkloadLink], group_id: str) -> Mapping[str, Any]:
    """The group, read right before the write: it must be ours to change, as the target itself is (S16)."""
    group: Mapping[str, Any] = link.cloud.call("ec2", "describe_security_groups", GroupIds=[group_id])[
        "SecurityGroups"
    ][0]
    _check_managed(link, group)
    return group


def _check_managed(link: InboundLink[WorkloadLink], group: Mapping[str, Any]) -> None:
    tags = ProtocolTags.from_mapping(from_list(group.get("Tags")))
    if not tags.is_managed or tags.owner != link.live_system_id:
        raise Conflict(
            f"its rule belongs into security group {group['GroupId']!r}, which {link.live_system_id!r} does not "
            f"manage: declare a group of your own for {link.own!r}, or hand that one back"
        )


def _authorize(cloud: Aws, group_id: str, rule: Rule) -> None:
    try:
        cloud.call("ec2", "authorize_security_group_ingress", GroupId=group_id, IpPermissions=to_permissions([rule]))
    except Conflict as refusal:
        # A duplicate is fine: the same access is there under another description, by a person's rule or another link.
        if refusal.code != "InvalidPermission.Duplicate":
            raise


def _inbound(target: type[WorkloadSource]) -> InboundHandler:
    handler = inbound(source="*", target=target, link_type=WORKLOAD_LINK, settings=WorkloadLink)(open_port)
    handler.revokes(close_port)
    handler.verifies(ports_open)
    return handler


def reach(link: OutboundLink[WorkloadLink]) -> Published | None:
    """Publish under which host and port the target is reached."""
    if "port" not in link.published:
        return None
    return {name: link.published[name] for name in ("host", "port", "toPort", "protocol") if name in link.published}


def _outbound(source: type[WorkloadSource], target: type[WorkloadSource]) -> OutboundHandler:
    return outbound(source=source, target=target, link_type=WORKLOAD_LINK, settings=WorkloadLink)(reach)


ec2_inbound = _inbound(AwsEc2Instance)
ecs_inbound = _inbound(AwsEcsService)
ec2_to_ec2 = _outbound(AwsEc2Instance, AwsEc2Instance)
ec2_to_ecs = _outbound(AwsEc2Instance, AwsEcsService)
ecs_to_ec2 = _outbound(AwsEcsService, AwsEc2Instance)
ecs_to_ecs = _outbound(AwsEcsService, AwsEcsService)
