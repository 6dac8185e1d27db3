"""Paths into nested parameters: written, read again, and held against patterns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.model.catalog import part_name
from fractal_cloud.rules.absorb import absorbed_inside, inside_of
from fractal_cloud.rules.nested.path import (
    ANY,
    Element,
    PathError,
    covers,
    key_text,
    of_name,
    parsed,
    root,
    value_at,
    with_value,
    written,
)

TEXTS = [
    ("A", ("A",)),
    ("A.B.C", ("A", "B", "C")),
    ('A["k.e/y"]', ("A", "k.e/y")),
    ('A["k.e/y"].B', ("A", "k.e/y", "B")),
    ('["odd name"].B', ("odd name", "B")),
    ("containers[name=web].image", ("containers", Element((("name", "web"),)), "image")),
    (
        "ports[containerPort=80,protocol=TCP]",
        ("ports", Element((("containerPort", "80"), ("protocol", "TCP")))),
    ),
    ('L[name="a,b]"]', ("L", Element((("name", "a,b]"),)))),
    ('A["say \\"hi\\""]', ("A", 'say "hi"')),
    ('A[""]', ("A", "")),
    ("A.*.B", ("A", ANY, "B")),
]


@pytest.mark.parametrize(("text", "path"), TEXTS)
def test_a_path_is_written_and_read_again(text: str, path: tuple[object, ...]) -> None:
    assert parsed(text) == path
    assert written(parsed(text)) == text


def test_an_element_of_any_kind_may_be_written_in_brackets() -> None:
    assert parsed("A[*].B") == parsed("A.*.B")


_STEPS = st.one_of(
    st.text(),
    st.builds(Element, st.lists(st.tuples(st.text(), st.text()), min_size=1, max_size=3).map(tuple)),
    st.just(ANY),
)


@given(st.lists(_STEPS, min_size=1, max_size=5))
def test_every_path_reads_back_as_it_was(steps: list[str | Element]) -> None:
    assert parsed(written(tuple(steps))) == tuple(steps)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "A.",
        ".A",
        "A..B",
        "A[",
        "A[]",
        "A[b]",
        'A["b"',
        "A[b=]",
        "A[b=c",
        "A[b=c,]",
        "A b",
        'A["\\x"]',
        "A]B",
        "[a]",
    ],
)
def test_what_is_no_path_is_refused_and_counts_as_a_parameters_name(text: str) -> None:
    with pytest.raises(PathError, match="no path"):
        parsed(text)
    assert of_name(text) == (text,)


@pytest.mark.parametrize(
    ("outer", "path", "is_covered"),
    [
        ("A", "A", True),
        ("A", "A.B.C", True),
        ("A.B", "A", False),
        ("A", "AB", False),
        ("A.*", "A.B", True),
        ("A.*", "A", False),
        ("A.*.C", "A.B.C.D", True),
        ("A.*.C", "A.B.D", False),
        ("L[*].image", "L[name=web].image", True),
        ("L[name=web]", "L[name=web].image", True),
        ("L[name=web]", "L[name=db].image", False),
        ("L[port=80]", "L[port=80,protocol=TCP].name", True),
        ("L[port=80,protocol=TCP]", "L[port=80]", False),
        ("L.web", "L[name=web]", False),
    ],
)
def test_a_path_covers_itself_and_what_lies_in_it(outer: str, path: str, is_covered: bool) -> None:
    assert covers(parsed(outer), parsed(path)) is is_covered


def test_a_path_belongs_to_the_parameter_it_begins_with() -> None:
    assert root("RedrivePolicy.maxReceiveCount") == "RedrivePolicy"
    assert root('["odd name"].B') == "odd name"
    assert root("odd name") == "odd name"


def test_only_single_values_are_keys() -> None:
    assert [key_text("a"), key_text(80), key_text(1.5), key_text(True)] == ["a", "80", "1.5", "true"]
    assert (key_text(None), key_text([]), key_text({})) == (None, None, None)


@pytest.mark.rule("S25")
def test_a_part_is_named_by_its_key() -> None:
    assert part_name(["10.0.0.0/8", None, None]) == "10.0.0.0/8||"
    assert part_name([{"$output": "subnet.SubnetId"}]) == part_name(["${subnet.SubnetId}"]) == "${subnet.SubnetId}"
    assert part_name([]) == "-"
    assert part_name(["tcp", 80]) == "tcp|80"
    assert part_name(["a|b", "c"]) != part_name(["a", "b|c"])
    assert part_name(["a\\", "b"]) != part_name(["a\\|b"])
    assert part_name([{"b": 1, "a": [True]}]) == '{"a":[true],"b":1}'


VALUES = {"A": {"B": 1, "k.e/y": 2}, "L": [{"name": "web", "image": "a"}, {"name": "db"}]}


@pytest.mark.parametrize(
    ("name", "value", "after"),
    [
        ("A.B", 3, {**VALUES, "A": {"B": 3, "k.e/y": 2}}),
        ('A["k.e/y"]', None, {**VALUES, "A": {"B": 1}}),
        ("A.C.D", 3, {**VALUES, "A": {"B": 1, "k.e/y": 2, "C": {"D": 3}}}),
        ("L[name=web].image", "b", {**VALUES, "L": [{"name": "web", "image": "b"}, {"name": "db"}]}),
        ("L[name=db]", None, {**VALUES, "L": [{"name": "web", "image": "a"}]}),
        ("L[name=new]", {"name": "new"}, {**VALUES, "L": [*VALUES["L"], {"name": "new"}]}),
        ("N", 1, {**VALUES, "N": 1}),
    ],
)
def test_a_value_is_put_where_a_path_leads(name: str, value: object, after: object) -> None:
    assert with_value(VALUES, name, value) == after
    assert value_at(with_value(VALUES, name, value), name) == value


@pytest.mark.rule("G14")
def test_actual_values_inside_a_parameter_are_absorbed_and_references_and_secrets_are_not() -> None:
    declared = {"A": {"B": 1, "C": "${jobs.Arn}", "D": {"$secret": "key"}}, "E": 1}
    drift: dict[str, dict[str, object]] = {
        "A.B": {"declared": 1, "actual": 2},
        "A.C": {"declared": "arn", "actual": "other"},
        "A.D": {"declared": {"$secret": "key"}, "actual": "(secret: differs)"},
        "E": {"declared": 1, "actual": 2},
    }
    inside = inside_of(drift)
    assert inside.keys() == {"A"}
    found = absorbed_inside(declared, "A", inside["A"])
    assert (found.is_written, found.value) == (True, {**declared["A"], "B": 2})  # type: ignore[dict-item]
    assert [line.partition(" ")[0] for line in found.left] == ["A.C", "A.D"]
