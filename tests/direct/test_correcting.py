"""What a correction writes into nested values, to the letter: what drifted, what it excludes, and nothing else."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.rules.drift import ComparedType, find_drift
from fractal_cloud.rules.nested.correct import corrected

TEXT: dict[str, Any] = {"type": "string"}


def _marked(node: dict[str, Any], **marks: Any) -> dict[str, Any]:
    return {**node, "x-fractal": marks}


def _list(items: dict[str, Any], **marks: Any) -> dict[str, Any]:
    return _marked({"type": "array", "items": items}, **marks)


STORE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "Disk": {"type": "object", "properties": {"Path": TEXT, "Depth": TEXT}},
        "Bucket": {"type": "object", "properties": {"Name": TEXT}},
        "None": {"type": "object", "properties": {}},
        "Kept": TEXT,
        "Fixed": _marked(TEXT, immutable=True),
        "Made": _marked(TEXT, readOnly=True),
    },
    "oneOf": [{"required": [name]} for name in ("Disk", "Bucket", "None", "Fixed", "Made")],
}
USER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "Name": TEXT,
        "Mode": _marked(TEXT, default="plain"),
        "Level": _marked(TEXT, default="info", immutable=True),
        "Password": _marked(TEXT, writeOnly=True),
        "Made": _marked(TEXT, readOnly=True),
        "Empty": {"type": "object", "properties": {"Secret": _marked(TEXT, writeOnly=True), "Of": TEXT}},
        "Also": {"type": "object", "additionalProperties": TEXT},
        "Shared": _marked({"type": "object", "additionalProperties": TEXT}, others=True),
        "Size": TEXT,
        "Store": STORE,
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "Store": STORE,
        "Stores": _list(STORE),
        "Named": _list({**STORE, "properties": {**STORE["properties"], "Name": TEXT}}, list="keyed", keys=["Name"]),
        "ByName": {"type": "object", "additionalProperties": STORE},
        "User": USER,
        "Users": _list(USER),
        "Some": _list(USER, list="set"),
        "Keyed": _list(USER, list="keyed", keys=["Name"]),
        "Free": {},
        "In": {"type": "object", "properties": {"Store": STORE}},
    },
}
COMPARED = ComparedType(
    TypeFacts(type="Of", provider="none", title="of", description="", parameter_schema=SCHEMA, outputs={}, nested=True)
)
DISK: dict[str, Any] = {"Disk": {"Path": "/a"}}
BUCKET: dict[str, Any] = {"Bucket": {"Name": "b"}, "Kept": "k"}


def correct(actual: dict[str, Any], declared: dict[str, Any], *ignored: str) -> dict[str, Any]:
    """All that drifts, corrected; no argument is changed, and it does not drift any more."""
    before = copy.deepcopy((actual, declared))
    drift = find_drift(COMPARED, declared, actual, ignored)
    after = corrected(actual, declared, SCHEMA, drift, ignored)
    assert (actual, declared) == before
    assert find_drift(COMPARED, declared, after, ignored) == {}
    return after


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("actual", "declared", "after"),
    [
        ({"Store": BUCKET}, {"Store": DISK}, {"Store": {**DISK, "Kept": "k"}}),
        ({"Store": BUCKET}, {"Store": {"None": {}}}, {"Store": {"None": {}, "Kept": "k"}}),
        ({"Store": None}, {"Store": DISK}, {"Store": DISK}),
        ({"In": {"Store": BUCKET}}, {"In": {"Store": DISK}}, {"In": {"Store": {**DISK, "Kept": "k"}}}),
        ({"ByName": {"x": BUCKET}}, {"ByName": {"x": DISK}}, {"ByName": {"x": {**DISK, "Kept": "k"}}}),
        ({"Stores": [BUCKET, DISK]}, {"Stores": [DISK, DISK]}, {"Stores": [{**DISK, "Kept": "k"}, DISK]}),
        (
            {"Named": [{"Name": "a", **BUCKET}, {"Name": "b", **BUCKET}, {"Name": "c", **BUCKET}]},
            {"Named": [{"Name": "b", **DISK}, {"Name": "a", **BUCKET}, {"Name": "c", **BUCKET}]},
            {"Named": [{"Name": "a", **BUCKET}, {"Name": "b", **DISK, "Kept": "k"}, {"Name": "c", **BUCKET}]},
        ),
        # what both alternatives' owner fixed, or only the cloud says, is never taken away
        ({"Store": {"Fixed": "f"}}, {"Store": DISK}, {"Store": {"Fixed": "f", **DISK}}),
        ({"Store": {"Made": "m"}}, {"Store": DISK}, {"Store": {"Made": "m", **DISK}}),
    ],
)
def test_what_another_alternative_left_goes_with_the_correction(
    actual: dict[str, Any], declared: dict[str, Any], after: dict[str, Any]
) -> None:
    assert correct(actual, declared) == after


@pytest.mark.rule("G15")
def test_what_is_ignored_is_not_taken_away() -> None:
    assert correct({"Store": BUCKET}, {"Store": DISK}, "Store.Bucket") == {"Store": {**BUCKET, **DISK}}
    named = {"Named": [{"Name": "a", **BUCKET}]}
    assert correct(named, {"Named": [{"Name": "a", **DISK}]}, "Named[Name=a].Bucket") == {
        "Named": [{"Name": "a", **BUCKET, **DISK}]
    }
    assert correct({"Store": BUCKET}, {"Store": {"None": {}}}, "Store.None") == {"Store": BUCKET}


@pytest.mark.rule("G3")
def test_only_what_is_asked_for_is_written_though_more_drifts() -> None:
    actual = {"Store": BUCKET, "User": {"Size": "1", "Name": "x"}}
    declared = {"Store": DISK, "User": {"Size": "2", "Name": "y"}}
    assert corrected(actual, declared, SCHEMA, ["User.Size"]) == {"Store": BUCKET, "User": {"Size": "2", "Name": "x"}}


@pytest.mark.rule("G3", "A8")
def test_what_is_not_there_is_begun_with_what_is_declared_of_it_that_is_no_difference() -> None:
    declared = {
        "User": {
            "Name": "n",
            "Mode": "plain",
            "Level": "info",
            "Password": "p",
            "Made": "m",
            "Empty": {"Secret": "s"},
            "Also": {},
            "Size": None,
        }
    }
    assert corrected({}, declared, SCHEMA, ["User.Name"]) == {
        "User": {"Name": "n", "Mode": "plain", "Empty": {}, "Also": {}}
    }
    assert corrected({"User": {"Size": "1"}}, declared, SCHEMA, ["User.Name"]) == {"User": {"Size": "1", "Name": "n"}}
    assert corrected({}, declared, SCHEMA, ["User.Name"], ["User.Mode", "User.Also"]) == {
        "User": {"Name": "n", "Empty": {}}
    }


@pytest.mark.rule("G3")
@pytest.mark.parametrize(
    ("actual", "declared", "after"),
    [
        ("x1 a1 b2", "a b", "a1 b2"),
        ("a1 x b2 y c3", "a b c", "a1 b2 c3"),
        ("a1 b2", "a b c", "a1 b2 c"),
        ("a1 b2", "c a b", "c a1 b2"),
        ("a1 c3", "a b c", "a1 b c3"),
        ("c3 a1 b2", "a b c", "a1 b2 c3"),
        ("b2 a1", "a b", "a1 b2"),
        ("a1 a1", "a", "a1"),
        ("a1 b2 a3", "a a b", "a1 a3 b2"),
        ("x7 y8", "a b", "a7 b8"),
        ("a1 x7 c3", "a b c", "a1 b7 c3"),
        ("x7 y8 z9", "a b", "a b"),
        ("", "a", "a"),
        ("a1", "", ""),
    ],
)
def test_each_element_of_a_list_is_made_of_the_one_that_it_was(actual: str, declared: str, after: str) -> None:
    """``a1`` is an element that is declared as ``a``, with a size that nobody declared."""
    assert correct({"Users": _users(actual)}, {"Users": _users(declared)}) == {"Users": _users(after)}


def _users(text: str) -> list[dict[str, Any]]:
    return [{"Mode": one[0], **({"Size": one[1:]} if one[1:] else {})} for one in text.split()]


@pytest.mark.rule("G3")
@pytest.mark.parametrize("name", ["Users", "Some", "Keyed"])
def test_one_that_changed_is_found_by_its_name_and_the_others_stay_as_they_are(name: str) -> None:
    actual = [{"Name": "b", "Mode": "x", "Size": "2"}, {"Name": "a", "Size": "1"}, {"Name": "z"}]
    declared = [{"Name": "a", "Mode": "plain", "Also": {}}, {"Name": "b", "Mode": "y", "Also": {}}]
    found = correct({name: actual}, {name: declared})[name]
    by_name = {one["Name"]: one for one in found}
    assert len(found) == 2
    assert by_name["a"] == {"Name": "a", "Size": "1"}
    assert by_name["b"].items() >= {"Name": "b", "Mode": "y", "Size": "2"}.items()


@pytest.mark.rule("G3")
def test_of_a_set_what_is_declared_stays_where_it_is() -> None:
    actual = {"Some": [{"Mode": "c", "Size": "3"}, {"Mode": "x"}, {"Mode": "a", "Size": "1"}]}
    declared = {"Some": [{"Mode": "a"}, {"Mode": "b"}, {"Mode": "c"}]}
    assert correct(actual, declared) == {
        "Some": [{"Mode": "c", "Size": "3"}, {"Mode": "a", "Size": "1"}, {"Mode": "b"}]
    }


@pytest.mark.rule("A8")
def test_what_is_never_returned_is_written_into_every_element_by_its_own_path() -> None:
    actual = {"Users": [{"Name": "a"}, {"Name": "b"}], "Keyed": [{"Name": "b"}, {"Name": "x"}, {"Name": "a"}]}
    ours = [{"Name": "a", "Password": "p"}, {"Name": "b"}]
    assert corrected(actual, {"Users": ours}, SCHEMA, ["Users.*.Password"]) == {
        **actual,
        "Users": [{"Name": "a", "Password": "p"}, {"Name": "b"}],
    }
    assert corrected(actual, {"Keyed": ours}, SCHEMA, ["Keyed[Name=a].Password"]) == {
        **actual,
        "Keyed": [{"Name": "b"}, {"Name": "x"}, {"Name": "a", "Password": "p"}],
    }
    assert corrected(actual, {"Keyed": ours}, SCHEMA, ["Keyed.*.Password"]) == {
        **actual,
        "Keyed": [{"Name": "b"}, {"Name": "x"}, {"Name": "a", "Password": "p"}],
    }
    other = [{"Mode": "b"}, {"Mode": "x"}, {"Mode": "a"}]
    assert corrected({"Some": other}, {"Some": [{"Mode": "a", "Password": "p"}]}, SCHEMA, ["Some.*.Password"]) == {
        "Some": [{"Mode": "b"}, {"Mode": "x"}, {"Mode": "a", "Password": "p"}]
    }
    assert corrected({"Users": "text"}, {"Users": ours}, SCHEMA, ["Users.*.Password"]) == {"Users": "text"}
    assert corrected({"Users": []}, {"Users": "text"}, SCHEMA, ["Users.*.Password"]) == {"Users": []}
    by_name = {"ByName": {"x": {"Kept": "1"}, "z": {"Kept": "2"}}}
    assert corrected(by_name, {"ByName": {"x": {"Kept": "3"}, "y": {"Kept": "4"}}}, SCHEMA, ["ByName.*.Kept"]) == {
        "ByName": {"x": {"Kept": "3"}, "y": {"Kept": "4"}, "z": {"Kept": "2"}}
    }


@pytest.mark.rule("G3", "G15")
def test_one_path_of_many_is_corrected_alone() -> None:
    ours = [{"Name": "a", "Mode": "y", "Size": "2", "Password": "p"}]
    theirs = [{"Name": "a", "Mode": "x", "Size": "1"}]
    assert corrected({"Keyed": theirs}, {"Keyed": ours}, SCHEMA, ["Keyed[Name=a].Mode"]) == {
        "Keyed": [{"Name": "a", "Mode": "y", "Size": "1"}]
    }
    for name in ("Keyed", "Users"):
        assert corrected({name: theirs}, {name: ours}, SCHEMA, [f"{name}.*.Password"]) == {
            name: [{"Name": "a", "Mode": "x", "Size": "1", "Password": "p"}]
        }
    by_name = {"ByName": {"x": {"Kept": "1", "Fixed": "f"}}}
    wanted = {"ByName": {"x": {"Kept": "2", "Fixed": "g"}}}
    assert corrected(by_name, wanted, SCHEMA, ["ByName.*.Kept"]) == {"ByName": {"x": {"Kept": "2", "Fixed": "f"}}}
    assert corrected(by_name, wanted, SCHEMA, ["ByName.*.Kept"], ["ByName.x.Kept"]) == by_name
    assert corrected({"ByName": []}, wanted, SCHEMA, ["ByName.*.Kept"]) == {"ByName": []}
    assert corrected({"User": {}}, {"User": "text"}, SCHEMA, ["User.Name"]) == {"User": {}}


@pytest.mark.rule("A8")
def test_what_is_never_returned_is_written_into_no_other_element() -> None:
    ours = {"Mode": "a", "Password": "p"}
    for theirs in ([{"Mode": "b"}], [{"Mode": "b"}, {"Mode": "c"}]):
        assert corrected({"Some": theirs}, {"Some": [ours]}, SCHEMA, ["Some.*.Password"]) == {"Some": theirs}
    written = [{"Mode": "a", "Size": "9", "Password": "p"}]
    assert corrected(
        {"Some": [{"Mode": "a", "Size": "9"}]},
        {"Some": [{**ours, "Size": "1"}]},
        SCHEMA,
        ["Some.*.Password"],
        ["Some.*.Size"],
    ) == {"Some": written}
    twice = [{"Name": "a", "Mode": "x"}, {"Name": "a", "Mode": "y", "Password": "p"}]
    assert corrected({"Keyed": [{"Name": "a", "Mode": "y"}]}, {"Keyed": twice}, SCHEMA, ["Keyed.*.Password"]) == {
        "Keyed": [{"Name": "a", "Mode": "y", "Password": "p"}]
    }


@pytest.mark.rule("G3")
def test_a_list_with_keys_is_corrected_whole_by_its_keys() -> None:
    actual = {"Keyed": [{"Name": "x"}, {"Name": "a", "Mode": "1", "Size": "s"}]}
    declared = {"Keyed": [{"Name": "a", "Mode": "2"}, {"Name": "b"}]}
    after = {"Keyed": [{"Name": "a", "Mode": "2", "Size": "s"}, {"Name": "b"}]}
    assert corrected(actual, declared, SCHEMA, ["Keyed"]) == after
    assert correct(actual, declared) == after


@pytest.mark.rule("G3", "G15")
def test_maps_in_elements_are_as_declared_but_for_what_is_others_or_ignored() -> None:
    actual = {"Users": [{"Mode": "x", "Also": {"k": "1", "z": "9", "i": "8"}, "Shared": {"k": "1", "z": "9"}}]}
    declared = {"Users": [{"Mode": "a", "Also": {"k": "2", "n": None}, "Shared": {"k": "2"}}]}
    assert correct(actual, declared, "Users.*.Also.i") == {
        "Users": [{"Mode": "a", "Also": {"k": "2", "i": "8"}, "Shared": {"k": "2", "z": "9"}}]
    }
    assert correct({"Users": [{"Mode": "x", "Fast": 1}]}, {"Users": [{"Mode": "a"}]}) == {
        "Users": [{"Mode": "a", "Fast": 1}]
    }
