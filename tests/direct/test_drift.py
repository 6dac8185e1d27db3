"""Comparing, exactly: what is drawn from a type's facts, and each way of comparing at its edges (G3, G15)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.rules.drift import ComparedType, Difference, find_drift, immutable, mutable
from fractal_cloud.rules.nested.amounts import quantity


def facts(properties: dict[str, Any] | None = None, **more: Any) -> TypeFacts:
    schema = {} if properties is None else {"properties": properties}
    values: dict[str, Any] = {"type": "Test.Thing", "provider": "p", "title": "Thing", "parameter_schema": schema}
    return TypeFacts(**{**values, **more})


PROPERTIES = {
    "plain": {"type": "string", "default": "no"},
    "exactly": {"x-fractal": {"compare": "exact"}},
    "fixed": {"x-fractal": {"immutable": True, "compare": "cidr"}},
    "late": {"x-fractal": {"swept": True}},
    "state": {"default": "running", "x-fractal": {"enforced": True}},
    "peers": {"x-fractal": {"linked": True}},
    "groups": {"x-fractal": {"compare": "unordered"}},
    "ranges": {"x-fractal": {"compare": "cidrs"}},
    "engine": {"x-fractal": {"compare": "caseless"}},
    "memory": {"x-fractal": {"compare": "quantity"}},
    "parts": {"x-fractal": {"compare": "entries"}},
}


def compared(**more: Any) -> ComparedType:
    return ComparedType(facts(PROPERTIES, place=["region", "zone"], parent="net", realm="cluster", **more))


def test_what_is_compared_is_drawn_from_the_facts() -> None:
    drawn = compared()
    assert drawn.compare == {
        "plain": "exact",
        "exactly": "exact",
        "fixed": "cidr",
        "late": "exact",
        "state": "exact",
        "peers": "exact",
        "groups": "unordered",
        "ranges": "cidrs",
        "engine": "caseless",
        "memory": "quantity",
        "parts": "entries",
    }
    assert drawn.immutable == {"fixed"}
    assert drawn.swept == {"late"}
    assert drawn.enforced == {"state": "running"}
    assert drawn.linked == {"peers"}
    assert drawn.place == {"region", "zone"}
    assert (drawn.parent, drawn.realm) == ("net", "cluster")
    assert drawn.never_compared == {"name", "region", "zone", "net", "cluster"}


def test_a_type_without_parameters_has_nothing_to_compare() -> None:
    bare = ComparedType(facts())
    assert (bare.compare, bare.enforced, bare.immutable, bare.swept) == ({}, {}, frozenset(), frozenset())
    assert bare.never_compared == {"name"}


def drift(declared: dict[str, Any], actual: dict[str, Any], *ignored: str) -> dict[str, Any]:
    return {
        name: (found.declared, found.actual)
        for name, found in find_drift(compared(), declared, actual, ignored).items()
    }


@pytest.mark.rule("G3", "G15", "S18")
def test_every_declared_parameter_that_is_known_and_differs_is_reported_and_nothing_else() -> None:
    declared = {"name": "a", "region": "r", "net": "n", "cluster": "c", "same": 1, "plain": "x", "unknown": 1, "ign": 1}
    actual = {"name": "b", "region": "s", "net": "m", "cluster": "d", "same": 1, "plain": "y", "ign": 2, "other": 3}
    expected = {"plain": ("x", "y")}
    assert drift(declared, actual, "ign") == expected
    assert drift(dict(reversed(declared.items())), actual, "ign") == expected, "whatever comes before it"
    assert drift({}, actual) == {}
    assert drift(declared, {}) == {}
    assert find_drift(compared(), {"plain": "x"}, {"plain": "y"}) == {"plain": Difference("x", "y")}
    assert Difference("x", "y").to_json() == {"declared": "x", "actual": "y"}


@pytest.mark.rule("G3")
def test_an_enforced_default_is_compared_as_if_declared_and_gives_way_to_what_is_declared() -> None:
    assert drift({}, {"state": "stopped"}) == {"state": ("running", "stopped")}
    assert drift({}, {"state": "running"}) == {}
    assert drift({"state": "stopped"}, {"state": "stopped"}) == {}
    assert drift({"plain": "x"}, {"plain": "y", "state": "stopped"}) == {
        "state": ("running", "stopped"),
        "plain": ("x", "y"),
    }


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("name", "declared", "actual", "differs"),
    [
        ("plain", 1, True, True),
        ("plain", True, 1, True),
        ("plain", 0, False, True),
        ("plain", 1, 1.0, False),
        ("plain", None, None, False),
        ("plain", None, "", True),
        ("nowhere", "a", "b", True),
        ("nowhere", 1, 1.0, False),
        ("groups", ["a", "b"], ("b", "a"), False),
        ("groups", ["a"], {"a"}, False),
        ("groups", ["a"], ["a", "b"], True),
        ("groups", "ab", "ba", True),
        ("groups", None, [], True),
        ("groups", 5, 5.0, False),
        ("groups", [{"at": Decimal(1)}], [{"at": "1"}], False),
        ("groups", [{"a": 1, "b": 2}], [{"b": 2, "a": 1}], False),
        ("engine", "Postgres", "pOSTGRES", False),
        ("engine", "Straße", "STRASSE", False),
        ("engine", "a", "b", True),
        ("engine", 5, 5.0, False),
        ("engine", None, "a", True),
        ("fixed", "10.0.0.9/8", "10.0.0.0/8", False),
        ("fixed", "10.0.0.0/8", "11.0.0.0/8", True),
        ("fixed", "no network", "no network ", True),
        ("fixed", None, "10.0.0.0/8", True),
        ("fixed", ["x"], ["y"], True),
        ("ranges", ["10.0.0.9/8", "::1/64"], ["::/64", "10.0.0.0/8"], False),
        ("ranges", ["10.0.0.0/8"], ["11.0.0.0/8"], True),
        ("ranges", ["10.0.0.0/8", "12.0.0.0/8"], ["10.0.0.0/8", "11.0.0.0/8"], True),
        ("ranges", "10.0.0.0/8", "10.0.0.0/9", True),
        ("ranges", None, ["10.0.0.0/8"], True),
        ("memory", "1Gi", "1024Mi", False),
        ("memory", "500m", 0.5, False),
        ("memory", "1Gi", "1G", True),
        ("memory", "some", "other", True),
        ("parts", {"a": 1}, {"a": 1, "b": 2}, False),
        ("parts", {"a": 1}, {"b": 2}, True),
        ("parts", {"a": 1}, "text", True),
        ("parts", "text", {"a": 1}, True),
        ("parts", ["a"], {"a": 1}, True),
        ("parts", {"a": 1}, ["a"], True),
        ("exactly", "a", "A", True),
    ],
)
def test_each_parameter_is_compared_as_the_thing_it_is(name: str, declared: Any, actual: Any, differs: bool) -> None:
    assert bool(drift({name: declared}, {name: actual, "state": "running"})) is differs


TARGET = {"type": "object", "properties": {"port": {"type": "integer"}, "more": {}}, "additionalProperties": False}
OTHER = {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False}
NESTING = {
    "targets": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Target"}}, {"type": "null"}]},
    "target": {"$ref": "#/$defs/Target"},
    "named": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Target"}},
    "either": {"anyOf": [{"$ref": "#/$defs/Target"}, {"$ref": "#/$defs/Other"}]},
    "open": {"type": "object"},
}


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("name", "declared", "actual", "differs"),
    [
        ("targets", [{"port": 80}], [{"port": 80, "new": {"a": [None]}}], False),
        ("targets", [{"port": 80}], [{"port": 81, "new": 1}], True),
        ("targets", [{"port": 80}], [{"port": 80, "more": 1}], True),
        ("targets", [{"port": 80}], [{"port": 80}, {"new": 1}], True),
        ("targets", [{"port": 80}], None, True),
        ("target", {"port": 80}, {"port": 80, "new": 1}, False),
        ("target", {"more": {"x": 1}}, {"more": {"x": 1, "new": 1}}, True),
        ("named", {"a": {"port": 80}}, {"a": {"port": 80, "new": 1}}, False),
        ("named", {"a": {"port": 80}}, {"a": {"port": 80}, "b": {"new": 1}}, True),
        ("either", {"port": 80}, {"port": 80, "new": 1}, True),
        ("open", {"a": 1}, {"a": 1, "new": 1}, True),
    ],
)
def test_a_field_that_the_schema_has_no_name_for_is_no_drift(
    name: str, declared: Any, actual: Any, differs: bool
) -> None:
    """Only of closed schemas: an entry of a map is somebody's, and so is what stands in a value of any form."""
    schema = {"properties": NESTING, "$defs": {"Target": TARGET, "Other": OTHER}}
    kind = ComparedType(facts(parameter_schema=schema))
    assert (name in find_drift(kind, {name: declared}, {name: actual})) is differs


@pytest.mark.rule("G3")
def test_of_a_map_only_the_declared_entries_are_reported() -> None:
    assert drift({"parts": {"a": 1, "c": 3}}, {"parts": {"a": 2, "b": 5}}) == {"parts": ({"a": 1, "c": 3}, {"a": 2})}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("1", Decimal(1)),
        (2, Decimal(2)),
        ("500m", Decimal("0.5")),
        ("3u", Decimal("0.000003")),
        ("4n", Decimal("0.000000004")),
        ("1k", Decimal(1000)),
        ("1M", Decimal(10) ** 6),
        ("1G", Decimal(10) ** 9),
        ("1T", Decimal(10) ** 12),
        ("1P", Decimal(10) ** 15),
        ("1E", Decimal(10) ** 18),
        ("1Ki", Decimal(1024)),
        ("1Mi", Decimal(1024) ** 2),
        ("1Gi", Decimal(1024) ** 3),
        ("1Ti", Decimal(1024) ** 4),
        ("1Pi", Decimal(1024) ** 5),
        ("1Ei", Decimal(1024) ** 6),
        ("1.5Gi", Decimal("1.5") * Decimal(1024) ** 3),
        ("", ""),
        ("Gi", "Gi"),
        ("1X", "1X"),
        ("1iG", "1iG"),
        ("1 Gi", Decimal(1024) ** 3),
        (None, None),
        ("5XX", "5XX"),
    ],
)
def test_an_amount_is_read_as_kubernetes_writes_it(text: Any, amount: Any) -> None:
    assert quantity(text) == amount


@pytest.mark.rule("S18")
def test_a_drift_is_parted_into_what_can_change_in_place_and_what_cannot() -> None:
    both = {"plain": Difference(1, 2), "fixed": Difference("a", "b")}
    assert mutable(compared(), both) == {"plain": Difference(1, 2)}
    assert immutable(compared(), both) == {"fixed": Difference("a", "b")}
