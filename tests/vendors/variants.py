"""Makes other resources out of one answer, such as the vendor's schema allows: what a reader must bear.

The answer of the sandbox is the seed, so that names, ids and owners stay and readers come as far as they can; every
choice comes from one ``random.Random``. What readers make of it does not belong here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Literal, get_args

Way = Literal["required", "some", "all", "enums", "extra", "nulls"]
WAYS: tuple[Way, ...] = get_args(Way)
"""Required fields only; some optional ones missing; all there; values nobody knew; fields nobody knew; nulls."""

DEPTH = 4
CURSORS = frozenset(
    {
        "continue",
        "nexttoken",
        "nextlink",
        "nextpagetoken",
        "paginationtoken",
        "marker",
        "continuationtoken",
        "bucketregion",
        "token",
        "missingset",
    }
)
"""Where to ask next, and what could not be read: nobody but the cloud can make that up."""
TEXTS = {
    "2026-01-02T03:04:05.678Z": re.compile(r"T"),
    "7": re.compile(r"\[0-9\]|\\d"),
}


class Variants:
    """Variants of values of one table's schemas."""

    def __init__(self, schemas: Mapping[str, Any], way: Way, random: Random) -> None:
        self._schemas = schemas
        self._way = way
        self._random = random

    def of(self, schema: Mapping[str, Any], value: Any, *, is_envelope: bool) -> Any:
        """Return another value of the schema. ``is_envelope``: what stands around resources stays as it is."""
        return self._of(schema, value, 0 if is_envelope else 1)

    def _of(self, schema: Mapping[str, Any], value: Any, depth: int) -> Any:
        schema = self._form(schema, value)
        if isinstance(value, dict):
            return self._object(schema, value, depth)
        if isinstance(value, list):
            return [self._of(schema.get("items", {}), one, depth) for one in value]
        if self._way == "enums" and "enum" in schema and isinstance(value, str) and not schema.get("isName"):
            return f"{value}New"
        return value

    def _object(self, schema: Mapping[str, Any], value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        fields, required = schema.get("properties", {}), {*schema.get("required", ()), *schema.get("always", ())}
        others = schema.get("additionalProperties")
        made: dict[str, Any] = {}
        for name, one in value.items():
            inner = fields.get(name, others if isinstance(others, dict) else {})
            is_optional = name in fields and name not in required and depth > 0
            if is_optional and (self._way == "required" or (self._way == "some" and self._random.random() < 0.3)):
                continue
            if is_optional and self._way == "nulls" and self._random.random() < 0.3:
                made[name] = None
                continue
            made[name] = self._of(inner, one, depth + 1)
        if "always" in schema:
            return made  # a choice of properties: there is no more of it than was asked for
        if self._way == "all" and depth > 0:
            for name, one in _answered(schema):
                if name not in made and name.lower() not in CURSORS and (found := self._made(one, 0)) is not None:
                    made[name] = found
        if self._way == "extra" and fields:
            made["somethingNew"] = {"a": [1, None, {"b": "c"}]}
        order = {name: at for at, name in enumerate(schema.get("order", ()))}
        return dict(sorted(made.items(), key=lambda pair: order.get(pair[0], len(order)))) if order else made

    def _made(self, schema: Mapping[str, Any], depth: int) -> Any:
        """A new value; None where none can be made."""
        schema = self._form(schema, None)
        if "const" in schema or "enum" in schema:
            return schema.get("const", self._random.choice(schema.get("enum") or [None]))
        kind = schema.get("type")
        kind = self._random.choice([one for one in kind if one != "null"]) if isinstance(kind, list) else kind
        if kind == "object":
            return self._made_object(schema, depth)
        if kind == "array":
            one = self._made(schema.get("items", {}), depth + 1) if depth < DEPTH else None
            return [] if one is None else [one]
        if kind == "string":
            return self._text(schema)
        return {"integer": schema.get("minimum", 1), "number": 1.5, "boolean": True}.get(str(kind))

    def _made_object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any] | None:
        if depth >= DEPTH:
            return None
        made = {name: self._made(one, depth + 1) for name, one in _answered(schema)}
        if any(made.get(name) is None for name in schema.get("required", ())):
            return None
        return {name: one for name, one in made.items() if one is not None}

    def _text(self, schema: Mapping[str, Any]) -> str | None:
        pattern = schema.get("pattern")
        if pattern is None:
            return "x" * max(3, schema.get("minLength", 0)) if schema.get("maxLength", 3) >= 3 else "x"
        return next((text for text in TEXTS if re.search(pattern, text)), None)

    def _form(self, schema: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
        """The form of a schema that a value has; without a value, any."""
        for _ in range(20):
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].removeprefix("#/$defs/")]
            elif "ofType" in schema:
                name = value.get("@type") if isinstance(value, dict) else None
                schema = self._schemas.get(name or schema["ofType"], {})
            elif "allOf" in schema:
                schema = schema["allOf"][0]
            elif "anyOf" in schema:
                schema = self._chosen(schema["anyOf"], value)
            else:
                break
        return schema

    def _chosen(self, forms: list[Mapping[str, Any]], value: Any) -> Mapping[str, Any]:
        flat = [self._form(one, value) for one in forms]
        fitting = [one for one in flat if _fits(one, value)] if value is not None else flat
        best = sorted(fitting, key=lambda one: -len(set(one.get("properties", ())) & _names(value)))
        real = [one for one in best if one.get("type") != "null"]
        return (real or best or [{}])[0]


def _answered(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields that may be answered to a client of the oldest version."""
    newer = schema.get("newer", ())
    yield from ((name, one) for name, one in schema.get("properties", {}).items() if name not in newer)


def _names(value: Any) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def _fits(schema: Mapping[str, Any], value: Any) -> bool:
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": float, "boolean": bool}
    wanted = schema.get("type", [])
    names = wanted if isinstance(wanted, list) else [wanted]
    return not names or any(isinstance(value, kinds[name]) for name in names if name in kinds)


def text_of(value: Any) -> str:
    """A value as one line, to count how many different ones there were."""
    return json.dumps(value, sort_keys=True, default=str)
