"""Which resource a component speaks of, at the edges: names, hosts, inherited words, contradictions."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration, LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.host import HostName
from fractal_cloud.rules.identify import DeclaredIdentity, find_identities, identities, name_of, referenced


def facts(kind: str, place: list[str], properties: dict[str, Any] | None = None, **more: Any) -> TypeFacts:
    known: dict[str, Any] = {word: {"type": "string"} for word in ("name", *place)}
    schema = {"properties": {**known, **(properties or {})}}
    return TypeFacts(type=kind, provider="p", title=kind, parameter_schema=schema, place=place, **more)


def reference(kind: str) -> dict[str, Any]:
    return {"x-fractal": {"reference": {"type": kind, "output": "id"}}}


CLUSTER = {"x-fractal": {"hosts": {"Cluster": ["endpoint"]}}}
CATALOG = {
    "Net": facts("Net", ["region"]),
    "Sub": facts("Sub", ["region"], {"net": reference("Net")}, parent="net"),
    "Cluster": facts("Cluster", ["region"], {"aaa": reference("Net"), "sub": reference("Sub")}, parent="sub"),
    "Pod": facts("Pod", ["namespace"], {"cluster": CLUSTER}, realm="cluster"),
    "Job": facts("Job", ["namespace"], {"pod": reference("Pod"), "cluster": CLUSTER}, realm="cluster", parent="pod"),
    "Only": facts("Only", [], {"name": {"default": "the-one", "x-fractal": {"enforced": True}}}),
    "Space": facts("Space", ["namespace"], {"namespace": {"default": "main", "x-fractal": {"enforced": True}}}),
    "Inside": facts("Inside", [], {"only": reference("Only")}, parent="only"),
    "Part": facts(
        "Part", ["region"], {"only": reference("Only")}, parent="only", is_part=True, in_scope_of_parent=True
    ),
    "Apart": facts("Apart", ["region"], {"only": reference("Only")}, parent="only", is_part=True),
    "Of": facts("Of", ["region"], {"net": reference("Net")}, parent="net", is_part=True, in_scope_of_parent=True),
    "Soft": facts("Soft", ["namespace"], {"namespace": {"default": "main"}}),
}


def declare(*components: tuple[str, str, dict[str, Any]]) -> LiveSystemDeclaration:
    return LiveSystemDeclaration(
        id="ls", components=[ComponentDeclaration(id=n, type=kind, parameters=p) for n, kind, p in components]
    )


def test_an_identity_has_neither_parent_nor_realm_unless_said() -> None:
    assert DeclaredIdentity("eu", "web") == DeclaredIdentity("eu", "web", "", "")


def test_the_name_is_the_declared_one_else_that_of_all_of_its_type_else_the_id() -> None:
    plain = ComponentDeclaration(id="web", type="Only", parameters={})
    named = ComponentDeclaration(id="web", type="Only", parameters={"name": "mine"})
    numbered = ComponentDeclaration(id="web", type="Net", parameters={"name": 5})
    odd = ComponentDeclaration(id="web", type="Net", parameters={"name": ["x"]})
    assert name_of(named, CATALOG["Only"]) == "mine"
    assert name_of(plain, CATALOG["Only"]) == "the-one"
    assert name_of(plain, CATALOG["Net"]) == "web"
    assert name_of(plain, None) == "web"
    assert name_of(numbered, None) == "5"
    assert name_of(odd, CATALOG["Net"]) == "web"
    found = identities(declare(("web", "Only", {})), CATALOG)
    assert found == {"web": DeclaredIdentity("global", "the-one")}


def test_a_realm_that_is_named_is_kept_as_it_is_called() -> None:
    found = identities(declare(("pod", "Pod", {"namespace": "shop", "cluster": "prod"})), CATALOG)
    assert found == {"pod": DeclaredIdentity("shop", "pod", "", "prod")}
    none = identities(declare(("pod", "Pod", {"namespace": "shop"})), CATALOG)
    assert none == {"pod": DeclaredIdentity("shop", "pod", "", "")}


NET = ("net", "Net", {"region": "eu", "name": "outer"})
SUB = ("sub", "Sub", {"net": "net", "name": "inner"})
PROD = ("prod", "Cluster", {"sub": "sub", "name": "production"})
HOST = HostName("ls", "prod", "Cluster", "eu", "outer/inner", "production")


def test_a_realm_that_is_a_component_of_the_same_livesystem_is_that_component() -> None:
    pod, other = (
        ("pod", "Pod", {"namespace": "shop", "cluster": "prod"}),
        ("far", "Pod", {"namespace": "x", "cluster": "c"}),
    )
    found = identities(declare(other, pod, PROD, SUB, NET, ("job", "Job", {"pod": "pod"})), CATALOG)
    assert found["pod"] == DeclaredIdentity("shop", "pod", "", str(HOST))
    assert found["far"] == DeclaredIdentity("x", "far", "", "c")
    assert found["prod"] == DeclaredIdentity("eu", "production", "outer/inner")
    assert found["job"] == DeclaredIdentity("shop", "job", "pod", str(HOST)), "who lives in it inherits its realm"


def test_a_component_that_cannot_be_lived_in_is_no_host() -> None:
    found = identities(declare(("pod", "Pod", {"namespace": "shop", "cluster": "net"}), NET), CATALOG)
    assert found["pod"].realm == "net"


def test_an_unknown_type_has_no_identity_and_stops_nobody_after_it() -> None:
    found, faults = find_identities(declare(("odd", "Odd", {}), NET, ("pod", "Pod", {"cluster": "odd"})), CATALOG)
    assert list(found) == ["net"]
    assert [fault.path for fault in faults] == ["components[pod].parameters.namespace"]
    hosted = declare(("odd", "Odd", {}), ("pod", "Pod", {"namespace": "x", "cluster": "odd"}), PROD, SUB, NET)
    assert identities(hosted, CATALOG)["pod"].realm == "odd"


def test_an_enforced_default_is_a_word_of_a_place_and_no_other_default_is() -> None:
    assert identities(declare(("a", "Space", {})), CATALOG) == {"a": DeclaredIdentity("main", "a")}
    assert identities(declare(("a", "Space", {"namespace": "x"})), CATALOG) == {"a": DeclaredIdentity("x", "a")}
    with pytest.raises(DeclarationError) as caught:
        identities(declare(("a", "Soft", {})), CATALOG)
    missing = "is missing: say where it is, with namespace here"
    assert caught.value.errors == [InputError("components[a].parameters.namespace", missing)]


def test_a_place_comes_from_the_parent_before_any_other_reference() -> None:
    nets = (("one", "Net", {"region": "eu"}), ("two", "Net", {"region": "us"}))
    found = identities(
        declare(*nets, ("sub", "Sub", {"net": "two"}), ("c", "Cluster", {"aaa": "one", "sub": "sub"})), CATALOG
    )
    assert found["c"] == DeclaredIdentity("us", "c", "two/sub")
    without = identities(declare(*nets, ("c", "Cluster", {"aaa": "one"})), CATALOG)
    assert without["c"] == DeclaredIdentity("eu", "c")


def test_each_word_that_contradicts_the_parent_is_a_fault_and_one_that_agrees_is_none() -> None:
    _, faults = find_identities(declare(NET, ("sub", "Sub", {"net": "net", "region": "us"})), CATALOG)
    text = "is 'us', but its net 'net' is in 'eu': leave it out, because it follows the net"
    assert faults == [InputError("components[sub].parameters.region", text)]
    for parameters in ({"net": "net", "region": "eu"}, {"net": "net"}, {"net": "gone", "region": "us"}):
        assert find_identities(declare(NET, ("sub", "Sub", parameters)), CATALOG)[1] == []
    odd = declare(("net", "Odd", {"region": "eu"}), ("sub", "Sub", {"net": "net", "region": "us"}))
    assert find_identities(odd, CATALOG)[1] == [], "of an unknown type no place is known"
    free = declare(NET, ("pod", "Pod", {"namespace": "x", "": "net", "XXXX": "net"}))
    assert find_identities(free, CATALOG)[1] == []


def test_a_fault_says_where_the_word_may_be_said() -> None:
    _, faults = find_identities(declare(("c", "Cluster", {"sub": "gone"}), ("d", "Cluster", {})), CATALOG)
    assert faults == [
        InputError(
            "components[c].parameters.region",
            "is missing: say where it is, with region here, or on the component its sub names",
        ),
        InputError("components[d].parameters.region", "is missing: say where it is, with region here"),
    ]


def test_parents_in_a_circle_end_and_unknown_ones_are_left_out() -> None:
    catalog = CATALOG | {"Loop": facts("Loop", [], {"up": reference("Loop")}, parent="up")}
    found = identities(
        declare(("a", "Loop", {"up": "b"}), ("b", "Loop", {"up": "a"}), ("c", "Loop", {"up": "gone"})), catalog
    )
    assert found["a"].parent == "b"
    assert found["b"].parent == "a"
    assert found["c"].parent == ""
    self = identities(declare(("a", "Loop", {"up": "a"})), catalog)
    assert self["a"].parent == ""
    chain = identities(
        declare(
            ("a", "Loop", {"up": "b"}), ("b", "Loop", {"up": "c"}), ("c", "Loop", {"up": ["d", "x"]}), ("d", "Loop", {})
        ),
        catalog,
    )
    assert chain["a"].parent == "d/c/b"


def test_a_reference_is_one_id_or_a_list_of_them() -> None:
    assert referenced("net") == ["net"]
    assert referenced(["a", 5, "b", None]) == ["a", "b"]
    for odd in (None, 5, {"a": "b"}, ("a",)):
        assert referenced(odd) == []


def test_a_parent_is_named_as_its_type_names_all_of_its_kind() -> None:
    found = identities(declare(("in", "Inside", {"only": "it"}), ("it", "Only", {})), CATALOG)
    assert found["in"] == DeclaredIdentity("global", "in", "the-one")


def test_parents_that_go_round_without_it_end_too() -> None:
    catalog = CATALOG | {"Loop": facts("Loop", [], {"up": reference("Loop")}, parent="up")}
    found = identities(
        declare(("a", "Loop", {"up": "b"}), ("b", "Loop", {"up": "c"}), ("c", "Loop", {"up": "b"})), catalog
    )
    assert found["a"].parent == "c/b"


# --- parts, and the scope of their parent


@pytest.mark.rule("S25")
def test_a_part_that_follows_its_parent_is_where_that_is() -> None:
    found = identities(declare(("o", "Only", {"region": "eu"}), ("p", "Part", {"only": "o"})), CATALOG)
    assert found["p"] == DeclaredIdentity("global", "p", "the-one")
    said = identities(declare(("o", "Only", {"region": "eu"}), ("p", "Part", {"only": "o", "region": "eu"})), CATALOG)
    assert said["p"].place == "global", "that it says where its parent lies changes nothing"
    beside = identities(declare(NET, ("p", "Of", {"net": "net"})), CATALOG)
    assert beside["p"] == DeclaredIdentity("eu", "p", "outer")


@pytest.mark.rule("S25")
def test_a_part_says_no_other_word_than_the_parent_it_follows() -> None:
    _, errors = find_identities(
        declare(("o", "Only", {"region": "eu"}), ("p", "Part", {"only": "o", "region": "us"})), CATALOG
    )
    [error] = errors
    assert error.path == "components[p].parameters.region"
    assert "is 'us', but its only 'o' is in 'eu'" in error.message


@pytest.mark.rule("S25")
def test_a_part_that_cannot_follow_its_parent_is_refused() -> None:
    _, errors = find_identities(declare(("o", "Only", {}), ("p", "Apart", {"only": "o", "region": "eu"})), CATALOG)
    assert [error.path for error in errors] == ["components[p].parameters.only"]
    assert "is observed in another scope than its parts" in errors[0].message


@pytest.mark.rule("S25")
def test_a_part_whose_parent_is_not_declared_here_is_where_it_says() -> None:
    found = identities(declare(("p", "Part", {"only": "elsewhere", "region": "eu"})), CATALOG)
    assert found["p"].place == "eu"
