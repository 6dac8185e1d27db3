"""One offer by example: a declaration, other values for its parameters, and what a person can do to its resources.

Plain data, and the interface of what a person does; nothing here asserts anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Declaration = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """One living resource as a person finds it. ``handle``: what the vendor's tag calls know it by."""

    resource_id: str
    tags: Mapping[str, str]
    handle: str


class OperatorActions(Protocol):
    """What a person does to the resources of one type with the vendor's own tools and with credentials of their own.

    Nothing of the offer may be used here: the suite holds the offer against it. Where tags are frozen, ``tag`` and
    ``untag`` try it all the same, and raise as the vendor refuses.
    """

    def find(self, name: str) -> list[Found]:
        """All living resources of that name, dead remains left out."""

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        """Change one parameter; references are the cloud's own ids."""

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        """Put tags on it, leaving the others."""

    def untag(self, found: Found, *keys: str) -> None:
        """Take tags off it, leaving the others."""

    def delete(self, found: Found) -> None:
        """Delete it."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a resource from being deleted: the words by which a message must name it, and how it goes away."""

    words: tuple[str, ...]
    clear: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Hazard:
    """A way in which a deletion can be blocked. ``status``: what the component shows meanwhile (O6, O15)."""

    title: str
    status: str
    arrange: Callable[[Found], Obstacle]


def _nothing(name: str) -> Mapping[str, Any]:
    del name
    return {}


@dataclass(frozen=True, slots=True)
class OfferExample:
    """A valid declaration of one type with its parents, and everything the suite must know to try it.

    ``components``: declarations in the order of their dependencies; the last one is under test, and declares every
    parameter that can change. ``changes`` and ``immutable_changes``: another valid value per parameter, component ids
    where it is a reference. ``only_up``: parameters that the cloud lets only grow. ``name_tag``: the tag that is the
    resource's name, where the cloud has no other. ``is_slow``: creation passes through a state of its own.
    ``as_name``: how an id is written where the cloud takes fewer letters for a name. ``own``: parameters that no two of
    them can share (the disk a machine boots from), by the name of the one that has them. ``touches_parents``: what its
    parents publish changes once it is there (a disk is in use), which the next read shows. ``name_parameter``: the
    parameter that holds its name. ``tags_follow``: the cloud takes no tags in the call that creates it, so that these
    are written right afterwards.
    """

    components: Sequence[Declaration]
    changes: Mapping[str, Any]
    immutable_changes: Mapping[str, Any]
    operator: OperatorActions
    only_up: frozenset[str] = frozenset()
    name_tag: str | None = None
    is_slow: bool = False
    hazards: Sequence[Hazard] = field(default_factory=tuple)
    as_name: Callable[[str], str] = str
    own: Callable[[str], Mapping[str, Any]] = _nothing
    touches_parents: bool = False
    name_parameter: str = "name"
    tags_follow: bool = False

    @property
    def parents(self) -> Sequence[Declaration]:
        """What the component under test needs."""
        return self.components[:-1]

    @property
    def declaration(self) -> Declaration:
        """The component under test."""
        return self.components[-1]

    def under_name(self, component_id: str, **more: Any) -> dict[str, Any]:
        """The component under test under an id of its own, which is also its name."""
        name = self.as_name(component_id)
        parameters = {**self.declaration["parameters"], **self.own(name)}
        return {**self.declaration, "id": name, "parameters": parameters, **more}

    def editable(self) -> list[str]:
        """The parameters a person can change to the other value and the agent can change back."""
        return [name for name in self.changes if name not in self.only_up]
