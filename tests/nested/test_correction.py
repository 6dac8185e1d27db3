"""Corrections write the paths they are asked for, and leave everything else as the cloud returned it."""

from __future__ import annotations

import copy
import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fractal_cloud.rules.drift import find_drift
from fractal_cloud.rules.nested.correct import corrected
from tests.nested.types import COMPARED, SCHEMA

TABLE: list[tuple[Any, Any, list[str], Any, str]] = [
    ({"Size": 1}, {"Size": 2}, ["Size"], {"Size": 2}, "a single value"),
    (
        {"Policy": {"Count": 1, "Made": "x", "Deep": {"Flag": False, "Text": "kept"}}},
        {"Policy": {"Count": 2, "Deep": {"Flag": True}}},
        ["Policy.Deep.Flag"],
        {"Policy": {"Count": 1, "Made": "x", "Deep": {"Flag": True, "Text": "kept"}}},
        "one path alone",
    ),
    (
        {},
        {"Policy": {"Deep": {"Flag": True}}},
        ["Policy.Deep.Flag"],
        {"Policy": {"Deep": {"Flag": True}}},
        "what is missing",
    ),
    (
        {"Labels": {"a": "1", "b": "2"}},
        {"Labels": {"a": "1"}},
        ["Labels.b"],
        {"Labels": {"a": "1"}},
        "an entry is removed",
    ),
    ({"Labels": {"a/b": "1"}}, {"Labels": {"a/b": "2"}}, ['Labels["a/b"]'], {"Labels": {"a/b": "2"}}, "a quoted key"),
    (
        {"Shared": {"a": "1", "x": "y"}},
        {"Shared": {"a": "2"}},
        ["Shared.a"],
        {"Shared": {"a": "2", "x": "y"}},
        "entries of others stay",
    ),
    (
        {"Tags": [{"Key": "a", "Value": "1", "Size": 9}, {"Key": "b", "Value": "2", "Size": 8}, {"Key": "x"}]},
        {"Tags": [{"Key": "b", "Value": "3"}, {"Key": "c"}, {"Key": "a", "Value": "1"}]},
        ["Tags"],
        {"Tags": [{"Key": "a", "Value": "1", "Size": 9}, {"Key": "b", "Value": "3", "Size": 8}, {"Key": "c"}]},
        "a set: what is right stays where it is, what changed keeps what nobody declared, the rest goes and comes",
    ),
    (
        {"Finalizers": ["x"]},
        {"Finalizers": ["a"]},
        ["Finalizers"],
        {"Finalizers": ["x", "a"]},
        "elements of others stay",
    ),
    (
        {"Steps": [{"Key": "a", "Size": 1}, {"Key": "b", "Size": 2}]},
        {"Steps": [{"Key": "a"}, {"Key": "new"}, {"Key": "b"}]},
        ["Steps"],
        {"Steps": [{"Key": "a", "Size": 1}, {"Key": "new"}, {"Key": "b", "Size": 2}]},
        "an element inserted into an ordered list",
    ),
    (
        {
            "Steps": [
                {"Key": "x"},
                {"Key": "a", "Size": 1},
                {"Key": "b", "Size": 2},
                {"Key": "y"},
                {"Key": "c", "Size": 3},
            ]
        },
        {"Steps": [{"Key": "a"}, {"Key": "b"}, {"Key": "c"}]},
        ["Steps"],
        {"Steps": [{"Key": "a", "Size": 1}, {"Key": "b", "Size": 2}, {"Key": "c", "Size": 3}]},
        "elements inserted at two places of an ordered list: what stands between them is as it was",
    ),
    (
        {"Steps": [{"Key": "c", "Size": 3}, {"Key": "a", "Size": 1}, {"Key": "b", "Size": 2}]},
        {"Steps": [{"Key": "a"}, {"Key": "b"}, {"Key": "c"}]},
        ["Steps"],
        {"Steps": [{"Key": "a", "Size": 1}, {"Key": "b", "Size": 2}, {"Key": "c", "Size": 3}]},
        "an ordered list in another order: each element keeps what nobody declared of it",
    ),
    (
        {"Steps": [{"Key": "b", "Value": "2", "Size": 2}, {"Key": "a", "Value": "9", "Size": 1}, {"Key": "z"}]},
        {"Steps": [{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}]},
        ["Steps"],
        {"Steps": [{"Key": "a", "Value": "1", "Size": 1}, {"Key": "b", "Value": "2", "Size": 2}]},
        "one that also changed is found by its name",
    ),
    (
        {"Tags": [{"Key": "a"}, {"Key": "x"}], "Steps": [{"Key": "b"}, {"Key": "a"}]},
        {"Tags": [{"Key": "a", "Names": []}], "Steps": [{"Key": "a", "Names": []}, {"Key": "b", "Names": []}]},
        ["Steps", "Tags"],
        {"Tags": [{"Key": "a"}], "Steps": [{"Key": "a"}, {"Key": "b"}]},
        "an element that is as declared stays as it is, with nothing written into it",
    ),
    (
        {"Steps": [{"Key": "a", "Size": 1}, {"Key": "b", "Size": 2}]},
        {"Steps": [{"Key": "a"}, {"Key": "c"}]},
        ["Steps"],
        {"Steps": [{"Key": "a", "Size": 1}, {"Key": "c", "Size": 2}]},
        "an element changed in an ordered list",
    ),
    (
        {"Containers": [{"name": "sidecar"}, {"name": "web", "image": "a", "args": ["x"]}]},
        {"Containers": [{"name": "web", "image": "b"}, {"name": "db"}]},
        ["Containers[name=web].image", "Containers[name=db]"],
        {"Containers": [{"name": "sidecar"}, {"name": "web", "image": "b", "args": ["x"]}, {"name": "db"}]},
        "elements by their keys",
    ),
    (
        {"Ports": [{"port": 80}, {"port": 81}]},
        {"Ports": [{"port": 80}]},
        ["Ports[port=81,protocol=TCP]"],
        {"Ports": [{"port": 80}]},
        "an element too many",
    ),
    (
        {"Users": [{"Name": "a"}, {"Name": "b"}]},
        {"Users": [{"Name": "a", "Password": "p"}, {"Name": "b"}]},
        ["Users.*.Password"],
        {"Users": [{"Name": "a", "Password": "p"}, {"Name": "b"}]},
        "what is never returned is written into its element",
    ),
    (
        {"Ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "UDP"}]},
        {"Ports": [{"port": 80}]},
        ["Ports"],
        {"Ports": [{"port": 80}]},
        "an element whose key is its default is not the one that says another",
    ),
    ({"Policy": "text"}, {"Policy": {"Count": 1}}, ["Policy"], {"Policy": {"Count": 1}}, "a value of the wrong kind"),
    ({"Access": "{}"}, {"Access": {"Statement": []}}, ["Access"], {"Access": {"Statement": []}}, "a document, whole"),
    ({"Size": 1, "Fast": True}, {"Size": 2, "Fast": False}, [], {"Size": 1, "Fast": True}, "nothing is asked for"),
]


@pytest.mark.parametrize(("actual", "declared", "paths", "after", "reason"), TABLE)
def test_only_these_paths_are_corrected(actual: Any, declared: Any, paths: list[str], after: Any, reason: str) -> None:
    before = copy.deepcopy((actual, declared))
    assert corrected(actual, declared, SCHEMA, paths) == after, reason
    assert (actual, declared) == before, "arguments are not changed"


@pytest.mark.rule("G15")
def test_what_is_ignored_is_not_written_with_the_element_it_stands_in() -> None:
    actual = {"Tags": [{"Key": "a", "Value": "theirs", "Size": 1}, {"Key": "b", "Value": "x"}]}
    declared = {"Tags": [{"Key": "a", "Value": "ours", "Size": 2}]}
    after = corrected(actual, declared, SCHEMA, ["Tags"], ["Tags[*].Value"])
    assert after == {"Tags": [{"Key": "a", "Value": "theirs", "Size": 2}]}


# --- against a model that is slow, and says nothing of how it is done

_TEXTS = st.sampled_from(["a", "b", "c/d"])
_NUMBERS = st.integers(0, 2)
_SKIPPED = ("readOnly", "writeOnly")


def _mark(schema: Any, name: str) -> Any:
    return schema.get("x-fractal", {}).get(name)


def _values(schema: Any) -> st.SearchStrategy[Any]:
    match schema.get("type"):
        case "string":
            return _TEXTS
        case "integer":
            return _NUMBERS
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(_values(schema["items"]), max_size=3)
        case "object" if "properties" in schema:
            properties = {
                n: _values(one) for n, one in schema["properties"].items() if not any(_mark(one, m) for m in _SKIPPED)
            }
            return st.fixed_dictionaries({}, optional=properties)
        case "object":
            return st.dictionaries(_TEXTS, _values(schema["additionalProperties"]), max_size=3)
    return st.sampled_from([1, "1", [1]])


_NAMES = (
    "Size",
    "Fast",
    "Mode",
    "Policy",
    "Labels",
    "Shared",
    "Steps",
    "Tags",
    "Groups",
    "Finalizers",
    "Ports",
    "Containers",
)
_DOCUMENTS = st.fixed_dictionaries({name: _values(SCHEMA["properties"][name]) for name in _NAMES})


def _is_equal(schema: Any, declared: Any, actual: Any) -> bool:
    """Whether a value is as declared, said as plainly as it can be."""
    if declared in (None, [], {}) and actual in (None, [], {}):
        return True
    if actual is None and _mark(schema, "default") is not None:
        actual = _mark(schema, "default")
    match schema.get("type"):
        case "object" if "properties" in schema and isinstance(actual or {}, dict):
            return all(_is_equal(schema["properties"][n], one, (actual or {}).get(n)) for n, one in declared.items())
        case "object" if isinstance(actual or {}, dict):
            has_all = all(
                _is_equal(schema["additionalProperties"], one, (actual or {}).get(n)) for n, one in declared.items()
            )
            return has_all and bool(_mark(schema, "others") or set(actual or {}) <= set(declared))
        case "array" if isinstance(actual or [], list):
            return _are_lists_equal(schema, declared, actual or [])
    return bool(declared == actual)


def _are_lists_equal(schema: Any, declared: list[Any], actual: list[Any]) -> bool:
    if _mark(schema, "list") is None:
        pairs = zip(declared, actual, strict=False)
        return len(declared) == len(actual) and all(_is_equal(schema["items"], one, other) for one, other in pairs)
    ours, theirs = _once(schema, [_with_keys(schema, one) for one in declared]), _once(schema, actual)
    if len(ours) > len(theirs) or (len(ours) < len(theirs) and not _mark(schema, "others")):
        return False
    return any(
        all(_is_equal(schema["items"], one, other) for one, other in zip(ours, some, strict=False))
        for some in permutations(theirs, len(ours))
    )


def _once(schema: Any, values: list[Any]) -> list[Any]:
    """What differs in nothing that says anything is there once."""
    found = {json.dumps(_said(schema["items"], one), sort_keys=True): one for one in reversed(values)}
    return list(reversed(found.values()))


def _said(schema: Any, value: Any) -> Any:
    """A value without what is empty in it, and without an order that says nothing."""
    if isinstance(value, dict):
        inner = schema.get("properties", {})
        every = {
            name: _said(inner.get(name, schema.get("additionalProperties", {})), one) for name, one in value.items()
        }
        return {name: one for name, one in every.items() if one not in (None, [], {})}
    if isinstance(value, list):
        found = [_said(schema.get("items", {}), one) for one in value]
        texts = [json.dumps(one, sort_keys=True) for one in found]
        return sorted(set(texts)) if _mark(schema, "list") is not None else texts
    return value


def _with_keys(schema: Any, value: Any) -> Any:
    """A declared element with the defaults of the keys that it leaves out."""
    if _mark(schema, "list") != "keyed" or not isinstance(value, dict):
        return value
    marks = {key: schema["items"]["properties"][key] for key in _mark(schema, "keys")}
    defaults = {key: _mark(one, "default") for key, one in marks.items() if _mark(one, "default") is not None}
    return {**defaults, **value}


def _has_plain_keys(value: Any) -> bool:
    """Whether the lists with keys have them, each once; else they are sets, and which of two is which is not said."""
    for name, keys in (("Ports", ("port", "protocol")), ("Containers", ("name",))):
        found = [
            tuple(one.get(key, "TCP" if key == "protocol" else None) for key in keys) for one in value.get(name, [])
        ]
        if len(set(found)) < len(found) or any(None in one for one in found):
            return False
    return all(
        len({e.get("Key") for e in one.get("env", [])} - {None}) == len(one.get("env", []))
        for one in value.get("Containers", [])
    )


@settings(max_examples=400, deadline=None)
@given(_DOCUMENTS, _DOCUMENTS)
def test_the_comparison_says_what_a_plain_model_says(declared: dict[str, Any], actual: dict[str, Any]) -> None:
    for name in _NAMES:
        expected = _is_equal(SCHEMA["properties"][name], declared[name], actual[name])
        if name in ("Ports", "Containers") and _has_plain_keys({name: declared[name]}) != _has_plain_keys(
            {name: actual[name]}
        ):
            continue
        assert bool(find_drift(COMPARED, {name: declared[name]}, {name: actual[name]})) is not expected, name


@settings(max_examples=200, deadline=None)
@given(_DOCUMENTS)
def test_a_value_never_differs_from_itself(declared: dict[str, Any]) -> None:
    assert find_drift(COMPARED, declared, copy.deepcopy(declared)) == {}


@settings(max_examples=400, deadline=None)
@given(_DOCUMENTS, _DOCUMENTS)
def test_nothing_differs_once_every_difference_is_corrected(declared: dict[str, Any], actual: dict[str, Any]) -> None:
    drift = find_drift(COMPARED, declared, actual)
    after = corrected(actual, declared, SCHEMA, drift)
    assert find_drift(COMPARED, declared, after) == {}
    assert corrected(actual, declared, SCHEMA, []) == actual


def test_an_element_of_a_list_with_double_keys_gets_the_key_that_its_declaration_leaves_out() -> None:
    declared = {"Ports": [{"name": "a", "port": 0}]}
    twice = {"Ports": [{"name": "a", "port": 0, "protocol": "a"}, {"name": "a", "port": 0, "protocol": "a"}]}
    assert corrected(twice, declared, SCHEMA, ["Ports"]) == {"Ports": [{"name": "a", "port": 0, "protocol": "TCP"}]}


@settings(max_examples=400, deadline=None)
@given(_DOCUMENTS, _DOCUMENTS, st.data())
def test_what_is_not_corrected_differs_as_before(
    declared: dict[str, Any], actual: dict[str, Any], data: st.DataObject
) -> None:
    drift = find_drift(COMPARED, declared, actual)
    some = data.draw(st.sets(st.sampled_from(sorted(drift)))) if drift else set()
    after = find_drift(COMPARED, declared, corrected(actual, declared, SCHEMA, some))
    assert after == {name: one for name, one in drift.items() if name not in some}


@settings(max_examples=300, deadline=None)
@given(_DOCUMENTS, st.randoms(use_true_random=False))
def test_what_a_cloud_reorders_and_fills_in_is_no_drift(declared: dict[str, Any], random: Any) -> None:
    actual = copy.deepcopy(declared)
    for name in ("Tags", "Groups", "Finalizers"):
        random.shuffle(actual[name])
    if _has_plain_keys(declared):
        random.shuffle(actual["Ports"])
        random.shuffle(actual["Containers"])
        actual["Containers"].append({"name": "injected"})
    actual["Policy"]["Made"] = "by the cloud"
    actual["Shared"]["theirs"] = "x"
    actual["Finalizers"].append("theirs")
    actual["Size"] = str(actual["Size"])
    for one in actual["Steps"]:
        one.setdefault("Undeclared", 1)
    for name in [name for name in actual if actual[name] in ([], {})]:
        actual[name] = None
    assert find_drift(COMPARED, declared, actual) == {}
