"""Nested values, declared beside actual: what clouds return otherwise is no drift, and what a person changed is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fractal_cloud.rules.drift import ComparedType, find_drift, immutable, in_turn, mutable
from fractal_cloud.rules.nested.compare import Comparison
from fractal_cloud.rules.nested.comparers import KEYS
from fractal_cloud.rules.nested.correct import corrected
from fractal_cloud.rules.nested.path import parsed, written
from fractal_cloud.rules.nested.shape import shape_of
from tests.nested.types import COMPARED, FACTS

SAME: list[tuple[str, Any, Any, str]] = [
    ("Size", 3, 3, "equal is equal"),
    ("Size", 3, "3", "a cloud returns numbers as text"),
    ("Size", 3, 3.0, "and as fractions"),
    ("Fast", True, "true", "and truth values as text"),
    ("Anything", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, "what no schema says is compared as it is"),
    ("Mode", "standard", None, "the default that the cloud does not return"),
    ("Types", ["video", "audio"], None, "a default that is a set, in any order"),
    ("Types", [], None, "an empty list that the cloud does not return"),
    ("Order", ["first", "second"], None, "a default that is a list"),
    ("Log", {"Level": "info"}, None, "a default that is an object"),
    (
        "Processors",
        [{"Lower": {}}, {"Upper": {}}],
        [{"Upper": {}}, {"Lower": {}}],
        "elements that are empty but for what they are",
    ),
    ("Policy", {"Count": 5}, {"Count": 5, "Deep": {"Flag": True}, "New": 1}, "only what is declared is compared"),
    ("Policy", {"Deep": {}}, None, "an empty object says nothing"),
    ("Policy", {"Count": None}, {"Count": 5}, "null is not declared"),
    ("Policy", {"Count": 5, "Made": "x"}, {"Count": 5, "Made": "y"}, "what only the cloud sets is not compared"),
    ("Labels", {}, None, "an empty map is none"),
    ("Labels", {"a": "1"}, {"a": "1"}, "equal maps"),
    ("Labels", {"port": 80}, {"port": "80"}, "a number where the schema wants text"),
    ("Shared", {"a": "1"}, {"a": "1", "b": "2"}, "entries that nobody declared are somebody else's"),
    ("Steps", [], None, "an empty list is none"),
    ("Steps", [{"Key": "a"}], [{"Key": "a", "Value": "filled in"}], "elements are compared by what is declared"),
    ("Tags", [{"Key": "a", "Value": "1"}, {"Key": "b"}], [{"Key": "b"}, {"Value": "1", "Key": "a"}], "no order"),
    ("Tags", [{"Key": "a"}, {"Key": "a"}], [{"Key": "a"}], "twice is once in a set"),
    (
        "Tags",
        [{"Key": "a"}, {"Key": "a", "Value": "2"}],
        [{"Key": "a", "Value": "2"}, {"Key": "a", "Value": "9"}],
        "each element has a partner of its own, though the first would take either",
    ),
    ("Tags", [{"Key": "a", "Names": ["x", "y"]}], [{"Key": "a", "Names": ["y", "x"]}], "sets in sets"),
    ("Tags", [{"Key": "a"}, {"Key": "a", "Names": []}], [{"Key": "a"}, {"Key": "a"}], "what is nothing makes no other"),
    ("Tags", [{}, {"Names": []}], [{}, {}], "also where nothing else is in it"),
    ("Tags", [{"Names": ["x", "y"]}, {"Names": ["y", "x", "x"]}], [{"Names": ["y", "x"]}], "sets in sets that are one"),
    ("Groups", ["a", "b", "a"], ["b", "a"], "a set of texts"),
    ("Groups", ["a", None], ["a"], "null is no element"),
    ("Finalizers", ["mine"], ["theirs", "mine"], "other elements are somebody else's"),
    ("Ports", [{"port": 80}], [{"port": 80, "protocol": "TCP"}], "a key that has a default"),
    ("Ports", [{"port": 80, "protocol": "TCP"}], [{"port": "80"}], "on either side, and as text"),
    (
        "Ports",
        [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}],
        [{"port": 81, "name": "b"}, {"port": 80, "name": "a"}],
        "elements are found by their keys",
    ),
    ("Ports", [{"name": "a"}, {"name": "b"}], [{"name": "b"}, {"name": "a"}], "elements without keys are a set"),
    (
        "Ports",
        [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}],
        [{"port": 80, "name": "b"}, {"port": 80, "name": "a"}],
        "and so are those that have the same",
    ),
    (
        "Containers",
        [{"name": "web"}],
        [{"name": "sidecar"}, {"name": "web", "image": "w:1"}],
        "a sidecar that others add",
    ),
    ("Document", '{"a": 1, "b": [2]}', '{"b":[2],"a":1}', "documents as text, by value"),
    ("Document", {"a": 1}, '{\n "a": 1.0\n}', "an object, and the text of it"),
    ("Document", "no document", "no document", "other text is compared as text"),
    ("Role", "arn:aws:iam::123456789012:role/web", "web", "a name for an ARN"),
    ("Role", "web", "arn:aws:iam::123456789012:role/path/web", "and an ARN for a name"),
    ("Roles", ["web", "arn:aws:iam::1:role/db"], ["db", "arn:aws:iam::1:role/web"], "also in sets"),
    ("Range", "10.0.0.1/8", "10.0.0.0/8", "a block of addresses has one spelling"),
    ("Range", "fd00::0/64", "fd00::/64", "also of the longer ones"),
    ("Engine", "Postgres", "postgres", "stored in lower case"),
    ("Memory", "1Gi", "1024Mi", "quantities by amount"),
    ("Memory", "500m", "0.5", "and their thousandths"),
    ("Memory", 1, "1", "also where they are written as numbers"),
    ("Every", "60s", "1m0s", "durations as Go writes them"),
    ("Every", "1h", "3600s", "in another unit"),
    ("Domain", "Example.com", "example.com.", "the dot at the end of a name"),
    ("Domain", "*.example.com", "\\052.example.com.", "and its asterisk"),
    ("PortOrName", 80, "80", "a port as text"),
    (
        "Tree",
        {"Branches": [{"Value": 1}]},
        {"Branches": [{"Value": "1", "Branches": []}]},
        "a schema that contains itself",
    ),
    ("Loop", {"a": 1}, {"a": 1}, "a schema that says only itself"),
    ("Lost", [1], [1], "a reference that points nowhere"),
    ("Either", {"A": 1}, {"A": "1", "B": "x"}, "alternatives"),
    ("region", "here", "there", "a word of the place is never drift"),
    ("Name", "one", "other", "and neither is the name"),
]


@pytest.mark.rule("G3")
@pytest.mark.parametrize(("name", "declared", "actual", "reason"), SAME)
def test_what_a_cloud_returns_otherwise_is_no_drift(name: str, declared: Any, actual: Any, reason: str) -> None:
    assert find_drift(COMPARED, {name: declared}, {name: actual}) == {}, reason


DIFFERENT: list[tuple[str, Any, Any, str, Any, Any]] = [
    ("Size", 3, 4, "Size", 3, 4),
    ("Size", 1, True, "Size", 1, True),
    ("Fast", False, 0, "Fast", False, 0),
    ("Anything", {"a": [1, 2]}, {"a": [2, 1]}, "Anything", {"a": [1, 2]}, {"a": [2, 1]}),
    ("Anything", {"a": 1}, {"a": 1, "b": 2}, "Anything", {"a": 1}, {"a": 1, "b": 2}),
    ("Mode", "fast", None, "Mode", "fast", None),
    ("Mode", "standard", "fast", "Mode", "standard", "fast"),
    ("Types", ["audio"], None, "Types", ["audio"], None),
    ("Types", ["video", "audio"], [], "Types", ["video", "audio"], []),
    ("Order", ["first", "second"], [], "Order", ["first", "second"], []),
    ("Order", ["second", "first"], None, "Order", ["second", "first"], None),
    ("Log", {"Level": "info", "Format": "json"}, None, "Log.Format", "json", None),
    ("Processors", [{"Lower": {}}, {"Upper": {}}], [{"Lower": {}}], "Processors", ..., ...),
    ("Processors", [{"Lower": {}}], [{"Upper": {"Of": "x"}}], "Processors", ..., ...),
    ("Policy", {"Count": 5}, {"Count": 3}, "Policy.Count", 5, 3),
    ("Policy", {"Count": 5}, None, "Policy.Count", 5, None),
    ("Policy", {"Deep": {"Flag": True}}, {"Deep": {"Flag": False}}, "Policy.Deep.Flag", True, False),
    ("Policy", {"Deep": {"Flag": True}}, {"Deep": "text"}, "Policy.Deep", {"Flag": True}, "text"),
    ("Policy", {"Count": 5}, [], "Policy", {"Count": 5}, []),
    ("Labels", {"a": "1"}, {"a": "2"}, "Labels.a", "1", "2"),
    ("Labels", {}, {"a/b": "2"}, 'Labels["a/b"]', None, "2"),
    ("Labels", {"a": "1"}, {}, "Labels.a", "1", None),
    ("Shared", {"a": "1"}, {"b": "1"}, "Shared.a", "1", None),
    ("Steps", [{"Key": "a"}, {"Key": "b"}], [{"Key": "b"}, {"Key": "a"}], "Steps", ..., ...),
    ("Steps", [{"Key": "a"}], [{"Key": "a"}, {"Key": "b"}], "Steps", ..., ...),
    ("Steps", [{"Key": "a"}], "a", "Steps", ..., ...),
    ("Tags", [{"Key": "a", "Value": "1"}], [{"Key": "a", "Value": "2"}], "Tags", ..., ...),
    ("Tags", [{"Key": "a"}], [{"Key": "a"}, {"Key": "b"}], "Tags", ..., ...),
    ("Tags", [{"Key": "a"}, {"Key": "b"}], [{"Key": "a"}], "Tags", ..., ...),
    ("Groups", [], ["a"], "Groups", ..., ...),
    ("Groups", ["a", "b"], ["a"], "Groups", ..., ...),
    ("Groups", ["a"], [["a"]], "Groups", ..., ...),
    ("Finalizers", ["mine"], ["theirs"], "Finalizers", ..., ...),
    ("Ports", [{"port": 80, "name": "a"}], [{"port": 80, "name": "b"}], "Ports[port=80,protocol=TCP].name", "a", "b"),
    ("Ports", [{"port": 80}], [], "Ports[port=80,protocol=TCP]", {"port": 80}, None),
    ("Ports", [], [{"port": 80}], "Ports[port=80,protocol=TCP]", None, {"port": 80}),
    ("Ports", [{"name": "a"}], [{"name": "b"}], "Ports", ..., ...),
    (
        "Containers",
        [{"name": "web", "env": [{"Key": "A", "Value": "1"}]}],
        [{"name": "web", "env": [{"Key": "A", "Value": "2"}]}],
        "Containers[name=web].env[Key=A].Value",
        "1",
        "2",
    ),
    (
        "Containers",
        [{"name": "web", "args": ["a", "b"]}],
        [{"name": "web", "args": ["b"]}],
        "Containers[name=web].args",
        ...,
        ...,
    ),
    ("Document", '{"a": 1}', '{"a": "1"}', "Document", ..., ...),
    ("Document", {"a": [1, 2]}, {"a": [2, 1]}, "Document", ..., ...),
    ("Role", "web", "arn:aws:iam::123456789012:role/db-web", "Role", ..., ...),
    ("Role", "arn:aws:iam::1:role/web", "arn:aws:iam::2:role/web", "Role", ..., ...),
    ("Roles", ["arn:aws:iam::1:role/web"], ["arn:aws:iam::2:role/web"], "Roles", ..., ...),
    ("Range", "10.0.0.0/8", "10.0.0.0/9", "Range", ..., ...),
    ("Engine", "postgres", "mysql", "Engine", ..., ...),
    ("Memory", "1Gi", "1G", "Memory", ..., ...),
    ("Every", "60s", "61s", "Every", ..., ...),
    ("Domain", "example.com", "example.org", "Domain", ..., ...),
    (
        "Tree",
        {"Branches": [{"Branches": [{"Value": 1}]}]},
        {"Branches": [{"Branches": [{"Value": 2}]}]},
        "Tree.Branches",
        ...,
        ...,
    ),
    ("Loop", {"a": 1}, {"a": 2}, "Loop", ..., ...),
    ("Either", {"B": "x"}, {"B": "y"}, "Either.B", "x", "y"),
]


@pytest.mark.rule("G3")
@pytest.mark.parametrize(("name", "declared", "actual", "path", "ours", "theirs"), DIFFERENT)
def test_what_was_changed_drifts_at_its_path(
    name: str, declared: Any, actual: Any, path: str, ours: Any, theirs: Any
) -> None:
    drift = find_drift(COMPARED, {name: declared}, {name: actual})
    assert list(drift) == [path]
    assert drift[path].declared == (
        declared if ours is ... and path == name else drift[path].declared if ours is ... else ours
    )
    assert drift[path].actual == (drift[path].actual if theirs is ... else theirs)


@pytest.mark.rule("S23")
def test_what_was_not_read_is_not_compared() -> None:
    assert find_drift(COMPARED, {"Policy": {"Count": 1}, "Size": 1}, {"Size": 2}).keys() == {"Size"}


# --- policies

ACCOUNT = "123456789012"


def _policy(**statement: Any) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **statement}]}


POLICIES: list[tuple[Any, Any, str]] = [
    (
        _policy(Action="s3:Get*", Resource="*"),
        json.dumps(_policy(Resource="*", Action="s3:Get*")),
        "text and order of keys",
    ),
    (
        {"Statement": {"Effect": "Allow"}},
        {"Version": "2008-10-17", "Statement": [{"Effect": "Allow"}]},
        "the oldest version",
    ),
    (_policy(Action="a:B"), _policy(Action=["A:b"]), "one action or a list of it, whatever its case"),
    (_policy(NotAction=["a:B", "a:C"]), _policy(NotAction=["a:c", "a:b"]), "the order of actions"),
    (_policy(Resource=["x", "y"]), _policy(Resource=["y", "x", "x"]), "the order of resources"),
    (_policy(Principal="*"), _policy(Principal={"AWS": "*"}), "everybody"),
    (_policy(Principal={"AWS": ACCOUNT}), _policy(Principal={"AWS": [f"arn:aws:iam::{ACCOUNT}:root"]}), "an account"),
    (
        _policy(Principal={"AWS": ACCOUNT}),
        _policy(Principal={"AWS": f"arn:aws-cn:iam::{ACCOUNT}:root"}),
        "in any partition",
    ),
    (_policy(Principal={"Service": ["a", "b"]}), _policy(Principal={"Service": ["b", "a"]}), "the order of principals"),
    (_policy(Sid=""), _policy(), "an empty Sid"),
    (
        {"Version": "2012-10-17", "Statement": [{"Sid": "1"}, {"Sid": "2"}]},
        {"Version": "2012-10-17", "Statement": [{"Sid": "2"}, {"Sid": "1"}]},
        "the order of statements",
    ),
    (
        _policy(Condition={"Bool": {"aws:SecureTransport": False}}),
        _policy(Condition={"Bool": {"aws:secureTransport": ["False"]}}),
        "truth values as text, and the case of keys",
    ),
    (
        _policy(Condition={"NumericLessThan": {"s3:max-keys": 10}}),
        _policy(Condition={"NumericLessThan": {"s3:max-keys": "10"}}),
        "numbers as text",
    ),
    (
        _policy(Condition={"StringLike": {"k": ["a", "b"]}}),
        _policy(Condition={"StringLike": {"k": ["b", "a"]}}),
        "the order of values",
    ),
    (_policy(Condition={}), _policy(), "an empty condition"),
]


@pytest.mark.parametrize(("declared", "actual", "reason"), POLICIES)
def test_policies_that_allow_the_same_are_the_same(declared: Any, actual: Any, reason: str) -> None:
    assert find_drift(COMPARED, {"Access": declared}, {"Access": actual}) == {}, reason
    assert find_drift(COMPARED, {"Access": actual}, {"Access": declared}) == {}, reason


OTHER_POLICIES: list[tuple[Any, Any]] = [
    (_policy(Action="a:B"), _policy(Action="a:C")),
    (_policy(Action="a:B"), _policy(NotAction="a:B")),
    (_policy(Action="a:B"), {**_policy(Action="a:B"), "Version": "2008-10-17"}),
    (_policy(Resource="X"), _policy(Resource="x")),
    (_policy(Resource="*"), _policy()),
    (_policy(Effect="Deny"), _policy()),
    (_policy(Principal="*"), _policy()),
    (_policy(Principal="*"), _policy(NotPrincipal="*")),
    (_policy(Principal={"AWS": ACCOUNT}), _policy(Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:role/x"})),
    (_policy(Principal={"AWS": ACCOUNT}), _policy(Principal={"Federated": ACCOUNT})),
    (_policy(Principal={"Service": f"arn:aws:iam::{ACCOUNT}:root"}), _policy(Principal={"Service": ACCOUNT})),
    (_policy(Sid="a"), _policy(Sid="b")),
    (_policy(Condition={"Bool": {"k": True}}), _policy(Condition={"Bool": {"k": False}})),
    (_policy(Condition={"StringEquals": {"k": "A"}}), _policy(Condition={"StringEquals": {"k": "a"}})),
    (_policy(Condition={"StringEquals": {"k": "a"}}), _policy(Condition={"StringLike": {"k": "a"}})),
    (_policy(), {**_policy(), "Id": "other"}),
    (_policy(), "no policy"),
    (_policy(), [_policy()]),
    (_policy(), None),
]


@pytest.mark.parametrize(("declared", "actual"), OTHER_POLICIES)
def test_policies_that_allow_something_else_differ(declared: Any, actual: Any) -> None:
    assert find_drift(COMPARED, {"Access": declared}, {"Access": actual}).keys() == {"Access"}
    if actual is not None:
        assert find_drift(COMPARED, {"Access": actual}, {"Access": declared}).keys() == {"Access"}


# --- what is left out, what cannot change, and what is never returned


@pytest.mark.rule("G15")
@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        (["Policy"], {"Labels.a", "Containers[name=web].image", "Tags"}),
        (["Policy.Count"], {"Policy.Target", "Labels.a", "Containers[name=web].image", "Tags"}),
        (["Labels.*", "Containers[*].image"], {"Policy.Count", "Policy.Target", "Tags"}),
        (["Containers[name=db]"], {"Policy.Count", "Policy.Target", "Labels.a", "Containers[name=web].image", "Tags"}),
        (["Tags[*].Value"], {"Policy.Count", "Policy.Target", "Labels.a", "Containers[name=web].image"}),
    ],
)
def test_ignored_paths_cover_what_is_below(ignored: list[str], left: set[str]) -> None:
    declared = {
        "Policy": {"Count": 1, "Target": "a"},
        "Labels": {"a": "1"},
        "Containers": [{"name": "web", "image": "a"}],
        "Tags": [{"Key": "a", "Value": "1"}],
    }
    actual = {
        "Policy": {"Count": 2, "Target": "b"},
        "Labels": {"a": "2"},
        "Containers": [{"name": "web", "image": "b"}],
        "Tags": [{"Key": "a", "Value": "2"}],
    }
    assert find_drift(COMPARED, declared, actual, ignored).keys() == left


@pytest.mark.rule("S18")
def test_what_cannot_change_in_place_is_known_by_its_path() -> None:
    drift = find_drift(COMPARED, {"Policy": {"Target": "a", "Count": 1}}, {"Policy": {"Target": "b", "Count": 2}})
    assert immutable(COMPARED, drift).keys() == {"Policy.Target"}
    assert mutable(COMPARED, drift).keys() == {"Policy.Count"}


@pytest.mark.rule("A8")
def test_what_the_cloud_never_returns_stands_under_its_path() -> None:
    declared = {
        "Policy": {"Secret": "s", "Count": 1},
        "Containers": [{"name": "web", "token": "t"}, {"name": "db"}],
        "Users": [{"Name": "a", "Password": "p"}, {"Name": "b"}, {"Name": "c", "Password": "q"}],
    }
    values = COMPARED.write_only_values(declared)
    assert values == {"Policy.Secret": "s", "Containers[name=web].token": "t", "Users.*.Password": ["p", "q"]}
    actual = {
        "Policy": {"Count": 1},
        "Containers": [{"name": "web"}, {"name": "db"}],
        "Users": [{"Name": "a"}, {"Name": "b"}, {"Name": "c"}],
    }
    assert find_drift(COMPARED, declared, actual) == {}, "nothing is known of what was written"
    assert find_drift(COMPARED, declared, {**actual, **values}) == {}
    drift = find_drift(
        COMPARED, declared, {**actual, **values, "Policy.Secret": "(secret: differs)", "Policy": {"Count": 2}}
    )
    assert drift.keys() == {"Policy.Secret", "Policy.Count"}
    assert in_turn(COMPARED, drift).keys() == {"Policy.Count"}, "what is never returned is written last"
    assert in_turn(COMPARED, {"Policy.Secret": drift["Policy.Secret"]}).keys() == {"Policy.Secret"}
    assert find_drift(COMPARED, declared, {**actual, "Policy.Secret": "x"}, ["Policy"]) == {}


@pytest.mark.rule("A8")
def test_what_may_hold_secrets_is_known_by_its_path() -> None:
    assert COMPARED.sensitive == {"Policy.Secret"}
    assert COMPARED.secret == {"Users.*.Password"}
    assert COMPARED.write_only == {"Policy.Secret", "Containers.*.token", "Users.*.Password"}


# --- hostile answers

HOSTILE: list[Any] = [
    None,
    [],
    {},
    "",
    "{",
    0,
    -1,
    True,
    [None],
    [[]],
    {"": ""},
    {"a": {}},
    [1, "1", True],
    [{}],
    float("nan"),
]


@pytest.mark.parametrize("name", sorted(FACTS.parameter_schema["properties"]))
def test_every_kind_of_value_is_compared_with_every_other(name: str) -> None:
    for declared in HOSTILE:
        for actual in HOSTILE:
            find_drift(COMPARED, {name: declared}, {name: actual})


@pytest.mark.parametrize("how", sorted(KEYS))
def test_every_comparer_knows_what_to_do_with_every_value(how: str) -> None:
    for value in [*HOSTILE, {"Statement": "x"}, {"Statement": [[]], "Version": []}, {"Statement": {"Principal": []}}]:
        assert isinstance(KEYS[how](value), str)


def test_a_value_as_deep_as_the_interpreter_allows_is_compared() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    drift = find_drift(COMPARED, {"Anything": deep, "Access": deep}, {"Anything": deep, "Access": [1]})
    assert "Access" in drift
    tree: Any = {"Value": 1}
    for _ in range(500):
        tree = {"Branches": [tree]}
    assert find_drift(COMPARED, {"Tree": tree}, {"Tree": {"Branches": []}}).keys() == {"Tree.Branches"}


def test_long_lists_are_compared_in_bounded_time() -> None:
    many = [{"Key": f"k{at}", "Value": str(at)} for at in range(3000)]
    filled = [{**one, "Size": 1} for one in reversed(many)]
    assert find_drift(COMPARED, {"Tags": many}, {"Tags": filled}) == {}
    alike = [{"Names": [str(at)]} for at in range(3000)]
    assert find_drift(COMPARED, {"Tags": alike}, {"Tags": [{"Names": ["x", str(at)]} for at in range(3000)]})


def test_the_schema_is_read_once() -> None:
    assert ComparedType(FACTS).shape is not None
    assert COMPARED.shape is not None
    assert (
        COMPARED.shape.property("Tree").property("Branches").items
        is COMPARED.shape.property("Tree").property("Branches").items.property("Branches").items
    )


def test_entries_of_ours_that_are_not_declared_any_more_differ_where_those_of_others_do_not() -> None:
    """In lists by their keys, in sets and in maps; what is ignored stays as it is (G15)."""
    marks = {"others": True}
    schema = {
        "type": "object",
        "properties": {
            "ports": {
                "type": "array",
                "items": {"type": "object", "properties": {"port": {"type": "integer"}, "name": {"type": "string"}}},
                "x-fractal": {"list": "keyed", "keys": ["port"], **marks},
            },
            "names": {"type": "array", "items": {"type": "string"}, "x-fractal": {"list": "set", **marks}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-fractal": marks},
        },
    }
    declared = {"ports": [{"port": 1}], "names": ["a"], "labels": {"a": "1"}}
    actual = {
        "ports": [{"port": 1}, {"port": 2, "name": "x"}, {"port": 3}],
        "names": ["a", "b", "c"],
        "labels": {"a": "1", "b": "2", "c": "3"},
    }
    ours = ["ports[port=1]", "ports[port=2]", "labels.b", 'names[""=b]']

    def differing(*ignored: str) -> list[str]:
        comparison = Comparison([parsed(one) for one in ignored], ours)
        return [written(one.path) for one in comparison.differences((), shape_of(schema), declared, actual)]

    assert differing() == ["ports[port=2]", "names", "labels.b"]
    assert differing("ports[port=2]", "labels") == ["names"]
    changed = corrected(actual, declared, schema, differing(), (), ours)
    assert changed == {
        "ports": [{"port": 1}, {"port": 3}],
        "names": ["a", "c"],
        "labels": {"a": "1", "c": "3"},
    }
