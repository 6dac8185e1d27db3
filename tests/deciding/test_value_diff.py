"""Lists and maps differ by element: what was added, removed or changed, and in which words (G3, C6)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.rules.diff_words import drift_lines, drift_text, lines_of, plan_lines, rule_text, sides, written
from fractal_cloud.rules.drift import Difference
from fractal_cloud.rules.hiding import OTHER_SENSITIVE, SENSITIVE
from fractal_cloud.rules.value_diff import ABSENT, ElementDifference, Item, element_differences

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b", "10.0.0.0/8", "10.1.2.3/8"])
NAMED = st.fixed_dictionaries({"name": st.sampled_from("abc")}, optional={"size": SCALARS, "tags": st.lists(SCALARS)})
VALUES = st.recursive(
    SCALARS | NAMED,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(NAMED, max_size=4)
        | st.dictionaries(st.sampled_from(["x", "y", "name", "a.b"]), inner, max_size=4)
    ),
    max_leaves=12,
)


def applied(before: Any, found: Iterable[ElementDifference]) -> Any:
    """A value with differences applied to it: the plain meaning of what they say."""
    differences = list(found)
    for one in differences:
        if not one.path:
            return one.after
    if isinstance(before, Mapping):
        return _applied_to_map(before, differences)
    return _applied_to_list(before, differences) if isinstance(before, list) else before


def _below(differences: Iterable[ElementDifference], step: object) -> list[ElementDifference]:
    return [ElementDifference(one.path[1:], one.before, one.after) for one in differences if one.path[0] == step]


def _applied_to_map(before: Mapping[str, Any], differences: Sequence[ElementDifference]) -> dict[str, Any]:
    changed = {key: applied(value, _below(differences, key)) for key, value in before.items()}
    added = {str(one.path[0]): one.after for one in differences if len(one.path) == 1 and one.before is ABSENT}
    return {key: value for key, value in {**changed, **added}.items() if value is not ABSENT}


def _applied_to_list(before: list[Any], differences: Sequence[ElementDifference]) -> list[Any]:
    added = [one for one in differences if len(one.path) == 1 and one.before is ABSENT]
    others = [one for one in differences if one not in added]
    steps = {one.path[0] for one in others}
    at = {step.place: step for step in steps if isinstance(step, Item)}
    kept = [applied(item, _below(others, at[place])) if place in at else item for place, item in enumerate(before)]
    kept = [item for item in kept if item is not ABSENT]
    for one in added:
        assert isinstance(one.path[0], Item)
        kept.insert(one.path[0].place, one.after)
    return kept


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def unordered(value: Any) -> Any:
    """A value in which the order of lists does not count."""
    if isinstance(value, Mapping):
        return {key: unordered(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted((unordered(one) for one in value), key=text)
    return value


@pytest.mark.rule("G3")
@given(VALUES, VALUES, st.sampled_from([None, "exact"]))
def test_applied_to_what_is_declared_the_differences_give_what_is_actual(before: Any, after: Any, how: Any) -> None:
    found = list(element_differences(before, after, how))
    assert text(unordered(applied(before, found))) == text(unordered(after))
    assert bool(found) == (text(before) != text(after)), "no difference yields none, and any difference yields one"


@given(st.lists(SCALARS, max_size=6), st.lists(SCALARS, max_size=6))
def test_the_order_counts_where_the_type_says_so(before: list[Any], after: list[Any]) -> None:
    assert text(applied(before, element_differences(before, after, "exact"))) == text(after)


@given(st.lists(NAMED | SCALARS, max_size=6), st.lists(NAMED | SCALARS, max_size=6))
def test_neither_order_nor_number_counts_where_the_type_says_so(before: list[Any], after: list[Any]) -> None:
    found = list(element_differences(before, after, "unordered"))
    assert {text(unordered(one)) for one in applied(before, found)} == {text(unordered(one)) for one in after}
    assert bool(found) == ({*map(text, before)} != {*map(text, after)})


@given(VALUES)
def test_equal_values_have_no_difference(value: Any) -> None:
    for how in (None, "exact", "unordered", "cidrs", "entries"):
        assert list(element_differences(value, value, how)) == []


def test_networks_are_compared_as_networks() -> None:
    assert list(element_differences(["10.1.2.3/8"], ["10.0.0.0/8"], "cidrs")) == []
    assert len(list(element_differences(["10.1.2.3/8"], ["10.0.0.0/8"]))) == 2


def test_an_order_of_the_clouds_own_is_no_difference_beside_a_real_one() -> None:
    (one,) = element_differences(["a", "b", "c"], ["c", "a", "b", "d"])
    assert (one.sign, one.after) == ("+", "d")


def test_long_lists_cost_no_more_than_their_length() -> None:
    many = [str(number) for number in range(20_000)]
    turned = many[::-1]
    assert len(list(element_differences(many, turned, "exact"))) == 1, "shown whole: aligning them takes too long"
    assert len(list(element_differences(many, [*turned, "x"]))) == 1
    deep: Any = 1
    for _ in range(60):
        deep = {"a": deep}
    (one,) = element_differences(deep, {"a": deep})
    assert len(one.path) < 20, "what lies deeper is shown whole"


def tcp(port: int, peer: str, **more: Any) -> dict[str, Any]:
    return {"ipProtocol": "tcp", "fromPort": port, "toPort": port, "cidrIp": peer, **more}


SSH, WEB = tcp(22, "10.0.0.0/8"), tcp(443, "0.0.0.0/0")
AZURE = {
    "name": "ssh",
    "priority": 100,
    "direction": "Inbound",
    "access": "Allow",
    "protocol": "Tcp",
    "sourceAddressPrefix": "10.0.0.0/8",
    "destinationPortRange": "22",
}


@pytest.mark.rule("G3", "C6")
def test_drift_says_what_is_only_in_the_cloud_and_a_plan_what_is_written() -> None:
    assert [*map(str, drift_lines("ingress", [WEB], [WEB, SSH]))] == ["ingress: + tcp 22 from 10.0.0.0/8"]
    assert [*map(str, plan_lines("ingress", [WEB], [WEB, SSH]))] == ["ingress: - tcp 22 from 10.0.0.0/8"]
    assert [*map(str, drift_lines("size", 2, 3))] == ["size: declared 2, actual 3"]
    assert [*map(str, plan_lines("size", 2, 3))] == ["size: 3 → 2"]
    assert written("size", 2, 3) == "size from 3 to 2"
    assert written("ingress", [WEB, SSH], [WEB]) == "ingress (+ tcp 22 from 10.0.0.0/8)"
    assert written("env", {"A": "1"}, {"A": "2"}) == "env (A: 2 → 1)"


def test_maps_differ_by_entry_and_named_items_by_what_changed_in_them() -> None:
    declared, actual = {"LOG_LEVEL": "info", "OLD": "1"}, {"LOG_LEVEL": "debug", "NEW": "x y"}
    assert [*map(str, drift_lines("env", declared, actual))] == [
        "env LOG_LEVEL: declared info, actual debug",
        "env: + NEW=x y",
        "env: - OLD=1",
    ]
    assert [*map(str, drift_lines("securityRules", [AZURE], [{**AZURE, "priority": 200}]))] == [
        "securityRules[ssh] priority: declared 100, actual 200"
    ]
    nested = {"spec": {"containers": [{"name": "web", "image": "a:1"}]}}
    other = {"spec": {"containers": [{"name": "web", "image": "a:2"}]}}
    (line,) = drift_lines("manifest", nested, other)
    assert str(line) == "manifest spec.containers[web].image: declared a:1, actual a:2"


def test_values_that_read_alike_are_distinguished() -> None:
    assert [*map(str, drift_lines("size", "3", 3))] == ['size: declared "3", actual 3']


@pytest.mark.rule("A8")
def test_what_is_hidden_stays_hidden_and_a_reference_is_one_value() -> None:
    hidden = Difference({"TOKEN": SENSITIVE, "A": "1"}, {"TOKEN": OTHER_SENSITIVE, "A": "1"}).to_json()
    assert drift_text({"env": hidden}) == f"env TOKEN: declared {SENSITIVE}, actual {OTHER_SENSITIVE}"
    (line,) = drift_lines("password", {"$secret": "a"}, {"$secret": "b"})
    assert line.text == 'declared {"$secret": "a"}, actual {"$secret": "b"}'


@pytest.mark.parametrize(
    ("parameter", "rule", "words"),
    [
        ("ingress", SSH, "tcp 22 from 10.0.0.0/8"),
        ("egress", SSH, "tcp 22 to 10.0.0.0/8"),
        ("ingress", tcp(22, "10.0.0.0/8", toPort=30, description="ops"), 'tcp 22-30 from 10.0.0.0/8 "ops"'),
        ("egress", {"ipProtocol": "-1", "cidrIpv6": "::/0"}, "all traffic to ::/0"),
        ("ingress", {"ipProtocol": "tcp", "fromPort": 1, "toPort": 1, "referencedGroupId": "sg-1"}, "tcp 1 from sg-1"),
        ("ingress", tcp(-1, "10.0.0.0/8", ipProtocol="icmp"), "icmp from 10.0.0.0/8"),
        ("ingress", tcp(8, "10.0.0.0/8", ipProtocol="icmp", toPort=0), "icmp type 8 code 0 from 10.0.0.0/8"),
        ("securityRules", AZURE, "ssh: allow tcp 22 from 10.0.0.0/8 (priority 100)"),
        (
            "securityRules",
            {"name": "no", "priority": 9, "direction": "Outbound", "access": "Deny", "sourcePortRange": "1"},
            "no: deny all traffic to any (priority 9) sourcePortRange=1",
        ),
        (
            "rules",
            {"direction": "in", "protocol": "tcp", "port": "80-90", "sourceIps": ["10.0.0.0/8", "::/0"]},
            "tcp 80-90 from 10.0.0.0/8, ::/0",
        ),
        ("rules", {"direction": "out", "protocol": "esp", "destinationIps": ["10.0.0.0/8"]}, "esp to 10.0.0.0/8"),
        (
            "rules",
            {"direction": "Ingress", "protocol": "TCP", "port": "22", "targetKind": "Ip", "target": "10.0.0.0/8"},
            "tcp 22 from 10.0.0.0/8",
        ),
        (
            "ingress",
            {"podSelector": "app=web", "namespaceSelector": "", "port": 8080, "protocol": "TCP"},
            "tcp 8080 from pods app=web in all namespaces",
        ),
        ("egress", {"cidr": "10.0.0.0/8", "port": 1, "endPort": 3, "protocol": "UDP"}, "udp 1-3 to 10.0.0.0/8"),
        ("ingress", {}, "all traffic from any"),
        (
            "SecurityGroupIngress",
            {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "::/0"},
            "tcp 22 from ::/0",
        ),
        ("routes", {"destination": "10.0.0.0/8", "gateway": "10.0.0.1"}, ""),
        ("services", {"protocol": "http", "listenPort": 80, "destinationPort": 80}, ""),
        ("rules", {"protocol": "6", "source": "::/0", "tcpOptions": {"destinationPortRange": {"min": 1}}}, ""),
        ("env", {}, ""),
        ("ingress", "tcp", ""),
    ],
)
def test_rules_of_firewalls_read_as_people_say_them(parameter: str, rule: Any, words: str) -> None:
    assert rule_text(parameter, rule) == words


def test_unknown_shapes_are_compact_json_and_nothing_commands_a_terminal() -> None:
    assert [*map(str, drift_lines("routes", [], [{"via": 1, "to": "\x1b[2J"}]))] == [
        'routes: + {"to": "\\u001b[2J", "via": 1}'
    ]
    assert "\x1b" not in drift_text({"env": {"declared": {"\x1b": "\x1b"}, "actual": {}}})


def test_a_message_stays_short_and_counts_what_it_leaves_out() -> None:
    drift = {"env": {"declared": {}, "actual": {f"k{number:02}": "x" * 500 for number in range(30)}}}
    said = drift_text(drift)
    assert said.endswith("; and 22 more")
    assert len(said) < 1_200
    assert "…" in said
    assert len(list(lines_of(drift))) == 30
    assert written("env", drift["env"]["declared"], drift["env"]["actual"]).endswith("; …)")


def test_a_table_has_each_element_on_its_side() -> None:
    found = [sides("ingress", one) for one in element_differences([WEB], [SSH])]
    assert found == [
        ("ingress", "-", "tcp 443 from 0.0.0.0/0", None),
        ("ingress", "+", None, "tcp 22 from 10.0.0.0/8"),
    ]
    assert sides("size", next(element_differences(2, 3))) == ("size", "~", "2", "3")


@pytest.mark.parametrize("often", [1, 2])
def test_two_of_one_name_are_not_paired(often: int) -> None:
    named = {"name": "a", "size": 1}
    found = list(element_differences([named] * often, [{"name": "a", "size": 2}] * often))
    signs = Counter(one.sign for one in found)
    assert signs == ({"~": 1} if often == 1 else {"-": 2, "+": 2})
