"""What the sandbox must know of a kind of resource: its tags, its name, and how it looks while the cloud is at work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = ["Body", "Kind", "Phase", "Place"]

Body: TypeAlias = dict[str, Any]
Phase: TypeAlias = Literal["creating", "updating", "deleting"]


class Place(NamedTuple):
    """What a resource is called, and within what that name means something (a region, a project, a parent's id)."""

    name: str
    scope: str


def _as_it_is(body: Body, _: Phase) -> Body:
    return body


@dataclass(frozen=True)
class Kind:
    """One kind of resource.

    `name` is what knobs call it. `tags` are told under the protocol's neutral names, all others under their own; a kind
    without them cannot carry tags, and the agent must never write it. `looks` shows it while it is created, changed or
    deleted. `passing` are the top-level fields that change by themselves (a version, a time, a state). What is not
    `judged` the agent may write freely: operations, and parts that live and die with a judged resource.
    `replaces_tags`: a write of tags carries the whole set, so what the agent meant shows only beside what it last saw.
    `carries_tags`: a write of the whole resource carries its tags along, beside calls for single ones.
    """

    name: str
    place: Callable[[Body], Place]
    tags: Callable[[Body], Mapping[str, str]] | None = None
    looks: Callable[[Body, Phase], Body] = _as_it_is
    passing: frozenset[str] = frozenset()
    tag_fields: frozenset[str] = frozenset({"tags"})
    judged: bool = True
    replaces_tags: bool = False
    carries_tags: bool = False
