"""Whether references stand where they may, and only they where a type demands a secret (A8); and what looks like a
secret and is given in clear.

Types that only an agent has are checked, too: what a parameter may hold travels in the facts of its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.reference import clear_secret, form_errors, misplaced, references, secret_name
from fractal_cloud.model.secret_detection import apparent_secret
from fractal_cloud.model.wording import HIDING, Path, is_marked, listed, path_text
from fractal_cloud.offers.generated_secrets import providers

_TAKING: Final = (*HIDING, "writeOnly")
"""The facts of nested values in whose place a reference to a secret may stand."""


def reference_errors(parameters: Mapping[str, Any], facts: TypeFacts) -> Iterator[tuple[Path, str]]:
    """Everything that is wrong with the references in parameters, and secrets that are given in clear, by path."""
    takers = facts.hidden()
    keeping = providers()
    for name, value in parameters.items():
        if facts.provider not in keeping:
            yield from ((at, _not_kept(facts, keeping)) for at, one in references(value, (name,)) if one.is_generated)
        malformed = list(form_errors(value, (name,), free_keys=facts.nested))
        yield from malformed
        if malformed or value is None:
            continue
        if facts.nested:
            yield from _misplaced_within(value, (name,), facts)
            yield from _clear_within(value, (name,), facts)
        elif name not in takers:
            yield from ((path, misplaced(takers)) for path, _ in references(value, (name,)))
        elif facts.parameter_facts(name).get("secret") and secret_name(value) is None:
            yield (name,), clear_secret()


def _not_kept(facts: TypeFacts, keeping: Sequence[str]) -> str:
    """The message for a generated secret at a provider that has no store for it."""
    return (
        f"asks for a generated secret, and nothing of provider {facts.provider!r} can have one, only of "
        f'{listed(keeping)}: keep one where the agent runs, and write {{"$secret": "NAME"}}'
    )


def _misplaced_within(value: object, path: Path, facts: TypeFacts) -> Iterator[tuple[Path, str]]:
    """References to secrets where a schema with nested parameters does not say that a secret may stand."""
    for at, _ in references(value, path):
        if not is_marked(at, facts.parameter_schema, _TAKING):
            yield at, misplaced(facts.hidden())


def _clear_within(value: object, path: Path, facts: TypeFacts) -> Iterator[tuple[Path, str]]:
    """Values in clear where a schema with nested parameters asks for a reference to a secret."""
    if secret_name(value) is not None:
        return
    if is_marked(path, facts.parameter_schema, ("secret",)):
        yield path, clear_secret()
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _clear_within(item, (*path, key), facts)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _clear_within(item, (*path, index), facts)


def clear_secrets(declaration: LiveSystemDeclaration, catalog: Mapping[str, TypeFacts]) -> list[str]:
    """Warnings for what is given in clear and looks like a secret; they do not quote it."""
    found: list[str] = []
    for component in declaration.components:
        facts = catalog.get(component.type)
        for name in facts.hidden() if facts is not None else ():
            for path, why in _apparent(component.parameters.get(name), (name,)):
                found.append(
                    f"components[{component.id}].parameters{path_text(path)} looks like {why}, and is given in clear: "
                    'keep it where the agent runs, and write {"$secret": "NAME"}'
                )
    return found


def _apparent(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Mapping):
        if secret_name(value) is None:
            for key, item in value.items():
                yield from _apparent(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _apparent(item, (*path, index))
    elif why := apparent_secret(str(path[-1]) if len(path) > 1 else "", value):
        yield path, why
