"""The rules of security groups, flat and in one spelling, so that declared and actual ones can be compared.

A rule has one source or destination; AWS bundles several in one answer, in an order of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.offers.aws.kinds import GroupId, PrefixListId, canonical_network

LINK_MARK: Final = "fractal-cloud-link:"
Rule = dict[str, Any]

_EVERYTHING: Final = "-1"
_PROTOCOLS: Final[Mapping[str, str]] = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": _EVERYTHING}
_WITH_PORTS: Final = frozenset({"tcp", "udp", "icmp", "icmpv6"})
# Our name of a peer, the list it stands in, and its key there.
_PEERS: Final = (
    ("cidrIp", "IpRanges", "CidrIp"),
    ("cidrIpv6", "Ipv6Ranges", "CidrIpv6"),
    ("referencedGroupId", "UserIdGroupPairs", "GroupId"),
    ("prefixListId", "PrefixListIds", "PrefixListId"),
)
PEER_NAMES: Final = tuple(name for name, _, _ in _PEERS)

Port = Annotated[int, Field(ge=-1, le=65535)]


class AwsSecurityGroupRule(BaseModel):
    """One rule: a protocol, a range of ports, and one peer."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    ip_protocol: str = Field(
        description="tcp, udp, icmp, icmpv6, a protocol number, or -1 for everything.",
        pattern=r"^(-1|all|[a-z0-9]{1,10})$",
    )
    from_port: Port | None = Field(
        default=None, description="First port (ICMP: type, -1 for all); not for protocol -1."
    )
    to_port: Port | None = Field(default=None, description="Last port (ICMP: code, -1 for all); not for protocol -1.")
    cidr_ip: str | None = Field(default=None, description="Peer: an IPv4 network.")
    cidr_ipv6: str | None = Field(default=None, description="Peer: an IPv6 network.")
    referenced_group_id: GroupId | None = Field(
        default=None,
        description="Peer: a security group, by its id, or by the output groupId of its component; in Python the "
        "component itself.",
    )
    prefix_list_id: PrefixListId | None = Field(default=None, description="Peer: the id of a prefix list.")
    description: str | None = Field(
        default=None, description="What it is for.", pattern=r"^[a-zA-Z0-9. _:/()#,@\[\]+=&;{}!$*-]{0,255}$"
    )

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        peers = [name for name in PEER_NAMES if self._value(name) is not None]
        if len(peers) != 1:
            raise ValueError(f"a rule has exactly one of {', '.join(PEER_NAMES)}; this one has {peers or 'none'}")
        if _PROTOCOLS.get(self.ip_protocol, self.ip_protocol) in _WITH_PORTS and None in (self.from_port, self.to_port):
            raise ValueError(f"a rule for {self.ip_protocol!r} needs fromPort and toPort")
        if (self.description or "").startswith(LINK_MARK):
            raise ValueError(f"a description must not start with {LINK_MARK!r}: that marks the rules which links make")
        written = self.model_dump(by_alias=True, exclude_unset=True)
        if written != (spelled := flat(written)):
            raise ValueError(f"a rule is compared as AWS spells it: write {json.dumps(spelled)}")
        return self

    def _value(self, name: str) -> Any:
        return getattr(self, _snake(name))

    def flat(self) -> Rule:
        """The rule as it is compared."""
        return flat(self.model_dump(by_alias=True))


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)


def each_once(rules: list[AwsSecurityGroupRule] | None) -> list[AwsSecurityGroupRule] | None:
    """The rules of one direction; raises where two differ in nothing but their descriptions, which AWS refuses."""
    keys = [_key(rule.flat()) for rule in rules or ()]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            raise ValueError(f"rule {number + 1} is rule {keys.index(key) + 1} once more: keep one of them")
    return rules


def flat(rule: Mapping[str, Any]) -> Rule:
    """A rule in the one spelling that is compared: nothing empty, no ports where they mean nothing."""
    protocol = _PROTOCOLS.get(str(rule["ipProtocol"]).lower(), str(rule["ipProtocol"]).lower())
    clean: Rule = {"ipProtocol": protocol}
    if protocol in _WITH_PORTS:
        clean["fromPort"], clean["toPort"] = rule["fromPort"], rule["toPort"]
    for name in PEER_NAMES:
        if rule.get(name):
            clean[name] = canonical_network(rule[name]) if name.startswith("cidr") else rule[name]
    if rule.get("description"):
        clean["description"] = rule["description"]
    return clean


def from_permissions(permissions: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The rules of an answer, one per peer, without those that links made (L17)."""
    return [rule for rule in rules_with_marks(permissions) if not rule.get("description", "").startswith(LINK_MARK)]


def rules_with_marks(permissions: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """All rules of an answer, one per peer, also those that links made."""
    rules = [rule for permission in permissions for rule in _rules_of(permission)]
    return sorted(rules, key=_key)


def _rules_of(permission: Mapping[str, Any]) -> Iterator[Rule]:
    about = {
        "ipProtocol": permission["IpProtocol"],
        "fromPort": permission.get("FromPort", -1),
        "toPort": permission.get("ToPort", -1),
    }
    for name, group, key in _PEERS:
        for peer in permission.get(group) or ():
            if peer.get(key):
                yield flat({**about, name: peer[key], "description": peer.get("Description") or ""})


def to_permissions(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Rules as a request has them."""
    return [_permission(rule) for rule in rules]


def _permission(rule: Rule) -> dict[str, Any]:
    permission: dict[str, Any] = {"IpProtocol": rule["ipProtocol"]}
    if "fromPort" in rule:
        permission |= {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]}
    for name, group, key in _PEERS:
        if name in rule:
            said = {"Description": rule["description"]} if "description" in rule else {}
            permission[group] = [{key: rule[name], **said}]
    return permission


def _key(rule: Rule) -> tuple[str, ...]:
    """What makes AWS take two rules for the same one: everything but the description."""
    return tuple(str(rule.get(name, "")) for name in ("ipProtocol", "fromPort", "toPort", *PEER_NAMES))


class Difference:
    """What turns the actual rules of one direction into the declared ones."""

    def __init__(self, declared: Iterable[Rule], actual: Iterable[Rule]) -> None:
        wanted = {_key(rule): rule for rule in declared}
        present = {_key(rule): rule for rule in actual}
        self.missing = [rule for key, rule in wanted.items() if key not in present]
        self.superfluous = [rule for key, rule in present.items() if key not in wanted]
        self.misdescribed = [rule for key, rule in wanted.items() if key in present and present[key] != rule]
