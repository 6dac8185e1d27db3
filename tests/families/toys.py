"""A vendor whose types have no classes: a family over a few schemas, on a cloud in memory.

``SCHEMAS`` is what the vendor publishes; ``IN_THE_ACCOUNT`` is what only an account of it knows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from fractal_cloud.model.catalog import GlassCommands, TypeFacts, part_name
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.generic_component import GenericComponent
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.wording import closest
from fractal_cloud.offers.family import Family, FamilyOffer, TypeSummary
from fractal_cloud.offers.offer import AnyOffer, Cloud, Provider, Query, Wanted
from tests.links.clouds import Store, Thing, ToyCloud, ToySession

STORES: dict[str, Store] = {"toys": Store("toys")}

PREFIX = "Toy::"
QUEUE = "Toy::Box::Queue"
ALARM = "Toy::Box::Alarm"
UNTAGGABLE = "Toy::Box::Note"
ENTRY = "Toy::Box::Entry"
LOCK = "Toy::Box::Lock"
NET = "Toy::Box::Net"
PRIVATE = "Toy::Own::Engine"

_WHERE: dict[str, Any] = {"region": {"type": "string", "description": "Where it is.", "x-fractal": {"immutable": True}}}

SCHEMAS: dict[str, dict[str, Any]] = {
    QUEUE: {
        "description": "A queue of toys.",
        "name_parameter": "QueueName",
        "properties": {
            "QueueName": {"type": "string", "description": "Its name.", "x-fractal": {"immutable": True}},
            "Delay": {"type": "integer", "minimum": 0, "maximum": 900},
            "Fifo": {"type": "boolean", "x-fractal": {"immutable": True}},
            "RedrivePolicy": {"$ref": "#/$defs/RedrivePolicy"},
            "All": {"type": "array", "items": {"type": "string"}},
            "Entries": {"type": "array", "items": {"$ref": "#/$defs/Entry"}},
            "Environment": {"type": "object", "additionalProperties": {"type": "string"}},
            "Login": {"$ref": "#/$defs/Login"},
            "Variables": {"$ref": "#/$defs/Variables"},
            "Password": {"type": "string", "x-fractal": {"writeOnly": True, "sensitive": True}},
        },
        "required": ["Delay"],
        "$defs": {
            "Login": {
                "type": "object",
                "properties": {
                    "Deep": {
                        "type": "object",
                        "properties": {
                            "User": {"type": "string"},
                            "Secret": {"type": "string", "x-fractal": {"writeOnly": True, "secret": True}},
                        },
                        "additionalProperties": False,
                    }
                },
                "additionalProperties": False,
            },
            "Variables": {
                "type": "object",
                "properties": {
                    "Values": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "x-fractal": {"holdsSecrets": True},
                    }
                },
                "additionalProperties": False,
            },
            "RedrivePolicy": {
                "type": "object",
                "properties": {
                    "deadLetterTargetArn": {"type": "string", "pattern": "^toy:"},
                    "maxReceiveCount": {"type": "integer", "minimum": 1},
                },
                "required": ["deadLetterTargetArn"],
                "additionalProperties": False,
            },
            "Entry": {
                "type": "object",
                "properties": {"Id": {"type": "string"}, "Weight": {"type": "number"}},
                "required": ["Id"],
                "additionalProperties": False,
            },
        },
        "outputs": {"Arn": "its address among all toys", "Later": "what the vendor finds out some time later"},
    },
    ALARM: {
        "description": "Rings when a queue is full.",
        "name_parameter": "",
        "properties": {"Threshold": {"type": "number"}, "QueueArn": {"type": "string"}},
        "required": [],
        "outputs": {"AlarmId": "what the vendor calls it"},
    },
    ENTRY: {
        "description": "An entry of a queue: a part of it, distinguished by where it leads.",
        "name_parameter": "",
        "part": {"key": ["To", "Port"]},
        "properties": {
            "Queue": {"type": "string", "x-fractal": {"reference": {"type": QUEUE, "output": "QueueId"}}},
            "To": {"type": "string", "x-fractal": {"immutable": True}},
            "Port": {"type": "integer", "x-fractal": {"immutable": True}},
            "Weight": {"type": "integer"},
        },
        "required": ["Queue", "To"],
        "outputs": {},
    },
    LOCK: {
        "description": "The lock of a queue, which has one at most: it cannot be deleted while it is locked.",
        "name_parameter": "",
        "part": {"key": [], "blocks": True},
        "properties": {
            "Queue": {"type": "string", "x-fractal": {"reference": {"type": QUEUE, "output": "QueueId"}}},
            "Strength": {"type": "integer"},
        },
        "required": ["Queue"],
        "outputs": {},
    },
    NET: {
        "description": "A net that carries no tags, and is no part of anything.",
        "name_parameter": "NetName",
        "creates_once": True,
        "properties": {"NetName": {"type": "string"}, "Size": {"type": "integer"}},
        "required": [],
        "outputs": {},
    },
}

IN_THE_ACCOUNT: dict[str, dict[str, Any]] = {
    PRIVATE: {
        "description": "An engine that only one account has.",
        "name_parameter": "",
        "properties": {"Power": {"type": "integer"}},
        "required": ["Power"],
        "outputs": {},
    },
}


EVERYWHERE: frozenset[str] = frozenset()
"""Types whose names are unique everywhere, and in no region of their own: a test may put some in."""

GLASS = GlassCommands(break_glass=["toys untag {resourceId}"], readopt=["toys tag {resourceId}"])


def facts_of(component_type: str, schema: Mapping[str, Any]) -> TypeFacts:
    """What is known of a type from the vendor's schema."""
    part = schema.get("part")
    has_name = schema["name_parameter"] or part is not None
    name = {} if has_name else {"name": {"type": "string", "description": "Its name."}}
    return TypeFacts(
        type=component_type,
        provider="toys",
        title=component_type.removeprefix(PREFIX),
        description=schema["description"],
        parameter_schema={
            "type": "object",
            "properties": {**_WHERE, **name, **copy.deepcopy(schema["properties"])},
            "required": list(schema["required"]),
            "additionalProperties": False,
            **({"$defs": copy.deepcopy(schema["$defs"])} if "$defs" in schema else {}),
        },
        outputs={"endpoint": "where it is reached", "QueueId": "its id", **schema["outputs"]},
        place=[] if component_type in EVERYWHERE else ["region"],
        family="toy-types",
        name_parameter=schema["name_parameter"],
        nested=True,
        taggable=part is None and not schema.get("creates_once"),
        is_part=part is not None,
        in_scope_of_parent=part is not None,
        parent="Queue" if part is not None else None,
        key=part["key"] if part is not None else [],
        creates_once=bool(schema.get("creates_once")),
        glass=GLASS if part is None else GlassCommands(),
    )


class ToyTypeOffer(FamilyOffer[ToyCloud]):
    """How every type of the vendor is read and changed."""

    def sightings(self, cloud: ToyCloud, query: Query) -> Iterator[Sighting]:
        """All of one type."""
        cloud.store.call(f"list {self.type}")
        for thing in list(cloud.store.things.values()):
            if thing.type == self.type and thing.place in ("", cloud.scope.place):
                yield self._sighting(thing)

    def read(self, cloud: ToyCloud, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One by its id."""
        cloud.store.call(f"read {self.type}")
        thing = cloud.store.things.get(resource_id)
        return None if thing is None else self._sighting(thing)

    def create(self, cloud: ToyCloud, wanted: Wanted[GenericComponent], tags: ProtocolTags) -> Sighting:
        """Make it, with its tags."""
        cloud.store.call("create")
        component = wanted.component
        values = {key: value for key, value in component.parameters().items() if key not in ("region", "name")}
        made = (cloud.store.new_id(), self.type, component.name, tags.to_mapping(), copy.deepcopy(values))
        thing = Thing(*made, place=cloud.scope.place)
        if self.is_part and self._of(cloud, thing):
            raise Conflict(f"{thing.actual} is there already")
        cloud.store.things[thing.id] = thing
        return self._sighting(thing)

    def _of(self, cloud: ToyCloud, thing: Thing) -> list[Thing]:
        """Those that are the same part of the same queue."""
        same = [self._name(thing), thing.actual["Queue"]]
        of_type = (one for one in cloud.store.things.values() if one.type == self.type)
        return [one for one in of_type if [self._name(one), one.actual["Queue"]] == same]

    def _name(self, thing: Thing) -> str:
        return part_name(thing.actual.get(name) for name in self.key) if self.is_part else thing.name

    def _sighting(self, thing: Thing) -> Sighting:
        found = _sighting(thing)
        parent = thing.actual.get("Queue") if self.is_part else None
        return replace(found, name=self._name(thing), parent_id=parent)

    def update(
        self, cloud: ToyCloud, sighting: Sighting, wanted: Wanted[GenericComponent], drift: Collection[str]
    ) -> None:
        """Write every top-level parameter in which something differs."""
        cloud.store.call("update")
        declared = wanted.component.parameters()
        names = {path.partition(".")[0].partition("[")[0] for path in drift}
        thing = cloud.store.things[sighting.resource_id]
        thing.actual.update({name: copy.deepcopy(declared[name]) for name in names})

    def delete(self, cloud: ToyCloud, sighting: Sighting) -> None:
        """Delete it."""
        cloud.store.call("delete")
        within = [one for one in cloud.store.things.values() if one.actual.get("Queue") == sighting.resource_id]
        if any(one.type == LOCK for one in within):
            raise Conflict("it is locked")
        for one in within:
            del cloud.store.things[one.id]
        cloud.store.things.pop(sighting.resource_id, None)

    def tag(self, cloud: ToyCloud, sighting: Sighting, add: ProtocolTags, remove: ProtocolTags) -> None:
        """Change protocol tags."""
        cloud.store.call("tag")
        tags = cloud.store.things[sighting.resource_id].tags
        tags.update(add.to_mapping())
        for key in remove.to_mapping():
            tags.pop(key, None)


_OUTPUTS: dict[str, Callable[[Thing], dict[str, Any]]] = {
    QUEUE: lambda thing: {"Arn": f"toy:{thing.id}", **thing.routes},
    ALARM: lambda thing: {"AlarmId": f"alarm:{thing.id}"},
    PRIVATE: lambda _: {},
}


def _returned(thing: Thing) -> dict[str, Any]:
    """What the vendor returns of a resource: all of it, but for what it never returns."""
    properties = {**SCHEMAS, **IN_THE_ACCOUNT}[thing.type]["properties"]
    known = [name for name in properties if not properties[name].get("x-fractal", {}).get("writeOnly")]
    found = {name: copy.deepcopy(thing.actual.get(name)) for name in known}
    login: dict[str, Any] = found.get("Login") or {}
    login.get("Deep", {}).pop("Secret", None)
    return found


def _outputs(thing: Thing) -> dict[str, Any]:
    return _OUTPUTS[thing.type](thing) if thing.type in _OUTPUTS else {}


def _sighting(thing: Thing) -> Sighting:
    return Sighting(
        type=thing.type,
        name=thing.name,
        resource_id=thing.id,
        protocol=ProtocolTags.from_mapping(thing.tags),
        tags=dict(thing.tags),
        actual=_returned(thing),
        outputs={"endpoint": f"{thing.name}.toy", "QueueId": thing.id, **_outputs(thing)},
    )


class ToyTypes(Family):
    """All types of the vendor."""

    name = "toy-types"
    provider = "toys"
    title = "Every type of the toy vendor"

    def __init__(self) -> None:
        self.learned: dict[str, TypeFacts] = {}

    def covers(self, component_type: str) -> bool:
        """``Toy::…``."""
        return component_type.startswith(PREFIX)

    def offer(self, component_type: str) -> AnyOffer | None:
        """The offer of a type that the vendor published, or that an account reported."""
        if component_type in SCHEMAS:
            schema = SCHEMAS[component_type]
            blocks = bool(schema.get("part", {}).get("blocks"))
            return ToyTypeOffer.of(facts_of(component_type, schema), blocks_parent_deletion=blocks)
        learned = self.learned.get(component_type)
        return None if learned is None else ToyTypeOffer.of(learned)

    def refusal(self, component_type: str) -> str:
        """What is there instead."""
        if component_type == UNTAGGABLE:
            return "carries no tags and is no part of anything: declare what it belongs to"
        meant = closest(component_type, SCHEMAS)
        return "is no type of the toy vendor" + (f": did you mean {meant!r}?" if meant else "")

    def types(self) -> Iterator[TypeSummary]:
        """What the vendor published."""
        for name, schema in sorted(SCHEMAS.items()):
            yield TypeSummary(name, self.provider, name.removeprefix(PREFIX), schema["description"])

    def as_of(self) -> str:
        """When."""
        return "2026-11-01"

    def learn(self, cloud: Cloud, component_type: str) -> TypeFacts | None:
        """Ask the account."""
        assert isinstance(cloud, ToyCloud)
        cloud.store.call(f"describe {component_type}")
        schema = IN_THE_ACCOUNT.get(component_type)
        if schema is None:
            return None
        self.learned[component_type] = facts_of(component_type, schema)
        return self.learned[component_type]


class _Session(ToySession):
    """A connection to whatever store there is now."""

    def __init__(self) -> None:
        super().__init__(STORES["toys"])


provider = Provider("toys", "Toys", _Session)
family = ToyTypes()


def another(name: str) -> ModuleType:
    """The same vendor as another process has it installed: what one has learned, no other knows."""
    made = ModuleType(f"{__name__}.{name}")
    vars(made).update(provider=provider, family=ToyTypes())
    return made


def empty() -> None:
    """Begin anew."""
    STORES["toys"] = Store("toys")
    family.learned.clear()


def busy() -> Conflict:
    """What the vendor says when it is at work."""
    return Conflict("another operation is running")
