"""Whether component types make sense in themselves, before anything is declared with them.

A type may come from a package of somebody else, or from an agent that has one: nothing of it is believed unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.commands import command_errors, context_errors
from fractal_cloud.model.errors import InputError
from fractal_cloud.model.visible_text import hidden_character
from fractal_cloud.model.wording import FACTS, listed, path_text, shown
from fractal_cloud.offers.schema_validator import is_pattern

_HERE: Final = "#/$defs/"
_PATTERNS: Final = FormatChecker(formats=())
_PATTERNS.checks("regex")(is_pattern)


def type_errors(brought: Sequence[TypeFacts], known: Mapping[str, TypeFacts]) -> list[InputError]:
    """Everything by which the types brought contradict themselves, each other, or types that are known already."""
    found: list[InputError] = []
    every = {**known, **{facts.type: facts for facts in brought}}
    seen: set[str] = set()
    for facts in brought:
        base = f"types[{facts.type}]"
        if facts.type in seen:
            found.append(InputError(base, "stands twice: give every type once"))
        seen.add(facts.type)
        errors = _schema_errors(json.dumps(facts.parameter_schema)) or _contradictions(facts, every)
        found += [InputError(base + path, message) for path, message in errors]
    return found


def template_errors(brought: Sequence[TypeFacts]) -> list[InputError]:
    """Everything by which a command of the types brought could not be printed for people to paste (A6)."""
    found: list[InputError] = []
    for facts in brought:
        glass, entry = facts.glass, facts.entry
        lists = {
            "glass.breakGlass": glass.break_glass,
            "glass.readopt": glass.readopt,
            "entry.commands": entry.commands,
        }
        errors = [
            (f"{name}[{index}]", message)
            for name, commands in lists.items()
            for index, command in enumerate(commands)
            for message in command_errors(command)
        ]
        errors += [("entry.context", message) for message in context_errors(entry.context)]
        hidden = hidden_character(glass.caveat)
        if hidden is not None:
            errors.append(("glass.caveat", f"has the control character U+{ord(hidden):04X}: take it out"))
        found += [InputError(f"types[{facts.type}].{path}", message) for path, message in errors]
    return found


@lru_cache(maxsize=256)
def _schema_errors(text: str) -> tuple[tuple[str, str], ...]:
    """What is wrong with a schema; kept, because every agent brings the same ones and a check takes its time."""
    return tuple(_find_schema_errors(json.loads(text)))


def _find_schema_errors(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    at = ".parameterSchema"
    try:
        Draft202012Validator.check_schema(schema, format_checker=_PATTERNS)
    except SchemaError as error:
        yield at + path_text(tuple(error.absolute_path)), f"is no JSON Schema: {error.message}"
        return
    definitions = schema.get("$defs", {})
    for reference in _references(schema):
        if not reference.startswith(_HERE) or reference.removeprefix(_HERE) not in definitions:
            yield at, f"refers to {shown(reference)}, which is not there: refer to {_HERE}… of the same schema"
    for name, part in schema.get("properties", {}).items():
        if not isinstance(part, Mapping):
            yield f"{at}.properties.{name}", f"is {shown(part)}: describe the parameter with an object"
        elif not _is_reference(part.get(FACTS)):
            yield f"{at}.properties.{name}.{FACTS}", "is no object whose reference has a type and an output"
        elif not _is_hosts((part.get(FACTS) or {}).get("hosts", {})):
            yield f"{at}.properties.{name}.{FACTS}.hosts", "is no object that has a list of outputs for every type"


def _references(schema: object) -> Iterator[str]:
    """Every ``$ref`` in a schema, however deep."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        parts: Sequence[object] = list(schema.values())
    else:
        parts = schema if isinstance(schema, list) else []
    for part in parts:
        yield from _references(part)


def _is_reference(facts: object) -> bool:
    if facts is None:
        return True
    reference = facts.get("reference") if isinstance(facts, Mapping) else ""
    if reference is None:
        return True
    return isinstance(reference, Mapping) and all(isinstance(reference.get(key), str) for key in ("type", "output"))


def _is_hosts(hosts: object) -> bool:
    return isinstance(hosts, Mapping) and all(
        isinstance(outputs, list) and all(isinstance(name, str) for name in outputs) for outputs in hosts.values()
    )


def _contradictions(facts: TypeFacts, every: Mapping[str, TypeFacts]) -> Iterator[tuple[str, str]]:
    parameters = facts.parameter_schema.get("properties", {})
    references = facts.references()
    for word in facts.place:
        if word not in parameters and not references:
            yield ".place", f"names {word!r}, which is no parameter, and no component leads to one that has it"
    if facts.parent is not None and facts.parent not in parameters:
        yield ".parent", f"names {facts.parent!r}, which is no parameter: there is {listed(parameters)}"
    elif facts.parent is not None and facts.parent not in references:
        yield (
            ".parent",
            f"names {facts.parent!r}, which refers to no component: say which type and output it stands for",
        )
    for target, outputs_needed in facts.hosts().items():
        lacking = [name for name in outputs_needed if target in every and name not in every[target].outputs]
        if lacking:
            at = f".parameterSchema.properties.{facts.realm}"
            yield at, f"needs {listed(lacking)} of {target}, which has {listed(every[target].outputs)}"
    for name, (target, output) in references.items():
        # A type that nobody has registered yet may come with another agent.
        if target in every and output not in every[target].outputs:
            outputs = listed(every[target].outputs) or "none"
            yield f".parameterSchema.properties.{name}", f"stands for {output!r} of {target}, which has {outputs}"
