"""What is declared, held beside what is actual: only declared parameters, each compared as the thing it is."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.tag_rules import ignored_keys, tag_key, tag_path
from fractal_cloud.rules.known_fields import known_fields
from fractal_cloud.rules.nested.amounts import network, quantity
from fractal_cloud.rules.nested.compare import Comparison
from fractal_cloud.rules.nested.path import Path, is_covered, of_name, root, written
from fractal_cloud.rules.nested.shape import Shape, along, marked, shape_of
from fractal_cloud.rules.nested.write_only import write_only_values


class ComparedType:
    """What comparing must know of one component type, drawn once from its facts.

    Of a nested type ``secret``, ``sensitive``, ``holds_secrets`` and ``write_only`` are paths, in which ``*`` stands
    for every element and entry; ``shape`` is its schema. What a drift names is asked with the methods.
    """

    def __init__(self, facts: TypeFacts) -> None:
        properties: Mapping[str, Any] = facts.parameter_schema.get("properties", {})
        self._properties = properties
        self._definitions: Mapping[str, Any] = facts.parameter_schema.get("$defs") or {}
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
        self.shape: Shape | None = shape_of(facts.parameter_schema) if facts.nested else None
        self.secret = places_marked(facts, "secret")
        self.sensitive = places_marked(facts, "sensitive")
        self.holds_secrets = places_marked(facts, "holdsSecrets")
        self.write_only = places_marked(facts, "writeOnly")
        self.tag_rules = facts.tag_rules
        self.taggable = facts.taggable
        self.tags_frozen = facts.tags_frozen
        self.named_by = facts.named_by
        self.key = tuple(facts.key)
        self.place = frozenset(facts.place)
        self.parent = facts.parent
        self.realm = facts.realm

    @cached_property
    def never_compared(self) -> frozenset[str]:
        """Parameters that are the identity itself: a change of them is handled by itself (S18)."""
        words = {self.named_by, *self.place, *self.key, *(word for word in (self.parent, self.realm) if word)}
        return frozenset(words if self.shape is not None else {"name", *words})

    @cached_property
    def _write_only_places(self) -> tuple[Path, ...]:
        return tuple(of_name(name) for name in sorted(self.write_only))

    def known(self, name: str, value: Any) -> Any:
        """An actual value without what its parameter's schema has no name for: a cloud may be newer than this."""
        return known_fields(self._properties.get(name) or {}, self._definitions, value)

    def is_immutable(self, name: str) -> bool:
        """Whether the cloud cannot change in place what a drift names."""
        if self.shape is None:
            return name in self.immutable
        return any(shape.marks.get("immutable") for shape in along(self.shape, of_name(name)))

    def is_write_only(self, name: str) -> bool:
        """Whether the cloud never returns what a drift names."""
        if self.shape is None:
            return name in self.write_only
        return bool(self.write_only) and is_covered(of_name(name), self._write_only_places)

    def is_linked(self, name: str) -> bool:
        """Whether only links set what a drift names."""
        return name in self.linked or (self.shape is not None and root(name) in self.linked)

    def write_only_values(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Every value among these parameters that the cloud never returns, by the name that its drift has.

        What stands for the value last written is given to ``find_drift`` among the actual values, under that name.
        """
        if not self.write_only:
            return {}
        if self.shape is None:
            return {name: parameters[name] for name in self.write_only & parameters.keys()}
        return write_only_values(self.shape, self._write_only_places, parameters)


def places_marked(facts: TypeFacts, mark: str) -> frozenset[str]:
    """The parameters of a type that bear a mark; of a nested type the paths of all places that do."""
    if facts.nested:
        return frozenset(
            map(written, marked(shape_of(facts.parameter_schema), lambda shape: bool(shape.marks.get(mark))))
        )
    properties = facts.parameter_schema.get("properties", {})
    return frozenset(name for name in properties if facts.parameter_facts(name).get(mark))


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
    compared: ComparedType,
    declared: Mapping[str, Any],
    actual: Mapping[str, Any],
    ignored: Collection[str] = (),
    ours: Collection[str] = (),
) -> Drift:
    """Every declared parameter whose actual value is known and differs, but for those ignored (G15).

    Of a nested type every path at which it differs; ignored are also paths, with all that is below. ``ours``: entries
    that were set by us alone, and so are none of others' where they are no longer declared.
    """
    wanted = {**compared.enforced, **declared} if compared.enforced else declared
    if compared.shape is not None:
        return _nested_drift(compared, compared.shape, wanted, actual, (ignored, ours))
    drift: Drift = {}
    for name, value in wanted.items():
        if name not in actual or name in ignored or name in compared.never_compared:
            continue
        seen = actual[name]
        if value == seen and type(value) is type(seen):
            continue
        if name in compared.grows and _has_grown(value, seen, actual.get(compared.grows[name])):
            continue
        seen = compared.known(name, seen)
        how = compared.compare.get(name, "exact")
        if how == "entries":
            seen = _declared_entries(value, seen)
        if how == "identified":
            seen = _without_assigned_ids(value, seen)
        fields = compared.set_by_cloud.get(name)
        ours, theirs = (value, seen) if fields is None else (_without(fields, value), _without(fields, seen))
        if _normal(how, ours) != _normal(how, theirs):
            drift[name] = Difference(value, seen)
    return drift


def _nested_drift(
    compared: ComparedType,
    shape: Shape,
    declared: Mapping[str, Any],
    actual: Mapping[str, Any],
    besides: tuple[Collection[str], Collection[str]],
) -> Drift:
    drift: Drift = {}
    ignored, ours = besides
    ignored_paths = tuple(map(of_name, ignored))
    comparison = Comparison(ignored_paths, ours)
    for name, value in declared.items():
        if name not in actual or name in compared.never_compared:
            continue
        if name in compared.grows and _has_grown(value, actual[name], actual.get(compared.grows[name])):
            continue
        for one in comparison.differences((name,), shape.property(name), value, actual[name]):
            drift[written(one.path)] = Difference(one.declared, one.actual)
    for name, value in compared.write_only_values(declared).items():
        if name in actual and actual[name] != value and not is_covered(of_name(name), ignored_paths):
            drift[name] = Difference(value, actual[name])
    return drift


def find_tag_drift(
    compared: ComparedType, declared: Mapping[str, str], tags: Mapping[str, str], ignored: Collection[str] = ()
) -> Drift:
    """Every declared tag whose value differs, by the name of its drift; nobody else's tag is compared (T1)."""
    if not declared or not compared.taggable:
        return {}
    left = ignored_keys(ignored, declared)
    actual = compared.tag_rules.actual(tags, declared)
    return {
        tag_path(key): Difference(value, actual.get(key))
        for key, value in sorted(declared.items())
        if key not in left and actual.get(key) != value
    }


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


def _without_assigned_ids(declared: Any, actual: Any) -> Any:
    """Of actual entries, the ids that are declared: where none is, the cloud makes one up."""
    if not (isinstance(declared, list | tuple) and isinstance(actual, list | tuple)):
        return actual
    ids = {entry.get("id") for entry in declared if isinstance(entry, Mapping)}
    return [
        _without_id(entry) if isinstance(entry, Mapping) and entry.get("id") not in ids else entry for entry in actual
    ]


def _without_id(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "id"}


def _normal(how: str, value: Any) -> Any:
    match how:
        case "unordered":
            return sorted({_text(item) for item in value}) if isinstance(value, list | tuple | set) else value
        case "identified":  # two equal entries of different ids are two
            return sorted(map(_text, value)) if isinstance(value, list | tuple) else value
        case "caseless":
            return value.casefold() if isinstance(value, str) else value
        case "arn":
            return value.rpartition("/")[2] if isinstance(value, str) and value.startswith("arn:") else value
        case "cidr":
            return network(value)
        case "cidrs":
            return sorted({network(item) for item in value}) if isinstance(value, list | tuple | set) else value
        case "quantity":
            return quantity(value)
    return (isinstance(value, bool), value)  # True is not 1, though Python calls them equal


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def mutable(compared: ComparedType, drift: Drift) -> Drift:
    """The part of a drift that the cloud can change in place."""
    return {name: difference for name, difference in drift.items() if not compared.is_immutable(name)}


def correctable(compared: ComparedType, drift: Drift, *, in_handshake: bool = False) -> Drift:
    """The part of a drift that is written; tags that are not written one by one only in re-adoption, or never (T10)."""
    rules = compared.tag_rules
    writes_tags = not compared.tags_frozen and (in_handshake or not rules.written_once)
    return {name: one for name, one in mutable(compared, drift).items() if writes_tags or tag_key(name) is None}


def left_tags(compared: ComparedType, drift: Drift, *, in_handshake: bool = False) -> list[str]:
    """The names of tags that differ and are only reported (T10)."""
    written = correctable(compared, drift, in_handshake=in_handshake)
    return sorted(name for name in drift if tag_key(name) is not None and name not in written)


def immutable(compared: ComparedType, drift: Drift) -> Drift:
    """The part of a drift that would need another resource (S18)."""
    return {name: difference for name, difference in drift.items() if compared.is_immutable(name)}


def in_turn(compared: ComparedType, drift: Drift) -> Drift:
    """The part of a drift that is written next: tags by themselves, and what the cloud never returns, last of all.

    Tags are another call. What is never returned is written alone, so that it is certain which value a call that
    succeeded has written (A8).
    """
    blind = sorted(name for name in drift if compared.is_write_only(name)) if compared.write_only else []
    tags = {name: difference for name, difference in drift.items() if tag_key(name) is not None}
    if not blind and not tags:
        return drift
    others = {name: difference for name, difference in drift.items() if name not in blind and name not in tags}
    return others or tags or {blind[0]: drift[blind[0]]}
