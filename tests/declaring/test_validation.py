"""Bad declarations are refused as a whole, with every fault at once."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.identity import ID_TWICE
from fractal_cloud.offers.validation import MAX_COMPONENTS, check


def reference(kind: str) -> dict[str, Any]:
    return {"type": "string", "x-fractal": {"reference": {"type": kind, "output": "id"}}}


def facts(kind: str, properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> TypeFacts:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "region": {"type": "string"}, **properties},
        "required": list(required),
        "additionalProperties": False,
    }
    return TypeFacts(type=kind, provider="toy", title=kind, parameter_schema=schema, place=["region"], **more)


RULE = {
    "type": "object",
    "properties": {"port": {"type": "integer"}},
    "required": ["port"],
    "additionalProperties": False,
}
CATALOG = {
    "Net.ToyNet": facts(
        "Net.ToyNet",
        {
            "cidrBlock": {"type": "string", "pattern": "^[0-9./]+$"},
            "tenancy": {"enum": ["default", "dedicated"]},
            "mtu": {"anyOf": [{"type": "integer", "minimum": 576, "maximum": 9000}, {"type": "null"}]},
            "rules": {"type": "array", "items": RULE},
            "script": {"type": "string", "x-fractal": {"lines": True}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        },
        required=("cidrBlock",),
    ),
    "Net.ToySubnet": facts("Net.ToySubnet", {"net": reference("Net.ToyNet")}, required=("net",), parent="net"),
    "Run.ToyMachine": facts(
        "Run.ToyMachine",
        {"subnet": reference("Net.ToySubnet"), "nets": {"type": "array", **reference("Net.ToyNet"), "items": {}}},
        links=[
            {
                "half": "inbound",
                "source": "*",
                "target": "Run.ToyMachine",
                "linkType": "machineLink",
                "required": ["fromPort"],
                "settingsSchema": {"properties": {"fromPort": {"type": "integer"}}, "required": ["fromPort"]},
            }
        ],
    ),
}
CATALOG["Run.ToyMachine"].parameter_schema["properties"]["nets"]["type"] = "array"


def net(component_id: str = "net", /, **parameters: Any) -> dict[str, Any]:
    given = {"region": "here", "cidrBlock": "10.0.0.0/16", **parameters}
    return {
        "id": component_id,
        "type": "Net.ToyNet",
        "parameters": {key: item for key, item in given.items() if item != "-"},
    }


def subnet(component_id: str = "sub", /, of: str = "net", **parameters: Any) -> dict[str, Any]:
    return {"id": component_id, "type": "Net.ToySubnet", "parameters": {"net": of, **parameters}}


def machine(name: str = "web", **more: Any) -> dict[str, Any]:
    return {"id": name, "type": "Run.ToyMachine", "parameters": {"region": "here"}, **more}


def live_system(*components: Any, **more: Any) -> dict[str, Any]:
    return {"id": "ls-a", "components": list(components), **more}


def errors_of(document: object, expected_id: str | None = None) -> dict[str, str]:
    with pytest.raises(DeclarationError) as caught:
        check(document, CATALOG, expected_id=expected_id)
    paths = [fault.path for fault in caught.value.errors]
    assert len(paths) == len(set(paths))
    return {fault.path: fault.message for fault in caught.value.errors}


def test_a_good_declaration_gets_its_providers_and_its_referenced_dependencies() -> None:
    document = live_system(net(), subnet(), machine(dependencies=["sub", "net", "sub"]))
    before = copy.deepcopy(document)
    checked = check(document, CATALOG, expected_id="ls-a")
    assert document == before, "checking changes nothing"
    assert checked.environment == "default"
    assert [component.provider for component in checked.components] == ["toy", "toy", "toy"]
    assert [component.dependencies for component in checked.components] == [[], ["net"], ["sub", "net"]]
    assert checked.components[1].parameters == {"net": "net"}, "no default and no inherited place is filled in"


def test_a_reference_comes_after_the_declared_dependencies() -> None:
    document = live_system(net("a"), net("b"), {**subnet(of="a"), "dependencies": ["b"]})
    assert check(document, CATALOG).components[2].dependencies == ["b", "a"]


def test_null_where_it_is_allowed_means_not_declared() -> None:
    assert "mtu" not in check(live_system(net(mtu=None)), CATALOG).components[0].parameters


def test_a_checked_declaration_can_be_checked_again() -> None:
    once = check(live_system(net(), subnet(), machine(importOnly=True, ignoreDrift=["name"])), CATALOG)
    assert check(once.to_json(), CATALOG) == once


@pytest.mark.parametrize(
    ("document", "path", "message"),
    [
        ([], "declaration", "is an empty list: must be an object with id and components"),
        ("text", "declaration", "is 'text': must be an object with id and components"),
        (
            live_system(name="x"),
            "name",
            "is no known key here: there is id, environment, description, readoption, tags, compo",
        ),
        (live_system(component=[]), "component", "is no known key here: did you mean 'components'?"),
        ({"id": "ls-a"}, "components", "is missing: give a list"),
        (live_system(readoption="never"), "readoption", "is 'never': must be 'handshake' or 'tag'"),
        (live_system(environment=""), "environment", "is '': must be text of 1 to 63 characters"),
        (live_system(environment=7), "environment", "is 7: must be text of 1 to 63 characters"),
        (live_system(description=["x"]), "description", "is a list of 1: must be text"),
        (live_system("net"), "components[0]", "is 'net': must be an object with id and type"),
        (live_system({"type": "Net.ToyNet"}), "components[0].id", "is missing: give an id"),
        (live_system({"id": "n"}), "components[n].type", "is missing: give the component's type"),
        (live_system({**net(), "typ": 1}), "components[net].typ", "is no known key here: did you mean 'type'?"),
        (live_system({"id": "n", "type": "Net.ToyNett"}), "components[n].type", "did you mean 'Net.ToyNet'?"),
        (live_system({"id": "n", "type": "toynet"}), "components[n].type", "did you mean 'Net.ToyNet'?"),
        (
            live_system({"id": "n", "type": "Blob"}),
            "components[n].type",
            "is 'Blob', a type nobody here knows: install",
        ),
        (live_system({**net(), "provider": "aws"}), "components[net].provider", "is 'aws', but Net.ToyNet belongs to"),
        (live_system({**net(), "parameters": []}), "components[net].parameters", "is an empty list: must be an object"),
        (live_system(net(cidrBlok="x")), "components[net].parameters.cidrBlok", "did you mean 'cidrBlock'?"),
        (live_system(net(cidr_block="x")), "components[net].parameters.cidr_block", "did you mean 'cidrBlock'?"),
        (live_system(net(cidrBlock="-")), "components[net].parameters.cidrBlock", "is missing: give text that matches"),
        (live_system(net(cidrBlock=5)), "components[net].parameters.cidrBlock", "is 5: must be text that matches"),
        (
            live_system(net(cidrBlock="no")),
            "components[net].parameters.cidrBlock",
            "is 'no': must be text that matches",
        ),
        (live_system(net(tenancy="x")), "components[net].parameters.tenancy", "must be one of 'default', 'dedicated'"),
        (live_system(net(mtu=1)), "components[net].parameters.mtu", "is 1: must be a whole number from 576 to 9000"),
        (live_system(net(mtu="1500")), "components[net].parameters.mtu", "is '1500': must be a whole number from"),
        (live_system(net(mtu=True)), "components[net].parameters.mtu", "is true: must be a whole number from 576"),
        (live_system(net(mtu=10**30)), "components[net].parameters.mtu", "a number must lie between"),
        (live_system(net(mtu=float("nan"))), "components[net].parameters.mtu", "a number must lie between"),
        (live_system(net(rules=[{}])), "components[net].parameters.rules[0].port", "is missing: give a whole number"),
        (live_system(net(rules=[{"port": 1, "prt": 2}])), "components[net].parameters.rules[0].prt", "mean 'port'?"),
        (live_system(net(labels={"a": 1})), "components[net].parameters.labels.a", "is 1: must be text"),
        (live_system({**net(), "dependencies": "x"}), "components[net].dependencies", "is 'x': must be a list"),
        (live_system({**net(), "dependencies": [1]}), "components[net].dependencies[0]", "is 1: must be text"),
        (live_system({**net(), "dependencies": ["net"]}), "components[net].dependencies[0]", "the component itself"),
        (
            live_system(net(), subnet(of="nett")),
            "components[sub].parameters.net",
            "is 'nett', which is no component of",
        ),
        (live_system(net(), subnet(of="nett")), "components[sub].parameters.net", "did you mean 'net'?"),
        (live_system(machine(links=[7])), "components[web].links[0]", "is 7: must be an object with target and setti"),
        (live_system(machine(links=[{}])), "components[web].links[0].target", "is missing: give the id of the compone"),
        (live_system(machine(links=[{"target": "weeb"}])), "components[web].links[0].target", "did you mean 'web'?"),
        (
            live_system(net(), {**net("b", name="b"), "links": [{"target": "net", "settings": {"a": []}}]}),
            "components[b].links[0].settings.a",
            "is an empty list: must be text, a number, true or false",
        ),
        (live_system(machine(ignoreDrift=["regio"])), "components[web].ignoreDrift[0]", "did you mean 'region'?"),
        (live_system(machine(ignoreDrift="x")), "components[web].ignoreDrift", "is 'x': must be a list"),
        (live_system(machine(importOnly="yes")), "components[web].importOnly", "is 'yes': must be true or false"),
        (live_system(machine(linksFrom=["LS A"])), "components[web].linksFrom[0]", "is 'LS A': must be a LiveSystem's"),
        (live_system(net(name={1: 2})), "components[net].parameters.name", "has the key 1: keys are text"),
        (live_system(net(name=b"x")), "components[net].parameters.name", "is a bytes: give text, a number"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(document: object, path: str, message: str) -> None:
    found = errors_of(document)
    assert message in found[path]


@pytest.mark.rule("T9")
@pytest.mark.parametrize("bad", ["", "LS", "-a", "a-", "a_b", "a/b", "ä", "a" * 64, " a", "a\n", 7, None, ["a"]])
def test_an_id_that_is_not_allowed_is_refused_on_live_systems_and_components(bad: object) -> None:
    found = errors_of({"id": bad, "components": [{**net(), "id": bad}]})
    assert {"id", "components[0].id"} <= set(found)
    assert all("1 to 63 of a-z, 0-9 and -" in found[path] or "U+000A" in found[path] for path in found)


@pytest.mark.rule("T9")
@pytest.mark.parametrize("good", ["a", "0", "a-b", "a" * 63, "0--9"])
def test_an_id_that_is_allowed_is_taken(good: str) -> None:
    assert check({"id": good, "components": [{**net(), "id": good}]}, CATALOG).components[0].id == good


def test_the_body_and_the_path_must_agree() -> None:
    found = errors_of(live_system(), expected_id="ls-b")
    assert found == {"id": "is 'ls-a', but it is deployed as 'ls-b': make both the same"}


@pytest.mark.parametrize("bad", ["a\x00b", "a\nb", "\x7f", "\x85", "\ud800", "\x1b[31m", "a\u202eb", "\u2028"])
def test_control_characters_and_lone_surrogates_are_refused_wherever_they_stand(bad: str) -> None:
    document = live_system(
        {**net(name=bad, labels={"k": bad}), "ignoreDrift": [bad]}, {**net("b"), bad: 1}, environment=bad
    )
    found = errors_of(document)
    for path in ("components[net].parameters.name", "components[net].parameters.labels.k", "environment"):
        assert "control character U+" in found[path]
    assert "control character U+" in found["components[b]"]
    assert all((path + message).isprintable() for path, message in found.items())


def test_a_description_may_have_lines_but_no_other_control_characters() -> None:
    assert check(live_system(description="one\n\ttwo"), CATALOG).description == "one\n\ttwo"
    assert "U+0000" in errors_of(live_system(description="a\x00"))["description"]


def test_a_parameter_may_have_lines_where_its_type_says_so() -> None:
    assert check(live_system(net(script="#!/bin/sh\n\ttrue\n")), CATALOG).components[0].parameters["script"]
    assert "U+001B" in errors_of(live_system(net(script="\x1b[1m")))["components[net].parameters.script"]


def test_an_id_that_two_components_have_is_refused_once() -> None:
    assert errors_of(live_system(net(), net(name="other"))) == {"components[1].id": f"is 'net', {ID_TWICE}"}


@pytest.mark.rule("O16")
def test_two_components_that_speak_of_one_resource_are_refused() -> None:
    found = errors_of(live_system(net(name="x"), net("b", name="x"), subnet("s1", name="s"), subnet("s2", name="s")))
    assert found == {
        "components[b]": "speaks of the same resource as components[net], 'x' in 'here': "
        "give it another name, or declare it once",
        "components[s2]": "speaks of the same resource as components[s1], 's' in 'here': "
        "give it another name, or declare it once",
    }


@pytest.mark.rule("O16")
def test_one_name_in_two_places_or_two_parents_is_no_double() -> None:
    check(live_system(net(name="x"), net("b", name="x", region="there")), CATALOG)
    check(live_system(net(), net("b"), subnet("s1", name="s"), subnet("s2", of="b", name="s")), CATALOG)


def test_a_reference_to_a_component_of_another_type_is_refused() -> None:
    found = errors_of(live_system(machine(), subnet(of="web")))
    message = "is 'web', a component of type Run.ToyMachine: must name one of type Net.ToyNet"
    assert found == {"components[sub].parameters.net": message}


def test_references_in_a_list_are_checked_one_by_one() -> None:
    web = machine()
    web["parameters"]["nets"] = ["net", "gone", "sub"]
    found = errors_of(live_system(net(), subnet(), web))
    assert set(found) == {"components[web].parameters.nets[1]", "components[web].parameters.nets[2]"}


@pytest.mark.rule("L2")
def test_every_cycle_of_dependencies_is_refused_and_named() -> None:
    document = live_system(
        machine("a", dependencies=["b"]),
        machine("b", dependencies=["a"]),
        machine("c", dependencies=["d"]),
        machine("d", dependencies=["e"]),
        machine("e", dependencies=["c"]),
    )
    messages = list(errors_of(document).values())
    assert messages == [
        "go in a circle, a → b → a: take one of these dependencies away",
        "go in a circle, c → d → e → c: take one of these dependencies away",
    ]


@pytest.mark.rule("L2")
def test_a_cycle_of_links_is_fine() -> None:
    link = {"settings": {"fromPort": 80}}
    document = live_system(machine("a", links=[{"target": "b", **link}]), machine("b", links=[{"target": "a", **link}]))
    assert check(document, CATALOG).components[0].links[0].settings == {"fromPort": 80}


@pytest.mark.rule("L7")
def test_a_missing_link_setting_is_refused_with_source_target_and_key() -> None:
    found = errors_of(live_system(machine("a", links=[{"target": "b"}]), machine("b")))
    assert found == {"components[a].links[0].settings.fromPort": "is missing: the link from 'a' to 'b' needs it"}


def test_an_unknown_place_is_said_once_where_it_must_be_said() -> None:
    found = errors_of(live_system(net(region="-"), subnet(), subnet("lost", of="gone")))
    assert set(found) == {"components[net].parameters.region", "components[lost].parameters.net"}


def test_absurd_sizes_are_refused() -> None:
    many = [machine(f"c{index}") for index in range(MAX_COMPONENTS + 1)]
    assert f"has {MAX_COMPONENTS + 1} entries" in errors_of(live_system(*many))["components"]
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    assert any("levels deep" in message for message in errors_of(live_system(net(labels=deep))).values())
    assert "characters long" in errors_of(live_system(net(name="x" * 70_000)))["components[net].parameters.name"]
    assert (
        "entries"
        in errors_of(live_system(net(), machine(dependencies=["net"] * 2_000)))["components[web].dependencies"]
    )


def test_ten_thousand_wrong_components_are_refused_in_reasonable_time() -> None:
    many = [{**machine(f"c{index}"), "dependencies": [f"x{index}"], "type": "Blub"} for index in range(MAX_COMPONENTS)]
    assert len(errors_of(live_system(*many))) == 2 * MAX_COMPONENTS


def test_every_error_is_listed_at_once() -> None:
    document = {
        "id": "LS",
        "readoption": 1,
        "extra": 1,
        "components": [
            net(cidrBlock=1, mtu=1, odd=1),
            {**subnet(of="gone"), "provider": "aws"},
            {"id": "x", "type": "Nope"},
            machine("a", dependencies=["b"], links=[{"target": "nobody"}]),
            machine("b", dependencies=["a"], ignoreDrift=["none"]),
            None,
        ],
    }
    assert set(errors_of(document, expected_id="ls-z")) == {
        "id",
        "readoption",
        "extra",
        "components[net].parameters.cidrBlock",
        "components[net].parameters.mtu",
        "components[net].parameters.odd",
        "components[sub].parameters.net",
        "components[sub].provider",
        "components[x].type",
        "components[a].links[0].target",
        "components[b].ignoreDrift[0]",
        "components[a].dependencies",
        "components[5]",
    }


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["id", "type", "provider", "parameters", "dependencies", "links", "ignoreDrift", "odd"])
values = json_values | st.sampled_from(["net", "Net.ToyNet", "Net.ToySubnet", ["net"], {"net": "net", "region": "x"}])


@given(json_values | st.builds(live_system, st.dictionaries(keys, values) | json_values, st.dictionaries(keys, values)))
def test_whatever_is_sent_is_taken_or_refused_with_faults_that_can_be_shown(document: object) -> None:
    faults: list[InputError] = []
    try:
        checked = check(document, CATALOG)
        assert check(checked.to_json(), CATALOG) == checked
    except DeclarationError as error:
        faults = error.errors or [InputError("", "\ud800")]
    assert all(str(fault).encode() for fault in faults)
