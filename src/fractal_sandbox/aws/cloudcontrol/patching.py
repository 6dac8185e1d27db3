"""JSON patches (RFC 6902), all six operations, with the words that AWS's own library uses for what fails.

Purely computational. What a patch may change of a resource is decided in `handling.py`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

__all__ = ["PatchError", "patched", "read_patch"]


class PatchError(ValueError):
    """A patch cannot be read or applied; the text is AWS's."""


def read_patch(document: str) -> list[dict[str, Any]]:
    """Read a patch document."""
    try:
        operations = json.loads(document)
    except ValueError:
        raise PatchError("Invalid patch document: it is not valid JSON") from None
    if not isinstance(operations, list) or not all(isinstance(one, dict) for one in operations):
        raise PatchError("Invalid JSON Patch payload (not an array)")
    for one in operations:
        name = one.get("op")
        if name not in _OPERATIONS:
            raise PatchError(f"Invalid JSON Patch payload (unknown or missing operation {name!r})")
        missing = [field for field in ("path", *_NEEDS.get(str(name), ())) if field not in one]
        if missing:
            raise PatchError(f"Invalid JSON Patch payload (missing field {missing[0]})")
    return operations


def patched(model: Any, operations: list[dict[str, Any]]) -> Any:
    """Return what a model is after a patch; the model itself is left as it is."""
    changed = copy.deepcopy(model)
    for one in operations:
        changed = _OPERATIONS[one["op"]](changed, one)
    return changed


def _add(model: Any, one: dict[str, Any]) -> Any:
    return _put(model, _tokens(one["path"]), copy.deepcopy(one["value"]), "ADD")


def _replace(model: Any, one: dict[str, Any]) -> Any:
    tokens = _tokens(one["path"])
    _at(model, tokens, "REPLACE")
    return _put(model, tokens, copy.deepcopy(one["value"]), "REPLACE", is_new=False)


def _remove(model: Any, one: dict[str, Any]) -> Any:
    tokens = _tokens(one["path"])
    _at(model, tokens, "REMOVE")
    return _without(model, tokens)


def _move(model: Any, one: dict[str, Any]) -> Any:
    value = _at(model, _tokens(one["from"]), "MOVE")
    return _put(_without(model, _tokens(one["from"])), _tokens(one["path"]), value, "MOVE")


def _copy(model: Any, one: dict[str, Any]) -> Any:
    return _put(model, _tokens(one["path"]), copy.deepcopy(_at(model, _tokens(one["from"]), "COPY")), "COPY")


def _test(model: Any, one: dict[str, Any]) -> Any:
    found = _at(model, _tokens(one["path"]), "TEST")
    if not _equal(found, one["value"]):
        raise PatchError(f"[TEST Operation] value differs from expectations, path provided : {one['path']}")
    return model


_OPERATIONS: Final[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "add": _add,
    "replace": _replace,
    "remove": _remove,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
_NEEDS: Final = {
    "add": ("value",),
    "replace": ("value",),
    "test": ("value",),
    "move": ("from",),
    "copy": ("from",),
}


def _equal(one: Any, other: Any) -> bool:
    """Compare as JSON does: `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_equal(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _tokens(pointer: Any) -> list[str]:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"Invalid JSON Patch payload (path is no JSON pointer: {pointer!r})")
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _at(model: Any, tokens: list[str], operation: str) -> Any:
    for token in tokens:
        if isinstance(model, dict) and token in model:
            model = model[token]
        elif isinstance(model, list) and token.isdigit() and int(token) < len(model):
            model = model[int(token)]
        else:
            # The two slashes are AWS's own.
            raise PatchError(f"[{operation} Operation] noSuchPath in source, path provided : //{'/'.join(tokens)}")
    return model


def _put(model: Any, tokens: list[str], value: Any, operation: str, *, is_new: bool = True) -> Any:
    if not tokens:
        return value
    parent = _at(model, tokens[:-1], operation)
    last = tokens[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        place = len(parent) if last == "-" and is_new else int(last) if last.isdigit() else -1
        if not 0 <= place <= len(parent):
            raise PatchError(f"[{operation} Operation] index Out of bound, index provided is higher than allowed")
        parent[place : place + (not is_new)] = [value]
    else:
        raise PatchError(f"[{operation} Operation] parent is not a container in source, path provided : {last}")
    return model


def _without(model: Any, tokens: list[str]) -> Any:
    if not tokens:
        return None
    parent = _at(model, tokens[:-1], "REMOVE")
    if isinstance(parent, list):
        del parent[int(tokens[-1])]
    else:
        del parent[tokens[-1]]
    return model
