"""Whether the tags that a declaration names as the user's own can be written: on components, and on the LiveSystem.

What keys and values a type takes is data of the type (``TagRules``); which of them differ is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import ComponentDeclaration
from fractal_cloud.model.tag_rules import TAGS, TagRules, tag_key, tag_path
from fractal_cloud.model.wording import shown
from fractal_cloud.offers.input_errors import InputErrors

_ANY_TYPE: Final = TagRules(key=".+", value=".*", most=1_000)
"""What holds of tags whatever type they are for: the three are never among them."""


def check_tags(given: object, base: str, errors: InputErrors) -> dict[str, str]:
    """The tags as they were given, with everything noted that is wrong with them for whatever type they are for."""
    path = f"{base}.{TAGS}".removeprefix(".")
    if not isinstance(given, Mapping):
        errors.add(path, f"is {shown(given)}: must be an object of texts by their keys, like {{team: shop}}")
        return {}
    tags: dict[str, str] = {}
    for key, value in given.items():
        if isinstance(key, str) and isinstance(value, str):
            tags[key] = value
        elif isinstance(key, str):
            errors.add(_path(base, key), f"is {shown(value)}: must be text, so put it in quotes")
        else:
            errors.add(path, f"has the key {shown(key)}: must be text, so put it in quotes")
    return tags


def check_general(tags: Mapping[str, str], base: str, errors: InputErrors) -> None:
    """Note what no type takes: for tags of a LiveSystem, which are checked with its components one by one as well."""
    for key, message in _ANY_TYPE.errors(tags):
        errors.add(_path(base, key), message)


def check_for_type(tags: Mapping[str, str], facts: TypeFacts, base: str, errors: InputErrors) -> None:
    """Note what a component's own tags cannot say of its type."""
    if not tags:
        return
    if not facts.taggable:
        path = f"{base}.{TAGS}"
        errors.add(path, f"cannot be written: {facts.title} carries no tags at its provider. Take {TAGS} out")
        return
    for key, message in facts.tag_rules.errors(tags):
        errors.add(_path(base, key), message)


def check_inherited(
    tags: Mapping[str, str],
    components: Sequence[ComponentDeclaration],
    catalog: Mapping[str, TypeFacts],
    errors: InputErrors,
) -> None:
    """Note what a LiveSystem's tags cannot say of its components; those that carry no tags are left out.

    Each problem is noted once, with the first component that has it.
    """
    if not tags:
        return
    for component in components:
        facts = catalog[component.type]
        if not facts.taggable:
            continue
        both = {**tags, **component.tags}
        for key, message in facts.tag_rules.errors(both):
            path = _path("", key)
            is_own = key in component.tags and (key not in tags or component.tags[key] == both[key])
            is_inherited = key in tags and key not in component.tags
            if key and not is_inherited and not (is_own and "same key" in message):
                continue  # said of the component's own tags
            if not errors.has(path):
                what = f"for {component.id!r} ({facts.title})"
                errors.add(path, f"{message.rstrip('.')}; {what}. Or declare it on the components that take it")


def ignorable(name: str, facts: TypeFacts) -> bool:
    """Whether `ignoreDrift` may name it as the user's own tags: all of them, or one."""
    return facts.taggable and (name == TAGS or tag_key(name) is not None)


def _path(base: str, key: str) -> str:
    return f"{base}.{tag_path(key) if key else TAGS}".removeprefix(".")
