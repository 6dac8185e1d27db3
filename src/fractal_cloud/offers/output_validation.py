"""References to outputs of other components: whether they lead somewhere, and which dependencies they make.

How a reference is written is not known here (``model.reference``), nor what it stands for once it is resolved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.link import INBOUND_PREFIX
from fractal_cloud.model.reference import (
    ESCAPED,
    OUTPUT,
    FindReference,
    OutputReference,
    badly_spaced,
    find_references,
    output_reference,
    output_references,
)
from fractal_cloud.model.wording import Path, closest, is_marked, listed, shown
from fractal_cloud.offers.installed_types import family_of

_ALWAYS: Final = ("resourceId",)
_NEVER_SHOWN: Final = ("secret", "sensitive", "writeOnly")

Found = tuple[Path, str]


def is_of(actual: object, wanted: str, catalog: Mapping[str, TypeFacts]) -> bool:
    """Whether a component of a type is what is wanted: by its own name, or by its vendor's name for the same thing."""
    if wanted in ("*", actual):
        return True
    if not isinstance(actual, str):
        return False
    names = {name: facts.vendor_type for name in (actual, wanted) if (facts := catalog.get(name)) is not None}
    return wanted == names.get(actual) or actual == names.get(wanted)


class OutputChecks:
    """Checks what the parameters of components refer to, with all components of the LiveSystem in view.

    ``types``: the type of each component, by its id.
    """

    def __init__(self, types: Mapping[str, object], catalog: Mapping[str, TypeFacts]) -> None:
        self._types = types
        self._catalog = catalog

    def errors(self, component_id: object, parameters: Mapping[str, Any], facts: TypeFacts | None) -> Iterator[Found]:
        """Everything that is wrong with what the parameters of a component refer to, by path."""
        for path, reference in output_references(parameters):
            text = self._wrong(component_id, reference)
            if text:
                yield path, text
        for path, text_of_it in _texts(parameters):
            for nearly in badly_spaced(text_of_it):
                if nearly.component in self._types:
                    yield path, f"has blanks in a reference: write {nearly}, or {ESCAPED} for a literal ${{"
        yield from _in_keys(parameters)
        for path, lookup in find_references(parameters):
            text = self._wrong_lookup(lookup, facts)
            if text:
                yield path, text

    def _wrong(self, component_id: object, reference: OutputReference) -> str:
        """What is wrong with one reference; empty if nothing is."""
        literal = f", or write {ESCAPED} for a literal ${{"
        said = f"refers to {reference}"
        if reference.component == component_id:
            return f"{said}, the component itself: refer to another one{literal}"
        if reference.component not in self._types:
            meant = closest(reference.component, self._types)
            guess = f": did you mean {meant!r}?" if meant else ": declare it"
            return f"{said}, and {reference.component!r} is no component of this LiveSystem{guess}{literal}"
        kind = self._types[reference.component]
        facts = self._catalog.get(kind) if isinstance(kind, str) else None
        return "" if facts is None else _wrong_field(said, reference, facts)

    def _wrong_lookup(self, lookup: FindReference, facts: TypeFacts | None) -> str:
        found = self._catalog.get(lookup.type)
        if found is None:
            family = family_of(self._catalog, lookup.type)
            if family is not None:
                return f"looks for {shown(lookup.type)}, which {family.refusal(lookup.type)}"
            meant = closest(lookup.type, self._catalog)
            guess = f": did you mean {meant!r}?" if meant else ""
            return f"looks for {shown(lookup.type)}, a type nobody here knows{guess}"
        if facts is not None and found.provider != facts.provider:
            return (
                f"looks for {lookup.type}, which is of {found.provider!r}: look for what is of {facts.provider!r} here"
            )
        first = lookup.output.partition(".")[0]
        if first and not _has(found, lookup.output, first):
            return (
                f"looks for the output {shown(lookup.output)} of {lookup.type}, which{_instead(lookup.output, found)}"
            )
        return ""

    def needed(self, parameters: Mapping[str, Any]) -> list[str]:
        """The components that must be there before these parameters are known."""
        return [one.component for _, one in output_references(parameters) if one.component in self._types]


def _texts(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _in_keys(value: object, path: Path = ()) -> Iterator[Found]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str) and any(output_references(key)):
                yield path, f"has the key {shown(key)}: a key cannot be filled in, so no reference may stand in it"
            yield from _in_keys(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _in_keys(item, (*path, index))


def _wrong_field(said: str, reference: OutputReference, facts: TypeFacts) -> str:
    name = reference.field
    first = name.partition(".")[0]
    if not _has(facts, name, first):
        return f"{said}, and {reference.component!r}, a component of type {facts.type},{_instead(name, facts)}"
    if first not in facts.outputs and is_marked((first,), facts.parameter_schema, _NEVER_SHOWN):
        return f"{said}, which may be a secret and is never shown: refer to the same secret with $secret here, too"
    return ""


def _has(facts: TypeFacts, name: str, first: str) -> bool:
    """Whether components of a type have an output or a parameter, or may have it as far as is known here."""
    properties = facts.parameter_schema.get("properties", {})
    if first in (*_ALWAYS, INBOUND_PREFIX) or {name, first} & {*facts.outputs, *properties}:
        return True
    leads = {contract.link_type for contract in facts.links if contract.half == "outbound"}
    return first in leads or (facts.nested and facts.parameter_schema.get("additionalProperties") is not False)


def _instead(name: str, facts: TypeFacts) -> str:
    every = list(dict.fromkeys([*facts.outputs, *facts.parameter_schema.get("properties", {})]))
    meant = closest(name.partition(".")[0], every)
    if meant is not None:
        return f" has none of that name: did you mean {meant!r}?"
    return f" has none of that name: there is {listed(every)}"


def reference_written(component: str, output: str) -> str:
    """How a reference is written, for messages."""
    return str(OutputReference(component, output))


def parent_error(
    value: object, wanted: str, needed: str, types: Mapping[str, object], catalog: Mapping[str, TypeFacts]
) -> str:
    """What is wrong with the parameter by which a part, or what is unique within another, names that (S25)."""
    reference = output_reference(value)
    form = f'{{"{OUTPUT}": "ID.{needed}"}} with its id'
    if reference is None:
        return f"is {shown(value)}: declare the {wanted} in this LiveSystem, and write {form}"
    actual = types.get(reference.component)
    facts = catalog.get(actual) if isinstance(actual, str) else None
    if facts is None:
        return ""  # said of the reference, or of that component already
    if not is_of(actual, wanted, catalog):
        return f"refers to {reference.component!r}, a component of type {actual}: must be one of type {wanted}"
    if facts.is_part:
        return f"refers to {reference.component!r}, which is a part itself: refer to what that belongs to"
    return ""
