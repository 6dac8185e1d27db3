"""Whether properties fit the schema of their type, in the words of AWS's validator (everit's JSON Schema).

Purely computational. Whether something exists, or may be changed, is decided elsewhere.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

from jsonschema import Draft7Validator, validators
from jsonschema.exceptions import ValidationError

from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema

__all__ = ["broken", "is_match"]

# An error that was found. The stubs say that its fields may be unset, which only those in the making are.
_Found: TypeAlias = Any
_TYPES: Final[dict[str, str]] = {
    "array": "JSONArray",
    "boolean": "Boolean",
    "integer": "Integer",
    "null": "Null",
    "number": "Number",
    "object": "JSONObject",
    "string": "String",
}
# What Java's patterns say and Python's cannot. A pattern that still cannot be read is not checked.
_CLASSES: Final = {
    r"\p{Alnum}": "a-zA-Z0-9",
    r"\p{Alpha}": "a-zA-Z",
    r"\p{ASCII}": r"\x00-\x7f",
    r"\p{Digit}": "0-9",
    r"\p{IsAlphabetic}": "a-zA-Z\u00aa-\uffff",
    r"\p{IsLetter}": "a-zA-Z\u00aa-\uffff",
    r"\p{Graph}": "!-~",
    r"\p{Cc}": r"\x00-\x1f\x7f-\x9f",
    r"\p{L}": "a-zA-Z\u00aa-\uffff",
    r"\p{Ll}": "a-z\u00df-\u00ff",
    r"\p{Lu}": "A-Z\u00c0-\u00de",
    r"\p{M}": "\u0300-\u036f",
    r"\p{N}": "0-9\u00b2\u00b3\u00b9",
    r"\p{Nd}": "0-9",
    r"\p{P}": r"!-#%-*,-/:;?@\[-\]_{}\u00a1\u00a7",
    r"\p{Print}": " -~",
    r"\p{Punct}": r"!-/:-@\[-`{-~",
    r"\p{S}": r"$+<->^`|~",
    r"\p{Space}": r"\s",
    r"\p{Upper}": "A-Z",
    r"\p{Lower}": "a-z",
    r"\p{Z}": " \u00a0\u2000-\u200a\u2028\u2029\u3000",
    r"\p{Zs}": " \u00a0\u2000-\u200a\u3000",
}


def broken(schema: TypeSchema, model: Mapping[str, Any]) -> str:
    """Say what does not fit, all of it, in AWS's words; empty where everything does."""
    found = sorted(_validator(schema).iter_errors(model), key=lambda one: (len(one.absolute_path), str(one.message)))
    return "\n".join(line for error in found for line in _lines(error))


def is_match(pattern: str, text: str) -> bool:
    """Return whether a text fits a pattern of Java's; a pattern that cannot be read fits everything."""
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    for name, members in _CLASSES.items():
        outside = re.compile(r"(?<!\\)" + re.escape(name))
        pattern = outside.sub(lambda found, members=members: _in_place(found, members), pattern)  # type: ignore[misc]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # about sets of characters that may mean more one day
            return re.compile(pattern.replace(r"\z", r"\Z").replace(r"\h", r"[ \t]"))
    except re.error:
        return None


def _in_place(found: re.Match[str], members: str) -> str:
    """Write the members of a class as part of a set in brackets, or as one of their own."""
    before = re.sub(r"\\.", "", found.string[: found.start()])
    is_in_set = before.rfind("[") > before.rfind("]")
    return members if is_in_set else f"[{members}]"


def _pattern(_: Any, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not is_match(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


_Validator: Final[type[Draft7Validator]] = validators.extend(  # type: ignore[no-untyped-call]
    Draft7Validator, {"pattern": _pattern}
)


@lru_cache(maxsize=128)
def _validator(schema: TypeSchema) -> Draft7Validator:
    read_only = {path[0] for path in schema.read_only if len(path) == 1}
    document = {
        "type": "object",
        "properties": _readable(schema.properties),
        "required": [name for name in schema.document.get("required") or () if name not in read_only],
        "additionalProperties": False,
        "definitions": _readable(schema.document.get("definitions") or {}),
    }
    return _Validator(document)


def _readable(value: Any) -> Any:
    """Return a part of a schema whose patterns of names Python can read; one that it cannot fits every name."""
    if isinstance(value, list):
        return [_readable(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = {name: _readable(one) for name, one in value.items()}
    patterns = found.get("patternProperties")
    if isinstance(patterns, dict):
        compiled = {name: _compiled(name) for name in patterns}
        found["patternProperties"] = {
            one.pattern if (one := compiled[name]) is not None else ".*": inner for name, inner in patterns.items()
        }
    return found


def _lines(error: _Found) -> Iterator[str]:
    where = "#" + "".join(f"/{part}" for part in error.absolute_path)
    said = _SAID.get(str(error.validator))
    if said is None:
        yield f"{where}: {error.message}"
    else:
        yield from (f"{where}: {text}" for text in said(error))


def _missing(error: _Found) -> list[str]:
    """One error each, as the library reports them: the name stands in its message."""
    name = re.match(r"'(.+)' is a required property", error.message)
    return [f"required key [{name[1] if name else '?'}] not found"]


def _extraneous(error: _Found) -> list[str]:
    known = error.schema.get("properties") or {}
    patterns = error.schema.get("patternProperties") or {}
    extra = [name for name in error.instance if name not in known and not any(is_match(p, name) for p in patterns)]
    return [f"extraneous key [{name}] is not permitted" for name in extra]


def _wrong_type(error: _Found) -> list[str]:
    wanted = error.validator_value if isinstance(error.validator_value, list) else [error.validator_value]
    return [f"expected type: {' or '.join(_TYPES[one] for one in wanted)}, found: {_type_of(error.instance)}"]


def _type_of(value: Any) -> str:
    names = {"NoneType": "Null", "bool": "Boolean", "int": "Integer", "float": "BigDecimal", "str": "String"}
    return names.get(type(value).__name__, "JSONArray" if isinstance(value, list) else "JSONObject")


def _matched(word: str) -> Callable[[_Found], list[str]]:
    def say(error: _Found) -> list[str]:
        if word == "one":
            return [f"0 subschemas matched instead of one (of {len(error.validator_value)})"]
        return [f"no subschema matched out of the total {len(error.validator_value)} subschemas"]

    return say


_SAID: Final[dict[str, Callable[[_Found], list[str]]]] = {
    "required": _missing,
    "additionalProperties": _extraneous,
    "type": _wrong_type,
    "enum": lambda error: [f"{error.instance} is not a valid enum value"],
    "pattern": lambda error: [f"string [{error.instance}] does not match pattern {error.validator_value}"],
    "minLength": lambda error: [f"expected minLength: {error.validator_value}, actual: {len(error.instance)}"],
    "maxLength": lambda error: [f"expected maxLength: {error.validator_value}, actual: {len(error.instance)}"],
    "minItems": lambda error: [f"expected minimum item count: {error.validator_value}, found: {len(error.instance)}"],
    "maxItems": lambda error: [f"expected maximum item count: {error.validator_value}, found: {len(error.instance)}"],
    "minimum": lambda error: [f"{error.instance} is not greater or equal to {error.validator_value}"],
    "maximum": lambda error: [f"{error.instance} is not less or equal to {error.validator_value}"],
    "uniqueItems": lambda _: ["array items are not unique"],
    "oneOf": _matched("one"),
    "anyOf": _matched("any"),
}
