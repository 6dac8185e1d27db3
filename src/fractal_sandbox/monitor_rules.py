"""What the protocol forbids: purely computational, from one change and the tags of one resource at one moment.

Written from SPEC alone, and on purpose not sharing a line with the agent's own rules: a monitor that shares the
agent's code shares its mistakes. No memory, no clock, no cloud.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from fractal_sandbox.calls import Origin

__all__ = [
    "LINK",
    "MANAGED_BY",
    "OURS",
    "OWNER",
    "PROTOCOL_KEYS",
    "RECONCILE",
    "Broken",
    "Change",
    "forbidden",
    "forbidden_creation",
    "forbidden_in_link",
]

_V = TypeVar("_V")

MANAGED_BY = "managed-by"
OURS = "fractal-cloud"
RECONCILE = "fractal-cloud"
OWNER = "fractal-cloud-owner"
PROTOCOL_KEYS = frozenset({MANAGED_BY, RECONCILE, OWNER})
LINK = "fractal-cloud-link"
"""The monitor's name for the mark of the link that made a resource, wherever a cloud keeps it (L17)."""
LABELS = "labels:"
"""Stands before the keys of labels where a cloud has annotations beside them."""
_AFTER_COMPONENT = ("<", ">", "=")  # how a mark goes on after the component it belongs to; tags of AWS take no < and >


@dataclass(frozen=True)
class Change:
    """What a call does to an existing resource.

    `removed` maps keys to the value they must have to be removed (None: any); `removes_all` takes every tag away;
    `replace-tags` is a write of the whole set of tags. `finishes`: the resource was made by the agent's own call, which
    could not carry tags, and the agent has not put any on it so far. `is_caseless`: keys of the resource's tags that
    differ in case alone are one key.
    """

    kind: Literal["modify", "delete", "tag", "replace-tags"]
    added: Mapping[str, str] = field(default_factory=dict)
    removed: Mapping[str, str | None] = field(default_factory=dict)
    removes_all: bool = False
    finishes: bool = False
    is_caseless: bool = False


@dataclass(frozen=True)
class Broken:
    """A rule of SPEC that a write breaks, and how."""

    rule: str
    text: str


def forbidden(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    """Return the rule that a change breaks on a resource with these tags; None if it is allowed."""
    if change.is_caseless:
        added, removed = _in_small_letters(change.added), _in_small_letters(change.removed)
        small = replace(change, is_caseless=False, added=added, removed=removed)
        declared = frozenset(key.casefold() for key in origin.tags)
        return forbidden(small, _in_small_letters(tags), replace(origin, tags=declared))
    if LINK in tags and not PROTOCOL_KEYS & tags.keys():
        return forbidden_in_link(tags, origin)
    owner = tags.get(OWNER)
    if owner is not None and owner != origin.live_system:
        return Broken("S6", f"the resource is owned by {owner!r}, not by {origin.live_system!r}")
    if change.kind == "replace-tags":
        return Broken("T10", "the whole set of tags was written: write single tags, or carry a precondition")
    if change.kind != "tag" and origin.reason == "transfer":
        return Broken("T4", f"a transfer writes {OWNER} and nothing else, and this is a {change.kind}")
    if change.kind == "tag":
        return _forbidden_tagging(change, tags, origin)
    return _not_managed(tags)


def _in_small_letters(tags: Mapping[str, _V]) -> dict[str, _V]:
    return {key.casefold(): value for key, value in tags.items()}


def forbidden_creation(tags: Mapping[str, str], origin: Origin) -> Broken | None:
    """Return the rule that a creating call with these tags in it breaks; None if it is allowed."""
    if LINK in tags and not PROTOCOL_KEYS & tags.keys():
        return forbidden_in_link(tags, origin)
    if tags.get(MANAGED_BY) != OURS:
        return Broken("T2", f"created without {MANAGED_BY}: {OURS} in the call")
    if tags.get(OWNER) is None:
        return Broken("T2", f"created without {OWNER} in the call")
    if tags[OWNER] != origin.live_system:
        return Broken("T2", f"created with owner {tags[OWNER]!r} on behalf of {origin.live_system!r}")
    if RECONCILE in tags:
        return Broken("G10", f"created with {RECONCILE}: {tags[RECONCILE]}, which only people and a Force Push write")
    return None


def forbidden_in_link(tags: Mapping[str, str], origin: Origin) -> Broken | None:
    """Return the rule that making, changing or deleting what links make breaks, where the resource bears these tags.

    The mark alone speaks for it: a link of a component makes, changes and deletes what bears that component's mark.
    """
    mark = tags.get(LINK)
    if mark is None:
        return Broken("L17", "it bears no mark of a link, so no link of ours made it")
    own = f"{origin.live_system}/{origin.component}"
    if not mark.startswith(tuple(own + sign for sign in _AFTER_COMPONENT)):
        return Broken("L17", f"it was made by the link {mark!r}, and written on behalf of {own!r}")
    if origin.reason != "link":
        return Broken("L17", f"what a link made was written for {origin.reason or 'no'} reason: only link may")
    return None


def _not_managed(tags: Mapping[str, str]) -> Broken | None:
    manager = tags.get(MANAGED_BY)
    if manager == OURS:
        return None
    if manager is None:
        return Broken("S7", f"the resource carries no {MANAGED_BY}")
    return Broken("T7", f"the resource is managed by {manager!r}")


def _forbidden_tagging(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    if change.removes_all:
        return Broken("T1", "all tags were removed, other people's too")
    touched = {*change.added, *change.removed}
    declared = {*origin.tags, *(f"{LABELS}{key}" for key in origin.tags)}
    foreign = sorted(touched - PROTOCOL_KEYS - declared)
    if foreign:
        return Broken("T1", f"tags that are neither of the protocol nor declared were touched: {', '.join(foreign)}")
    if change.finishes and origin.reason == "tagging":
        return _forbidden_finish(change, tags, origin)
    if touched - PROTOCOL_KEYS:
        return _forbidden_user_tags(change, tags, origin)
    if origin.reason == "transfer":
        return _forbidden_transfer(change, tags, origin)
    adds_by_force = origin.reason == "force-push" and not change.removed and MANAGED_BY not in tags
    return (
        _forbidden_owner(change, tags, origin)
        or _forbidden_manager(change, tags, origin)
        or _forbidden_reconcile(change, origin)
        or (None if adds_by_force else _not_managed(tags))
    )


def _forbidden_user_tags(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    """The user's own tags are parameters (T1): written on what is the LiveSystem's own and managed, by themselves."""
    if PROTOCOL_KEYS & {*change.added, *change.removed}:
        return Broken("T1", "tags of the protocol and declared ones were written in one call")
    if origin.reason not in ("deploy", "drift", "handshake"):
        return Broken("T1", f"declared tags were written for {origin.reason or 'no'} reason")
    if tags.get(OWNER) != origin.live_system:
        return Broken("S6", f"declared tags were written where {OWNER} is {tags.get(OWNER)!r}")
    return _not_managed(tags)


def _forbidden_finish(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    if PROTOCOL_KEYS & tags.keys():
        return Broken("S17", "tags were put on what somebody had tagged already")
    added = {key: value for key, value in change.added.items() if key not in origin.tags}
    if change.removed or added != {MANAGED_BY: OURS, OWNER: origin.live_system}:
        return Broken("T2", f"the tags of a creation are {MANAGED_BY} and {OWNER}, and these are {dict(change.added)}")
    return None


def _forbidden_transfer(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    """An operator moves ownership (O8): the owner tag alone, of what is the mover's own and managed."""
    if change.removed or change.added.keys() - {OWNER}:
        return Broken("T4", f"a transfer wrote more than {OWNER}: {sorted({*change.added, *change.removed})}")
    if tags.get(OWNER) != origin.live_system:
        return Broken("T4", f"{OWNER} was moved on behalf of {origin.live_system!r}, and it is {tags.get(OWNER)!r}")
    if not change.added.get(OWNER):
        return Broken("T4", f"a transfer named no new {OWNER}")
    if RECONCILE in tags:
        return Broken("S12a", f"{OWNER} was moved during a handshake: the new owner would write at once")
    return _not_managed(tags)


def _forbidden_owner(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    if OWNER in change.removed:
        return Broken("O11", f"{OWNER} was removed")
    wanted = change.added.get(OWNER)
    if wanted is not None and wanted != origin.live_system:
        return Broken("T4", f"{OWNER} was set to {wanted!r} on behalf of {origin.live_system!r}")
    if wanted is not None and tags.get(OWNER, wanted) != wanted:
        return Broken("T4", f"{OWNER} {tags[OWNER]!r} was overwritten")
    return None


def _forbidden_manager(change: Change, tags: Mapping[str, str], origin: Origin) -> Broken | None:
    manager = tags.get(MANAGED_BY)
    if MANAGED_BY in change.removed:
        if origin.reason != "glass":
            return Broken("O11", f"{MANAGED_BY} was removed for {origin.reason or 'no'} reason: only glass may")
        return _not_managed(tags)
    if MANAGED_BY not in change.added:
        return None
    if origin.reason != "force-push":
        return Broken("T3", f"{MANAGED_BY} was written for {origin.reason or 'no'} reason: only force-push may")
    if change.added[MANAGED_BY] != OURS:
        return Broken("T3", f"{MANAGED_BY} was set to {change.added[MANAGED_BY]!r}")
    return _not_managed(tags) if manager is not None else None


def _forbidden_reconcile(change: Change, origin: Origin) -> Broken | None:
    if RECONCILE not in change.added:
        return None
    if origin.reason != "force-push":
        return Broken("G10", f"{RECONCILE} was added for {origin.reason or 'no'} reason: only force-push may")
    if change.added[RECONCILE] != "reconcile":
        return Broken("T1", f"{RECONCILE} was set to {change.added[RECONCILE]!r}")
    return None
