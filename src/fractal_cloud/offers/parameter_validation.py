"""Whether declared parameters are what their component type asks for.

Every type is checked with its JSON Schema, because that is all that is known of a type which only an agent has. A type
installed here is checked with its class as well, which knows more than a schema can say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError as SchemaError

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.component import Component, ComponentError
from fractal_cloud.model.wording import (
    Path,
    is_hidden,
    listed,
    mismatch,
    missing,
    resolve,
    schema_at,
    unknown,
    unquoted,
)
from fractal_cloud.offers.registry import installed
from fractal_cloud.offers.schema_validator import SchemaValidator

Found = tuple[Path, str]


class SchemaCheck:
    """Checks values against one JSON Schema, in our own words. ``called``: what its properties are, in messages."""

    def __init__(self, schema: dict[str, Any], called: str) -> None:
        self._schema = schema
        self._called = called
        self._validator = SchemaValidator(schema)

    def schema_errors(self, values: Mapping[str, Any]) -> dict[Path, str]:
        """Everything that is wrong, by path; one message per path."""
        found: dict[Path, str] = {}
        for path, message in self._by_schema(self._validator.errors(values)):
            found.setdefault(path, message)
        return found

    def _by_schema(self, errors: Iterable[SchemaError]) -> Iterator[Found]:
        for error in errors:
            yield from self._one(error)

    def _one(self, error: SchemaError) -> Iterator[Found]:
        path: Path = tuple(error.absolute_path)
        schema: Any = error.schema
        instance: Any = error.instance
        if not isinstance(schema, Mapping):
            yield path, "cannot stand here: take it out"
        elif error.validator == "required":
            for name in schema["required"]:
                if name not in instance:
                    yield (*path, name), missing(schema_at((*path, name), self._schema), self._schema)
        elif error.validator == "additionalProperties" and schema.get("properties"):
            known = schema["properties"]
            for name in instance:
                if name not in known:
                    yield (*path, name), unknown(self._called, name, known)
        elif error.validator in ("anyOf", "oneOf") and (inner := self._meant(error)):
            yield from self._by_schema(inner)
        elif error.validator in ("anyOf", "oneOf") and (choice := _choice(error, schema)):
            yield path, choice
        elif error.validator == "uniqueItems":
            yield path, "holds the same entry twice: keep one of them"
        elif is_hidden(path, self._schema):
            yield path, unquoted(resolve(schema, self._schema), self._schema)
        else:
            yield path, mismatch(instance, resolve(schema, self._schema), self._schema)

    @staticmethod
    def _meant(error: SchemaError) -> list[SchemaError]:
        """The errors of the one option whose kind fits the value, or none where no single one does."""
        by_option: dict[Any, list[SchemaError]] = {}
        for inner in error.context or []:
            by_option.setdefault(inner.schema_path[0], []).append(inner)
        fitting = [
            inners
            for inners in by_option.values()
            if not any(inner.validator == "type" and not inner.relative_path for inner in inners)
        ]
        return fitting[0] if len(fitting) == 1 else []


def _choice(error: SchemaError, schema: Mapping[str, Any]) -> str:
    """The message where the options are which properties are given; empty where they are something else."""
    options = schema[str(error.validator)]
    needed = [option.get("required") for option in options if isinstance(option, Mapping)]
    if len(needed) != len(options) or not all(needed):
        return ""
    choice = listed(" with ".join(names) for names in needed if names)
    many = error.validator == "oneOf" and not error.context
    return (
        f"has more than one of what excludes each other: give only one of {choice}"
        if many
        else (f"lacks what one of its forms needs: give one of {choice}")
    )


class ParameterCheck(SchemaCheck):
    """Checks parameters of one component type; made once per type and catalog."""

    def __init__(self, facts: TypeFacts) -> None:
        super().__init__(facts.parameter_schema, "parameter of this type")
        # What belongs to a family has no class that would know more than its schema says.
        offer = None if facts.family else installed().get(facts.type)
        self._class: type[Component] | None = None if offer is None else offer.component

    def errors(self, component_id: str, parameters: Mapping[str, Any]) -> list[Found]:
        """Everything that is wrong, by path; at most one message per path."""
        found = self.schema_errors(parameters)
        if self._class is not None:
            for path, message in _by_class(self._class, component_id, parameters):
                found.setdefault(path, message)
        return list(found.items())


def _by_class(cls: type[Component], component_id: str, parameters: Mapping[str, Any]) -> list[Found]:
    try:
        cls.from_parameters(component_id, parameters)
    except ComponentError as error:
        return error.found
    return []
