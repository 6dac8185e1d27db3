"""AWS's table, from botocore, which the project's own environment has: parameters and answers as its clients see them.

Paths and wire formats are left to botocore, which writes the product's requests and reads its answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from botocore.loaders import Loader
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StringShape, StructureShape

from tests.vendors.tables.form import Operation, Schema, operation, ref, table

SCALARS: dict[str, Schema] = {
    "string": {"type": "string"},
    "character": {"type": "string"},
    "blob": {"type": "string"},
    "timestamp": {"type": "string"},
    "integer": {"type": "integer"},
    "long": {"type": "integer"},
    "float": {"type": "number"},
    "double": {"type": "number"},
    "bigdecimal": {"type": "number"},
    "boolean": {"type": "boolean"},
}

ERRORS: dict[str, Schema] = {
    "Error": {
        "type": "object",
        "required": ["Error"],
        "properties": {
            "Error": {
                "type": "object",
                "required": ["Code"],
                "properties": {"Code": {"type": "string", "minLength": 1}, "Message": {"type": "string"}},
            }
        },
    }
}
"""What botocore makes of every refusal."""


def model_of(service: str) -> ServiceModel:
    """Return botocore's model of a service."""
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


def make(services: Iterable[str]) -> dict[str, Any]:
    """Return the table of some services, of which botocore has hundreds; an operation's path is its name."""
    operations: list[Operation] = []
    schemas: dict[str, Schema] = {}
    for service in services:
        model = model_of(service)
        for name in model.operation_names:
            one = model.operation_model(name)
            operations.append(
                operation(
                    f"{service}.{name}",
                    "POST",
                    f"/{service}.{name}",
                    body=_form(one.input_shape, service, schemas, strict=True)
                    if one.input_shape
                    else {"maxProperties": 0},
                    answers={"200": _form(one.output_shape, service, schemas) if one.output_shape else None},
                )
            )
    return table(operations, schemas | ERRORS, errors=ref("Error"))


def _form(shape: Shape, service: str, schemas: dict[str, Schema], *, strict: bool = False) -> Schema:
    side = "in" if strict else "out"
    if isinstance(shape, StructureShape):
        name = f"{service}.{side}.{shape.name}"
        if name not in schemas:
            schemas[name] = {}
            schemas[name] = _structure(shape, service, schemas, strict=strict)
        return ref(name)
    if isinstance(shape, ListShape):
        return {
            "type": "array",
            "items": _form(shape.member, service, schemas, strict=strict),
            **_limits(shape, "Items"),
        }
    if isinstance(shape, MapShape):
        return {"type": "object", "additionalProperties": _form(shape.value, service, schemas, strict=strict)}
    found = dict(SCALARS[shape.type_name])
    if isinstance(shape, StringShape) and shape.enum:
        found["enum"] = list(shape.enum)
    if shape.type_name == "string":
        found |= _limits(shape, "Length")
        pattern = shape.metadata.get("pattern")
        if pattern and strict:
            found["pattern"] = f"^(?:{_translated(pattern)})$"
    elif strict and found["type"] in ("integer", "number"):
        found |= {f"{end}imum": shape.metadata[end] for end in ("min", "max") if end in shape.metadata}
    return found


def _translated(pattern: str) -> str:
    """A pattern in Python's words, which have no classes of Unicode."""
    for theirs, ours in {r"\p{L}": "A-Za-zÀ-ɏ", r"\p{Z}": " ", r"\p{N}": "0-9"}.items():
        pattern = pattern.replace(theirs, ours)
    return pattern


def _limits(shape: Shape, what: str) -> Schema:
    return {f"{end}{what}": shape.metadata[end] for end in ("min", "max") if end in shape.metadata}


def _structure(shape: StructureShape, service: str, schemas: dict[str, Schema], *, strict: bool) -> Schema:
    return {
        "type": "object",
        "properties": {key: _form(one, service, schemas, strict=strict) for key, one in shape.members.items()},
        "required": list(shape.required_members),
        "additionalProperties": False,
    }
