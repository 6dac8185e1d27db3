"""Types of a family: found by their own names, made when they are used, and in no list of what was written by hand."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.component import ComponentError
from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.model.generic_component import GenericComponent, component_class
from fractal_cloud.model.reference import secret
from fractal_cloud.offers.registry import Registry
from tests.families import toys


@pytest.fixture
def registry() -> Registry:
    return Registry([toys])


def _component(registry: Registry, component_type: str, **values: Any) -> GenericComponent:
    made = registry[component_type].component.from_parameters("jobs", values)
    assert isinstance(made, GenericComponent)
    return made


def test_a_type_of_a_family_is_found_by_its_name_and_made_once(registry: Registry) -> None:
    offer = registry[toys.QUEUE]
    assert (offer.type, offer.provider, offer.place) == (toys.QUEUE, "toys", ("region",))
    assert registry.get(toys.QUEUE) is offer
    assert toys.QUEUE in registry
    assert registry[toys.ALARM].type == toys.ALARM
    assert offer.type == toys.QUEUE, "each type has its own"


def test_lists_hold_only_what_was_written_by_hand(registry: Registry) -> None:
    assert registry[toys.QUEUE] is not None
    assert list(registry) == []
    assert registry.of_provider("toys") == []
    assert registry.catalog() == {}


def test_what_no_family_has_is_not_there(registry: Registry) -> None:
    assert registry.get("Toy::Box::Nothing") is None
    assert registry.get("Other::Box::Queue") is None
    with pytest.raises(KeyError):
        registry["Toy::Box::Nothing"]
    family = registry.family_of("Toy::Box::Queu")
    assert family is not None
    assert family.refusal("Toy::Box::Queu") == "is no type of the toy vendor: did you mean 'Toy::Box::Queue'?"
    assert registry.family_of("Other::Box::Queue") is None


def test_families_are_listed_by_provider(registry: Registry) -> None:
    assert registry.families() == [toys.family]
    assert registry.families("toys") == [toys.family]
    assert registry.families("aws") == []
    assert registry.family("toy-types") is toys.family


def test_two_families_of_one_name_are_refused() -> None:
    other = ModuleType("other")
    vars(other)["another"] = toys.ToyTypes()
    with pytest.raises(RegistrationError, match="family 'toy-types' is registered twice"):
        Registry([toys, other])


def test_the_facts_of_an_offer_are_those_it_was_made_of(registry: Registry) -> None:
    facts = registry[toys.QUEUE].facts()
    assert facts == toys.facts_of(toys.QUEUE, toys.SCHEMAS[toys.QUEUE])
    assert TypeFacts.model_validate(facts.to_json()) == facts
    assert (facts.family, facts.nested, facts.named_by) == ("toy-types", True, "QueueName")
    assert registry[toys.ALARM].facts().named_by == "name"


def test_a_component_keeps_the_vendors_names_and_nesting(registry: Registry) -> None:
    values = {"region": "north", "QueueName": "orders", "RedrivePolicy": {"maxReceiveCount": 3}, "Entries": ()}
    made = _component(registry, toys.QUEUE, **values)
    assert made.parameters() == {**values, "Entries": []}
    assert (made.id, made.name, type(made).type) == ("jobs", "orders", toys.QUEUE)


def test_the_name_is_where_the_type_says_it_else_the_id(registry: Registry) -> None:
    assert _component(registry, toys.QUEUE, Delay=1).name == "jobs"
    assert _component(registry, toys.ALARM, name="loud").name == "loud"
    assert _component(registry, toys.ALARM).name == "jobs"


def test_references_are_written_as_they_stand_in_a_document(registry: Registry) -> None:
    made = _component(registry, toys.QUEUE, Environment={"KEY": secret("db-password")})
    assert made.parameters() == {"Environment": {"KEY": {"$secret": "db-password"}}}


def test_what_is_no_json_is_refused_with_what_to_do(registry: Registry) -> None:
    with pytest.raises(ComponentError, match="give text, a number, true or false, a list or an object"):
        _component(registry, toys.QUEUE, Delay=object())
    other = _component(registry, toys.ALARM)
    with pytest.raises(ComponentError, match=r"say which of its fields is meant"):
        _component(registry, toys.QUEUE, QueueName=other)


def test_parameters_may_be_called_like_a_components_own_fields() -> None:
    facts = toys.facts_of(toys.QUEUE, {**toys.SCHEMAS[toys.QUEUE], "name_parameter": "id"})
    values = {"id": "inner", "type": "Opaque", "links": ["a"], "dependencies": {"x": 1}, "values": 2}
    made = component_class(facts)(id="outer", values=values)
    assert (made.id, made.name) == ("outer", "inner")
    assert made.parameters() == values
