"""References in parameters: values that stand elsewhere, and are filled in by the agent that writes them (A8).

    {"$secret": "db-password"}

This is the one place in which references are recognised, checked and replaced. Where a value comes from is the agent's
business; which parameters may hold a reference is said by their type (``parameter``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.model.identity import ID_RULE, is_id
from fractal_cloud.model.wording import Path, listed, shown, unknown

MARK: Final = "$"
"""How the key of every reference begins."""
SECRET: Final = "$secret"
KINDS: Final = (SECRET,)
"""Every reference there is."""

NAME_ERROR: Final = f"does not name a secret: give its name, {ID_RULE}, and never its value"
"""The message for what cannot be a name; it does not quote it, because some people write the value there."""

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {SECRET: {"type": "string", "minLength": 1, "maxLength": 63}},
    "required": [SECRET],
    "additionalProperties": False,
}
"""The JSON Schema of a reference to a secret."""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """The value of a secret, by its name: ``{"$secret": "name"}``. The value itself is known to agents alone."""

    name: str

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError(NAME_ERROR)

    def to_json(self) -> dict[str, str]:
        """As it is written in YAML and JSON."""
        return {SECRET: self.name}


def secret(name: str) -> SecretReference:
    """Refer to a secret by its name; it is bound to its store where the agent runs."""
    return SecretReference(name)


def is_name(name: object) -> bool:
    """Whether something may be the name of a secret."""
    return isinstance(name, str) and is_id(name)


def secret_name(value: object) -> str | None:
    """The name of the secret that a value refers to; None where it is no such reference."""
    if isinstance(value, SecretReference):
        return value.name
    if isinstance(value, Mapping) and len(value) == 1 and is_name(value.get(SECRET)):
        return str(value[SECRET])
    return None


def replaced(value: Any, fill: Callable[[SecretReference], Any]) -> Any:
    """A value with every reference in it replaced; the rest is the same."""
    name = secret_name(value)
    if name is not None:
        return fill(SecretReference(name))
    if isinstance(value, Mapping):
        return {key: replaced(item, fill) for key, item in value.items()}
    return [replaced(item, fill) for item in value] if isinstance(value, list | tuple) else value


def references(value: object, path: Path = ()) -> Iterator[tuple[Path, SecretReference]]:
    """Every reference in a value, by its path."""
    name = secret_name(value)
    if name is not None:
        yield path, SecretReference(name)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from references(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from references(item, (*path, index))


def has_reference(value: object) -> bool:
    """Whether a reference stands anywhere in a value."""
    return next(references(value), None) is not None


def form_errors(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Everything in a value that begins like a reference and is none, by path."""
    if isinstance(value, Mapping):
        marked = [key for key in value if isinstance(key, str) and key.startswith(MARK)]
        if not marked:
            for key, item in value.items():
                yield from form_errors(item, (*path, key))
        elif marked[0] not in KINDS:
            yield path, f"has the key {shown(marked[0])}, which {unknown('reference', marked[0], KINDS)}"
        elif len(value) > 1:
            yield path, f"has more keys beside {marked[0]}: a reference has this one alone"
        elif not is_name(value[marked[0]]):
            yield path, NAME_ERROR
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from form_errors(item, (*path, index))


def clear_secret() -> str:
    """The message for a clear value where only a reference may stand; it does not quote the value."""
    return (
        f'is given in clear, and it is a secret: write {{"{SECRET}": "NAME"}} (in Python, secret("NAME")), and bind '
        "NAME where its agent runs"
    )


def misplaced(places: Sequence[str]) -> str:
    """The message for a reference to a secret where none may stand; ``places``: the parameters that take one."""
    where = f"it may stand in {listed(places)}" if places else "no parameter of this type takes one"
    return f"is a reference to a secret, which cannot stand here: {where}"


def with_references(schema: Mapping[str, Any], *, only: bool = False) -> dict[str, Any]:
    """A parameter's JSON Schema with a reference allowed wherever it asks for text; ``only``: instead of the text."""
    if schema.get("type") == "string":
        return dict(SCHEMA) if only else {"anyOf": [dict(schema), dict(SCHEMA)]}
    found = dict(schema)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            options = [with_references(option, only=only) for option in schema[key]]
            found[key] = [one for option in options for one in option.get("anyOf", [option])]  # one choice, not two
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = with_references(schema["additionalProperties"], only=only)
    if isinstance(schema.get("patternProperties"), Mapping):
        found["patternProperties"] = {
            pattern: with_references(part, only=only) for pattern, part in schema["patternProperties"].items()
        }
    if isinstance(schema.get("items"), Mapping):
        found["items"] = with_references(schema["items"], only=only)
    return found
