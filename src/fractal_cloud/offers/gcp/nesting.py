"""Parameters that stand deep inside Google's objects: written there, and read from there, by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Paths = Mapping[str, tuple[str, ...]]
"""Where each parameter stands, by its declared name."""


def nested(values: Mapping[str, Any], paths: Paths) -> dict[str, Any]:
    """An object with these values in their places; what is None is not declared, and left out."""
    made: dict[str, Any] = {}
    for name, value in values.items():
        if value is not None:
            *outer, last = paths[name]
            inside = made
            for word in outer:
                inside = inside.setdefault(word, {})
            inside[last] = value
    return made


def dug(raw: Mapping[str, Any], paths: Paths) -> dict[str, Any]:
    """The value of every parameter in an object; None where nothing stands there."""
    found: dict[str, Any] = {}
    for name, path in paths.items():
        value: Any = raw
        for word in path:
            value = value.get(word) if isinstance(value, Mapping) else None
        found[name] = value
    return found
