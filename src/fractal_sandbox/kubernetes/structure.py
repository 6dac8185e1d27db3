"""Holding objects against the published schema of their kind: types, unknown fields, what must be there, choices.

A custom kind's own defaults are filled in, too. Pure. Rules about values beyond the schema are in `validating.py`.
"""

from __future__ import annotations

import base64
import binascii
import copy
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fractal_sandbox.kubernetes.errors import Cause
from fractal_sandbox.kubernetes.published import Node
from fractal_sandbox.kubernetes.quantities import is_quantity

__all__ = ["Found", "held_against"]

_NOT_HELD: Final = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


@dataclass
class Found:
    """What does not fit: fields nobody knows, values of another type, and what else is wrong."""

    unknown: list[str] = field(default_factory=list)
    wrong: list[tuple[str, Any, str]] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)


def held_against(node: Node, item: Mapping[str, Any], *, is_custom: bool) -> tuple[dict[str, Any], Found]:
    """Return an object with the fields that its kind has, and what does not fit."""
    reader = _Reader(is_custom)
    fields = {name: value for name, value in item.items() if name not in _NOT_HELD}
    known = reader.fields(node, fields, "", apart=_NOT_HELD)
    return {**{name: item[name] for name in item if name in _NOT_HELD}, **known}, reader.found


class _Reader:
    def __init__(self, is_custom: bool) -> None:
        self._is_custom = is_custom
        self.found = Found()

    def value(self, node: Node, value: Any, path: str) -> Any:
        if value is None:
            return None
        said = node.said
        if said.get("x-kubernetes-int-or-string") or said.get("format") == "int-or-string":
            return self._checked(value, isinstance(value, int | str), path, "integer or string")
        if said.get("format") == "quantity" or node.name == "Quantity":
            is_one = isinstance(value, int | float | str) and is_quantity(value)
            return self._checked(value, is_one, path, "resource.Quantity")
        wanted = said.get("type")
        if not wanted:
            return copy.deepcopy(value)
        if not _TYPES[wanted](value):
            self.found.wrong.append((path, value, wanted))
            return value
        if wanted == "object":
            return self.fields(node, value, path)
        if wanted == "array":
            return [self.value(node.items, one, f"{path}[{index}]") for index, one in enumerate(value)]
        self._check_value(said, value, path)
        return value

    def fields(self, node: Node, value: Mapping[str, Any], path: str, apart: frozenset[str] = frozenset()) -> Any:
        properties = node.properties
        known: dict[str, Any] = {}
        for name, one in value.items():
            here = f"{path}.{name}" if path else name
            if name in properties or not properties or node.is_open or "additionalProperties" in node.said:
                known[name] = self.value(node.child(name), one, here)
            else:
                self.found.unknown.append(here)
        if self._is_custom:
            for name, said in properties.items():
                if name not in known and name not in apart and "default" in said:
                    known[name] = copy.deepcopy(said["default"])
        for name in node.said.get("required") or ():
            if known.get(name) is None and name not in apart:
                self.found.causes.append(Cause.required(f"{path}.{name}" if path else name))
        return known

    def _checked(self, value: Any, is_good: bool, path: str, wanted: str) -> Any:
        if not is_good or isinstance(value, bool):
            self.found.wrong.append((path, value, wanted))
        return value

    def _check_value(self, said: Mapping[str, Any], value: Any, path: str) -> None:
        if said.get("enum") and value not in said["enum"]:
            choices = ", ".join(json.dumps(one) for one in said["enum"])
            why = f"Unsupported value: {json.dumps(value)}: supported values: {choices}"
            self.found.causes.append(Cause(path, why, "FieldValueNotSupported"))
        if said.get("format") == "byte" and not _is_base64(value):
            self.found.wrong.append((path, value, "[]uint8"))
        if "minimum" in said and value < said["minimum"]:
            why = f"should be greater than or equal to {said['minimum']}"
            self.found.causes.append(Cause.wrong(path, value, f"{path} in body {why}"))
        if "pattern" in said and isinstance(value, str) and not re.search(said["pattern"], value):
            self.found.causes.append(Cause.wrong(path, value, f"{path} in body should match '{said['pattern']}'"))


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", ""), validate=True)
    except binascii.Error:
        return False
    return True
