"""The rules of network policies, flat and in one spelling, so that declared and actual ones can be compared.

A rule has at most one peer and one port; Kubernetes bundles several in one rule, which means each with each. A rule
without a peer means everybody, one without a port every port.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_network
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from fractal_cloud.offers.kubernetes.kinds import Object, Port, is_label

Rule = dict[str, Any]
DEFAULT_PROTOCOL: Final = "TCP"
_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def _selector(text: str) -> str:
    pairs = parsed_labels(text)
    spelled = ",".join(f"{key}={value}" for key, value in sorted(pairs.items()))
    if spelled != text:
        raise ValueError(f"{text!r} is compared in one spelling: write {spelled!r}")
    return text


def parsed_labels(text: str) -> dict[str, str]:
    """The labels in ``a=b,c=d``; an empty text chooses everything. Raises where it is something else."""
    pairs: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        key, is_pair, value = part.partition("=")
        if not is_pair or not is_label(key, value):
            raise ValueError(f"{text!r} is no list of labels: write it like 'app=web,tier=front', or '' for all")
        pairs[key] = value
    return pairs


def _network(text: str) -> str:
    try:
        spelled = str(ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: write it like '10.0.0.0/8'") from error
    if spelled != text:
        raise ValueError(f"{text!r} has bits set behind its prefix: write {spelled!r}")
    return text


LabelText = Annotated[str, AfterValidator(_selector)]


class KubernetesNetworkPolicyRule(BaseModel):
    """One rule: at most one peer, and at most one port or range of ports."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    cidr: Annotated[str, AfterValidator(_network)] | None = Field(default=None, description="Peer: a network.")
    pod_selector: LabelText | None = Field(
        default=None, description="Peer: pods with these labels, as `app=web,tier=front`; empty for all pods."
    )
    namespace_selector: LabelText | None = Field(
        default=None, description="Peer: pods in namespaces with these labels; empty for all namespaces."
    )
    port: Port | str | None = Field(default=None, description="A port, by number or name; every port if not given.")
    end_port: Port | None = Field(default=None, description="The last port, where a range is meant.")
    protocol: Literal["TCP", "UDP", "SCTP"] | None = Field(default=None, description="TCP if not given.")

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        if self.cidr is not None and (self.pod_selector is not None or self.namespace_selector is not None):
            raise ValueError("a rule has a cidr, or selectors of pods and namespaces, not both")
        if self.port is None and (self.end_port is not None or self.protocol is not None):
            raise ValueError("endPort and protocol belong to a port: give one")
        if self.protocol == DEFAULT_PROTOCOL:
            raise ValueError("TCP is what is meant without a protocol: leave it out")
        return self


def to_rules(rules: Iterable[KubernetesNetworkPolicyRule], peers: str) -> list[Object]:
    """The rules as Kubernetes takes them; ``peers`` is ``from`` or ``to``."""
    return [_to_rule(rule, peers) for rule in rules]


def _to_rule(rule: KubernetesNetworkPolicyRule, peers: str) -> Object:
    peer: Object = {}
    if rule.cidr is not None:
        peer["ipBlock"] = {"cidr": rule.cidr}
    for name, text in (("podSelector", rule.pod_selector), ("namespaceSelector", rule.namespace_selector)):
        if text is not None:
            labels = parsed_labels(text)
            peer[name] = {"matchLabels": labels} if labels else {}
    made: Object = {peers: [peer]} if peer else {}
    if rule.port is not None:
        port = {"port": rule.port, "protocol": rule.protocol or DEFAULT_PROTOCOL}
        made["ports"] = [{**port, **({"endPort": rule.end_port} if rule.end_port is not None else {})}]
    return made


def from_rules(rules: Iterable[Object] | None, peers: str) -> list[Rule]:
    """The rules of a policy, one by one."""
    return [flat for rule in rules or [] for flat in _from_rule(rule, peers)]


def _from_rule(rule: Object, peers: str) -> Iterator[Rule]:
    for peer in rule.get(peers) or [{}]:
        for port in rule.get("ports") or [{}]:
            yield {**_peer(peer), **_port(port)}


def _peer(peer: Object) -> Rule:
    found: Rule = {}
    block = peer.get("ipBlock")
    if block:
        outside = block.get("except") or []
        found["cidr"] = block["cidr"] + (f" except {','.join(outside)}" if outside else "")
    for name in ("podSelector", "namespaceSelector"):
        if peer.get(name) is not None:
            found[name] = selector_text(peer[name])
    return found


def _port(port: Object) -> Rule:
    protocol = port.get("protocol", DEFAULT_PROTOCOL)
    found = {"port": port.get("port"), "endPort": port.get("endPort")}
    if protocol != DEFAULT_PROTOCOL:
        found["protocol"] = protocol
    return {name: value for name, value in found.items() if value is not None}


def selector_text(selector: Object) -> str:
    """A selector as kubectl would take it."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    for one in selector.get("matchExpressions") or []:
        if one["operator"] in _OPERATORS:
            parts.append(f"{one['key']} {_OPERATORS[one['operator']]} ({','.join(sorted(one.get('values') or []))})")
        else:
            parts.append(one["key"] if one["operator"] == "Exists" else f"!{one['key']}")
    return ",".join(parts)
