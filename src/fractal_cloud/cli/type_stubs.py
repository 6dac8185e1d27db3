"""Typed classes for component types that have none here, written for somebody's own repository.

    fractal types stub AWS::SQS::Queue > my_types.py

Each type becomes a class whose constructor accepts the type's parameters under their own names, or as one dictionary
where Python has no such names; nested values become typed dictionaries. What is written is checked by people's own type
checkers, and by the control plane like all else.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.component import COMPONENT_FIELDS
from fractal_cloud.model.wording import FACTS, resolve

Schema = Mapping[str, Any]

HEADER: Final = '''"""Component types of {names}.

Written by `fractal types stub`: write it anew instead of changing it.
"""

# ruff: noqa: E501, N801, N803, N815  # the vendor's own names and words

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Required, TypedDict, Unpack

from fractal_cloud import Component, FindReference, OutputText, SecretReference
from fractal_cloud.model.generic_component import GenericComponent

Elsewhere = OutputText | FindReference | SecretReference
"""A value that stands elsewhere: `component.output("…")`, `find(…)`, `secret("…")`."""

__all__ = [{exported}]
'''
_OWN: Final[Mapping[str, str]] = {
    "dependencies": "Sequence[str | Component]",
    "ignore_drift": "Sequence[str]",
    "links_from": "Sequence[str]",
    "import_only": "bool",
    "create_once": "bool",
    "tags": "Mapping[str, str] | None",
}
_EMPTY: Final = {"bool": "False", "Mapping[str, str] | None": "None"}
_PASSED: Final = {"Sequence": "list({})", "Mapping": "dict({} or {{}})"}
_PLAIN: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_MOST_CHOICES: Final = 100
_WIDTH: Final = 110


def stub_of(types: Iterable[TypeFacts]) -> str:
    """A module with a class for each type."""
    every = [_Stub(facts) for facts in types]
    taken: set[str] = set()
    for one in every:
        one.name = _free(one.name, taken)
    parts = [part for one in every for part in one.written()]
    names = ", ".join(one.facts.type for one in every)
    exported = ", ".join(f'"{one.name}"' for one in every)
    return HEADER.format(names=names, exported=exported) + "".join(f"\n\n{part}\n" for part in parts)


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}{number}", number + 1
    taken.add(found)
    return found


def class_name(component_type: str) -> str:
    """``AWS::SQS::Queue`` as ``SqsQueue``, ``batch/v1/CronJob`` as ``BatchV1CronJob``."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", component_type) if word]
    kept = words[1:] if len(words) > 2 and words[0] == "AWS" else words
    name = "".join(word if not word.isupper() else word.capitalize() for word in (w[:1].upper() + w[1:] for w in kept))
    return name if name[:1].isalpha() else f"T{name}"


@dataclass
class _Stub:
    """What is written for one type; nested objects are named as they are met."""

    facts: TypeFacts
    name: str = ""
    _names: dict[str, str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _dictionaries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = class_name(self.facts.type)

    def written(self) -> Iterator[str]:
        """The typed dictionaries, those of parameters last, and the class."""
        parameters = f"{self.name}Parameters"
        self._taken.update({self.name, parameters})
        schema = self.facts.parameter_schema
        whole = _dictionary(parameters, schema, self._fields(schema, self.name), f"Parameters of {self.facts.type}.")
        yield from self._dictionaries
        yield whole
        yield self._class(parameters)

    def _class(self, parameters: str) -> str:
        named = set(self.facts.parameter_schema.get("properties", {}))
        own = {name: kind for name, kind in _OWN.items() if name in COMPONENT_FIELDS and name not in named}
        arguments = "".join(f"        {name}: {kind} = {_EMPTY.get(kind, '()')},\n" for name, kind in own.items())
        star = "        *,\n" if arguments else ""
        is_named = all(map(_is_name, self._top_level()))
        given = "" if is_named else f"        parameters: {parameters},\n"
        rest = f"        **parameters: Unpack[{parameters}],\n" if is_named else ""
        values = {name: _PASSED.get(kind.partition("[")[0], "{}").format(name) for name, kind in own.items()}
        passed = "".join(f', "{name}": {value}' for name, value in values.items())
        outputs = [f"    {name}: {text}".rstrip(": ") for name, text in self.facts.outputs.items()]
        about = [self.facts.description or self.facts.title, *(["", "Outputs:", ""] if outputs else []), *outputs]
        return (
            f"class {self.name}(GenericComponent):\n"
            f"{_docstring(about, 4)}\n"
            f"    type: ClassVar[str] = {self.facts.type!r}\n"
            f"    provider: ClassVar[str] = {self.facts.provider!r}\n\n"
            f"    def __init__(\n        self,\n        id: str,\n{given}        /,\n"
            f"{star}{arguments}{rest}    ) -> None:\n"
            f'        own: dict[str, Any] = {{"id": id, "values": dict(parameters){passed}}}\n'
            "        super().__init__(**own)"
        )

    def _top_level(self) -> list[str]:
        root = self.facts.parameter_schema
        parts = root.get("properties", {}).items()
        return [name for name, part in parts if isinstance(part, Mapping) and not _is_read_only(part, root)]

    def _fields(self, schema: Schema, prefix: str) -> list[tuple[str, str, str]]:
        """Name, type and description of each property; what only the cloud sets is none."""
        required = set(schema.get("required") or ())
        found = []
        for name, part in schema.get("properties", {}).items():
            if not isinstance(part, Mapping) or _is_read_only(part, self.facts.parameter_schema):
                continue
            kind = self._type(part, prefix + _camel(name))
            whole = f"Required[{kind}]" if name in required else kind
            found.append((name, whole, str(part.get("description") or self._resolved(part).get("description") or "")))
        return found

    def _resolved(self, schema: Schema) -> Schema:
        return resolve(schema, self.facts.parameter_schema)

    def _type(self, schema: Schema, wanted: str) -> str:
        """The type of a value; one that may stand elsewhere, too."""
        reference = schema.get("$ref")
        if isinstance(reference, str):
            known = self._names.get(reference)
            if known is not None:
                return known
            wanted = self.name + _camel(reference.rpartition("/")[2])
        kinds = list(dict.fromkeys(self._kinds(self._resolved(schema), wanted, reference)))
        if "object" in kinds:
            return "object"
        return " | ".join([*kinds, "Elsewhere"])

    def _kinds(self, schema: Schema, wanted: str, reference: object = None) -> Iterator[str]:
        choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(choices, list) and choices and len(choices) <= _MOST_CHOICES and all(map(_is_choice, choices)):
            yield f"Literal[{', '.join(repr(one) for one in choices)}]"
            return
        kind = schema.get("type")
        options = [one for key in ("anyOf", "oneOf") for one in schema.get(key, ()) if isinstance(one, Mapping)]
        kinds = kind if isinstance(kind, list) else [kind] if kind else ["object"] if schema.get("properties") else []
        if not kinds:
            known = [one for one in options if {"type", "$ref", "enum", "const", "properties"} & set(one)]
            for index, option in enumerate(known):
                yield self._type(option, f"{wanted}Option{index + 1}").removesuffix(" | Elsewhere")
            if not known:
                yield "object"
            return
        for one in kinds:
            yield self._of_kind(str(one), schema, wanted, reference)

    def _of_kind(self, kind: str, schema: Schema, wanted: str, reference: object) -> str:
        if kind == "array":
            items = schema.get("items")
            return f"Sequence[{self._type(items, f'{wanted}Item') if isinstance(items, Mapping) else 'object'}]"
        if kind != "object":
            return _PLAIN.get(kind, "object")
        if schema.get("properties"):
            return self._named_dictionary(schema, wanted, reference)
        values = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
        known = [self._type(one, f"{wanted}Value") for one in values if isinstance(one, Mapping) and one]
        return f"Mapping[str, {known[0] if len(set(known)) == 1 else 'object'}]"

    def _named_dictionary(self, schema: Schema, wanted: str, reference: object) -> str:
        name = _free(wanted, self._taken)
        if isinstance(reference, str):
            self._names[reference] = f"{name} | Elsewhere"  # before its properties: it may hold itself
        fields = self._fields(schema, name)
        self._dictionaries.append(_dictionary(name, schema, fields, ""))
        return name


def _is_read_only(schema: Schema, root: Schema) -> bool:
    marks = (part.get(FACTS, {}) for part in (schema, resolve(schema, root)))
    return any(mark.get("readOnly") for mark in marks)


def _is_name(key: str) -> bool:
    return key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("__")


def _is_choice(value: object) -> bool:
    return value is None or isinstance(value, str | bool | int)


def _camel(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)


def _dictionary(name: str, schema: Schema, fields: list[tuple[str, str, str]], about: str) -> str:
    """A typed dictionary; as a call where one of its keys is no name in Python."""
    text = about or str(schema.get("description") or "")
    if all(_is_name(key) for key, _, _ in fields):
        lines = [f"class {name}(TypedDict, total=False):", _docstring([text or f"{name}."], 4)]
        for key, kind, said in fields:
            lines.append(f"    {key}: {kind}")
            lines += [_docstring([said], 4)] if said else []
        return "\n".join(lines)
    entries = "".join(f"        {key!r}: {kind!r},\n" for key, kind, _ in fields)
    said = _docstring([text or f"{name}."], 0)
    return f"{name} = TypedDict(\n    {name!r},\n    {{\n{entries}    }},\n    total=False,\n)\n{said}"


def _docstring(lines: Iterable[str], indent: int) -> str:
    """Text as a docstring: nothing in it can end it, or is read as anything else."""
    clean = ["".join(char if char.isprintable() else " " for char in line) for line in lines]
    safe = [line.replace("\\", "\\\\").replace('"""', "'''") for line in clean]
    pad = " " * indent
    wrapped = [part for line in safe for part in (textwrap.wrap(line, _WIDTH - indent, drop_whitespace=False) or [""])]
    first, *rest = wrapped
    body = "\n".join((pad + line).rstrip() for line in rest)
    first = first.strip() or "…"
    first = f"{first} " if first.endswith('"') and not rest else first
    return f'{pad}"""{first}\n{body}\n{pad}"""' if rest else f'{pad}"""{first}"""'
