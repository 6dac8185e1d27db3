"""The part of an actual value that its parameter's schema knows: a cloud may return fields that are newer. Pure.

Only where a schema is closed is something left out: of open maps every entry counts, and what no schema describes stays
as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["known_fields"]

Schema = Mapping[str, Any]


def known_fields(schema: Schema, definitions: Schema, value: Any) -> Any:
    """Return the value without fields that the schema has no name for, at any depth."""
    if not isinstance(value, Mapping | list):
        return value
    form = _form(schema, definitions, value)
    if isinstance(value, list):
        return [known_fields(form.get("items") or {}, definitions, one) for one in value]
    fields, others = form.get("properties") or {}, form.get("additionalProperties")
    of_others = others if isinstance(others, Mapping) else {}
    return {
        name: known_fields(fields.get(name, of_others), definitions, one)
        for name, one in value.items()
        if name in fields or others is not False
    }


def _form(schema: Schema, definitions: Schema, value: Any) -> Schema:
    """The alternative that describes a value of this kind; an empty one where none or several do."""
    while "$ref" in schema:
        schema = definitions.get(str(schema["$ref"]).rpartition("/")[2]) or {}
    alternatives = schema.get("anyOf") or schema.get("oneOf")
    if not alternatives:
        return schema
    kind = "array" if isinstance(value, list) else "object"
    fitting = [found for one in alternatives if (found := _form(one, definitions, value)).get("type") == kind]
    return fitting[0] if len(fitting) == 1 else {}
