"""How values are checked against a JSON Schema that somebody else wrote: a vendor, or an agent.

Its patterns are matched in linear time, so that none of them can keep a control plane busy for ever (A9). One that
cannot be matched so, and is not understood here, is not checked: the cloud says itself what it does not take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import re2
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError as SchemaError
from referencing import Registry

from fractal_cloud.model.reference import find_references, is_filled_in, output_references, references, secret_name

Keyword = Callable[[Any, Any, Any, Any], Iterator[SchemaError] | None]

_LONGEST_PATTERN: Final = 4_000
_IN_JAVASCRIPT: Final = re.compile(r"\\u([0-9A-Fa-f]{4})")
_OF_OTHERS: Final = re.compile(r"\(\?[=!<]|\\[pPuk]")
"""What some dialects know, and the one here does not."""
_OF_TEXT: Final = frozenset({"pattern", "minLength", "maxLength", "enum", "const", "format"})
_OF_THE_WHOLE: Final = frozenset({"enum", "const", "not", "if", "uniqueItems", "contains"})


@lru_cache(maxsize=4_096)
def _matcher(pattern: str) -> Callable[[str], object] | None:
    """What searches for a pattern; None where it is not understood here."""
    if len(pattern) > _LONGEST_PATTERN:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        found: Callable[[str], object] = re2.compile(_IN_JAVASCRIPT.sub(r"\\x{\1}", pattern), options).search
    except re2.error:
        return None
    return found


def is_pattern(value: object) -> bool:
    """Whether a value is a pattern in some dialect: also one that is not understood here, and not checked then."""
    if not isinstance(value, str) or _OF_OTHERS.search(value) or _matcher(value) is not None:
        return True
    try:
        re.compile(value)
    except re.error:
        return False
    return True


def _matches(pattern: str, text: str) -> bool | None:
    search = _matcher(pattern)
    return None if search is None else search(text) is not None


def _pattern(validator: Any, pattern: Any, instance: Any, _schema: Any) -> Iterator[SchemaError]:
    if validator.is_type(instance, "string") and isinstance(pattern, str) and _matches(pattern, instance) is False:
        yield SchemaError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[SchemaError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, subschema in patterns.items():
        for key, item in instance.items():
            if _matches(pattern, key):
                yield from validator.descend(item, subschema, path=key, schema_path=pattern)


def _additional_properties(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[SchemaError]:
    if not validator.is_type(instance, "object"):
        return
    named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    # A key that a pattern not understood here may allow is none too many.
    extra = [key for key in instance if key not in named and all(_matches(one, key) is False for one in patterns)]
    if isinstance(allowed, Mapping):
        for key in extra:
            yield from validator.descend(instance[key], allowed, path=key)
    elif allowed is False and extra:
        yield SchemaError(f"{extra!r} are too many")


def _around_references(keyword: str, check: Keyword) -> Keyword:
    """A keyword's check that leaves out what is not known before references are filled in."""

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[SchemaError]:
        if is_filled_in(instance) or secret_name(instance) is not None:
            return
        if keyword in _OF_TEXT and isinstance(instance, str) and has_unknowns(instance):
            return
        if keyword in _OF_THE_WHOLE and has_unknowns(instance):
            return
        yield from check(validator, value, instance, schema) or ()

    return checked


def has_unknowns(value: object) -> bool:
    """Whether anything in a value is known only once references are filled in."""
    return any(next(found(value), None) is not None for found in (output_references, find_references, references))


def _not_checked(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[SchemaError]:
    return iter(())


_OWN: Final[dict[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _not_checked,  # it would match patterns in its own way
}
_extended: Final[Callable[..., Any]] = vars(validators)["extend"]  # has no types
_PLAIN: Final = _extended(Draft202012Validator, _OWN)
_EVERY: Final[dict[str, Any]] = dict(_PLAIN.VALIDATORS)
_LENIENT: Final = _extended(
    _PLAIN,
    # Of several forms, more than one may fit what is not known yet.
    {name: _around_references(name, _EVERY["anyOf" if name == "oneOf" else name]) for name in _EVERY},
)


class SchemaValidator:
    """Finds what is wrong with values, by one schema; references in them are left out."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        # An empty registry: a schema that an agent sent never makes this process fetch another one.
        self._plain: Any = _PLAIN(schema, registry=Registry())
        self._lenient: Any = _LENIENT(schema, registry=Registry())

    def errors(self, values: object) -> Iterator[SchemaError]:
        """Every error, as the library says it."""
        found: Iterator[SchemaError] = (self._lenient if has_unknowns(values) else self._plain).iter_errors(values)
        return found
