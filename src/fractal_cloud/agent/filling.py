"""What a component declares, with what it refers to filled in: outputs of other components, and what lookups found.

Nothing half is filled in: a parameter in which something is not there yet is left out, and its component waits. Where
values of others come from is said by the evaluator; secrets are filled in by ``secrets``, after everything else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.reference import (
    FindReference,
    OutputReference,
    as_text,
    filled,
    find_references,
    has_reference,
    output_reference,
    output_references,
)
from fractal_cloud.model.wording import Path, path_text
from fractal_cloud.rules.hiding import holds_hidden

MISSING: Final = object()
"""Stands for a value that is not there yet."""

ValueOf = Callable[[OutputReference], Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a lookup found; None where it has no answer yet, and why in words. ``news``: what it would find by now."""

    found: Sequence[Any] | None
    why: str = ""
    news: str = ""


FoundBy = Callable[[FindReference, FindReference], Answer]
"""Answers a lookup: as it is declared, and with outputs filled in."""


@dataclass(frozen=True, slots=True)
class Filled:
    """Declared parameters with references filled in; those of which something is missing are left out.

    ``waits``: what is not there yet. ``seeks``: why lookups have no answer yet. ``errors``: why what was filled in
    cannot be written. ``news``: what lookups would find by now (C12); ``found``: what they found, by lookup.
    """

    parameters: Mapping[str, Any]
    waits: tuple[OutputReference, ...] = ()
    seeks: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    news: tuple[str, ...] = ()
    found: Mapping[str, list[Any]] = field(default_factory=dict)


@dataclass(slots=True)
class _Filling:
    """What is found out while the parameters of one component are filled in."""

    facts: OfferFacts
    value_of: ValueOf
    found_by: FoundBy
    waits: dict[OutputReference, None] = field(default_factory=dict)
    seeks: dict[str, None] = field(default_factory=dict)
    news: dict[str, None] = field(default_factory=dict)
    found: dict[str, list[Any]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def one(self, name: str, declared: Any) -> Any:
        """One parameter, filled in; ``MISSING`` where something of it is not there, or does not fit."""
        outputs = list(output_references(declared, (name,)))
        values = {reference: self.value_of(reference) for _, reference in outputs}
        lacking = [reference for reference, value in values.items() if value is MISSING]
        self.waits.update(dict.fromkeys(lacking))
        problems = [f"{_named(p)} {why}" for p, one in outputs if (why := _problem(one, values[one], _at(declared, p)))]
        self.errors += problems
        if lacking or problems:
            return MISSING
        lookups = list(find_references(declared, (name,)))
        answers = {lookup_key(one): self._found(one, with_values(one, values)) for _, one in lookups}
        if any(answer is None for answer in answers.values()):
            return MISSING
        value = filled(declared, values.__getitem__, lambda one: answers[lookup_key(one)])
        misfits = list(_misfits(self.facts, name, value, [path for path, _ in (*outputs, *lookups)]))
        self.errors += misfits
        return MISSING if misfits else value

    def _found(self, declared: FindReference, lookup: FindReference) -> list[Any] | None:
        answer = self.found_by(declared, lookup)
        if answer.found is None:
            self.seeks[answer.why] = None
            return None
        if answer.news:
            self.news[answer.news] = None
        self.found[lookup_key(declared)] = list(answer.found)
        return list(answer.found)


def fill(
    parameters: Mapping[str, Any], facts: OfferFacts, value_of: ValueOf, found_by: FoundBy, names: Iterable[str]
) -> Filled:
    """Parameters with these of them filled in."""
    filling = _Filling(facts, value_of, found_by)
    known = dict(parameters)
    for name in names:
        value = filling.one(name, parameters[name])
        if value is MISSING:
            del known[name]
        else:
            known[name] = value
    waits, seeks, news = tuple(filling.waits), tuple(filling.seeks), tuple(filling.news)
    return Filled(known, waits, seeks, tuple(filling.errors), news, filling.found)


def with_values(lookup: FindReference, values: Mapping[OutputReference, Any]) -> FindReference:
    """A lookup in whose conditions outputs are filled in."""
    where = {name: filled(value, values.__getitem__) for name, value in lookup.where.items()}
    tags = {name: as_text(filled(value, values.__getitem__)) for name, value in lookup.tags.items()}
    return replace(lookup, where=where, tags=tags)


def lookup_key(lookup: FindReference) -> str:
    """By what a lookup is recognised as the same."""
    return json.dumps(lookup.to_json(), sort_keys=True)


def inside(values: object, name: str) -> Any:
    """What stands under a name: dots lead into it, unless they are part of the name; ``MISSING`` where nothing does."""
    if isinstance(values, Mapping):
        if name in values:
            return values[name]
        for dot in (at for at in range(len(name) - 1, 0, -1) if name[at] == "."):
            if name[:dot] in values:
                return inside(values[name[:dot]], name[dot + 1 :])
    if isinstance(values, list):
        first, _, rest = name.partition(".")
        if first.isdigit() and int(first) < len(values):
            return inside(values[int(first)], rest) if rest else values[int(first)]
    return MISSING


def _problem(reference: OutputReference, value: Any, place: Any) -> str:
    """Why a value cannot be filled in where it is referred to; empty where it can."""
    said = f"{reference.component} ({reference.field})"
    if value is MISSING:
        return ""
    if holds_hidden(value) or has_reference(value):
        return f"refers to {said}, which may be a secret and is not shown: refer to the secret itself"
    if output_reference(place) is None and isinstance(value, Mapping | list | tuple):
        kind = "an object" if isinstance(value, Mapping) else "a list"
        return f"has {said} within a longer text, and that is {kind}: refer to one value in it, by its name after a dot"
    return ""


def _at(declared: Any, path: Path) -> Any:
    """What stands at a path that begins with the parameter's own name."""
    for step in path[1:]:
        declared = declared[step]
    return declared


def _misfits(facts: OfferFacts, name: str, value: Any, paths: list[Path]) -> Iterator[str]:
    """What of a value that was filled in does not fit its type's schema; the rest of it was checked at deploy."""
    for path, message in facts.check.schema_errors({name: value}).items():
        if any(path[: len(one)] == one or one[: len(path)] == path for one in paths):
            yield f"{_named(path)} {message}: that is what its reference was filled in with, so refer to something else"


def _named(path: Path) -> str:
    return path_text(path).removeprefix(".")
