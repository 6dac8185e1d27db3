"""What the sandbox must know of a kind of resource: its tags, its name, and how it shows while the cloud is at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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

    `name` is what knobs call it. `tags` are under the protocol's neutral names, all others under their own.
    `in_phase` shows it while it is created, changed or deleted. `passing` are the top-level fields that change by
    themselves (a version, a time, a state). `replaces_tags`: a write of tags carries the whole set, so what the agent
    meant shows only beside what it last saw. `carries_tags`: a write of the whole resource carries its tags along,
    beside calls for single ones.

    Who speaks for it when the agent writes it: its tags; nobody, where it has none or is not `offered`, so that every
    such write is a violation. Otherwise:
    `is_made_once`: it cannot carry tags, and the agent may make it, but never change or delete it (S1b).
    `mark`: only links make it, and the link's mark on it speaks for it.
    `speakers`: it is a part of others, named by kind and id, and their tags or marks speak for it.
    `goes_with`: the ids of what it lives and dies with; a call about one of those is checked by that, not by this.
    `unmonitored`: why nobody needs to: the cloud itself writes it, and no call of a client does.
    """

    name: str
    place: Callable[[Body], Place]
    tags: Callable[[Body], Mapping[str, str]] | None = None
    in_phase: Callable[[Body, Phase], Body] = _as_it_is
    passing: frozenset[str] = frozenset()
    tag_fields: frozenset[str] = frozenset({"tags"})
    offered: bool = True
    is_made_once: bool = False
    mark: Callable[[Body], str] | None = None
    speakers: Callable[[Body | None, Body | None], Iterable[tuple[str, str]]] | None = None
    goes_with: Callable[[Body], Iterable[str]] | None = None
    unmonitored: str = ""
    replaces_tags: bool = False
    carries_tags: bool = False
