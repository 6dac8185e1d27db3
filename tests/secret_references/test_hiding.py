"""What is said of parameters that may hold secrets: declared and actual side by side, and no value (A8)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.offers.offer import parameter_schema
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.rules.hiding import OTHER_SECRET, OTHER_SENSITIVE, SENSITIVE, Hiding, Marks, holds_hidden
from tests.secret_references.test_declaring import SAFE, Safe

FACTS = TypeFacts(type=SAFE, provider="test", title="Safe", parameter_schema=parameter_schema(Safe))
COMPARED = ComparedType(FACTS)
REFERENCE = {"$secret": "a"}


def _drift(declared: dict[str, Any], actual: dict[str, Any], **more: Any) -> dict[str, tuple[Any, Any]]:
    hiding = Hiding(COMPARED, {"a": "value of a"}, **more)
    found = find_drift(COMPARED, hiding.declared(declared), hiding.actual(declared, actual))
    return {name: (one.declared, one.actual) for name, one in found.items()}


@pytest.mark.rule("A8", "G3")
@pytest.mark.parametrize(
    ("declared", "actual", "shown"),
    [
        (REFERENCE, "value of a", None),
        (REFERENCE, "value of b", (REFERENCE, OTHER_SECRET)),
        (REFERENCE, None, (REFERENCE, None)),
        ("clear", "clear", None),
        ("clear", "another", (SENSITIVE, OTHER_SENSITIVE)),
        ("clear", None, (SENSITIVE, None)),
    ],
)
def test_a_text_is_compared_and_not_shown(declared: Any, actual: Any, shown: Any) -> None:
    assert _drift({"note": declared}, {"note": actual}).get("note") == shown


@pytest.mark.rule("A8", "G3")
def test_of_an_environment_only_what_is_or_seems_secret_is_hidden() -> None:
    declared = {"LEVEL": "info", "A": REFERENCE, "DB_PASSWORD": "hunter2", "SAME_TOKEN": "t"}
    actual = {"LEVEL": "debug", "A": "other", "DB_PASSWORD": "hunter3", "SAME_TOKEN": "t", "NEW_KEY": "k", "N": "1"}
    assert _drift({"env": declared}, {"env": actual})["env"] == (
        {"LEVEL": "info", "A": REFERENCE, "DB_PASSWORD": SENSITIVE, "SAME_TOKEN": SENSITIVE},
        {
            "LEVEL": "debug",
            "A": OTHER_SECRET,
            "DB_PASSWORD": OTHER_SENSITIVE,
            "SAME_TOKEN": SENSITIVE,
            "NEW_KEY": SENSITIVE,
            "N": "1",
        },
    )
    assert not _drift({"env": declared}, {"env": {**declared, "A": "value of a"}}), "as declared"


@pytest.mark.rule("A8")
def test_an_importer_sees_nothing_of_anothers_environment_but_what_it_declares_itself() -> None:
    shown = _drift({"env": {"A": "1", "B": "2"}}, {"env": {"A": "1", "B": "x", "C": "y"}}, is_importer=True)
    assert shown["env"] == ({"A": "1", "B": "2"}, {"A": "1", "B": OTHER_SENSITIVE, "C": SENSITIVE})


@pytest.mark.rule("A8")
def test_where_a_secret_stood_nothing_is_shown_until_the_clear_value_stands_there() -> None:
    assert _drift({"env": {"A": "1"}}, {"env": {"A": "old"}}, former=["env.A"])["env"][1] == {"A": OTHER_SENSITIVE}
    assert not _drift({"env": {"A": "1"}}, {"env": {"A": "1"}}, former=["env.A"])


@pytest.mark.rule("A8")
def test_what_refers_to_a_secret_without_a_value_is_not_compared() -> None:
    declared = {"note": {"$secret": "nowhere"}, "env": {"A": {"$secret": "nowhere"}}, "size": 1}
    assert _drift(declared, {"note": "x", "env": {"A": "x"}, "size": 2}) == {"size": (1, 2)}


@pytest.mark.rule("A8")
def test_what_an_agent_publishes_in_clear_is_hidden_when_it_is_stored_and_stand_ins_stay() -> None:
    hiding = Hiding(Marks.from_json(Marks.of_any([FACTS]).to_json()))
    drift = {"note": {"declared": "a", "actual": OTHER_SENSITIVE}, "size": {"declared": 1, "actual": 2}}
    published = {"note": "clear", "password": "clear", "env": {"L": "1", "T_TOKEN": "t"}, "size": 1, "drift": drift}
    assert hiding.published(published) == {
        "note": SENSITIVE,
        "password": SENSITIVE,
        "env": {"L": "1", "T_TOKEN": SENSITIVE},
        "size": 1,
        "drift": {"note": {"declared": SENSITIVE, "actual": OTHER_SENSITIVE}, "size": {"declared": 1, "actual": 2}},
    }
    assert holds_hidden(hiding.published(published)["env"])
    assert not holds_hidden({"a": ["(nothing)"]})
