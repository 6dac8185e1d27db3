"""What is declared, held beside what is actual: only declared parameters, each compared as the thing it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from ipaddress import ip_network
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts

_UNITS: Final[Mapping[str, Decimal]] = {
    **{
        unit: Decimal(10) ** (3 * power)
        for power, unit in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


class ComparedType:
    """What comparing must know of one component type, drawn once from its facts."""

    def __init__(self, facts: TypeFacts) -> None:
        properties: Mapping[str, Any] = facts.parameter_schema.get("properties", {})
        facts_of = {name: facts.parameter_facts(name) for name in properties}
        self.compare: dict[str, str] = {name: found.get("compare", "exact") for name, found in facts_of.items()}
        self.immutable = frozenset(name for name, found in facts_of.items() if found.get("immutable"))
        self.swept = frozenset(name for name, found in facts_of.items() if found.get("swept"))
        self.enforced: dict[str, Any] = {
            name: properties[name].get("default") for name, found in facts_of.items() if found.get("enforced")
        }
        self.grows: dict[str, str] = {
            name: found["growsWhile"] for name, found in facts_of.items() if "growsWhile" in found
        }
        self.set_by_cloud: dict[str, dict[str, str]] = {
            name: found["setByCloud"] for name, found in facts_of.items() if "setByCloud" in found
        }
        self.linked = frozenset(facts.linked())
        self.secret = frozenset(name for name, found in facts_of.items() if found.get("secret"))
        self.sensitive = frozenset(name for name, found in facts_of.items() if found.get("sensitive"))
        self.holds_secrets = frozenset(name for name, found in facts_of.items() if found.get("holdsSecrets"))
        self.write_only = frozenset(name for name, found in facts_of.items() if found.get("writeOnly"))
        self.named_by = facts.named_by
        self.place = frozenset(facts.place)
        self.parent = facts.parent
        self.realm = facts.realm

    @cached_property
    def never_compared(self) -> frozenset[str]:
        """Parameters that are the identity itself: a change of them is handled by itself (S18)."""
        return frozenset({"name", self.named_by, *self.place, *(word for word in (self.parent, self.realm) if word)})


@dataclass(frozen=True, slots=True)
class Difference:
    """One parameter that differs (G3)."""

    declared: Any
    actual: Any

    def to_json(self) -> dict[str, Any]:
        """As it stands in the output field ``drift``."""
        return {"declared": self.declared, "actual": self.actual}


Drift = dict[str, Difference]


def find_drift(
    compared: ComparedType, declared: Mapping[str, Any], actual: Mapping[str, Any], ignored: Collection[str] = ()
) -> Drift:
    """Every declared parameter whose actual value is known and differs, but for those ignored (G15)."""
    drift: Drift = {}
    wanted = {**compared.enforced, **declared} if compared.enforced else declared
    for name, value in wanted.items():
        if name not in actual or name in ignored or name in compared.never_compared:
            continue
        seen = actual[name]
        if value == seen and type(value) is type(seen):
            continue
        if name in compared.grows and _has_grown(value, seen, actual.get(compared.grows[name])):
            continue
        how = compared.compare.get(name, "exact")
        if how == "entries":
            seen = _declared_entries(value, seen)
        fields = compared.set_by_cloud.get(name)
        ours, theirs = (value, seen) if fields is None else (_without(fields, value), _without(fields, seen))
        if _normal(how, ours) != _normal(how, theirs):
            drift[name] = Difference(value, seen)
    return drift


def _has_grown(declared: Any, actual: Any, switch: Any) -> bool:
    """Whether the cloud itself may have raised a value above the declared one: the switch for it is on."""
    is_on = bool(switch) and switch != "Disabled"
    return is_on and isinstance(declared, int | float) and isinstance(actual, int | float) and actual > declared


def _without(fields: Mapping[str, str], entries: Any) -> Any:
    """Entries without what the cloud sets by itself while a switch of the entry is on; a switch left out is off."""
    return [
        {
            name: value
            for name, value in entry.items()
            if not (name in fields and entry.get(fields[name])) and (value or name not in fields.values())
        }
        for entry in entries or ()
    ]


def _declared_entries(declared: Any, actual: Any) -> Any:
    """Of an actual map, what the declared one names: the other entries are somebody else's."""
    if not (isinstance(declared, Mapping) and isinstance(actual, Mapping)):
        return actual
    return {key: value for key, value in actual.items() if key in declared}


def _normal(how: str, value: Any) -> Any:
    match how:
        case "unordered":
            return sorted({_text(item) for item in value}) if isinstance(value, list | tuple | set) else value
        case "caseless":
            return value.casefold() if isinstance(value, str) else value
        case "cidr":
            return network(value)
        case "cidrs":
            return sorted({network(item) for item in value}) if isinstance(value, list | tuple | set) else value
        case "quantity":
            return quantity(value)
    return (isinstance(value, bool), value)  # True is not 1, though Python calls them equal


def network(value: Any) -> Any:
    """A block of addresses in its one spelling; anything else as it is."""
    try:
        return str(ip_network(value, strict=False))
    except (ValueError, TypeError):
        return value


def quantity(value: Any) -> Any:
    """An amount as Kubernetes writes it, as a number: ``500m`` is ``0.5``, ``1Gi`` is ``1024Mi``; else as it is."""
    text = str(value)
    number = text.rstrip("".join({letter for unit in _UNITS for letter in unit}))
    try:
        return Decimal(number) * _UNITS[text[len(number) :]]
    except (InvalidOperation, KeyError):
        return value


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def mutable(compared: ComparedType, drift: Drift) -> Drift:
    """The part of a drift that the cloud can change in place."""
    return {name: difference for name, difference in drift.items() if name not in compared.immutable}


def immutable(compared: ComparedType, drift: Drift) -> Drift:
    """The part of a drift that would need another resource (S18)."""
    return {name: difference for name, difference in drift.items() if name in compared.immutable}


def in_turn(compared: ComparedType, drift: Drift) -> Drift:
    """The part of a drift that is written next: what the cloud never returns by itself, after everything else.

    So it is certain which value a call that succeeded has written (A8).
    """
    blind = sorted(compared.write_only & drift.keys())
    if not blind:
        return drift
    others = {name: difference for name, difference in drift.items() if name not in compared.write_only}
    return others or {blind[0]: drift[blind[0]]}
