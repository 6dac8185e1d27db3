"""Applying patches: JSON Patch, JSON merge patch, and Kubernetes' strategic merge patch.

All pure: an object and a patch in, a new object out. The three formats are implemented here and not taken from a
library because the strategic one exists in none for Python, and the other two are shorter than the care that a
library's own errors would need to become the server's.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any, Final

from fractal_sandbox.kubernetes.errors import bad_request, rejected_patch
from fractal_sandbox.kubernetes.kinds import Object

__all__ = ["MERGE_KEYS", "PatchFault", "json_patch", "merge_key", "merge_patch", "strategic_merge_patch"]

# Which field identifies the items of a list; lists not named here are replaced as a whole. Where two are named,
# the first that the patch's items carry counts: ports are `containerPort` in a container and `port` in a Service.
MERGE_KEYS: Final[dict[str, tuple[str, ...]]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "conditions": ("type",),
    "ownerReferences": ("uid",),
    "topologySpreadConstraints": ("topologyKey",),
    "ports": ("containerPort", "port"),
}


class PatchFault(Exception):
    """A patch that cannot be applied to the object as it is."""


# JSON Patch (RFC 6902)


def json_patch(target: Object, operations: Any) -> Object:
    """Return the object with all operations carried out; all or none. Raises ApiError as the real server would."""
    if not isinstance(operations, list):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    document: Any = copy.deepcopy(target)
    try:
        for operation in operations:
            document = _OPERATIONS[operation["op"]](document, operation)
    except (PatchFault, KeyError, TypeError) as fault:
        raise rejected_patch() from fault
    if not isinstance(document, dict):
        raise rejected_patch()
    return document


def _add(document: Any, operation: Object) -> Any:
    return _put(document, _pointer(operation["path"]), copy.deepcopy(operation["value"]))


def _remove(document: Any, operation: Object) -> Any:
    _remove_at(document, _pointer(operation["path"]))
    return document


def _replace(document: Any, operation: Object) -> Any:
    path = _pointer(operation["path"])
    value = copy.deepcopy(operation["value"])
    if not path:
        return value
    _at(document, path)
    parent = _at(document, path[:-1])
    parent[_index(parent, path[-1])] = value
    return document


def _move(document: Any, operation: Object) -> Any:
    value = _remove_at(document, _pointer(operation["from"]))
    return _put(document, _pointer(operation["path"]), value)


def _copy(document: Any, operation: Object) -> Any:
    value = copy.deepcopy(_at(document, _pointer(operation["from"])))
    return _put(document, _pointer(operation["path"]), value)


def _test(document: Any, operation: Object) -> Any:
    if not _same(_at(document, _pointer(operation["path"])), operation.get("value")):
        raise PatchFault(f"testing value {operation['path']!r} failed")
    return document


_OPERATIONS: Final[dict[str, Callable[[Any, Object], Any]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def _pointer(path: str) -> list[str]:
    if path == "":
        return []
    if not path.startswith("/"):
        raise PatchFault(f"no JSON pointer: {path!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]


def _index(parent: Any, part: str, *, end: int | None = None) -> Any:
    """Return the key or the index that a part of a pointer names in what it points into."""
    if isinstance(parent, dict):
        return part
    if not isinstance(parent, list):
        raise PatchFault(f"nothing to point into at {part!r}")
    if part == "-" and end is not None:
        return end
    try:
        index = int(part)
    except ValueError:
        raise PatchFault(f"no index: {part!r}") from None
    if not 0 <= index < (len(parent) if end is None else end + 1):
        raise PatchFault(f"index out of bounds: {part!r}")
    return index


def _at(document: Any, path: list[str]) -> Any:
    for part in path:
        index = _index(document, part)
        if isinstance(document, dict) and index not in document:
            raise PatchFault(f"absent: {part!r}")
        document = document[index]
    return document


def _put(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    parent = _at(document, path[:-1])
    if isinstance(parent, list):
        parent.insert(_index(parent, path[-1], end=len(parent)), value)
    else:
        parent[_index(parent, path[-1])] = value
    return document


def _remove_at(document: Any, path: list[str]) -> Any:
    _at(document, path)
    parent = _at(document, path[:-1])
    return parent.pop(_index(parent, path[-1]))


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON: 1 equals 1.0, but true is no number."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


# JSON merge patch (RFC 7386)


def merge_patch(target: Any, patch: Any) -> Any:
    """Return the target with the patch merged into it; null takes a member away, lists are replaced."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


# Strategic merge patch


def strategic_merge_patch(target: Any, patch: Any, field: str = "") -> Any:
    """Return the target with the patch merged as Kubernetes' own types say: some lists by key, directives honoured."""
    if isinstance(patch, dict):
        return _merge_map(target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list):
        return _merge_list(target if isinstance(target, list) else [], patch, field)
    return copy.deepcopy(patch)


def merge_key(field: str, items: list[Any]) -> str:
    """Return the field that identifies these items of a list; empty where the list is replaced whole."""
    for key in MERGE_KEYS.get(field, ()):
        if items and all(isinstance(item, dict) and key in item for item in items):
            return key
    return ""


def _merge_map(target: Object, patch: Object) -> Object:
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: copy.deepcopy(value) for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(target)
    retained = patch.get("$retainKeys")
    if isinstance(retained, list):
        merged = {key: value for key, value in merged.items() if key in retained}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            field = key.split("/", 1)[1]
            merged[field] = [item for item in merged.get(field, []) if item not in value]
        elif key.startswith("$"):
            continue  # the order of elements matters to nobody here
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = strategic_merge_patch(merged.get(key), value, key)
    return merged


def _merge_list(target: list[Any], patch: list[Any], field: str) -> list[Any]:
    if field == "finalizers":
        return [*target, *(item for item in patch if item not in target)]
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [copy.deepcopy(item) for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    key = merge_key(field, patch)
    if not key:
        return copy.deepcopy(patch)
    merged = list(target)
    for item in patch:
        place = next((index for index, old in enumerate(merged) if old.get(key) == item[key]), None)
        if item.get("$patch") == "delete":
            merged = [old for old in merged if old.get(key) != item[key]]
        elif place is None:
            merged.append(_merge_map({}, item))
        else:
            merged[place] = _merge_map(merged[place], item)
    return merged
