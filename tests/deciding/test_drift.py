"""Declared beside actual: only what is declared, each parameter compared as the thing it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.component import Component, parameter
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.offers.offer import parameter_schema
from fractal_cloud.rules.drift import ComparedType, find_drift, immutable, mutable
from fractal_cloud.rules.nested.amounts import quantity


class Thing(Component):
    """Something with one parameter of every kind."""

    type = "Test.IaaS.Thing"
    provider = "test"
    region: str = parameter(default="", description="Where it is.")
    size: int | None = parameter(default=None)
    network: str = parameter(default="", compare="cidr", immutable=True)
    groups: list[str] = parameter(default=[], compare="unordered")
    rules: list[dict[str, Any]] = parameter(default=[], compare="unordered")
    ranges: list[str] = parameter(default=[], compare="cidrs")
    engine: str = parameter(default="", compare="caseless")
    state: str = parameter(default="running", enforced=True)
    parts: dict[str, str] | None = parameter(default=None, compare="entries")
    steps: list[dict[str, Any]] = parameter(default=[], compare="identified")


COMPARED = ComparedType(
    TypeFacts(
        type=Thing.type,
        provider=Thing.provider,
        title="Thing",
        parameter_schema=parameter_schema(Thing),
        place=["region"],
    )
)


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("name", "declared", "actual", "reason"),
    [
        ("size", 3, 3, "equal is equal"),
        ("network", "10.0.0.0/16", "10.0.0.0/16", "equal is equal"),
        ("network", "fd00::0/64", "fd00::/64", "a cloud shortens addresses"),
        ("groups", ["a", "b"], ["b", "a"], "a set has no order"),
        ("groups", ["a", "a"], ["a"], "a set has nothing twice"),
        ("rules", [{"a": 1, "b": 2}, {"c": 3}], [{"c": 3}, {"b": 2, "a": 1}], "neither rules nor their keys have one"),
        ("ranges", ["10.0.0.1/8", "::1/128"], ["::1/128", "10.0.0.0/8"], "CIDRs are normalised one by one"),
        ("engine", "Postgres", "postgres", "the cloud stores it in lower case"),
        ("parts", {"a": "1"}, {"a": "1", "b": "2"}, "entries that nobody declared are somebody else's"),
        ("region", "eu-west-1", "us-east-1", "a word of the scope is never reported as drift"),
        ("name", "one", "other", "and so is the name"),
    ],
)
def test_what_means_the_same_is_no_drift(name: str, declared: Any, actual: Any, reason: str) -> None:
    assert find_drift(COMPARED, {name: declared, "state": "running"}, {name: actual, "state": "running"}) == {}, reason


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("name", "declared", "actual"),
    [
        ("size", 3, 4),
        ("size", 1, True),
        ("groups", ["a"], []),
        ("rules", [{"a": 1}], [{"a": 2}]),
        ("network", "10.0.0.0/16", "10.0.0.0/17"),
        ("network", "nonsense", "10.0.0.0/17"),
        ("parts", {"a": "1", "c": "3"}, {"a": "1"}),
    ],
)
def test_what_differs_is_returned_with_both_values(name: str, declared: Any, actual: Any) -> None:
    drift = find_drift(COMPARED, {name: declared}, {name: actual})
    assert {key: difference.to_json() for key, difference in drift.items()} == {
        name: {"declared": declared, "actual": actual}
    }


@pytest.mark.rule("G3", "G15", "S23")
def test_only_what_is_declared_known_and_not_ignored_is_compared() -> None:
    assert find_drift(COMPARED, {}, {"size": 4, "groups": ["x"], "state": "running"}) == {}, "nobody declared it"
    assert find_drift(COMPARED, {"size": 3}, {"state": "running"}) == {}, "nobody read it"
    assert find_drift(COMPARED, {"size": 3}, {"size": 4}, {"size"}) == {}, "it is ignored"


@pytest.mark.rule("G3")
def test_an_enforced_default_is_compared_as_if_declared() -> None:
    drift = find_drift(COMPARED, {}, {"state": "stopped"})
    assert drift["state"].to_json() == {"declared": "running", "actual": "stopped"}
    assert find_drift(COMPARED, {"state": "stopped"}, {"state": "stopped"}) == {}


@pytest.mark.rule("S18")
def test_what_cannot_be_changed_in_place_is_separated() -> None:
    drift = find_drift(COMPARED, {"network": "10.0.0.0/16", "size": 1}, {"network": "10.1.0.0/16", "size": 2})
    assert set(immutable(COMPARED, drift)) == {"network"}
    assert set(mutable(COMPARED, drift)) == {"size"}


@pytest.mark.parametrize(
    ("one", "other"), [("500m", "0.5"), ("1Gi", "1024Mi"), ("1", 1), ("2k", "2000"), ("1e3", "1k"), ("1500u", "1.5m")]
)
def test_amounts_of_one_value_are_equal_however_they_are_written(one: Any, other: Any) -> None:
    assert quantity(one) == quantity(other)


@pytest.mark.parametrize(("one", "other"), [("1G", "1Gi"), ("1", "1m"), ("x", "y"), (None, "0"), ("", "0")])
def test_other_amounts_are_not(one: Any, other: Any) -> None:
    assert quantity(one) != quantity(other)


@pytest.mark.rule("S13")
@pytest.mark.parametrize("condition", Condition)
def test_what_is_open_accepts_changes_unless_it_dies_and_anything_else_only_when_settled(condition: Condition) -> None:
    closed = Sighting("Test.Thing", "a", "id-a", condition=condition)
    assert closed.accepts_changes is (condition is Condition.SETTLED)
    still_open = Sighting("Test.Thing", "a", "id-a", condition=condition, is_open=True)
    assert still_open.accepts_changes is (condition is not Condition.DYING)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.rule("S20")
@given(st.dictionaries(st.sampled_from(sorted(COMPARED.compare)), VALUES))
def test_nothing_ever_drifts_from_itself(values: dict[str, Any]) -> None:
    assert find_drift(COMPARED, values, dict(values)) == {}


def _steps(declared: Any, actual: Any) -> set[str]:
    return set(find_drift(COMPARED, {"steps": declared}, {"steps": actual}))


@pytest.mark.rule("G3")
@pytest.mark.parametrize("kind", [list, tuple])
def test_an_id_counts_only_where_it_is_declared(kind: type) -> None:
    assert not _steps([{"a": 1}], kind([{"id": "made-up", "a": 1}]))
    assert not _steps([{"id": "x", "a": 1}, {"a": 2}], kind([{"id": "made-up", "a": 2}, {"id": "x", "a": 1}]))
    assert _steps([{"id": "x", "a": 1}], kind([{"id": "y", "a": 1}]))
    assert _steps([{"a": 1}], kind([{"id": "made-up", "a": 2}]))
    assert _steps([{"a": 1}], kind([{"id": "made-up", "a": 1}, {"id": "another", "a": 1}])), "one too many"
    assert _steps([], kind([{"id": "made-up", "a": 1}]))
