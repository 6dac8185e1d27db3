"""Declarations of types that no class was written for: nested values, references, lookups, identity, and nonsense."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud import LiveSystem, find
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.generic_component import declared
from fractal_cloud.model.reference import filled, needs_filling, output, output_references
from fractal_cloud.offers.installed_types import Catalog, InstalledTypes
from fractal_cloud.offers.registry import Registry
from fractal_cloud.offers.validation import check
from tests.families import toys

Json = dict[str, Any]

TABLE, ROUTE, NOTE, OWN_QUEUE = "Toy::Net::Table", "Toy::Net::Route", "Toy::Net::Once", "Toys.Queue"


def _like(name: str, schema: Json, **more: Any) -> TypeFacts:
    return toys.facts_of(name, schema).model_copy(update=more)


def _schema(name_parameter: str = "", outputs: Json | None = None, **properties: Json) -> Json:
    about = {"description": "", "name_parameter": name_parameter, "required": [], "outputs": outputs or {}}
    return {**about, "properties": properties}


TEXT: Json = {"type": "string"}
PARENT: Json = {"type": "string", "x-fractal": {"reference": {"type": TABLE, "output": "TableId"}}}
BROUGHT = {
    TABLE: _like(
        TABLE, _schema("TableName", {"TableId": ""}, TableName=TEXT, State={**TEXT, "x-fractal": {"readOnly": True}})
    ),
    ROUTE: _like(
        ROUTE,
        _schema(RouteTable=PARENT, Cidr=TEXT),
        is_part=True,
        taggable=False,
        parent="RouteTable",
        key=["Cidr"],
    ),
    NOTE: _like(NOTE, _schema(Text=TEXT), taggable=False, creates_once=True),
    OWN_QUEUE: _like(OWN_QUEUE, _schema("name", name=TEXT), vendor_type=toys.QUEUE, family="", nested=False),
}
CATALOG = Catalog(BROUGHT, InstalledTypes({}, Registry([toys])))


def queue(component_id: str = "jobs", /, **parameters: Any) -> Json:
    return {"id": component_id, "type": toys.QUEUE, "parameters": {"region": "north", "Delay": 3, **parameters}}


def part(component_id: str, component_type: str, /, **parameters: Any) -> Json:
    return {"id": component_id, "type": component_type, "parameters": parameters}


def accepted(*components: Json) -> LiveSystemDeclaration:
    return check({"id": "shop", "components": list(components)}, CATALOG)


def refused(*components: Json) -> dict[str, str]:
    with pytest.raises(DeclarationError) as raised:
        accepted(*components)
    return {error.path: error.message for error in raised.value.errors}


def refused_parameters(*components: Json) -> dict[str, str]:
    """The messages on the first component's parameters, by path below them."""
    base = f"components[{components[0]['id']}].parameters."
    found = refused(*components)
    assert all(path.startswith(base) for path in found), found
    return {path.removeprefix(base): message for path, message in found.items()}


# --- the schema


def test_nested_values_are_checked_with_their_full_paths() -> None:
    policy = {"deadLetterTargetArn": "nope", "maxReceiveCount": 0, "maxReceive": 1}
    found = refused_parameters(queue(RedrivePolicy=policy, Entries=[{"Id": "a"}, {"Weight": "much"}, 5]))
    assert found == {
        "RedrivePolicy.deadLetterTargetArn": "is 'nope': must be text that matches ^toy:",
        "RedrivePolicy.maxReceiveCount": "is 0: must be a whole number of at least 1",
        "RedrivePolicy.maxReceive": "is no parameter of this type: did you mean 'maxReceiveCount'?",
        "Entries[1].Id": "is missing: give text",
        "Entries[1].Weight": "is 'much': must be a number",
        "Entries[2]": "is 5: must be an object with Id, Weight",
    }


def test_an_unknown_type_of_a_family_is_refused_in_the_familys_words() -> None:
    assert refused(part("a", "Toy::Box::Queu"))["components[a].type"] == (
        "is 'Toy::Box::Queu', which is no type of the toy vendor: did you mean 'Toy::Box::Queue'?"
    )
    assert "carries no tags and is no part" in refused(part("a", toys.UNTAGGABLE))["components[a].type"]


def test_what_only_the_cloud_sets_is_refused_with_what_to_do() -> None:
    found = refused_parameters(part("main", TABLE, region="north", State="up"))
    assert found == {"State": "is set by the cloud alone: take it out; other components refer to it as ${main.State}"}
    assert "set by the cloud alone" in refused_parameters(queue(Arn="toy:1"))["Arn"]


def test_a_vendors_own_keys_may_begin_as_references_do() -> None:
    assert accepted(queue(Environment={"$ref": "#/x", "$schema": "y"})).components
    assert refused_parameters(queue(Environment={"$ouput": "x"}))["Environment"] == (
        "has the key '$ouput', which is no reference: did you mean '$output'?"
    )


@pytest.mark.rule("A8")
def test_secrets_stand_where_the_schema_says_so_at_any_depth() -> None:
    assert accepted(queue(Password={"$secret": "pw"})).components
    assert (
        "cannot stand here: it may stand in Password"
        in refused_parameters(queue(Environment={"A": {"$secret": "pw"}}))["Environment.A"]
    )


# --- references to outputs


@pytest.mark.parametrize(
    "policy",
    [
        {"deadLetterTargetArn": "${dead.Arn}"},
        {"deadLetterTargetArn": {"$output": "dead.Arn"}},
        {"deadLetterTargetArn": "toy:${dead.Arn}", "maxReceiveCount": "${dead.Delay}"},
        {"$output": "dead.RedrivePolicy"},
    ],
)
def test_a_reference_makes_a_dependency_and_is_not_checked_for_its_type(policy: Json) -> None:
    found = accepted(queue(RedrivePolicy=policy), queue("dead"))
    assert [(one.id, one.dependencies) for one in found.components] == [("jobs", ["dead"]), ("dead", [])]
    assert found.components[0].parameters["RedrivePolicy"] == policy


def test_everything_around_a_reference_is_checked() -> None:
    entries = [{"Id": "${dead.Arn}", "Weight": "much"}, {"Id": 5, "Weight": {"$output": "dead.Delay"}}]
    found = refused_parameters(queue(Entries=entries, Delay="x${dead.Delay}"), queue("dead"))
    assert found == {
        "Entries[0].Weight": "is 'much': must be a number",
        "Entries[1].Id": "is 5: must be text",
        "Delay": "is 'x${dead.Delay}': must be a whole number from 0 to 900",
    }


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("${dead.Arnn}", "did you mean 'Arn'?"),
        ("${dead.nothing}", "has none of that name: there is"),
        ("${ded.Arn}", "'ded' is no component of this LiveSystem: did you mean 'dead'?, or write $${"),
        ("${jobs.Arn}", "the component itself"),
        ("${dead.Password}", "may be a secret and is never shown"),
        ("${ dead.Arn }", "has blanks in a reference: write ${dead.Arn}"),
        ({"$output": "dead"}, "give a component's id and one of its outputs"),
        ({"$output": "dead.Arn", "more": 1}, "a reference has this one alone"),
        ({"$find": {"type": toys.QUEUE}}, "without tags and where"),
        ({"$find": {"type": "Toy::Box::Queu", "tags": {"a": "b"}}}, "did you mean 'Toy::Box::Queue'?"),
        ({"$find": {"type": toys.QUEUE, "tags": {"a": "b"}, "output": "Arnn"}}, "did you mean 'Arn'?"),
        ({"$find": {"tipe": toys.QUEUE, "tags": {"a": "b"}}}, "did you mean 'type'?"),
        ({"$find": "all"}, "give an object with type"),
    ],
)
def test_a_reference_that_leads_nowhere_is_refused_with_what_was_meant(value: object, words: str) -> None:
    found = refused_parameters(queue(Environment={"A": value}), queue("dead"))
    assert found.keys() == {"Environment.A"}
    assert words in found["Environment.A"]


def test_literals_are_no_references() -> None:
    texts = ["${NAME}", "${aws:username}", "$${dead.Arn}", "$dead.Arn", "{dead.Arn}", "${AWS::Region}"]
    found = accepted(queue(Environment={str(at): text for at, text in enumerate(texts)}))
    assert found.components[0].dependencies == []
    assert filled(texts[2], lambda _: "never") == "${dead.Arn}"


def test_no_reference_stands_in_a_key_or_in_a_link() -> None:
    found = refused_parameters(queue(Environment={"${dead.Arn}": "x"}), queue("dead"))
    assert "no reference may stand in it" in found["Environment"]
    linked = {**queue(), "links": [{"target": "dead", "settings": {"to": "${dead.Arn}"}}]}
    assert "links take none" in refused(linked, queue("dead"))["components[jobs].links[0].settings.to"]


def test_a_circle_of_references_is_named() -> None:
    one = queue("a", RedrivePolicy={"deadLetterTargetArn": "${b.Arn}"})
    other = queue("b", RedrivePolicy={"deadLetterTargetArn": "${a.Arn}"})
    assert "a → b → a" in refused(one, other)["components[a].dependencies"]


def test_a_components_id_where_the_vendors_own_must_stand_is_refused_with_the_reference() -> None:
    found = refused_parameters(queue(RedrivePolicy={"deadLetterTargetArn": "dead"}), queue("dead"))
    assert "'dead' is a component here: refer to one of its outputs" in found["RedrivePolicy.deadLetterTargetArn"]


def test_a_lookup_is_a_list_of_what_exists() -> None:
    lookup = {"$find": {"type": toys.QUEUE, "tags": {"tier": "private"}, "where": {"Fifo": True}, "output": "Arn"}}
    assert accepted(queue(Entries=lookup)).components[0].parameters["Entries"] == lookup
    assert accepted(queue(Environment={"A": lookup})).components


# --- identity


def test_what_makes_the_identity_is_known_before_anything_is_resolved() -> None:
    found = refused_parameters(queue(QueueName="x-${dead.Arn}", region={"$output": "dead.region"}), queue("dead"))
    assert "by which it is found again: write it in full" in found["QueueName"]
    assert "says where the resource is" in found["region"]


def test_one_thing_by_both_names_of_its_type_is_refused() -> None:
    found = refused(queue("one", QueueName="x"), part("two", OWN_QUEUE, region="north", name="x"))
    assert "by another name of its type" in found["components[two]"]
    assert accepted(queue("one", QueueName="x"), part("two", OWN_QUEUE, region="south", name="x")).components


def test_a_place_is_inherited_where_all_that_is_referred_to_is_in_one() -> None:
    bare = {"id": "a", "type": toys.ALARM, "parameters": {"QueueArn": "${b.Arn}"}}
    assert accepted(bare, queue("b")).components
    several = {**bare, "parameters": {"QueueArn": "${b.Arn}${c.Arn}"}}
    assert "say where it is" in refused_parameters(several, queue("b"), queue("c", region="south"))["region"]


# --- parts, and what is created once


@pytest.mark.rule("S25")
def test_a_part_names_what_it_belongs_to_by_a_reference() -> None:
    table = part("main", TABLE, region="north")
    assert accepted(part("way", ROUTE, RouteTable="${main.TableId}", Cidr="${jobs.Arn}"), table, queue()).components
    for value, words in (
        ("tbl-123", f"declare the {TABLE} in this LiveSystem"),
        ("${jobs.Arn}", f"must be one of type {TABLE}"),
        (None, "is missing"),
    ):
        found = refused_parameters(part("way", ROUTE, RouteTable=value, Cidr="0.0.0.0/0"), table, queue())
        assert words in found["RouteTable"]


@pytest.mark.rule("S1b")
def test_create_once_is_refused_where_it_means_nothing() -> None:
    once = {**part("note", NOTE, region="north"), "createOnce": True}
    assert accepted(once).components[0].create_once
    assert "contradicts importOnly" in refused({**once, "importOnly": True})["components[note].createOnce"]
    assert "owned by its tags" in refused({**queue(), "createOnce": True})["components[jobs].createOnce"]
    assert "must be true or false" in refused({**once, "createOnce": 1})["components[note].createOnce"]


# --- any value, and any nonsense


def _errors_of(*components: Json) -> list[InputError]:
    try:
        accepted(*components)
    except DeclarationError as error:
        return error.errors
    return []


NAMES = st.sampled_from(["a", "Id", "k.e/y", "$", "x y", "é"])
TEXTS = st.sampled_from(["", "x", "${dead.Arn}", "a ${dead.Arn} b", "$${", "$${dead.Arn}", "${NAME}", "$", "}"])
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-9, 9) | TEXTS
REFERENCES = st.just({"$output": "dead.Arn"}) | st.builds(lambda: output("dead", "Arn"))
VALUES = st.recursive(
    SCALARS | REFERENCES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)


@given(VALUES)
def test_any_value_goes_through_documents_unchanged(value: Any) -> None:
    dead = declared(toys.QUEUE, "toys", "dead", {"Delay": 1}, {})
    jobs = declared(toys.QUEUE, "toys", "jobs", {"value": value}, {})
    document = json.loads(json.dumps(LiveSystem(id="shop", components=[dead, jobs]).to_json()))
    found = document["components"][1]
    assert found["parameters"] == ({} if value is None else {"value": value})
    assert found["dependencies"] == (["dead"] if any(output_references(value)) else [])


@given(VALUES)
def test_what_is_filled_in_needs_no_filling_and_the_rest_stays(value: Any) -> None:
    done = filled(value, lambda _: "toy:1")
    assert not any(output_references(done)) or "$${" in json.dumps(value)
    if not needs_filling(value):
        assert done == value


NONSENSE = st.recursive(
    SCALARS
    | REFERENCES
    | st.dictionaries(st.sampled_from(["$output", "$find", "$secret", "type", "tags"]), SCALARS, max_size=2)
    | st.just({"$find": {"type": [], "tags": 5, "where": {"a": {"$output": 1}}}}),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.sampled_from(["Id", "Weight"]), inner, max_size=3)
    ),
)


WORDS = ("region", "Delay", "Fifo", "QueueName", "RedrivePolicy", "Entries", "Arn", "Environment", "Password", "Nope")


@given(st.dictionaries(st.sampled_from(WORDS), NONSENSE))
def test_any_nonsense_is_refused_with_a_path_and_never_crashes(parameters: Json) -> None:
    errors = _errors_of({"id": "jobs", "type": toys.QUEUE, "parameters": parameters}, queue("dead"))
    assert all(one.path.startswith("components[jobs]") and one.message for one in errors), errors


def test_a_lookup_is_written_as_in_a_document() -> None:
    made = declared(toys.QUEUE, "toys", "jobs", {"Entries": find(toys.QUEUE, tags={"a": "b"}, output="Arn")}, {})
    assert made.parameters()["Entries"] == {"$find": {"type": toys.QUEUE, "tags": {"a": "b"}, "output": "Arn"}}
