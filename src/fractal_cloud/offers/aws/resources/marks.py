"""The parameters of a type as JSON Schema with the marks by which they are compared, hidden and changed.

All marks come from the type's published schema and from the table of normalisations; no name of a type stands here.
What a mark means is defined where values are compared (`rules.nested`).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.wording import FACTS
from fractal_cloud.offers.aws.resources.schema import AwsType, Schema, resolve
from fractal_cloud.offers.aws.resources.tables import normalisations as table

_IDENTITY: Final = ("Key", "Id", "Name", "key", "id", "name")
_SENSITIVE: Final = re.compile(r"(?i)(?:password|passphrase|secret|secretstring|privatekey|apikey|token|credentials?)$")
_NO_SECRET: Final = re.compile(r"(?i)(?:clienttoken|requesttoken|httptokens?|maxtokens|tokentype)$")
_OF_OTHERS: Final = re.compile(r"^AWS::[\w:]+\.(?:Arn|Ids?|Names?|AliasName|HostedZoneId)$")
_BLOCKS: Final = frozenset({"ipv4-network", "ipv6-network"})
_NESTS: Final = ("items", "additionalProperties", "not")
_NESTS_MAPS: Final = ("properties", "patternProperties")
_NESTS_LISTS: Final = ("oneOf", "anyOf", "allOf")


def parameters(aws_type: AwsType) -> Schema:
    """The schema of what can be declared: every property but those that only AWS sets, and the one with the tags."""
    made = Marker(aws_type).made()
    tags = aws_type.tags.property if aws_type.tags is not None else ""
    left_out = {tags, *(name for name in aws_type.read_only if "." not in name)}
    _keep_what_is_referred_to(made, left_out)
    made["properties"] = {name: one for name, one in made["properties"].items() if name not in left_out}
    made["required"] = [name for name in made["required"] if name in made["properties"]]
    if not made.get("$defs"):
        made.pop("$defs", None)
    return made


def _keep_what_is_referred_to(made: Schema, names: Iterable[str]) -> None:
    """Define properties that will be left out where others refer to them for what they may be: not for their marks."""
    moved = {f"#/properties/{name}": name for name in names}
    for _, one in list(_named(made)):
        name = moved.get(str(one.get("$ref")))
        if name is not None:
            one["$ref"] = f"#/$defs/{name}Property"
            unmarked = {key: value for key, value in made["properties"][name].items() if key != FACTS}
            made.setdefault("$defs", {})[f"{name}Property"] = unmarked


class Marker:
    """Puts the marks into a copy of the schema of one type.

    A mark that belongs to one path is put behind the definitions that lead there: these are written out along the way,
    since the same definition may be used elsewhere.
    """

    def __init__(self, aws_type: AwsType) -> None:
        self._type = aws_type
        self._root: Schema = copy.deepcopy(aws_type.properties)

    def made(self) -> Schema:
        """The schema with all marks."""
        for name, one in _named(self._root):
            self._mark_by_itself(name, one)
        for names, mark in (
            (self._type.create_only | self._type.conditional_create_only, "immutable"),
            (self._type.read_only, "readOnly"),
            (self._type.write_only, "writeOnly"),
        ):
            for path in names:
                self._mark(path, mark, value=True)
        self._mark_by_table()
        return self._root

    def _mark_by_table(self) -> None:
        name = self._type.name
        for comparer, paths in table.COMPARED.items():
            for path in paths.get(name, ()):
                self._mark(path, "compare", comparer)
        for path in table.DOCUMENTS.get(name, ()):
            self._mark(path, "compare", "json")
        for path in table.SETS.get(name, ()):
            self._mark(path, "list", "set")
        for path, key in table.SETTINGS.get(name, {}).items():
            for mark, value in (("list", "keyed"), ("keys", [key]), ("others", True)):
                self._mark(path, mark, value)
        for path, default in table.DEFAULTS.get(name, {}).items():
            self._mark(path, "default", default)

    def _mark_by_itself(self, name: str, one: Schema) -> None:
        """What a subschema says of itself, and the name of the property that has it."""
        found = resolve(one, self._root)
        marks = {**_comparison(name, found), **self._order(name, found), **_default(found)}
        if _is_sensitive(name, found):
            marks["sensitive"] = True
        if marks:
            one.setdefault(FACTS, {}).update(marks)

    def _order(self, name: str, found: Mapping[str, Any]) -> Schema:
        """How a list is compared: in its order unless the schema says that it has none."""
        if found.get("type") != "array":
            return {}
        has_none = found.get("insertionOrder") is False or (
            found.get("uniqueItems") is True and found.get("insertionOrder") is not True
        )
        if not has_none and table.SETS_BY_NAME.search(name) is None:
            return {}
        keys = self._keys(found)
        return {"list": "keyed", "keys": keys} if keys else {"list": "set"}

    def _keys(self, found: Mapping[str, Any]) -> list[str]:
        """What distinguishes the elements of a list, where each must say it."""
        said = found.get("uniqueKeys")
        items = found.get("items")
        element = resolve(items, self._root) if isinstance(items, Mapping) else {}
        properties = element.get("properties", {})
        if isinstance(said, list) and all(one in properties for one in said):
            return list(said)
        own = [one for one in _IDENTITY if one in properties and one in element.get("required", ())]
        is_text = own and resolve(properties[own[0]], self._root).get("type") == "string"
        return own[:1] if is_text and found.get("uniqueItems") is True else []

    def _mark(self, path: str, mark: str, value: Any) -> None:
        for one in self._at(path.split(".")):
            one.setdefault(FACTS, {})[mark] = value

    def _at(self, steps: list[str]) -> list[Schema]:
        """The subschemas at a path, each written out for this path alone. What is not there is left out."""
        found: list[Schema] = [self._root]
        for step in steps:
            found = [inner for one in found for inner in self._into(one, step)]
        return found

    def _into(self, one: Schema, step: str) -> Iterator[Schema]:
        self._write_out(one)
        for nest in _NESTS_LISTS:
            for option in one.get(nest, ()):
                if isinstance(option, dict):
                    yield from self._into(option, step)
        if step == "*":
            inner: list[Any] = [one.get("items"), one.get("additionalProperties"), *_values(one, "patternProperties")]
        else:
            inner = [one.get("properties", {}).get(step)]
            if inner == [None] and isinstance(one.get("items"), dict):  # some schemas leave the `*` out
                yield from self._into(one["items"], step)
        for subschema in inner:
            if isinstance(subschema, dict):
                self._write_out(subschema)
                yield subschema

    def _write_out(self, one: Schema) -> None:
        if "$ref" in one:
            own = one.get(FACTS, {})
            written = copy.deepcopy(resolve(one, self._root))
            one.clear()
            one.update(written)
            if own or FACTS in one:
                one[FACTS] = {**one.get(FACTS, {}), **own}


def _values(one: Mapping[str, Any], name: str) -> list[Any]:
    found = one.get(name)
    return list(found.values()) if isinstance(found, Mapping) else []


def _named(schema: Schema, name: str = "") -> Iterator[tuple[str, Schema]]:
    """Every subschema with the name of the property it is of; elements have the name of their list."""
    yield name, schema
    for nest in _NESTS:
        if isinstance(schema.get(nest), dict):
            yield from _named(schema[nest], name)
    for nest in _NESTS_LISTS:
        for one in schema.get(nest, ()):
            if isinstance(one, dict):
                yield from _named(one, name)
    for nest in (*_NESTS_MAPS, "$defs"):
        for key, one in (schema.get(nest) or {}).items():
            if isinstance(one, dict):
                yield from _named(one, key if nest == "properties" else name)


def _comparison(name: str, found: Mapping[str, Any]) -> Schema:
    """By which comparer a value is compared, as far as its own schema says it."""
    types = found.get("type")
    several = set(types) if isinstance(types, list) else {types}
    formats = {found.get("format"), *(one.get("format") for one in found.get("oneOf", ()) if isinstance(one, Mapping))}
    is_policy = table.POLICIES_BY_NAME.match(name) is not None
    if {"object", "string"} <= several or "json" in formats:
        return {"compare": "policy" if is_policy else "json"}
    if is_policy and several == {"string"} and name.endswith(("Document", "Text")):
        return {"compare": "policy"}
    if several & {"integer", "number"} and "string" in several:
        return {"compare": "number"}
    if {"boolean", "string"} == several:
        return {"compare": "boolean"}
    if several != {"string"}:
        return {}
    if _is_named_by_others(found) or table.KEYS_BY_NAME.search(name) is not None:
        return {"compare": "arn"}
    if formats & _BLOCKS:
        return {"compare": "cidr"}
    return {"compare": "caseless"} if "enumCaseInsensitive" in found else {}


def _is_named_by_others(found: Mapping[str, Any]) -> bool:
    """Whether a value names another resource, by an id, a name or an ARN."""
    options = [found, *(one for nest in _NESTS_LISTS for one in found.get(nest, ()) if isinstance(one, Mapping))]
    return any("relationshipRef" in one or _OF_OTHERS.match(str(one.get("format", ""))) for one in options)


def _default(found: Mapping[str, Any]) -> Schema:
    """What AWS fills in; switches that it does not mention are off."""
    if "default" in found:
        return {"default": found["default"]}
    return {"default": False} if found.get("type") == "boolean" else {}


def _is_sensitive(name: str, found: Mapping[str, Any]) -> bool:
    return (
        found.get("type") == "string"
        and "enum" not in found
        and _SENSITIVE.search(name) is not None
        and _NO_SECRET.search(name) is None
    )
