"""Values made of AWS's schemas alone: what somebody could declare of any type. The same seed makes the same value.

Nothing here knows what the product compares or how. A value is checked against the schema it was made of, by a library.
"""

from __future__ import annotations

import random
import re
import string
import warnings
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import rstr
from jsonschema import Draft7Validator

from fractal_cloud.offers.aws.resources import types

Schema = Mapping[str, Any]

_DEEPEST: Final = 6
_TRIES: Final = 40
_FEWER: Final = 0.75
"""By which the share of optional properties shrinks with every level."""
_MOST_ITEMS: Final = 3
_KEYS: Final = ("Key", "key", "Name", "name")
_PAIR: Final = 2
"""A pair without its key means nothing, though some schemas allow it."""
_CLASSES: Final = {
    "L": "a-zA-Z",
    "M": "",
    "N": "0-9",
    "Nd": "0-9",
    "P": "_.:@-",
    "S": "+=",
    "Z": " ",
    "Zs": " ",
    "Cc": "",
    "C": "",
    "Alnum": "a-zA-Z0-9",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Graph": "!-~",
    "Print": " -~",
    "ASCII": " -~",
    "Lu": "A-Z",
    "Ll": "a-z",
}
_FORMATS: Final = {
    "date-time": "2026-03-04T05:06:07Z",
    "timestamp": "2026-03-04T05:06:07Z",
    "json": '{"b": [1, 2], "a": {"c": true}}',
    "ipv4-network": "10.20.0.0/16",
    "ipv6-network": "2001:db8::/56",
    "uri": "https://example.org/path",
    "AWS::IAM::Role.Arn": "arn:aws:iam::123456789012:role/sample",
    "AWS::KMS::Key.Arn": "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    "AWS::EC2::SecurityGroup.Id": "sg-0123456789abcdef0",
    "AWS::EC2::VPC.Id": "vpc-0123456789abcdef0",
    "AWS::EC2::Subnet.Id": "subnet-0123456789abcdef0",
    "AWS::EC2::Image.Id": "ami-0123456789abcdef0",
    "AWS::S3::Bucket.Name": "sample-bucket",
    "AWS::SNS::Topic.Arn": "arn:aws:sns:eu-central-1:123456789012:sample",
    "AWS::SQS::Queue.Arn": "arn:aws:sqs:eu-central-1:123456789012:sample",
    "AWS::Logs::LogGroup.Name": "/sample/group",
    "AWS::Lambda::Function.Arn": "arn:aws:lambda:eu-central-1:123456789012:function:sample",
    "AWS::ACM::Certificate.Arn": "arn:aws:acm:eu-central-1:123456789012:certificate/1234abcd-12ab-34cd-56ef",
    "AWS::KMS::Key.Id": "1234abcd-12ab-34cd-56ef-1234567890ab",
    "AWS::KMS::Alias.AliasName": "alias/sample",
    "AWS::Route53::HostedZone.Id": "Z0123456789ABCDEFGHIJ",
}
_SAMPLES: Final = ("sample", "sample-1", "Sample1", "a", "abcdefgh", "12345678", "A1b2C3d4E5", "10.20.0.0/16", "1", "*")


class _ShortTexts(rstr.Rstr):
    """Texts of patterns in which nothing is repeated much more often than it must be; ``more``: how much more."""

    def __init__(self, source: random.Random) -> None:
        super().__init__(source)
        self.more = 4
        self._cases = {**self._cases, "range": _letters_between}

    def _handle_repeat(self, start_range: int, end_range: int, value: str) -> str:
        found: str = super()._handle_repeat(start_range, min(end_range, start_range + self.more), value)
        return found


def _letters_between(ends: tuple[int, int]) -> list[str]:
    return [chr(one) for one in range(ends[0], min(ends[1], ends[0] + 200) + 1)]


class NoValue(Exception):
    """No value was found for a schema: the text says where."""


class Values:
    """Values of one type. ``full``: the share of optional properties that are given."""

    def __init__(self, name: str, seed: int = 0, full: float = 0.5) -> None:
        self._document = _document(name)
        self._random = random.Random(f"{name}/{seed}")  # the same value each time
        self._strings = _ShortTexts(self._random)
        self._full = full
        self._hidden = set(self._document.get("readOnlyProperties", ()))
        self._tags = self._document.get("tagging", {}).get("tagProperty", "/properties/Tags")
        self._validator = validator(name)

    def properties(self) -> dict[str, Any]:
        """The properties of one resource, without what is read only and without tags. Raises ``NoValue``."""
        problem = ""
        for attempt in range(_TRIES):
            if attempt > _TRIES // 2:
                self._full = 0.0
            try:
                made: dict[str, Any] = self._object(self._document, "/properties", 0)
            except NoValue as error:
                problem = str(error)
                continue
            misfit = next(self._validator.iter_errors(made), None)
            if misfit is None:
                return made
            problem = f"{'/'.join(map(str, misfit.absolute_path))}: {misfit.message[:120]}"
        raise NoValue(f"{self._document['typeName']}: {problem}")

    def another(self, name: str, value: Any) -> Any:
        """Another valid value for a property. Raises ``NoValue`` where the schema leaves no other."""
        schema = self._document["properties"][name]
        for _ in range(_TRIES):
            made = self._value(schema, f"/properties/{name}", 1)
            if made != value and _is_valid(schema, made, self._document):
                return made
        raise NoValue(f"{self._document['typeName']}.{name}: there is no other value")

    def shuffled(self, names: Iterable[str]) -> list[str]:
        """Names in an order that the seed decides."""
        found = sorted(names)
        self._random.shuffle(found)
        return found

    # --- by kind

    def _value(self, schema: Schema, path: str, depth: int) -> Any:
        found = self._resolved(schema)
        if "const" in found:
            return found["const"]
        if values := found.get("enum") or found.get("enumCaseInsensitive"):
            return self._random.choice([one for one in values if one is not None])
        return self._of_kind(self._kind(found), found, path, depth)

    def _of_kind(self, kind: str, schema: Schema, path: str, depth: int) -> Any:
        match kind:
            case "object":
                return self._object(schema, path, depth)
            case "array":
                return self._array(schema, path, depth)
            case "string":
                return self._text(schema, path)
            case "boolean":
                return self._random.random() < 0.5
            case "integer":
                return self._number(schema)
            case "number":
                return float(self._number(schema))
        raise NoValue(f"{path}: no value is known for the kind {kind!r}")

    def _resolved(self, schema: Schema) -> dict[str, Any]:
        found = dict(schema)
        for _ in range(8):
            reference = found.pop("$ref", None)
            if reference is None:
                break
            target: Any = self._document
            for step in reference.removeprefix("#/").split("/"):
                target = target[step.replace("~1", "/").replace("~0", "~")]
            found = {**target, **found}
        for word in ("oneOf", "anyOf"):
            options = found.get(word)
            if options:
                chosen = self._resolved(self._random.choice(options))
                found = _merged({name: one for name, one in found.items() if name != word}, chosen)
        for part in found.pop("allOf", ()):
            found = _merged(found, self._resolved(part))
        return found

    def _kind(self, schema: Schema) -> str:
        kind = schema.get("type")
        if isinstance(kind, list):
            known = [one for one in kind if one != "null"]
            kind = "object" if "object" in known and "properties" in schema else self._random.choice(known)
        if kind is None:
            kind = "object" if {"properties", "patternProperties", "additionalProperties"} & schema.keys() else None
            kind = kind or ("array" if "items" in schema else "string")
        return str(kind)

    def _object(self, schema: Schema, path: str, depth: int) -> dict[str, Any]:
        at = path if depth == 0 else f"{path}/properties"
        required = list(schema.get("required", ()))
        made: dict[str, Any] = {}
        for name, one in schema.get("properties", {}).items():
            here = f"{at}/{name}" if depth == 0 else f"{path}/{name}"
            if here in self._hidden or here == self._tags:
                continue
            is_key = name in _KEYS and len(schema["properties"]) <= _PAIR
            wanted = (
                name in required or is_key or (depth < _DEEPEST and self._random.random() < self._full * _FEWER**depth)
            )
            if not wanted:
                continue
            try:
                made[name] = self._value(one, here, depth + 1)
            except (NoValue, RecursionError):
                if name in required:
                    raise
        if len(made) < schema.get("minProperties", 0) and schema.get("properties"):
            name = self._random.choice(list(schema["properties"]))
            made[name] = self._value(schema["properties"][name], f"{path}/{name}", depth + 1)
        if not made and not schema.get("properties"):
            made |= self._entries(schema, path, depth)
        return made

    def _entries(self, schema: Schema, path: str, depth: int) -> dict[str, Any]:
        patterns: Mapping[str, Any] = schema.get("patternProperties", {})
        more = schema.get("additionalProperties")
        if patterns:
            pattern, one = self._random.choice(list(patterns.items()))
            keys = {self._by_pattern(pattern, {}, path) for _ in range(self._random.randint(1, 2))}
            return {key: self._value(one, f"{path}/*", depth + 1) for key in sorted(keys)}
        if isinstance(more, Mapping) and more:
            return {key: self._value(more, f"{path}/*", depth + 1) for key in ("first", "second")}
        return {} if more is False or depth == 0 else {"Key": "value"}

    def _array(self, schema: Schema, path: str, depth: int) -> list[Any]:
        least, most = int(schema.get("minItems", 0)), int(schema.get("maxItems", 10_000))
        if depth >= _DEEPEST:
            most = min(most, least)
        many = self._random.randint(least, min(most, max(least, _MOST_ITEMS)))
        made: list[Any] = []
        for _ in range(many * 4):
            if len(made) == many:
                break
            one = self._value(schema.get("items", {}), f"{path}/*", depth + 1)
            if not (schema.get("uniqueItems") and one in made):
                made.append(one)
        if len(made) < least:
            raise NoValue(f"{path}: there are not {least} different items")
        return made

    def _number(self, schema: Schema) -> int:
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + (1 if "exclusiveMinimum" in schema else 0))
        most = schema.get("maximum", schema.get("exclusiveMaximum", least + 1000))
        step = int(schema.get("multipleOf", 1)) or 1
        least = -(-int(least) // step) * step
        return least + step * self._random.randint(0, max(0, (int(most) - least) // step))

    # --- texts

    def _text(self, schema: Schema, path: str) -> str:
        least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 64))
        pattern, form = schema.get("pattern"), schema.get("format")
        if form in _FORMATS and (pattern is None or re.search(pattern, _FORMATS[form])):
            return _FORMATS[form]
        if pattern:
            return self._by_pattern(pattern, schema, path)
        letters = string.ascii_lowercase + string.digits
        many = self._random.randint(min(max(least, 4), most), max(least, min(most, 16)))
        return "".join(self._random.choice(letters) for _ in range(many))

    def _by_pattern(self, pattern: str, schema: Schema, path: str) -> str:
        least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 100_000))
        candidates = [one for one in _SAMPLES if least <= len(one) <= most and re.search(pattern, one)]
        for attempt in range(_TRIES):
            self._strings.more = 4 + 2 * attempt
            made = self._text_of(pattern)
            made += "x" * (least - len(made)) if pattern[:1] != "^" else ""
            if least <= len(made) <= most and re.search(pattern, made) and made.isprintable():
                return made
        if candidates:
            return self._random.choice(candidates)
        raise NoValue(f"{path}: no text was found for {pattern!r}")

    def _text_of(self, pattern: str) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # AWS's patterns are not Python's
            return str(self._strings.xeger(pattern)).strip("\n")


def _merged(first: dict[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    made = {**first, **second}
    made["required"] = [*first.get("required", ()), *second.get("required", ())]
    if "properties" in first or "properties" in second:
        made["properties"] = {**first.get("properties", {}), **second.get("properties", {})}
    return made


@cache
def _readable(pattern: str) -> str:
    """A pattern of AWS's as Python reads it: classes of Unicode by some of their letters."""
    found = re.sub(r"\\p\{(\w+)\}", lambda one: _CLASSES.get(one[1], "a-z"), pattern)
    found = re.sub(r"\[\\P\{C\}([^\]]*)\]", r"[ -~\1]", found).replace(r"\P{C}", "[ -~]")
    found = re.sub(r"\\P\{M\}", "a-zA-Z", found)
    found = found.replace("(?s)", "").replace(r"\Z", "$").replace(r"\w-", r"\w\-").replace(r"\s-", r"\s\-")
    found = re.sub(r"\\uD[89A-F][0-9A-F]{2}(-\\uD[89A-F][0-9A-F]{2})?", "", found)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested sets: AWS's patterns are not Python's
        try:
            re.compile(found)
        except re.error:
            return ".*"
    return found


@cache
def _document(name: str) -> dict[str, Any]:
    """A type's schema, with patterns that Python reads."""
    found: dict[str, Any] = _translated(types.document(name))
    return found


def _translated(value: Any, *, keys: bool = False) -> Any:
    if isinstance(value, Mapping):
        return {
            _readable(key) if keys else key: _readable(one)
            if key == "pattern" and isinstance(one, str)
            else _translated(one, keys=key == "patternProperties" and not keys)
            for key, one in value.items()
        }
    return [_translated(one) for one in value] if isinstance(value, list) else value


@cache
def validator(name: str) -> Any:
    """What checks the properties of a resource of this type."""
    document = _document(name)
    schema = {key: document[key] for key in ("properties", "definitions", "required") if key in document}
    return Draft7Validator({"type": "object", **schema})


def fits(name: str, property_name: str, value: Any) -> bool:
    """Whether a value of one property is what its type's schema wants."""
    document = _document(name)
    return _is_valid(document["properties"][property_name], value, document)


def _is_valid(schema: Schema, value: Any, document: Schema) -> bool:
    known = {name: document.get(name, {}) for name in ("definitions", "properties")}
    whole = {**known, "properties": {"value": schema, **known["properties"]}, "required": ["value"]}
    return next(Draft7Validator(whole).iter_errors({"value": value}), None) is None
