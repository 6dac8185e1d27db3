"""One resource type of AWS, as its published schema (a CloudFormation resource type definition) describes it.

``parse`` reads the packaged catalogue and the answer of ``DescribeType`` alike. What the schema cannot say comes from
the tables beside it; no name of a type stands here. How parameters are compared does not belong here, but to `facts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from fractal_cloud.offers.aws.resources.tables.data import holds_data
from fractal_cloud.offers.aws.resources.tables.names import name_property
from fractal_cloud.offers.aws.resources.tables.parts import PARTS, PartOf
from fractal_cloud.offers.aws.resources.tables.places import place
from fractal_cloud.offers.aws.resources.tables.tagging import ADAPTERS, Adapter, has_caseless_keys

Schema = dict[str, Any]
Verb = Literal["create", "read", "update", "delete", "list"]
NamedBy = Literal["identifier", "property", "tag"]

VERBS: Final[tuple[Verb, ...]] = ("create", "read", "update", "delete", "list")
_PROPERTIES: Final = "/properties/"
_TAGS: Final = "/properties/Tags"


class SchemaError(ValueError):
    """A document is no schema of a resource type that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Tagging:
    """Where the tags of a type stand: a property that is a list of pairs or a map.

    ``extra``: what else every pair of the list must say. ``on_create``: whether the create call takes them.
    ``caseless``: keys that differ in case alone are one key (T8).
    """

    property: str
    shape: Literal["list", "map"]
    key: str = "Key"
    value: str = "Value"
    on_create: bool = True
    updatable: bool = True
    extra: tuple[tuple[str, Any], ...] = ()
    caseless: bool = False

    def folded(self, key: str) -> str:
        """A key as AWS compares it with others."""
        return key.casefold() if self.caseless else key


@dataclass(frozen=True, eq=False)
class AwsType:
    """One resource type. Paths of properties are dotted, ``*`` stands for every element of a list or map.

    ``properties``: a JSON Schema of all its properties, with ``$defs``. ``identifier``: the properties that make the
    primary identifier, in its order. ``named_by``: how one is found: by the identifier that its declarer chooses, by
    a property that names it (``name_parameter``), or by the tag ``Name``. ``list_parents``: what ``ListResources``
    wants in its model. ``part``: what it belongs to, where it carries no tags. ``place``: where its names are unique
    within an account. ``retired``: AWS takes no new ones or ends it, in AWS's word.
    """

    name: str
    description: str
    properties: Schema
    required: tuple[str, ...]
    identifier: tuple[str, ...]
    additional_identifiers: tuple[tuple[str, ...], ...]
    read_only: frozenset[str]
    write_only: frozenset[str]
    create_only: frozenset[str]
    conditional_create_only: frozenset[str]
    tags: Tagging | None
    handlers: Mapping[Verb, tuple[str, ...]]
    list_parents: tuple[str, ...]
    part: PartOf | None
    tag_adapter: str
    place: tuple[str, ...]
    name_parameter: str
    named_by: NamedBy
    holds_data: bool
    retired: str = ""

    @property
    def service(self) -> str:
        """The service's word in the name: ``EC2`` of ``AWS::EC2::VPC``."""
        return self.name.split("::")[1]

    @property
    def is_global(self) -> bool:
        """Whether it is in no region, so that its calls go to the partition's home region."""
        return not self.place

    @property
    def needs_what_is_never_read(self) -> bool:
        """Whether every patch must bring a required property that no read shows."""
        return bool(self.write_only & set(self.required))

    @property
    def unread_requirements(self) -> tuple[str, ...]:
        """The required properties that are only written, whole or in part: where a read shows nothing of one, no patch
        passes without it.
        """
        written = {path.partition(".")[0] for path in self.write_only}
        return tuple(name for name in self.required if name in written)

    @property
    def adapter(self) -> Adapter | None:
        """How its tags are read and written where its schema has none."""
        return ADAPTERS.get(self.name)

    def property_schema(self, name: str) -> Schema:
        """The schema of one property, with references resolved."""
        return resolve(self.properties["properties"].get(name, {}), self.properties)


def parse(document: Mapping[str, Any]) -> AwsType:
    """A type of its schema document. Raises ``SchemaError`` where the document is none."""
    name = document.get("typeName")
    properties = document.get("properties")
    if not isinstance(name, str) or name.count("::") != 2 or not isinstance(properties, Mapping):
        raise SchemaError("this is no schema of a resource type: it has no typeName or no properties")
    schema = _json_schema(document)
    identifier = _paths(document, "primaryIdentifier")
    if not identifier:
        raise SchemaError(f"the schema of {name} has no primaryIdentifier")
    read_only = frozenset(_paths(document, "readOnlyProperties"))
    part = PARTS.get(name)
    write_only = frozenset(_paths(document, "writeOnlyProperties"))
    named_by, parameter = _naming(name, schema, identifier, read_only | write_only, part)
    handlers: Mapping[str, Any] = document.get("handlers", {})
    return AwsType(
        name=name,
        description=str(document.get("description", "")),
        properties=schema,
        required=tuple(document.get("required", ())),
        identifier=identifier,
        additional_identifiers=tuple(
            tuple(dotted(path) for path in paths) for paths in document.get("additionalIdentifiers", ())
        ),
        read_only=read_only,
        write_only=write_only,
        create_only=frozenset(_paths(document, "createOnlyProperties")),
        conditional_create_only=frozenset(_paths(document, "conditionalCreateOnlyProperties")),
        tags=_tagging(document, schema),
        handlers={verb: tuple(handlers[verb].get("permissions", ())) for verb in VERBS if verb in handlers},
        list_parents=tuple(handlers.get("list", {}).get("handlerSchema", {}).get("required", ())),
        part=part,
        tag_adapter=ADAPTERS[name].service if name in ADAPTERS else "",
        place=place(part.parent_type if part is not None else name),
        name_parameter=parameter,
        named_by=named_by,
        holds_data=holds_data(name),
        retired=str(document.get("lifecycle", {}).get("status", "")),
    )


def dotted(pointer: str) -> str:
    """A path as it is written here: ``/properties/A/*/B`` is ``A.*.B``."""
    return ".".join(step.replace("~1", "/").replace("~0", "~") for step in pointer.removeprefix(_PROPERTIES).split("/"))


def resolve(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Schema:
    """A schema with what it refers to in its place; what stands beside the reference wins."""
    found, seen = dict(schema), set[str]()
    while isinstance(reference := found.pop("$ref", None), str) and reference not in seen:
        seen.add(reference)
        target: Any = root
        for step in reference.removeprefix("#/").split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        found = {**target, **found}
    return found


def _json_schema(document: Mapping[str, Any]) -> Schema:
    found = {
        "type": "object",
        "properties": document["properties"],
        "required": list(document.get("required", ())),
        "additionalProperties": False,
        "$defs": document.get("definitions", {}),
    }
    renamed: Schema = _renamed(found)
    return renamed


def _renamed(value: Any) -> Any:
    """The same with references into ``definitions`` leading into ``$defs``, as the newer drafts call it."""
    if isinstance(value, Mapping):
        return {
            name: one.replace("#/definitions/", "#/$defs/")
            if name == "$ref" and isinstance(one, str)
            else _renamed(one)
            for name, one in value.items()
        }
    return [_renamed(one) for one in value] if isinstance(value, list) else value


def _paths(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    pointers: Iterable[str] = document.get(name) or ()
    return tuple(dotted(pointer) for pointer in pointers)


def _tagging(document: Mapping[str, Any], schema: Schema) -> Tagging | None:
    said: Mapping[str, Any] = document.get("tagging", {})
    if not said.get("taggable", document.get("taggable", True)):
        return None
    name = dotted(said.get("tagProperty", _TAGS))
    if name not in schema["properties"] or name in _paths(document, "writeOnlyProperties"):
        return None  # what nobody can read protects nobody
    on_create, updatable = bool(said.get("tagOnCreate", True)), bool(said.get("tagUpdatable", True))
    caseless = has_caseless_keys(document["typeName"])
    found = resolve(schema["properties"][name], schema)
    if found.get("type") != "array":
        if found.get("properties"):
            return None  # a list of pairs in an object of its own: no map
        return Tagging(name, "map", on_create=on_create, updatable=updatable, caseless=caseless)
    pair = resolve(found.get("items", {}), schema)
    names = {one.casefold(): one for one in pair.get("properties", {})}
    if "key" not in names or "value" not in names:
        return None
    extra = tuple((one, False) for one in pair.get("required", ()) if one.casefold() not in ("key", "value"))
    return Tagging(name, "list", names["key"], names["value"], on_create, updatable, extra, caseless)


def _naming(
    name: str, schema: Schema, identifier: tuple[str, ...], left_out: frozenset[str], part: PartOf | None
) -> tuple[NamedBy, str]:
    """``left_out``: what nobody can set, or nobody can read, so that nothing would be found by it."""
    settable = [one for one in schema["properties"] if one not in left_out]
    chosen = all(one in settable for one in identifier)
    if chosen:
        own = [one for one in identifier if part is None or one != part.property] or list(identifier)
        return "identifier", name_property(name, own) or own[-1]
    found = name_property(name, settable)
    return ("property", found) if found else ("tag", "")
