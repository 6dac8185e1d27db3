"""A component type that makes no sense in itself is found out before anybody declares with it."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.type_validation import type_errors

NET = TypeFacts(
    type="Test.Net",
    provider="test",
    title="Net",
    parameter_schema={"type": "object", "properties": {"region": {"type": "string"}}},
    outputs={"netId": "its id"},
    place=["region"],
)


def _sub(reference: Any, **more: Any) -> TypeFacts:
    properties = {"net": {"type": "string", "x-fractal": {"reference": reference}}}
    values = {"type": "Test.Sub", "provider": "test", "title": "Sub", "parent": "net", "place": ["region"]}
    return TypeFacts(**{**values, "parameter_schema": {"type": "object", "properties": properties}, **more})


GOOD = {"type": "Test.Net", "output": "netId"}
SCHEMA = "types[Test.Net].parameterSchema"


def _net(**more: Any) -> TypeFacts:
    return NET.model_copy(update=more)


def _with(**parameters: Any) -> TypeFacts:
    return _net(parameter_schema={"type": "object", "properties": {"region": {"type": "string"}, **parameters}})


@pytest.mark.rule("L16")
def test_every_installed_type_is_sound() -> None:
    assert type_errors([offer.facts() for offer in installed()], {}) == []


@pytest.mark.rule("L16")
@pytest.mark.parametrize(
    ("reason", "brought", "path", "words"),
    [
        ("a kind of value there is none of", _with(a={"type": "strnig"}), f"{SCHEMA}.properties.a.type", "'strnig'"),
        ("a pattern nobody can match", _with(a={"pattern": "("}), f"{SCHEMA}.properties.a.pattern", "'('"),
        ("no map of parameters", _net(parameter_schema={"properties": []}), f"{SCHEMA}.properties", "JSON Schema"),
        ("a parameter without a description", _with(a=True), f"{SCHEMA}.properties.a", "is true"),
        ("a schema elsewhere", _with(a={"$ref": "http://elsewhere/x"}), SCHEMA, "'http://elsewhere/x'"),
        ("a definition that is missing", _with(a={"$ref": "#/$defs/A"}), SCHEMA, "'#/$defs/A'"),
        ("a place nobody can declare", _net(place=["zone"]), "types[Test.Net].place", "'zone'"),
        ("a parent that is no parameter", _sub(GOOD, parent="vpc"), "types[Test.Sub].parent", "'vpc'"),
        ("a parent that leads nowhere", _net(parent="region"), "types[Test.Net].parent", "'region'"),
        (
            "an output its target lacks",
            _sub({"type": "Test.Net", "output": "id"}),
            "types[Test.Sub].parameterSchema.properties.net",
            "'id' of Test.Net, which has netId",
        ),
        (
            "half a reference",
            _sub({"type": "Test.Net"}),
            "types[Test.Sub].parameterSchema.properties.net.x-fractal",
            "type and an output",
        ),
    ],
)
def test_a_type_that_contradicts_itself_is_named_with_its_fault(
    reason: str, brought: TypeFacts, path: str, words: str
) -> None:
    (fault,) = type_errors([brought], {NET.type: NET})
    assert fault.path == path, reason
    assert words in fault.message, reason


@pytest.mark.rule("L16")
def test_a_type_brought_twice_is_refused() -> None:
    assert [fault.path for fault in type_errors([NET, NET], {})] == ["types[Test.Net]"]


@pytest.mark.rule("L16")
def test_a_reference_to_a_type_that_another_agent_may_bring_is_let_through() -> None:
    assert type_errors([_sub({"type": "Elsewhere.Net", "output": "netId"})], {}) == []
    assert type_errors([_sub(GOOD), NET], {}) == []
