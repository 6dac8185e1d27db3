"""Values of the vendor's own types as they would be declared: nothing that only the cloud sets, and no secret in clear.

What the schema marks is found by its marks, everything else by how it looks; what may be a secret and cannot be a
reference is not written at all (A8).
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.model.reference import SecretReference, literal
from fractal_cloud.model.secret_detection import apparent_secret
from fractal_cloud.rules.nested.path import Path, written
from fractal_cloud.rules.nested.shape import Shape

_NAMES: Final = ("Name", "name", "Key", "key", "ParameterKey")
_VALUES: Final = ("Value", "value", "ParameterValue")
_TAKING: Final = ("secret", "sensitive", "holdsSecrets")
_LEAST: Final = 16
"""A text this long may be a program in base64."""

Refer = Callable[[str], Any]
Bind = Callable[[str], str]


class MayBeSecretError(Exception):
    """A value may be a secret where no reference can stand; the message says which, and why."""


class NestedValues:
    """Draws declared values from those that were read.

    ``refer``: what stands for a text that is another component's, or None. ``bind``: notes that a value at a path is a
    secret, and returns the name under which it is to be bound.
    """

    def __init__(self, refer: Refer, bind: Bind) -> None:
        self._refer = refer
        self._bind = bind

    def declared(self, value: Any, shape: Shape, path: Path) -> Any:
        """The value without what only the cloud sets, with references in the place of ids and of secrets."""
        return self._value(value, shape, path, is_hiding=_accepts_secrets(shape))

    def _value(self, value: Any, shape: Shape, path: Path, *, is_hiding: bool, name: str = "") -> Any:
        if isinstance(value, str):
            return self._text(value, path, is_hiding=is_hiding, name=name, is_secret=_is_secret(shape))
        if isinstance(value, Mapping):
            return dict(self._entries(value, shape, path, is_hiding=is_hiding))
        if isinstance(value, list | tuple):
            items = shape.items
            return [
                self._value(one, items, (*path, str(at)), is_hiding=is_hiding or _accepts_secrets(items), name=name)
                for at, one in enumerate(value)
            ]
        return value

    def _entries(
        self, value: Mapping[str, Any], shape: Shape, path: Path, *, is_hiding: bool
    ) -> Iterator[tuple[str, Any]]:
        described = {name for name, _ in shape.properties()}
        paired = next((value[one] for one in _NAMES if isinstance(value.get(one), str)), "")
        for key, one in value.items():
            inner = shape.property(key)
            if one is None or inner.marks.get("readOnly") or inner.marks.get("writeOnly"):
                continue
            # What a schema calls by name is marked by it; only people's own names say what stands below them.
            name = paired if key in _VALUES else "" if key in described else key
            yield key, self._value(one, inner, (*path, key), is_hiding=is_hiding or _accepts_secrets(inner), name=name)

    def _text(self, text: str, path: Path, *, is_hiding: bool, name: str, is_secret: bool) -> Any:
        why = "a secret by its schema" if is_secret and text else _apparent(name, text)
        if why and is_hiding:
            return SecretReference(self._bind(written(path))).to_json()
        if why:
            raise MayBeSecretError(f"{written(path)} looks like {why}")
        found = self._refer(text)
        return literal(text) if found is None else found


def _accepts_secrets(shape: Shape) -> bool:
    return any(shape.marks.get(mark) for mark in _TAKING)


def _is_secret(shape: Shape) -> bool:
    return bool(shape.marks.get("secret") or shape.marks.get("sensitive"))


def _apparent(name: str, text: str) -> str:
    """Why a text may be a secret; documents are searched through, programs are taken for one (as user data is)."""
    why = _by_name_or_form(name, text)
    if why:
        return why
    document = _document(text)
    if document is not None:
        return next((why for key, one in _leaves(document) if (why := _by_name_or_form(key, one))), "")
    return "a program, which may hold secrets" if "\n" in text.strip() or "\n" in _decoded(text) else ""


def _by_name_or_form(name: str, text: str) -> str:
    """The same of a text with its name: one that is just called a key is the name of something, as of an object."""
    return apparent_secret("" if name.casefold() == "key" else name, text)


def _document(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        paired = next((value[one] for one in _NAMES if isinstance(value.get(one), str)), "")
        for key, one in value.items():
            yield from _leaves(one, paired if key in _VALUES else "" if key in _NAMES else str(key))
    elif isinstance(value, list):
        for one in value:
            yield from _leaves(one, name)


def _decoded(text: str) -> str:
    """What a text says in base64; empty where it is none."""
    if len(text) < _LEAST or len(text) % 4:
        return ""
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
