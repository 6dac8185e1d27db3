"""What is asked of components beyond the schema of their parameters: what makes their identity, what they are part of,
and what only the cloud sets. Most of it concerns types of families, whose schemas are their vendors' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.reference import output_references
from fractal_cloud.model.wording import Path, is_marked, shown
from fractal_cloud.offers.output_validation import parent_error, reference_written
from fractal_cloud.offers.schema_validator import has_unknowns
from fractal_cloud.rules.nested.path import PathError, parsed

Found = tuple[Path, str]

_TAGS: Final = (("Tags",), ("tags",), ("TagList",))


def identity_errors(parameters: Mapping[str, Any], facts: TypeFacts) -> Iterator[Found]:
    """References where the identity must be known before anything is resolved: in its place, its realm and its name."""
    for word in facts.words:
        if has_unknowns(parameters.get(word)):
            yield (word,), "says where the resource is, which must be known before anything is made: write it in full"
    name = facts.named_by
    if not facts.is_part and has_unknowns(parameters.get(name)):
        yield (name,), "is the resource's name, by which it is found again: write it in full, without a reference"


def parent_errors(
    parameters: Mapping[str, Any], facts: TypeFacts, types: Mapping[str, object], catalog: Mapping[str, TypeFacts]
) -> Iterator[Found]:
    """What is wrong with the parameter that names what a component of a family lies in, or is part of (S25)."""
    if not facts.nested or facts.parent is None or facts.parent not in facts.references():
        return
    wanted, needed = facts.references()[facts.parent]
    if parameters.get(facts.parent) is None:
        text = f"is missing: declare the {wanted} in this LiveSystem, and refer to it here"
    else:
        text = parent_error(parameters[facts.parent], wanted, needed, types, catalog)
    if text:
        yield (facts.parent,), text


def read_only_errors(parameters: Mapping[str, Any], component_id: str, facts: TypeFacts) -> Iterator[Found]:
    """Parameters that only the cloud sets."""
    if facts.nested:
        yield from _read_only(parameters, (), component_id, facts)


def _read_only(value: object, path: Path, component_id: str, facts: TypeFacts) -> Iterator[Found]:
    if path and is_marked(path, facts.parameter_schema, ("readOnly",)):
        reference = reference_written(component_id, ".".join(str(step) for step in path))
        yield path, f"is set by the cloud alone: take it out; other components refer to it as {reference}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _read_only(item, (*path, key), component_id, facts)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _read_only(item, (*path, index), component_id, facts)


def in_others_words(
    found: Iterable[Found], parameters: Mapping[str, Any], facts: TypeFacts, types: Mapping[str, object]
) -> Iterator[Found]:
    """The messages of the schema, with what to do where an output is declared, or a component's id stands for its own.

    A text that is a component's id, and is refused where the vendor's own id must stand, was meant as that component.
    """
    for path, message in found:
        value = _at(path, parameters)
        if facts.nested and len(path) == 1 and path[0] in facts.place and value is None:
            continue  # inherited, or missed where all components are known
        if len(path) == 1 and path[0] in facts.outputs and path[0] not in facts.parameter_schema.get("properties", {}):
            yield path, "is set by the cloud alone, and other components may refer to it: take it out"
        elif facts.nested and facts.taggable and path in _TAGS and path[0] not in facts.parameter_schema["properties"]:
            yield path, "is declared with every component's own `tags`, beside its parameters: write them there"
        elif isinstance(value, str) and value in types:
            yield (
                path,
                f"{message} ({shown(value)} is a component here: refer to one of its outputs, like {_like(value)})",
            )
        else:
            yield path, message


def _like(component: str) -> str:
    return reference_written(component, "resourceId")


def _at(path: Path, value: Any) -> object:
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def is_path(name: str, facts: TypeFacts) -> bool:
    """Whether a text is a path into a parameter of a type whose parameters are nested."""
    try:
        steps = parsed(name) if facts.nested else ()
    except PathError:
        return False
    return bool(steps) and steps[0] in facts.parameter_schema.get("properties", {})


def in_settings(settings: object) -> Iterator[Found]:
    """References in the settings of a link, which are read where nothing is resolved."""
    if isinstance(settings, Mapping):
        for path, _ in output_references(settings, ("settings",)):
            yield path, "holds a reference, and links take none: write it in full, or let a parameter refer to it"


def why_not_once(facts: TypeFacts, *, import_only: bool) -> str:
    """Why a component cannot say that it is created once (S1b); empty where it can."""
    if facts.creates_once:
        return "contradicts importOnly, which never creates anything: keep one of them" if import_only else ""
    if facts.is_part:
        return f"means nothing for {facts.type}, which is created with what it is part of: leave it out"
    if facts.taggable:
        return f"means nothing for {facts.type}, which is owned by its tags and always created: leave it out"
    return f"cannot be said of {facts.type}, which is only read here: leave it out, and make it elsewhere"
