"""What is wrong with a value, in the product's own words, whichever library found it.

The words come from the JSON Schema of what was expected, so that a declaration in Python, in YAML and one checked at
the control plane get the same message. What is expected is not decided here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from fractal_cloud.model.errors import InputError

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]

FACTS: Final = "x-fractal"
"""Where in a parameter's schema stands what the reconciler must know of it."""

HIDING: Final = ("secret", "sensitive", "holdsSecrets")
"""The facts of a parameter that may hold a secret (see ``parameter``)."""

_SHOWN: Final = 60
_SOMETHING: Final = "something else"
_LISTED: Final = 12
_BOUNDS: Final = {
    "minimum": "of at least",
    "maximum": "of at most",
    "exclusiveMinimum": "above",
    "exclusiveMaximum": "below",
}
_NUMBERS: Final = {"integer": "a whole number", "number": "a number"}


def shown(value: object) -> str:
    """A value as it is quoted in a message: short, on one line, as JSON would have it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        text = repr(value)
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    if isinstance(value, str):
        return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
    if isinstance(value, Mapping):
        return "an object" if value else "an empty object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    return f"a {type(value).__name__}"


def listed(names: Iterable[str]) -> str:
    """Names one after the other; of many only the first."""
    every = list(names)
    return ", ".join(every[:_LISTED]) + (", …" if len(every) > _LISTED else "")


def counted(many: int, word: str) -> str:
    """A number of things: «1 error», «2 errors»."""
    return f"{many} {word}{'' if many == 1 else 's'}"


def closest(word: str, options: Iterable[str]) -> str | None:
    """The option that was most likely meant; the last word of a dotted name is enough to recognise it."""
    by_form: dict[str, str] = {}
    for option in options:
        by_form.setdefault(_form(option.rpartition(".")[2]), option)
        by_form[_form(option)] = option
    close = difflib.get_close_matches(_form(word), by_form, n=1, cutoff=0.7)
    if not close and "." in word:
        close = difflib.get_close_matches(_form(word.rpartition(".")[2]), by_form, n=1, cutoff=0.7)
    return by_form[close[0]] if close else None


def _form(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "")


def unknown(what: str, word: str, options: Iterable[str]) -> str:
    """The message for a word that is none of the options: what was likely meant, else what there is."""
    every = list(options)
    meant = closest(word, every)
    if meant is not None:
        return f"is no {what}: did you mean {meant!r}?"
    return f"is no {what}: there is {listed(every)}" if every else f"is no {what}: there is none, take it away"


def describe(schema: Schema, root: Schema) -> str:
    """What a JSON Schema asks for, in words that follow «must be»."""
    schema = resolve(schema, root)
    reference = schema.get(FACTS, {}).get("reference")
    if schema.get("required") == ["$secret"]:
        return 'a reference like {"$secret": "name"}'
    if reference:
        return ("a list of ids" if schema.get("type") == "array" else "the id") + f" of a {reference['type']}"
    options = [option for option in _options(schema, root) if option.get("type") != "null"]
    choices = [said for option in options if (said := describe(option, root)) != _SOMETHING]
    if choices:
        return " or ".join(dict.fromkeys(choices))
    if "const" in schema:
        return shown(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(shown(value) for value in schema["enum"])
    return _describe_kind(schema, root)


def _describe_kind(schema: Schema, root: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(describe({**schema, "type": one}, root) for one in kind if one != "null") or "null"
    if kind in _NUMBERS:
        return _NUMBERS[kind] + _bounds(schema)
    if kind == "array":
        items = schema.get("items")
        return "a list" + (f", each {describe(items, root)}" if items else "") + _length(schema, "minItems", "maxItems")
    if kind == "object":
        return _describe_object(schema, root)
    if kind == "string" and schema.get("format") == "date-time":
        return "a date and time with its zone like '2026-11-15T12:00:00Z'"
    if kind == "string":
        return "text" + _length(schema, "minLength", "maxLength", "characters") + _form_of(schema)
    if kind is None and schema.get("properties"):
        return _describe_object(schema, root)
    return {"boolean": "true or false", "null": "null"}.get(str(kind), _SOMETHING)


def _form_of(schema: Schema) -> str:
    if schema.get("examples"):
        return " like " + " or ".join(shown(example) for example in schema["examples"])
    return f" that matches {schema['pattern']}" if "pattern" in schema else ""


def _describe_object(schema: Schema, root: Schema) -> str:
    properties = schema.get("properties")
    if properties:
        return f"an object with {listed(properties)}"
    values = schema.get("additionalProperties")
    return "an object" + (f" whose values are each {describe(values, root)}" if isinstance(values, Mapping) else "")


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" from {low} to {high}"
    words = {
        "minimum": "of at least",
        "maximum": "of at most",
        "exclusiveMinimum": "above",
        "exclusiveMaximum": "below",
    }
    said = [f"{text} {schema[name]}" for name, text in words.items() if name in schema]
    return f" {' and '.join(said)}" if said else ""


def _length(schema: Schema, least: str, most: str, unit: str = "entries") -> str:
    low, high = schema.get(least), schema.get(most)
    if low and high is not None:
        return f" of {low} to {high} {unit}"
    if low:
        return f" of at least {low} {unit}"
    return f" of at most {high} {unit}" if high is not None else ""


def resolve(schema: Schema, root: Schema) -> Schema:
    """The schema a local reference leads to, or the schema itself."""
    seen: set[str] = set()
    while isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        found: Any = root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        schema = found if isinstance(found, Mapping) else {}
    return schema


def _options(schema: Schema, root: Schema) -> list[Schema]:
    return [resolve(option, root) for name in ("anyOf", "oneOf", "allOf") for option in schema.get(name, [])]


def schema_at(path: Path, root: Schema) -> Schema:
    """The part of a schema that speaks of what stands at a path; empty where it says nothing."""
    schema: Schema = root
    for step in path:
        schema = resolve(schema, root)
        steps = (_step(option, step) for option in (schema, *_options(schema, root)))
        schema = next((found for found in steps if found is not None), {})
    return schema


def _step(schema: Schema, step: str | int) -> Schema | None:
    if isinstance(step, int):
        found = schema.get("items")
    else:
        found = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return found if isinstance(found, Mapping) else None


def mismatch(value: object, schema: Schema, root: Schema) -> str:
    """The message for a value that is not what the schema asks for."""
    return f"is {shown(value)}: must be {describe(schema, root)}"


def is_hidden(path: Path, root: Schema) -> bool:
    """Whether what stands at a path must not be quoted: it, or what it stands in, may hold a secret (A8)."""
    return is_marked(path, root, HIDING)


def is_marked(path: Path, root: Schema, marks: Iterable[str]) -> bool:
    """Whether a schema says one of these facts of what stands at a path, or of anything that this stands in."""
    wanted = tuple(marks)
    parts = (schema_at(path[: depth + 1], root) for depth in range(len(path)))
    every = (one for part in parts for one in (part, resolve(part, root), *_options(resolve(part, root), root)))
    return any(one.get(FACTS, {}).get(mark) for one in every for mark in wanted)


def unquoted(schema: Schema, root: Schema) -> str:
    """The message for a value that is not what the schema asks for, and must not be quoted."""
    return f"is something else: must be {describe(schema, root)}"


def missing(schema: Schema, root: Schema) -> str:
    """The message for something the schema requires and that is not there."""
    purpose = str(schema.get("description", "")).rstrip(".")
    return f"is missing: give {describe(schema, root)}" + (f" ({purpose})" if purpose else "")


def explain(
    error: ValidationError, data: object, root: Schema, aliases: Mapping[str, str] | None = None
) -> list[tuple[Path, str]]:
    """Every error pydantic found in data, by path, without pydantic's own words; one per path.

    ``aliases``: declared names by Python names, for the first step of a path.
    """
    found: dict[Path, str] = {}
    for detail in error.errors(include_url=False, include_input=False):
        first, *rest = detail["loc"] or ("",)
        location = ((aliases or {}).get(str(first), first), *rest)
        path, value = _locate(location, data)
        if detail["type"] == "missing":
            path = (*path, location[-1])
            message = missing(schema_at(path, root), root)
        elif detail["type"] == "extra_forbidden":
            options = _properties(schema_at(path[:-1], root), root)
            message = unknown("parameter of this type", str(path[-1]), options)
        elif detail["type"] in ("value_error", "assertion_error"):
            message = str(detail.get("ctx", {}).get("error", detail["msg"]))
        elif is_hidden(path, root):
            message = unquoted(schema_at(path, root), root)
        else:
            message = mismatch(value, schema_at(path, root), root)
        found.setdefault(path, message)
    return list(found.items())


def _locate(location: Path, data: object) -> tuple[Path, object]:
    """The part of pydantic's location that is really in the data (not the name of a union's branch), and its value."""
    path: list[str | int] = []
    for step in location:
        try:
            data = data[step]  # type: ignore[index]
        except (LookupError, TypeError):
            continue
        path.append(step)
    return tuple(path), data


def _properties(schema: Schema, root: Schema) -> Mapping[str, Any]:
    """What an object may have; also where it may be null or something else instead."""
    options = (resolve(schema, root), *_options(resolve(schema, root), root))
    return next((found for option in options if (found := option.get("properties"))), {})


def path_text(path: Path) -> str:
    """A path as it is written: ``.ingress[0].fromPort``. A key nobody could read is quoted and cut."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path)


def _key(key: str) -> str:
    return key if key.isprintable() and len(key) <= _SHOWN else shown(key)


def errors_at(base: str, found: Iterable[tuple[Path, str]]) -> list[InputError]:
    """Messages by path, as errors below a place in a declaration."""
    return [InputError(base + path_text(path), message) for path, message in found]
