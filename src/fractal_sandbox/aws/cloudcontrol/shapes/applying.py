"""Applies the table of shapes to the properties of a resource, by its schema and by chance.

The same seed gives the same shapes for the same resource, so that two reads in a row agree. Purely computational.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.paths import Path
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema
from fractal_sandbox.aws.cloudcontrol.shapes.policies import encoded, is_policy, policy, shuffled
from fractal_sandbox.aws.cloudcontrol.shapes.table import (
    CONCRETE_VERSIONS,
    DEFAULTS,
    DOTTED,
    FILLED_LISTS,
    IN_ORDER,
    LEFT_OUT_DEFAULTS,
    LOWERED,
    NAMES_TO_ARNS,
    Names,
    ShapeName,
)

__all__ = ["reshaped"]

_KEY_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mrk-[0-9a-f]{32}")
_LOG_GROUP: Final = re.compile(r"(arn:[^:]+:logs:[^:]*:\d*:log-group:.+):\*")
_DOCUMENT: Final = re.compile(r"(Polic(y|ies)|Document|Definition|Template|Body)$")
_MISSING: Final = object()


@dataclass(frozen=True)
class _Reader:
    """What reads one resource: its schema, where it is, and the chance that decides."""

    schema: TypeSchema
    region: str
    chance: Random
    only: Collection[str]

    def has(self, shape: str) -> bool:
        """Return whether a shape is to be applied, by chance where it is among those wanted."""
        return (not self.only or shape in self.only) and self.chance.random() < 0.8

    def names(self, table: Names, path: Path) -> bool:
        """Return whether a table names a property of this type."""
        return ".".join(name for name in path if name != "*") in table.get(self.schema.name, ())


def reshaped(
    schema: TypeSchema,
    identifier: str,
    model: dict[str, Any],
    region: str,
    seed: int | None,
    only: Collection[str] = (),
) -> dict[str, Any]:
    """Return properties as AWS might return them; as they were written where no seed is set.

    `only`: the names of the shapes to apply; all where it is empty. What is read only is left as it is.
    """
    if seed is None:
        return model
    reader = _Reader(schema, region, Random(f"{seed} {identifier}"), only)  # noqa: S311  # shapes are no secrets
    fixed = {path[0] for path in schema.read_only if len(path) == 1}
    changeable = {name: value for name, value in model.items() if name not in fixed}
    found = _object(reader, changeable, {"properties": schema.properties}, ())
    for name, value in DEFAULTS.get(schema.name, {}).items():
        if name not in found and reader.has("default-filled"):
            found[name] = value
    for name, value in LEFT_OUT_DEFAULTS.get(schema.name, {}).items():
        if found.get(name, _MISSING) == value and reader.has("default-left-out"):
            del found[name]
    tags = schema.tag_property
    if tags and tags not in found and schema.tag_names is not None and reader.has("empty-list"):
        found[tags] = []
    if isinstance(found.get(tags), str):  # a free form may come back as text; of tags nobody has reported that
        found[tags] = model[tags]
    return {**found, **{name: value for name, value in model.items() if name in fixed}}


def _value(reader: _Reader, value: Any, schema: Mapping[str, Any], path: Path) -> Any:
    schema = reader.schema.resolved(schema)
    document = _document(reader, value, schema, path)
    if document is not _MISSING:
        return document
    if isinstance(value, dict):
        return _object(reader, value, schema, path)
    if isinstance(value, list):
        return _list(reader, value, schema, path)
    if isinstance(value, str):
        return _text(reader, value, schema, path)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and "string" not in _types(schema) and reader.has("number-as-text"):
        return str(value)
    return value


def _object(reader: _Reader, value: dict[str, Any], schema: Mapping[str, Any], path: Path) -> dict[str, Any]:
    known = _properties(reader, schema)
    required = schema.get("required") or ()
    found: dict[str, Any] = {}
    for name, inner in value.items():
        at = reader.schema.resolved(known.get(name) or _pattern(schema))
        is_default = "default" in at and at["default"] == inner and type(at["default"]) is type(inner)
        if is_default and name not in required and reader.has("default-left-out"):
            continue
        if inner == [] and name not in required and reader.has("empty-list"):
            continue
        found[name] = _value(reader, inner, at, (*path, name))
    for name, inner in known.items():
        at = reader.schema.resolved(inner)
        is_unseen = (*path, name) in {*reader.schema.write_only, *reader.schema.read_only}
        if name not in value and "default" in at and not is_unseen and reader.has("default-filled"):
            found[name] = at["default"]
    return found


def _list(reader: _Reader, value: list[Any], schema: Mapping[str, Any], path: Path) -> list[Any]:
    items = schema.get("items")
    found = [_value(reader, one, items if isinstance(items, dict) else {}, (*path, "*")) for one in value]
    more = FILLED_LISTS.get(reader.schema.name, {}).get(".".join(path))
    if more is not None and reader.has("more-entries"):
        key = next(iter(more))
        if all(one.get(key) != more[key] for one in value if isinstance(one, dict)):
            found.append(dict(more))
    is_set = schema.get("insertionOrder") is False or path == (reader.schema.tag_property,)
    if is_set and not reader.names(IN_ORDER, path) and reader.has("reordered"):
        return reader.chance.sample(found, len(found))
    return found


def _text(reader: _Reader, value: str, schema: Mapping[str, Any], path: Path) -> str:
    for shape, write in _OF_TEXT.items():
        changed = write(reader, value, schema, path)
        if changed != value and reader.has(shape):
            value = changed
    return value


def _cased(reader: _Reader, value: str, schema: Mapping[str, Any], path: Path) -> str:
    if reader.names(LOWERED, path):
        return value.lower()
    return reader.chance.choice([value.lower(), value.upper()]) if "enumCaseInsensitive" in schema else value


def _as_arn(reader: _Reader, value: str, schema: Mapping[str, Any], path: Path) -> str:
    account = accounts.current()
    formats = {one.get("format") for one in (schema, *(schema.get("anyOf") or ())) if isinstance(one, dict)}
    if "AWS::KMS::Key.Id" in formats and "AWS::KMS::Key.Arn" in formats and _KEY_ID.fullmatch(value):
        return f"arn:aws:kms:{reader.region}:{account}:key/{value}"
    form = NAMES_TO_ARNS.get(reader.schema.name, {}).get(".".join(path))
    if form is None or not value or value.startswith("arn:"):
        return value
    return form.format(region=reader.region, account=account, name=value)


def _without_star(_: _Reader, value: str, __: Mapping[str, Any], ___: Path) -> str:
    return _LOG_GROUP.sub(r"\1", value)


def _dotted(reader: _Reader, value: str, _: Mapping[str, Any], path: Path) -> str:
    return f"{value}." if reader.names(DOTTED, path) and value and not value.endswith(".") else value


def _whole_version(reader: _Reader, value: str, _: Mapping[str, Any], path: Path) -> str:
    return f"{value}.4" if reader.names(CONCRETE_VERSIONS, path) and re.fullmatch(r"\d+(\.\d+)?", value) else value


_OF_TEXT: Final[dict[ShapeName, Callable[[_Reader, str, Mapping[str, Any], Path], str]]] = {
    "case": _cased,
    "arn-for-name": _as_arn,
    "log-group-arn": _without_star,
    "trailing-dot": _dotted,
    "concrete-version": _whole_version,
}


def _document(reader: _Reader, value: Any, schema: Mapping[str, Any], path: Path) -> Any:
    """Return a JSON document as it comes back; nothing where this is none."""
    types = _types(schema)
    may_be_both = {"object", "string"} <= set(types) or schema.get("format") == "json"
    is_named_so = isinstance(value, str) and bool(path) and _DOCUMENT.search(path[-1]) is not None
    written = _parsed(value) if isinstance(value, str) and (may_be_both or is_named_so) else value
    if not isinstance(written, dict | list) or not (may_be_both or is_named_so or is_policy(written)):
        return _MISSING
    is_statement = isinstance(written, dict) and is_policy(written)
    content = policy(written, reader.chance, reader.has) if is_statement else written
    if not reader.has("json-encoding"):
        return value if content == written else json.dumps(content) if isinstance(value, str) else content
    content = shuffled(content, reader.chance)
    may_be_object = isinstance(value, dict | list) or "object" in types
    if not may_be_object or ("string" in types and reader.chance.random() < 0.5):
        return encoded(content, reader.chance)
    return content


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type")
    return [str(one) for one in types] if isinstance(types, list) else [str(types)] if types else []


def _properties(reader: _Reader, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an object, those of its alternatives too."""
    found: dict[str, Any] = {}
    for kind in ("oneOf", "anyOf", "allOf"):
        for one in schema.get(kind) or ():
            if isinstance(one, dict):
                found |= reader.schema.resolved(one).get("properties") or {}
    return {**found, **(schema.get("properties") or {})}


def _pattern(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a map's values."""
    patterns = schema.get("patternProperties") or {}
    inner = next(iter(patterns.values()), None) or schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else {}
