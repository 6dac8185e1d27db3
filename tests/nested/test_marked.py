"""Finding marked places in a schema that contains itself: its paths are without number, its shapes are few."""

from __future__ import annotations

from typing import Any

from fractal_cloud.offers.kubernetes.any_kind import catalogue
from fractal_cloud.offers.kubernetes.any_kind.facts import facts_of
from fractal_cloud.rules.nested.path import written
from fractal_cloud.rules.nested.shape import Shape, marked, shape_of


def test_a_schema_of_schemas_is_searched_shape_by_shape_and_not_path_by_path() -> None:
    kind = catalogue.find("apiextensions.k8s.io/v1/CustomResourceDefinition")
    assert kind is not None
    asked = []

    def is_secret(shape: Shape) -> bool:
        asked.append(shape)
        return bool(shape.marks.get("secret"))

    assert list(marked(shape_of(facts_of(kind).parameter_schema), is_secret)) == []
    assert len(asked) < 1_000


def test_what_lies_below_a_schema_that_contains_itself_is_found_once_on_each_way_that_does_not_repeat() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/tree"}, "key": {"type": "string", "x-fractal": {"secret": True}}},
    }
    schema = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}}
    found = [written(path) for path in marked(shape_of(schema), lambda shape: bool(shape.marks.get("secret")))]
    assert found == ["tree.next.key", "tree.key"]
