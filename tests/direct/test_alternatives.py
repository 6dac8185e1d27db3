"""What a declared alternative excludes: names of the others, and only where both together break what held before."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.rules.nested.alternatives import excluded

REQUIRED: dict[str, Any] = {
    "properties": {name: {} for name in "ABCD"},
    "oneOf": [{"required": ["A"]}, {"required": ["B", "C"]}],
}
CLOSED: dict[str, Any] = {
    "oneOf": [
        {"type": "object", "additionalProperties": False, "properties": {"A": {}, "Of": {}}, "required": ["A"]},
        {"$ref": "#/$defs/B"},
    ]
}
ANY = {"anyOf": [{"required": ["A"]}, {"required": ["B"]}]}
CLOSED_ANY = {"anyOf": CLOSED["oneOf"]}
KINDS: dict[str, Any] = {
    "oneOf": [
        {"properties": {"Kind": {"const": "a"}, "One": {}}, "required": ["One"]},
        {"properties": {"Kind": {"enum": ["b", "c"]}, "Other": {}}, "required": ["Other"]},
    ]
}
DEEP: dict[str, Any] = {
    "oneOf": [
        {
            "additionalProperties": False,
            "properties": {"A": {}, "In": {"type": "object", "required": ["X"]}},
            "required": ["A"],
        },
        {
            "additionalProperties": False,
            "properties": {"B": {}, "In": {"type": "array", "items": {"required": ["Y"]}}},
            "required": ["B"],
        },
    ]
}
ROOT: dict[str, Any] = {
    "$defs": {
        "B": {"additionalProperties": False, "properties": {"B": {}, "Of": {}}, "required": ["B"]},
        "Choice": ANY | {"maxProperties": 1},
    }
}
ONE = {"maxProperties": 1}
XOR = {"requiredXor": ["A", "B", "C"]}
APART = {"dependentExcluded": {"A": ["B", "C"], "B": ["A"], "C": ["A"]}}
ONE_WAY = {"dependentExcluded": {"A": ["B"]}}
NEEDS = {"dependencies": {"A": ["C"], "B": {"oneOf": [{"required": ["A"]}, {}]}}}


def _values(text: str) -> dict[str, Any]:
    """Entries of that name: ``A B`` are two."""
    return dict.fromkeys(text.split(), "x")


@pytest.mark.rule("G3", "S12")
@pytest.mark.parametrize(
    ("schema", "declared", "before", "left_out"),
    [
        (REQUIRED, "A", "B C", "B C"),
        (REQUIRED, "A D", "B C D", "B C"),
        (REQUIRED, "B C", "A", "A"),
        (REQUIRED, "A", "B D", ""),  # what was there fitted no alternative
        (REQUIRED, "D", "B C", ""),  # what is declared is of none
        (REQUIRED, "A B C", "B C", ""),  # of two
        (REQUIRED, "A", "A D", ""),
        (CLOSED, "A", "B Of", "B"),  # what both know may stay
        (CLOSED, "B", "A Of", "A"),
        (CLOSED, "B", "A E", ""),
        (ANY, "A", "B", ""),  # both together are allowed
        (CLOSED_ANY, "A", "B Of", "B"),
        (ONE, "A", "B", "B"),
        (ONE, "A", "A", ""),
        (ONE, "A", "B C", ""),  # was too many before
        ({"maxProperties": 2}, "A", "B C", ""),  # which of them nobody knows
        ({"maxProperties": 2}, "A D", "B C", "B C"),
        ({"maxProperties": 3}, "A", "B C", ""),
        ({"maxProperties": "1"}, "A", "B", ""),
        (XOR, "A", "B D", "B"),
        (XOR, "A", "B C", ""),
        (XOR, "A B", "C", ""),
        (XOR, "D", "B", ""),
        (APART, "A", "B C D", "B C"),
        (APART, "B", "A C", ""),
        (APART, "B C", "A", "A"),
        (APART, "B", "C", ""),
        (ONE_WAY, "A", "B", "B"),
        (ONE_WAY, "B", "A", "A"),
        (NEEDS, "A C", "B", "B"),
        (NEEDS, "B", "A C", "A"),
        (NEEDS, "C", "B", ""),
        (NEEDS, "A", "B", ""),  # what is declared breaks the rule itself
        ({"$ref": "#/$defs/Choice"}, "A", "B", "B"),
        ({"allOf": [{"title": "no rule"}, ONE]}, "A", "B", "B"),
        ({"$ref": "#/$defs/Nowhere"}, "A", "B", ""),
        ({"allOf": "text"}, "A", "B", ""),
        ({"oneOf": "text"}, "A", "B", ""),
        (None, "A", "B", ""),
    ],
)
def test_names_of_other_alternatives_are_excluded_where_both_break_the_rule(
    schema: Any, declared: str, before: str, left_out: str
) -> None:
    ours, theirs = _values(declared), _values(before)
    found = excluded(schema, ROOT, ours, theirs, {**theirs, **ours})
    assert found == frozenset(left_out.split())
    assert excluded(schema, ROOT, ours, theirs, theirs) == frozenset(), "nothing was written"


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("declared", "before", "left_out"),
    [
        (
            {"Kind": "a", "One": 1},
            {"Kind": "b", "Other": 2},
            set(),
        ),  # the kind distinguishes them: both may stand there
        ({"Kind": "C", "Other": 1}, {"One": 2}, set()),  # letters in any case
        ({"Other": 1}, {"Kind": "a", "One": 2}, set()),  # what is declared leaves the kind of the other there
        ({"One": 1}, {"Other": 2}, {"Other"}),
        ({"One": 1}, {"Other": None}, set()),  # null is nothing
        ({"One": 1, "Kind": None}, {"Other": 2, "Kind": None}, {"Other"}),
        ({"One": 1, "Other": None}, {"Other": 2}, {"Other"}),
    ],
)
def test_alternatives_are_distinguished_by_the_values_that_are_theirs(
    declared: dict[str, Any], before: dict[str, Any], left_out: set[str]
) -> None:
    after = {**before, **{name: one for name, one in declared.items() if one is not None}}
    assert excluded(KINDS, {}, declared, before, after) == left_out


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("declared", "before", "left_out"),
    [
        ({"Kind": "C", "Other": 1}, {"Kind": "a", "One": 2}, {"One"}),  # letters in any case
        ({"Kind": "a", "One": 1}, {"Kind": "b", "Other": 2}, {"Other"}),
        ({"Kind": "a", "Other": 1}, {"Kind": "a", "One": 2}, set()),
        ({"Kind": "d", "Other": 1}, {"Kind": "a", "One": 2}, set()),
        ({"Kind": "b", "One": 1}, {"Kind": "b", "Other": 2}, set()),
    ],
)
def test_closed_alternatives_are_distinguished_by_their_kind(
    declared: dict[str, Any], before: dict[str, Any], left_out: set[str]
) -> None:
    closed = {"oneOf": [{**one, "additionalProperties": False} for one in KINDS["oneOf"]]}
    assert excluded(closed, {}, declared, before, {**before, **declared}) == left_out


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("declared", "before", "left_out"),
    [
        ({"A": 1, "In": {"X": 1}}, {"B": 1, "In": [{"Y": 1}]}, {"B"}),
        ({"B": 1, "In": [{"Y": 1}, {"Y": 2}]}, {"A": 1, "In": {"X": 1}}, {"A"}),
        ({"B": 1, "In": ({"Y": 1},)}, {"A": 1}, {"A"}),
        ({"B": 1, "In": [{"Y": 1}, {}]}, {"A": 1, "In": {"X": 1}}, set()),
        ({"A": 1, "In": {"Z": 1}}, {"B": 1}, set()),
        ({"A": 1, "In": "text"}, {"B": 1}, set()),
        ({"A": 1, "In": None}, {"B": 1}, {"B"}),
        ({"A": 1}, {"B": 1, "In": {"Y": 1}}, set()),
    ],
)
def test_alternatives_are_distinguished_by_what_is_in_them(
    declared: dict[str, Any], before: dict[str, Any], left_out: set[str]
) -> None:
    after = {**before, **{name: one for name, one in declared.items() if one is not None}}
    assert excluded(DEEP, {}, declared, before, after) == left_out


def test_several_rules_exclude_what_each_of_them_does() -> None:
    schema = {**ANY, "dependentExcluded": {"A": ["B"]}, "requiredXor": ["A", "C"]}
    found = excluded(schema, {}, _values("A"), _values("B C D"), _values("A B C D"))
    assert found == {"B", "C"}


def test_a_schema_that_contains_itself_is_followed_to_an_end() -> None:
    node: dict[str, Any] = {"$ref": "#/$defs/Node"}
    root = {"$defs": {"Node": {"oneOf": [{"required": ["A"]}, {"required": ["B"], "properties": {"In": node}}]}}}
    deep: dict[str, Any] = {"B": 1}
    for _ in range(10):
        deep = {"B": 1, "In": deep}
    assert excluded(node, root, _values("A"), deep, {**deep, "A": 1}) == {"B", "In"}
    for _ in range(200):
        deep = {"B": 1, "In": deep}
    assert excluded(node, root, _values("A"), deep, {**deep, "A": 1}) == set(), "too deep to be understood"


def test_a_schema_that_is_too_large_excludes_nothing() -> None:
    both = [{"properties": {"X": {"$ref": "#/$defs/Node"}}, "required": ["X"]}] * 2
    root = {"$defs": {"Node": {"oneOf": [*({**one} for one in both), *({**one} for one in both)]}}}
    deep: dict[str, Any] = {}
    for _ in range(12):
        deep = {"X": deep}
    schema = {"anyOf": [{"required": ["A"], **both[0]}, {"required": ["B"]}], **ONE}
    declared = {"A": 1, "X": deep}
    assert excluded(schema, root, declared, {"B": 1}, {"B": 1, **declared}) == set()
