"""The rules of network policies, flat and in one spelling, so that declared and actual ones can be compared.

A rule has at most one peer and one port; Kubernetes bundles several in one rule, which means each with each. A rule
without a peer means everybody, one without a port every port. Selectors may be declared as text or as a map, protocols
in upper or lower case: what means the same is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fractal_cloud.model.component import Component
from fractal_cloud.offers.kubernetes.container_model import Nested, Protocol
from fractal_cloud.offers.kubernetes.kinds import Labels, Object, Port, is_label

Rule = dict[str, Any]
DEFAULT_PROTOCOL: Final = "TCP"
_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def _selector(value: Any) -> Any:
    if isinstance(value, str) and not is_reference(value):
        parsed_labels(value)
    return value


def _of_component(value: object) -> object:
    """A workload of the same LiveSystem, by the output that holds the labels of its pods."""
    return f"${{{value.id}.selector}}" if isinstance(value, Component) else value


def is_reference(value: object) -> bool:
    """Whether the labels are those of a component, which are known once it is there."""
    return isinstance(value, str) and value.startswith("${") and value.endswith("}")


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


if TYPE_CHECKING:
    Selector: TypeAlias = str | dict[str, str] | Component
else:
    Selector = Annotated[str | Labels, AfterValidator(_selector), BeforeValidator(_of_component)]
"""Labels, as text or as a map, or those of a component's pods."""


class KubernetesNetworkPolicyRule(Nested):
    """One rule: at most one peer, and at most one port or range of ports."""

    cidr: Annotated[str, AfterValidator(_network)] | None = Field(default=None, description="Peer: a network.")
    pod_selector: Selector | None = Field(
        default=None,
        description="Peer: pods with these labels, as `app=web,tier=front` or as a map; empty for all pods. "
        "`${front.selector}` for those of the workload `front`; in Python the component itself.",
    )
    namespace_selector: Annotated[str | Labels, AfterValidator(_selector)] | None = Field(
        default=None,
        description="Peer: pods in namespaces with these labels, as text or as a map; empty for all namespaces.",
    )
    port: Port | str | None = Field(default=None, description="A port, by number or name; every port if not given.")
    end_port: Port | None = Field(default=None, description="The last port, where a range is meant.")
    protocol: Protocol | None = Field(default=None, description="TCP if not given.")

    @model_validator(mode="after")
    def _is_one_rule(self) -> Self:
        if self.cidr is not None and (self.pod_selector is not None or self.namespace_selector is not None):
            raise ValueError("a rule has a cidr, or selectors of pods and namespaces, not both")
        if self.port is None and (self.end_port is not None or self.protocol is not None):
            raise ValueError("endPort and protocol belong to a port: give one")
        return self


def _labels_of(selector: object) -> dict[str, str]:
    if isinstance(selector, Mapping):
        return {str(key): str(value) for key, value in selector.items()}
    return parsed_labels(str(selector))


def spelled_as(declared: Sequence[Rule], actual: Sequence[Rule]) -> list[Rule]:
    """Actual rules, each as a declared one that means the same; labels of components as the map that they are."""
    left = list(actual)
    found: list[Rule] = []
    for rule in declared:
        same = next((one for one in left if _means(rule, one)), None)
        if same is not None:
            left.remove(same)
            filled = {name: _map_of(same[name]) for name in _SELECTORS if is_reference(rule.get(name))}
            found.append({**rule, **filled})
    return [*found, *left]


_SELECTORS: Final = ("podSelector", "namespaceSelector")


def _means(declared: Rule, actual: Rule) -> bool:
    names = {*declared, *actual}
    return all(_same(name, declared.get(name), actual.get(name)) for name in names)


def _same(name: str, declared: Any, actual: Any) -> bool:
    if name == "protocol":
        return str(declared or DEFAULT_PROTOCOL).upper() == str(actual or DEFAULT_PROTOCOL)
    if name in _SELECTORS and declared is not None and actual is not None:
        return is_reference(declared) or _map_of(declared) == _map_of(actual)
    return bool(declared == actual)


def _map_of(selector: Any) -> Any:
    """The labels of a selector; one that says more than labels as it is."""
    try:
        return _labels_of(selector)
    except ValueError:
        return selector


def to_rules(rules: Iterable[KubernetesNetworkPolicyRule], peers: str) -> list[Object]:
    """The rules as Kubernetes takes them; ``peers`` is ``from`` or ``to``."""
    return [_to_rule(rule, peers) for rule in rules]


def _to_rule(rule: KubernetesNetworkPolicyRule, peers: str) -> Object:
    peer: Object = {}
    if rule.cidr is not None:
        peer["ipBlock"] = {"cidr": rule.cidr}
    for name, text in (("podSelector", rule.pod_selector), ("namespaceSelector", rule.namespace_selector)):
        if text is not None:
            labels = _labels_of(text)
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
