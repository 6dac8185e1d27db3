"""What is known of component types, for people: found here without a control plane, else asked from one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fractal_cloud.cli.client import connect
from fractal_cloud.cli.errors import CommandError
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.wording import FACTS, closest, describe, resolve
from fractal_cloud.offers.installed_types import InstalledTypes
from fractal_cloud.offers.registry import installed

_MARKS = {
    "immutable": "cannot change",
    "readOnly": "set by the cloud",
    "writeOnly": "never returned",
    "secret": "a secret",
    "sensitive": "may be a secret",
    "holdsSecrets": "may hold secrets",
    "linked": "set by links",
    "swept": "read one by one",
}


def find_types(component_types: list[str], url: str, token: str) -> list[TypeFacts]:
    """The facts of types: as they are installed here, else as a control plane knows them."""
    here = InstalledTypes.of(installed())
    found = {name: facts for name in component_types if (facts := here.get(name)) is not None}
    missing = [name for name in component_types if name not in found]
    if missing and token:
        with connect(url, token) as control:
            found |= {one["type"]: TypeFacts.model_validate(one) for one in control.every("/offers", type=missing)}
    for name in component_types:
        if name not in found:
            raise CommandError(f"{name!r} {_why_unknown(name, here)}", advice="fractal types search WORDS finds types.")
    return [found[name] for name in component_types]


def _why_unknown(name: str, here: InstalledTypes) -> str:
    family = here.family_of(name)
    if family is not None:
        return family.refusal(name)
    meant = closest(name, here)
    return "is no component type that is known here" + (f": did you mean {meant!r}?" if meant else "")


def search(words: list[str], provider: str) -> Iterator[Mapping[str, str]]:
    """Every type in whose name, title or description all words stand; none of them is read in full.

    Types called by one of the words come first: `queue` finds `AWS::SQS::Queue` before `AWS::Batch::JobQueue`.
    """
    registry = installed()
    every = [(one.type, one.provider, one.title, one.description) for one in registry.catalog().values()]
    for family in registry.families(*([provider] if provider else [])):
        every += [(one.type, one.provider, one.title, one.description) for one in family.types()]
    wanted = [word.casefold() for word in words]
    for component_type, of, title, about in sorted(set(every), key=lambda one: (not _is_called(one[0], wanted), one)):
        text = f"{component_type} {title} {about}".casefold()
        if (not provider or of == provider) and all(word in text for word in wanted):
            yield {"type": component_type, "provider": of, "title": title, "description": about}


def _is_called(component_type: str, words: list[str]) -> bool:
    return re.split(r"[:./]+", component_type.casefold())[-1] in words


def rows_of(facts: TypeFacts) -> Iterator[tuple[str, str, str, str]]:
    """Each parameter with its type, what is to be known of it, and what it is for; nested ones by their paths."""
    yield from _rows(facts.parameter_schema, "", facts.parameter_schema, ())


def _rows(
    schema: Mapping[str, Any], base: str, root: Mapping[str, Any], seen: tuple[int, ...]
) -> Iterator[tuple[str, str, str, str]]:
    required = schema.get("required") or ()
    for name, part in schema.get("properties", {}).items():
        target = resolve(part, root)
        whole = {**target, **{key: value for key, value in part.items() if key != "$ref"}}
        marks = {**target.get(FACTS, {}), **part.get(FACTS, {})}
        said = [text for mark, text in _MARKS.items() if marks.get(mark)]
        notes = ", ".join([*(["required"] if name in required else []), *said])
        yield f"{base}{name}", describe(whole, root), notes, str(whole.get("description", ""))
        inner, inside = _inside(target, root, f"{base}{name}")
        if id(inner) not in seen:
            yield from _rows(inner, inside, root, (*seen, id(inner)))


def _inside(schema: Mapping[str, Any], root: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], str]:
    """The schema of what has properties of its own within a value, and how its path goes on."""
    resolved = resolve(schema, root)
    if isinstance(resolved.get("items"), Mapping):
        return resolve(resolved["items"], root), f"{path}[]."
    if not resolved.get("properties") and isinstance(resolved.get("additionalProperties"), Mapping):
        return resolve(resolved["additionalProperties"], root), f"{path}.*."
    return resolved, f"{path}."


def how_found(facts: TypeFacts) -> str:
    """By what a resource of a type is found again, and whose it is, in a sentence."""
    place = ", ".join(facts.words) or "the whole partition"
    if facts.is_part:
        names = ", ".join(facts.key) or facts.name_parameter
        which = f"by {names} within it" if names else "the only one of its type in it"
        return f"as a part of the component that {facts.parent} refers to, {which}; who owns that component owns it"
    by = ", ".join(facts.key) or facts.named_by
    tags = "owned by tags" if facts.taggable else "carries no tags: "
    if not facts.taggable:
        tags += "may be created once (createOnce)" if facts.creates_once else "read only"
    return f"by {by}, within {place}; {tags}"
