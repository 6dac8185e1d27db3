"""Where a load balancer sends what comes in: servers, label selectors, addresses; each target a call of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from fractal_cloud.model.errors import Conflict
from fractal_cloud.offers.hetzner.value_types import ids

# Parameter, type of the target, and the key of its value there.
_KINDS: Final = (("servers", "server", "id"), ("labelSelectors", "label_selector", "selector"), ("ips", "ip", "ip"))


class Target(NamedTuple):
    """One target; ``is_private``: whether it is reached through the private network."""

    parameter: str
    value: str
    is_private: bool = False

    def to_request(self, *, how: bool) -> dict[str, Any]:
        """The target as a request has it; ``how``: with the way it is reached, which only addresses have not."""
        _, kind, key = next(one for one in _KINDS if one[0] == self.parameter)
        found: dict[str, Any] = {"type": kind, kind: {key: int(self.value) if key == "id" else self.value}}
        return {**found, "use_private_ip": self.is_private} if how and kind != "ip" else found


def from_answer(items: Iterable[Mapping[str, Any]]) -> list[Target]:
    """The targets of an answer."""
    return [
        Target(parameter, str(item[kind][key]), bool(item.get("use_private_ip")))
        for item in items
        for parameter, kind, key in _KINDS
        if item["type"] == kind
    ]


def private(targets: Iterable[Target]) -> list[str]:
    """The targets that are reached through the private network: ids of servers, and selectors."""
    return sorted(target.value for target in targets if target.is_private)


def recalled(actual: Mapping[str, Any], private: Collection[str]) -> list[Target]:
    """The targets that were seen, from what was kept of them."""
    return [
        Target(parameter, value, parameter != "ips" and value in private)
        for parameter, _, _ in _KINDS
        for value in actual[parameter]
    ]


def actual(targets: Collection[Target]) -> dict[str, Any]:
    """Return the parameters that targets come to; where they are not all reached in one way, that is 'mixed'."""
    found: dict[str, Any] = {
        parameter: [target.value for target in targets if target.parameter == parameter] for parameter, _, _ in _KINDS
    }
    found = {name: ids(values) if name == "servers" else sorted(values) for name, values in found.items()}
    ways = {target.is_private for target in targets if target.parameter != "ips"}
    return found if not ways else {**found, "usePrivateIp": ways.pop() if len(ways) == 1 else "mixed"}


def declared(parameters: Mapping[str, Any], *, is_private: bool) -> list[Target]:
    """The targets that are declared, each to be reached in this way."""
    return [
        Target(parameter, str(value), is_private and parameter != "ips")
        for parameter, _, _ in _KINDS
        for value in parameters.get(parameter) or ()
    ]


def calls(
    wanted: Mapping[str, Any], seen: Collection[Target], drift: Collection[str], ignored: Collection[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What leads from the targets that are to those declared: new ones first, and one by one those reached otherwise.

    A target that is reached in the wrong way is taken off here and added in the next round. Raises ``Conflict`` after
    the others where that would take off targets of a parameter in ``ignored``, which nobody would add again (G15).
    """
    present = {(target.parameter, target.value) for target in seen}
    targets = declared(wanted, is_private=_way(wanted, seen, ignored))
    for target in targets:
        if target.parameter in drift and (target.parameter, target.value) not in present:
            yield "add_target", target.to_request(how=True)
    keys = {(target.parameter, target.value) for target in targets}
    for target in seen:
        if target.parameter in drift and (target.parameter, target.value) not in keys:
            yield "remove_target", target.to_request(how=False)
    if "usePrivateIp" in drift:
        wrong = [one for one in seen if one.parameter != "ips" and one.is_private != bool(wanted["usePrivateIp"])]
        kept = sorted({target.parameter for target in wrong if target.parameter in ignored})
        if kept:
            raise Conflict(
                "usePrivateIp changes only by taking targets off and adding them again, and "
                f"{' and '.join(kept)} is in ignoreDrift: do it yourself, or take it out of ignoreDrift"
            )
        for target in wrong:
            if (target.parameter, target.value) in keys:
                yield "remove_target", target.to_request(how=False)


def _way(wanted: Mapping[str, Any], seen: Collection[Target], ignored: Collection[str]) -> bool:
    """Whether new targets are reached privately: as declared; where that is ignored, as the others are."""
    ways = {target.is_private for target in seen if target.parameter != "ips"}
    is_free = wanted.get("usePrivateIp") is None or "usePrivateIp" in ignored
    return ways.pop() if is_free and len(ways) == 1 else bool(wanted.get("usePrivateIp"))
