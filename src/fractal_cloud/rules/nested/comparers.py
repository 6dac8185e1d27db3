"""How single values are held side by side: numbers as text, documents by value, policies as what they allow. Pure.

Each comparer by its name, as a schema's mark ``compare`` says it. A comparer turns a value into a text that is the same
for values that are the same thing; what it does not understand, it leaves as it is. Which values are compared with
which is not known here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from fractal_cloud.rules.nested.amounts import network, quantity
from fractal_cloud.rules.nested.policy import policy_key

_DEEPEST: Final = 100
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?")
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS: Final = {"ns": "1e-9", "us": "1e-6", "µs": "1e-6", "ms": "1e-3", "s": "1", "m": "60", "h": "3600"}


def plain_key(value: Any) -> str:
    """A value as text that is the same for equal JSON: ``1`` is ``1.0``, and ``true`` is not ``1``."""
    return json.dumps(_plain(value, 0), sort_keys=True, default=str)


def _plain(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(one, depth + 1) for one in value), key=str)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def json_value(value: Any) -> Any:
    """A JSON document as its value, where it is text; any other text as it is."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def json_key(value: Any) -> str:
    """A JSON document, as text or as an object, by its value."""
    return plain_key(json_value(value))


def loose_json_key(value: Any) -> str:
    """A JSON document in which a number and a truth value may stand as text."""
    return plain_key(_loose(json_value(value), 0))


def _loose(value: Any, depth: int) -> Any:
    if depth <= _DEEPEST and isinstance(value, Mapping):
        return {str(key): _loose(one, depth + 1) for key, one in value.items()}
    if depth <= _DEEPEST and isinstance(value, list | tuple):
        return [_loose(one, depth + 1) for one in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    number = number_of(value)
    return str(value) if number is None else str(number)


def number_of(value: Any) -> Decimal | None:
    """A number, also one that is written as text, in its one spelling; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return None
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        return None
    try:
        found = Decimal(text).normalize()
    except InvalidOperation:
        return None
    return found + 0 if found == 0 else found


def number_key(value: Any) -> str:
    """A number or the text of one."""
    found = number_of(value)
    return plain_key(value) if found is None else f"{found:f}" if abs(found.adjusted()) < _DEEPEST else str(found)


def boolean_key(value: Any) -> str:
    """A truth value or the text of one."""
    return value.casefold() if isinstance(value, str) and value.casefold() in ("true", "false") else plain_key(value)


def text_key(value: Any) -> str:
    """A text, or a number or truth value that stands for one."""
    if isinstance(value, bool):
        return plain_key("true" if value else "false")
    return plain_key(str(value)) if isinstance(value, int | float) else plain_key(value)


def _caseless(value: Any) -> str:
    return plain_key(value.casefold() if isinstance(value, str) else value)


def _cidr(value: Any) -> str:
    return plain_key(network(value))


def _quantity(value: Any) -> str:
    found = quantity(value)
    return number_key(found) if isinstance(found, Decimal) else plain_key(value)


def _int_or_string(value: Any) -> str:
    return text_key(int(value) if isinstance(value, float) and value.is_integer() else value)


def _domain(value: Any) -> str:
    """A name of the DNS: the dot at its end, the case, and how an asterisk is written do not matter."""
    is_name = isinstance(value, str) and value != "."
    return plain_key(value.casefold().replace("\\052", "*").removesuffix(".") if is_name else value)


def _duration(value: Any) -> str:
    """A duration as Go writes it: ``1m0s`` is ``60s``."""
    parts = _DURATION.findall(value) if isinstance(value, str) else []
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != value:
        return plain_key(value)
    return number_key(sum((Decimal(number) * Decimal(_SECONDS[unit]) for number, unit in parts), Decimal(0)))


def _last_of_arn(value: Any) -> str:
    """What an ARN ends with: what may be the name of the same thing."""
    return plain_key(re.split(r"[:/]", value)[-1] if isinstance(value, str) else value)


def is_same_arn(one: Any, other: Any) -> bool:
    """Whether two values name the same thing: by the same text, or one is an ARN that ends with the other."""
    if not (isinstance(one, str) and isinstance(other, str)):
        return plain_key(one) == plain_key(other)
    if one == other:
        return True
    arns = [text for text in (one, other) if text.startswith("arn:")]
    if len(arns) != 1:
        return False
    name = other if arns[0] == one else one
    return bool(name) and arns[0].endswith((f":{name}", f"/{name}", f":{name.removeprefix('/')}"))


Key = Callable[[Any], str]

KEYS: Final[Mapping[str, Key]] = {
    "exact": plain_key,
    "caseless": _caseless,
    "cidr": _cidr,
    "quantity": _quantity,
    "number": number_key,
    "boolean": boolean_key,
    "text": text_key,
    "intOrString": _int_or_string,
    "json": json_key,
    "looseJson": loose_json_key,
    "policy": policy_key,
    "arn": _last_of_arn,
    "domain": _domain,
    "duration": _duration,
}
"""By name, a text that is the same for values that are the same."""

SAME: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"arn": is_same_arn}
"""Comparers of which the key alone does not decide: values that are the same have one key, and not the reverse."""

OF_TYPES: Final[Mapping[str, str]] = {
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "string": "text",
}
"""By which comparer a value is compared of which only the type is known: clouds return numbers as text."""
