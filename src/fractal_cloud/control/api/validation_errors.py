"""What is wrong with a request that FastAPI refused: where, in the product's own words, and what to send instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from fractal_cloud.model.errors import InputError
from fractal_cloud.model.wording import Path, Schema, mismatch, missing, resolve, schema_at, shown, unknown

BODY: Final = "body"
AS_JSON: Final = "with Content-Type: application/json"
_WHERE: Final = (BODY, "query", "path", "header")


def errors_of(error: RequestValidationError, wanted: type[BaseModel] | None, content_type: str) -> list[InputError]:
    """Every error, one per path; ``wanted`` is the model of the route's body, if it has one."""
    found: dict[str, InputError] = {}
    for item in error.errors():
        described = _described(item, error.body, wanted, content_type)
        found.setdefault(described.path, described)
    return list(found.values())


def _described(item: Mapping[str, Any], body: object, wanted: type[BaseModel] | None, content_type: str) -> InputError:
    location: Path = tuple(item["loc"])
    if wanted is None or location[:1] != (BODY,):
        return InputError(path_of(location), str(item["msg"]))
    schema = _schema(wanted)
    if item["type"] == "json_invalid":
        return InputError(BODY, f"is not JSON: {item['ctx']['error']}: send {_asked_for(schema)}")
    if location != (BODY,):
        return InputError(path_of(location), _message(item, location[1:], schema))
    if isinstance(body, bytes):
        came = f"came as {shown(content_type)}" if content_type else "came without a Content-Type"
        return InputError(BODY, f"{came}: send {_asked_for(schema)}")
    what = "is missing" if item["type"] == "missing" else f"is {shown(body)}"
    return InputError(BODY, f"{what}: send {_asked_for(schema)}")


def _message(item: Mapping[str, Any], path: Path, schema: Schema) -> str:
    part = schema_at(path, schema)
    if item["type"] == "extra_forbidden":
        known = resolve(schema_at(path[:-1], schema), schema).get("properties", {})
        return unknown("field", str(path[-1]), known)
    if not part or item["type"] in ("value_error", "assertion_error"):
        return str(item["msg"])
    return missing(part, schema) if item["type"] == "missing" else mismatch(item["input"], part, schema)


@cache
def _schema(wanted: type[BaseModel]) -> Schema:
    return wanted.model_json_schema(by_alias=True)


def _asked_for(schema: Schema) -> str:
    """What the body must be: the fields that it must have, and those that it may."""
    required = schema.get("required", [])
    optional = [name for name in schema.get("properties", {}) if name not in required]
    fields = ", ".join(required) + (f" (and if you like {', '.join(optional)})" if optional else "")
    return f"a JSON object {f'with {fields}, ' if required else ''}{AS_JSON}"


def path_of(location: Sequence[int | str]) -> str:
    """Where an error is, spelled as in declarations: ``scopes[0].changes[3].uid``."""
    words = location[1:] if location and location[0] in _WHERE else location
    path = "".join(f"[{word}]" if isinstance(word, int) else f".{word}" for word in words)
    return path.removeprefix(".")
