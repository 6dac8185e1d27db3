"""References in parameters: values that stand elsewhere, and are filled in by the agent that writes them (A8).

    {"$secret": "db-password"}
    {"$secret": {"generate": 32}}                   made once: see ``model.generated``
    {"$output": "jobs.Arn"}                     also in a text: "arn of jobs: ${jobs.Arn}"
    {"$find": {"type": "AWS::EC2::Subnet", "tags": {"tier": "private"}}}

This is the one place in which references are recognised, checked and replaced. Where a value comes from is the agent's
business; which parameters may hold a secret is said by their type (``parameter``). In a text ``$${`` is ``${``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_cloud.model import generated
from fractal_cloud.model.identity import ID_RULE, is_id
from fractal_cloud.model.wording import Path, closest, listed, shown, unknown

MARK: Final = "$"
"""How the key of every reference begins."""
SECRET: Final = "$secret"
OUTPUT: Final = "$output"
FIND: Final = "$find"
KINDS: Final = (SECRET, OUTPUT, FIND)
"""Every reference there is."""

OPENING: Final = "${"
ESCAPED: Final = "$${"
_IN_TEXT: Final = re.compile(r"\$\$\{|\$\{([A-Za-z0-9_-]+)\.([^\s{}$\"']+)\}")
_NEARLY_IN_TEXT: Final = re.compile(r"\$\$\{|\$\{\s*([A-Za-z0-9_-]+)\s*\.\s*([^\s{}$\"']+)\s*\}")
_FIELD: Final = re.compile(r"[^\s{}$\"'.]+(\.[^\s{}$\"'.]+)*\Z")
_FIND_KEYS: Final = ("type", "tags", "where", "output", "region")

NAME_ERROR: Final = f"does not name a secret: give its name, {ID_RULE}, and never its value"
"""The message for what cannot be a name; it does not quote it, because some people write the value there."""

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {SECRET: {"anyOf": [{"type": "string", "minLength": 1, "maxLength": 63}, dict(generated.SCHEMA)]}},
    "required": [SECRET],
    "additionalProperties": False,
}
"""The JSON Schema of a reference to a secret."""


@dataclass(frozen=True, slots=True)
class SecretReference:
    """The value of a secret, by its name: ``{"$secret": "name"}``. The value itself is known to agents alone."""

    name: str

    def __post_init__(self) -> None:
        if not is_name(self.name) and not generated.is_generated(self.name):
            raise ValueError(NAME_ERROR)

    @property
    def is_generated(self) -> bool:
        """Whether nobody chooses its value."""
        return generated.is_generated(self.name)

    def to_json(self) -> dict[str, Any]:
        """As it is written in YAML and JSON."""
        if self.is_generated:
            return {SECRET: {generated.GENERATE: generated.length_of(self.name)}}
        return {SECRET: self.name}


@dataclass(frozen=True, slots=True)
class OutputReference:
    """What another component publishes, or what it is: ``{"$output": "jobs.Arn"}``, in a text ``${jobs.Arn}``.

    ``field``: an output, else a parameter; after a dot comes what is inside of it.
    """

    component: str
    field: str

    def __str__(self) -> str:
        return f"{OPENING}{self.component}.{self.field}}}"

    def to_json(self) -> dict[str, str]:
        """As it is written in YAML and JSON, where it is no part of a text."""
        return {OUTPUT: f"{self.component}.{self.field}"}


@dataclass(frozen=True, slots=True)
class FindReference:
    """What exists already: ``output`` of all resources of a type that have these tags and values, as a list."""

    type: str
    tags: Mapping[str, str] = field(default_factory=dict)
    where: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""
    region: str = ""

    def to_json(self) -> dict[str, Any]:
        """As it is written in YAML and JSON: what was left out is left out."""
        said = {"type": self.type, "tags": dict(self.tags), "where": dict(self.where)}
        said |= {"output": self.output, "region": self.region}
        return {FIND: {name: value for name, value in said.items() if value}}


class OutputText(str):
    """A reference to an output that can stand wherever a text may, in longer texts too: its text is ``${jobs.Arn}``."""

    __slots__ = ()


def output(component: str, name: str) -> OutputText:
    """Refer to an output or a parameter of a component, by the component's id."""
    if not is_id(component):
        raise ValueError(f"{shown(component)} is no component's id: it must be {ID_RULE}")
    if not _FIELD.match(name):
        raise ValueError(f"{shown(name)} names no output: give its name, and inner names after dots")
    return OutputText(OutputReference(component, name))


def find(
    component_type: str,
    *,
    tags: Mapping[str, str] | None = None,
    where: Mapping[str, Any] | None = None,
    output: str = "",
    region: str = "",
) -> FindReference:
    """Refer to what exists already: a list of the ids of all resources of a type with these tags and values.

    ``output``: another output than the id. ``region``: another one than the component's own.
    """
    return FindReference(component_type, tags or {}, where or {}, output, region)


def secret(name: str) -> SecretReference:
    """Refer to a secret by its name; it is bound to its store where the agent runs."""
    return SecretReference(name)


def generated_secret(length: int = generated.DEFAULT_LENGTH) -> SecretReference:
    """Have a secret of so many characters made once, where the vendor keeps secrets; nobody chooses or sees it."""
    name = generated.name_of({generated.GENERATE: length})
    if name is None:
        raise ValueError("; ".join(generated.said_errors({generated.GENERATE: length})))
    return SecretReference(name)


def is_name(name: object) -> bool:
    """Whether something may be the name of a secret that people keep."""
    return isinstance(name, str) and is_id(name)


def secret_name(value: object) -> str | None:
    """The name of the secret that a value refers to; None where it is no such reference."""
    if isinstance(value, SecretReference):
        return value.name
    if not isinstance(value, Mapping) or len(value) != 1 or SECRET not in value:
        return None
    said = value[SECRET]
    return str(said) if is_name(said) else generated.name_of(said)


def placed(value: Any, component: str, path: Path = ()) -> Any:
    """The same value, in which the name of every generated secret says to what it belongs."""
    name = secret_name(value)
    if name is not None:
        return {SECRET: generated.placed(name, component, path)} if generated.is_generated(name) else value
    if isinstance(value, Mapping):
        return {key: placed(item, component, (*path, key)) for key, item in value.items()}
    return [placed(item, component, (*path, at)) for at, item in enumerate(value)] if isinstance(value, list) else value


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


def output_reference(value: object) -> OutputReference | None:
    """The output that the whole of a value refers to; None where it is no such reference, or a longer text."""
    if isinstance(value, OutputReference):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        return _split(value.get(OUTPUT))
    found = _IN_TEXT.fullmatch(value) if isinstance(value, str) else None
    return OutputReference(found[1], found[2]) if found is not None and found[1] is not None else None


def _split(said: object) -> OutputReference | None:
    component, dot, name = said.partition(".") if isinstance(said, str) else ("", "", "")
    return OutputReference(component, name) if dot and component and _FIELD.match(name) else None


def find_reference(value: object) -> FindReference | None:
    """What the whole of a value looks for; None where it is no such reference."""
    if isinstance(value, FindReference):
        return value
    said = value.get(FIND) if isinstance(value, Mapping) and len(value) == 1 else None
    if not isinstance(said, Mapping) or any(_find_errors(said)):
        return None
    return FindReference(**said)


def is_filled_in(value: object) -> bool:
    """Whether the whole of a value is a reference to an output, or to what exists already."""
    return output_reference(value) is not None or find_reference(value) is not None


def output_references(value: object, path: Path = ()) -> Iterator[tuple[Path, OutputReference]]:
    """Every reference to an output in a value, by the path of what it is or of the text it stands in."""
    whole = output_reference(value)
    if whole is not None:
        yield path, whole
    elif isinstance(value, str):
        yield from ((path, one) for one in _in_text(value))
    else:
        for key, item in _inside(value):
            yield from output_references(item, (*path, key))


def find_references(value: object, path: Path = ()) -> Iterator[tuple[Path, FindReference]]:
    """Every reference to what exists already, by its path."""
    whole = find_reference(value)
    if whole is not None:
        yield path, whole
    else:
        for key, item in _inside(value):
            yield from find_references(item, (*path, key))


def _in_text(text: str) -> Iterator[OutputReference]:
    if OPENING in text:
        yield from (OutputReference(one[1], one[2]) for one in _IN_TEXT.finditer(text) if one[1] is not None)


def badly_spaced(text: str) -> Iterator[OutputReference]:
    """What would be references in a text if there were no blanks in them."""
    if OPENING in text:
        for one in _NEARLY_IN_TEXT.finditer(text):
            if one[1] is not None and not _IN_TEXT.fullmatch(one[0]):
                yield OutputReference(one[1], one[2])


def _inside(value: object) -> Iterator[tuple[Any, object]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list | tuple):
        yield from enumerate(value)


def needs_filling(value: object) -> bool:
    """Whether ``filled`` would change anything in a value: a reference stands in it, or an escaped ``${``."""
    if isinstance(value, str):
        return OPENING in value and any(_IN_TEXT.finditer(value))
    return is_filled_in(value) or any(needs_filling(item) for _, item in _inside(value))


def filled(
    value: Any, fill: Callable[[OutputReference], Any], found: Callable[[FindReference], Any] | None = None
) -> Any:
    """A value with what its references stand for, as it is sent to a cloud; ``$${`` becomes ``${``.

    What the whole of a value refers to keeps its type; within a longer text it is written as text. ``found`` gives what
    a lookup found: without it, lookups stay as they are.
    """
    if isinstance(value, str) and OPENING not in value:
        return value
    whole = output_reference(value)
    if whole is not None:
        return fill(whole)
    if isinstance(value, str):
        return _IN_TEXT.sub(
            lambda one: OPENING if one[1] is None else as_text(fill(OutputReference(one[1], one[2]))), value
        )
    lookup = find_reference(value)
    if lookup is not None:
        return value if found is None else found(lookup)
    if isinstance(value, Mapping):
        return {key: filled(item, fill, found) for key, item in value.items()}
    return [filled(item, fill, found) for item in value] if isinstance(value, list | tuple) else value


def literal(value: Any) -> Any:
    """A value as it is declared so that no text in it is taken for a reference; ``filled`` gives it back."""
    if isinstance(value, str):
        return _NEARLY_IN_TEXT.sub(lambda one: f"${one[0]}", value) if OPENING in value else value
    if isinstance(value, Mapping):
        return {key: literal(item) for key, item in value.items()}
    return [literal(item) for item in value] if isinstance(value, list | tuple) else value


def as_text(value: object) -> str:
    """A value as it is written within a text: a text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def form_errors(value: object, path: Path = (), *, free_keys: bool = False) -> Iterator[tuple[Path, str]]:
    """Everything in a value that begins like a reference and is none, by path.

    ``free_keys``: keys that begin with ``$`` may be the vendor's own (``$ref``), unless they look like one of ours.
    """
    if isinstance(value, Mapping):
        marked = [key for key in value if _is_marked(key, free_keys=free_keys)]
        if not marked:
            for key, item in value.items():
                yield from form_errors(item, (*path, key), free_keys=free_keys)
        elif marked[0] not in KINDS:
            yield path, f"has the key {shown(marked[0])}, which {unknown('reference', marked[0], KINDS)}"
        elif len(value) > 1:
            yield path, f"has more keys beside {marked[0]}: a reference has this one alone"
        else:
            yield from ((path, message) for message in _wrong_with(marked[0], value[marked[0]]))
            if generated.name_of(value.get(SECRET)) is not None and any(isinstance(step, int) for step in path):
                yield path, generated.IN_A_LIST
    else:
        for index, item in _inside(value):
            yield from form_errors(item, (*path, index), free_keys=free_keys)


def _is_marked(key: object, *, free_keys: bool) -> bool:
    if not isinstance(key, str) or not key.startswith(MARK):
        return False
    return not free_keys or key in KINDS or closest(key, KINDS) is not None


def _wrong_with(kind: str, said: object) -> Iterator[str]:
    if kind == SECRET and isinstance(said, Mapping):
        yield from generated.said_errors(said)
    elif kind == SECRET and not is_name(said):
        yield NAME_ERROR
    elif kind == OUTPUT and _split(said) is None:
        yield f'has {OUTPUT} {shown(said)}: give a component\'s id and one of its outputs, like "jobs.Arn"'
    elif kind == FIND and not isinstance(said, Mapping):
        yield f"has {FIND} {shown(said)}: give an object with type, and tags or where"
    elif kind == FIND and isinstance(said, Mapping):
        yield from _find_errors(said)


def _find_errors(said: Mapping[Any, Any]) -> Iterator[str]:
    for key in said:
        if key not in _FIND_KEYS:
            yield f"has {FIND} with {shown(key)}, which {unknown('key of it', str(key), _FIND_KEYS)}"
    for key in ("type", "output", "region"):
        if key in said and not (isinstance(said[key], str) and said[key]):
            yield f"has {FIND} whose {key} is {shown(said[key])}: must be text"
    if "type" not in said:
        yield f"has {FIND} without type: say what is looked for, like 'AWS::EC2::Subnet'"
    for key in ("tags", "where"):
        if key in said and not isinstance(said[key], Mapping):
            yield f"has {FIND} whose {key} is {shown(said[key])}: must be an object"
    tags = said.get("tags")
    if isinstance(tags, Mapping) and not all(isinstance(one, str) for pair in tags.items() for one in pair):
        yield f"has {FIND} whose tags are not all text: give texts by their keys"
    if not said.get("tags") and not said.get("where"):
        yield f"has {FIND} without tags and where: say which ones are meant, or it would be all of them"


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
