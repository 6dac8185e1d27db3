"""References filled in, by themselves: what fits where, what is held back, and what is never filled in."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fractal_cloud.agent.filling import MISSING, Answer, Filled, fill, inside, lookup_key
from fractal_cloud.model.reference import FindReference, OutputReference, find_references
from fractal_cloud.offers.parameter_validation import SchemaCheck

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer"},
        "text": {"type": "string"},
        "all": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False},
    },
    "required": ["text"],
    "additionalProperties": False,
}
FACTS: Any = SimpleNamespace(check=SchemaCheck(SCHEMA, "parameter of this type"))


def filled(parameters: dict[str, Any], known: dict[str, Any], answer: Answer | None = None) -> Filled:
    """These parameters, with values of others by ``component.field``."""

    def value_of(reference: OutputReference) -> Any:
        return known.get(f"{reference.component}.{reference.field}", MISSING)

    def found_by(declared: FindReference, lookup: FindReference) -> Answer:
        assert answer is not None
        return Answer(answer.found, f"{lookup.where}", answer.news)

    return fill(parameters, FACTS, value_of, found_by, parameters)


@pytest.mark.parametrize("value", [7, True, 1.5, ["a"], {"size": 3}, "text", ""], ids=repr)
def test_what_the_whole_of_a_value_refers_to_keeps_its_type(value: Any) -> None:
    for declared in ("${a.Out}", {"$output": "a.Out"}):
        name = {int: "size", list: "all", dict: "deep", str: "text"}.get(type(value), "other")
        found = filled({name: declared}, {"a.Out": value})
        if name != "other":
            assert found == Filled({name: value})


def test_within_a_text_it_is_written_as_text() -> None:
    found = filled({"text": "${a.Out}-${b.Out} $${a.Out}"}, {"a.Out": 7, "b.Out": True})
    assert found == Filled({"text": "7-true ${a.Out}"})


def test_what_was_filled_in_is_not_filled_in_again() -> None:
    assert filled({"text": "${a.Out}"}, {"a.Out": "${b.Out} $${x"}) == Filled({"text": "${b.Out} $${x"})


def test_a_parameter_with_something_missing_is_left_out_whole() -> None:
    found = filled({"deep": {"size": "${a.Out}"}, "text": "${b.Out} ${c.Out}"}, {"a.Out": 3, "b.Out": "x"})
    assert found == Filled({"deep": {"size": 3}}, waits=(OutputReference("c", "Out"),))


def test_what_does_not_fit_is_named_by_its_path() -> None:
    found = filled({"deep": {"size": "${a.Out}"}}, {"a.Out": "seven"})
    assert found.parameters == {}
    (error,) = found.errors
    assert error.startswith(
        "deep.size is 'seven': must be a whole number: that is what its reference was filled in with"
    )


def test_what_else_is_wrong_with_a_value_was_said_at_deploy() -> None:
    assert filled({"deep": {"size": "${a.Out}", "more": 1}}, {"a.Out": 3}).errors == ()


@pytest.mark.parametrize("value", [["a"], {"b": 1}], ids=["list", "object"])
def test_a_list_or_an_object_stands_in_no_longer_text(value: Any) -> None:
    found = filled({"text": "all of ${a.Out}"}, {"a.Out": value})
    assert found.parameters == {}
    assert "text has a (Out) within a longer text" in found.errors[0]


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    "value", ["(sensitive)", "(secret: differs)", {"$secret": "mine"}, {"deep": [{"$secret": "mine"}]}], ids=repr
)
def test_what_is_hidden_or_refers_to_a_secret_is_filled_in_nowhere(value: Any) -> None:
    found = filled({"text": "${a.Out}", "deep": {"$output": "a.Out"}}, {"a.Out": value})
    assert found.parameters == {}
    assert len(found.errors) == 2
    assert all("may be a secret" in error for error in found.errors)


@pytest.mark.rule("C12")
def test_a_lookup_is_asked_with_its_conditions_filled_in_and_remembered_as_declared() -> None:
    declared = {"$find": {"type": "T", "where": {"size": "${a.Out}"}}}
    found = filled({"all": declared}, {"a.Out": 3}, Answer(["x", "y"], news="others by now"))
    (lookup,) = [one for _, one in find_references(declared)]
    assert found == Filled({"all": ["x", "y"]}, news=("others by now",), found={lookup_key(lookup): ["x", "y"]})
    assert filled({"all": declared}, {"a.Out": 3}, Answer(None)) == Filled({}, seeks=("{'size': 3}",))
    assert filled({"all": declared}, {}, Answer(["x"])) == Filled({}, waits=(OutputReference("a", "Out"),))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("a", {"b": [1, {"c": 2}]}),
        ("a.b", [1, {"c": 2}]),
        ("a.b.0", 1),
        ("a.b.1.c", 2),
        ("x.y", "dotted"),
        ("x.y.z", MISSING),
        ("a.b.7", MISSING),
        ("a.c", MISSING),
        ("none", MISSING),
        ("", MISSING),
    ],
)
def test_dots_lead_into_values_unless_they_are_part_of_a_name(name: str, value: Any) -> None:
    assert inside(cast("Any", {"a": {"b": [1, {"c": 2}]}, "x.y": "dotted"}), name) == value
