"""What a type's schema says of each place in its parameters: what is there, and how it is compared. Pure.

Schemas come from vendors: references may be cyclic, missing or deep, and what is not understood is compared as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from fractal_cloud.model.wording import FACTS
from fractal_cloud.rules.nested.path import ANY, Element, Path, Step

Kind = Literal["object", "map", "list", "value"]
Order = Literal["ordered", "set", "keyed"]
Json = Mapping[str, Any]

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
_NOTHING: Final[Json] = {}
_MOST_REFERENCES: Final = 32
_MOST_BRANCHES: Final = 200
DEEPEST: Final = 64
"""How deep a schema is followed; what lies below is compared as it is."""


class Shape:
    """What stands at one place. ``marks``: what ``x-fractal`` says of it, and of what it refers to."""

    def __init__(self, node: Any, root: Json, known: dict[int, Shape]) -> None:
        self.node = node
        self.root = root
        self._known = known
        nodes = list(branches(node, root))
        self._nodes = nodes
        marks: dict[str, Any] = {}
        for one in reversed(nodes):
            marks |= mapping(one.get(FACTS))
        self.marks: Json = marks

    @cached_property
    def meant(self) -> int:
        """What identifies the schema, by however many references it is reached: the place they lead to."""
        found = self._nodes[0] if self._nodes else _NOTHING
        for one in self._nodes[1:]:
            if not isinstance(found.get("$ref"), str):
                break
            found = one
        return id(found)

    @cached_property
    def kind(self) -> Kind:
        """What the schema expects; ``value`` where it says nothing."""
        if any(mapping(one.get("properties")) for one in self._nodes):
            return "object"
        types = self._types
        if "array" in types or any("items" in one for one in self._nodes):
            return "list"
        if types == {"object"} or any(
            isinstance(one.get("additionalProperties"), Mapping) or mapping(one.get("patternProperties"))
            for one in self._nodes
        ):
            return "map"
        return "value"

    @cached_property
    def _types(self) -> frozenset[str]:
        found: set[str] = set()
        for one in self._nodes:
            said = one.get("type")
            found |= {said} if isinstance(said, str) else {name for name in sequence(said) if isinstance(name, str)}
        return frozenset(found - {"null"})

    @cached_property
    def type(self) -> str:
        """The one type of JSON that a single value has; empty where there are several, or none is said."""
        return next(iter(self._types)) if len(self._types) == 1 else ""

    @cached_property
    def compare(self) -> str:
        """By which name of ``comparers`` it is compared."""
        said = self.marks.get("compare")
        return said if isinstance(said, str) else ""

    @cached_property
    def order(self) -> Order:
        """How a list is compared; ``unordered`` and ``cidrs`` are what flat types call a set."""
        said = self.marks.get("list")
        if said == "keyed" and self.keys:
            return "keyed"
        return "set" if said in ("set", "keyed") or self.compare in ("unordered", "cidrs") else "ordered"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """What distinguishes the elements of a keyed list."""
        return tuple(name for name in sequence(self.marks.get("keys")) if isinstance(name, str))

    @property
    def has_others(self) -> bool:
        """Whether entries that nobody declared are somebody else's."""
        return bool(self.marks.get("others")) or self.compare == "entries"

    def property(self, name: str) -> Shape:
        """What stands under one name of an object, or under one key of a map."""
        for one in self._nodes:
            found = mapping(one.get("properties")).get(name)
            if found is not None:
                return self._of(found)
        return self.entry

    @cached_property
    def entry(self) -> Shape:
        """What the values of a map are."""
        for one in self._nodes:
            patterns = list(mapping(one.get("patternProperties")).values())
            for found in (one.get("additionalProperties"), *patterns):
                if isinstance(found, Mapping):
                    return self._of(found)
        return self._of(_NOTHING)

    @cached_property
    def items(self) -> Shape:
        """What the elements of a list are."""
        if self.compare == "cidrs":
            return self._of({FACTS: {"compare": "cidr"}})
        found = next((one["items"] for one in self._nodes if isinstance(one.get("items"), Mapping)), _NOTHING)
        return self._of(found)

    def child(self, step: Step) -> Shape:
        """What a step of a path leads to."""
        if isinstance(step, str):
            return self.property(step)
        return self.items if isinstance(step, Element) or self.kind == "list" else self.entry

    def properties(self) -> Iterator[tuple[str, Shape]]:
        """Every name of an object."""
        names = {name: None for one in self._nodes for name in mapping(one.get("properties"))}
        for name in names:
            yield name, self.property(name)

    def _of(self, node: Any) -> Shape:
        """The shape of a subschema, made once. Those made here are kept, so that no other object has their id."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = Shape(node, self.root, self._known)
        return known


def shape_of(schema: Json) -> Shape:
    """The shape of a type's parameters."""
    return Shape(schema, schema, {})


def along(shape: Shape, path: Path) -> Iterator[Shape]:
    """The shape at every step of a path."""
    for step in path:
        shape = shape.child(step)
        yield shape


def marked(shape: Shape, fits: Callable[[Shape], bool]) -> Iterator[Path]:
    """The paths of all places that fit, with ``ANY`` for elements and entries; nothing that lies in such a place."""
    yield from _marked(shape, fits, (), frozenset())


def _marked(shape: Shape, fits: Callable[[Shape], bool], path: Path, above: frozenset[int]) -> Iterator[Path]:
    if path and fits(shape):
        yield path
        return
    if shape.meant in above or len(path) >= DEEPEST:  # a schema that contains itself
        return
    above = above | {shape.meant}
    match shape.kind:
        case "object":
            for name, child in shape.properties():
                yield from _marked(child, fits, (*path, name), above)
        case "map":
            yield from _marked(shape.entry, fits, (*path, ANY), above)
        case "list":
            yield from _marked(shape.items, fits, (*path, ANY), above)
        case "value":
            pass


def branches(node: Any, root: Json, into: Sequence[str] = _COMBINED) -> Iterator[Json]:
    """A schema, what it refers to, and every alternative that it names, each once; ``into``: by which words."""
    waiting, seen = [node], set[int]()
    while waiting and len(seen) < _MOST_BRANCHES:
        one = waiting.pop(0)
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one.get("$ref"), str):
            waiting.append(resolved(one["$ref"], root))
        for name in into:
            waiting.extend(sequence(one.get(name)))


def resolved(reference: str, root: Json) -> Any:
    """What a reference inside the same document points to; nothing where it points nowhere."""
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for word in reference[2:].split("/"):
        name = word.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def mapping(value: Any) -> Json:
    """A value that is an object; an empty one for any other."""
    return value if isinstance(value, Mapping) else _NOTHING


def sequence(value: Any) -> Sequence[Any]:
    """A value that is a list; an empty one for any other."""
    return value if isinstance(value, list | tuple) else ()
