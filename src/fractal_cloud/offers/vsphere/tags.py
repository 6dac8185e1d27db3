"""How the three tags are spelled at vSphere: tags of one category, with key and value in the tag's name (T8).

A tag is attached and detached by itself, so nobody else's is ever written (T1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from fractal_cloud.model.catalog import GlassCommands
from fractal_cloud.model.tag_rules import TagRules
from fractal_cloud.model.tags import MANAGED_BY, OURS, OWNER, RECONCILE, RECONCILE_VALUE, ProtocolTags

CATEGORY: Final = "fractal-cloud"
Word = tuple[str, str]
"""A tag by the names of its category and of itself."""
RULES: Final = TagRules(
    key=r"[^\x00-\x1f]{1,256}",
    value=r"[^\x00-\x1f]{1,256}",
    form="keys (names of categories) and values (names of tags) of 1 to 256 characters",
    caseless=True,
)
GUARD: Final = (
    "no precondition: vSphere has none for tags. The window is the one call after a fresh read; tags are attached and "
    "detached one by one, so a change of another tag is never lost"
)


def tags_of(attached: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Tags as people know them, from pairs of category and name: of ours key and value, of others the category's name.

    Two values of one key are joined: the result is neither of the two, so nothing counts as managed by them.
    """
    found: dict[str, list[str]] = {}
    for category, name in attached:
        key, _, value = name.partition(":") if category == CATEGORY else (category, "", name)
        found.setdefault(key, []).append(value)
    return {key: ", ".join(sorted(values)) for key, values in sorted(found.items())}


def name_of(key: str, value: str) -> str:
    """The name of one of our tags."""
    return f"{key}:{value}"


def word_of(key: str, value: str) -> Word:
    """One of our tags, as it is made and attached."""
    return CATEGORY, name_of(key, value)


def words_of(tags: ProtocolTags) -> list[Word]:
    """The tags that a set comes to: ours in our category, each of the user's own in the category of its key.

    What permits is last, should not all of them be taken.
    """
    ours = replace(tags, declared={}).to_mapping()
    return [*tags.declared.items(), *sorted((word_of(key, value) for key, value in ours.items()), key=_permits)]


def _permits(word: Word) -> bool:
    return word == word_of(MANAGED_BY, OURS)


def vocabulary(live_system_id: str) -> list[Word]:
    """Every tag of the protocol that a LiveSystem and its people may attach; each must be made before it can be."""
    return [word_of(OWNER, live_system_id), word_of(RECONCILE, RECONCILE_VALUE), word_of(MANAGED_BY, OURS)]


def glass() -> GlassCommands:
    """The commands for a machine, by its id: govc would take a path for a pattern that several may match."""
    machine = "VirtualMachine:{moref}"
    attach = f"govc tags.attach -c {CATEGORY}"
    return GlassCommands(
        break_glass=[f"govc tags.detach -c {CATEGORY} {name_of(MANAGED_BY, OURS)} {machine}"],
        readopt=[
            f"{attach} {name_of(MANAGED_BY, OURS)} {machine}",
            f"{attach} {name_of(RECONCILE, RECONCILE_VALUE)} {machine}",
        ],
        caveat="They act at the vCenter of GOVC_URL.",
    )
