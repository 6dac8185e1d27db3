"""What the API server cannot even read: values of a wrong type in built-in kinds, refused before any rule is asked.

By the names of fields, not by whole schemas: enough for the mistakes a declaration can make. Pure.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, Final

from fractal_cloud.sandbox.kubernetes.errors import bad_request, unreadable_patch
from fractal_cloud.sandbox.kubernetes.kinds import Kind, Object
from fractal_cloud.sandbox.kubernetes.quantities import is_quantity

__all__ = ["check_types"]

_NUMBERS: Final = frozenset(
    {
        *("replicas", "containerPort", "nodePort", "hostPort", "revisionHistoryLimit", "progressDeadlineSeconds"),
        *("minReadySeconds", "terminationGracePeriodSeconds", "periodSeconds", "initialDelaySeconds"),
    }
)
_TEXTS: Final = frozenset({"name", "image", "value", "storageClassName", "serviceAccountName", "mountPath", "type"})
_FLAGS: Final = frozenset({"paused", "immutable", "readOnly", "hostNetwork"})
_MAPS_OF_TEXT: Final = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "binaryData"}
)
_QUANTITIES: Final = frozenset({"requests", "limits"})
_QUANTITY: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_LISTS: Final = frozenset({"containers", "env", "ports", "volumes", "volumeMounts", "accessModes", "args", "command"})


def check_types(kind: Kind, item: Object, *, is_patched: bool = False) -> None:
    """Raise the refusal of an object, or of a patch's outcome, that has a value of a wrong type."""
    content = {"metadata": item["metadata"]} if kind.is_custom else item
    faults = [*_faults(content, "", ""), *_base64_faults(kind, item)]
    for fault in faults:
        if is_patched:
            raise unreadable_patch(f"json: cannot unmarshal {fault}")
        what = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}'
        raise bad_request(f"{what}: json: cannot unmarshal {fault}")


def _faults(value: Any, key: str, parent: str) -> Iterator[str]:
    expected = _expected(value, key, parent)
    if expected:
        yield f"{_word(value)} into Go struct field {parent}.{key} of type {expected}"
    elif isinstance(value, list):
        for inner in value:
            yield from _faults_inside(inner, key)
    else:
        yield from _faults_inside(value, key)


def _faults_inside(value: Any, key: str) -> Iterator[str]:
    for name, inner in value.items() if isinstance(value, dict) else ():
        if key in _MAPS_OF_TEXT:
            if inner is not None and not isinstance(inner, str):
                yield f"{_word(inner)} into Go struct field {key}.{name} of type string"
        elif key in _QUANTITIES:
            if isinstance(inner, bool) or not is_quantity(inner):
                yield f"{key}.{name}: quantities must match the regular expression '{_QUANTITY}'"
        else:
            yield from _faults(inner, name, key)


def _base64_faults(kind: Kind, item: Object) -> Iterator[str]:
    if kind.kind == "Secret" and not kind.is_custom and isinstance(item.get("data"), dict):
        for name, value in item["data"].items():
            if isinstance(value, str) and not _is_base64(value):
                yield f"data.{name}: decode base64: illegal base64 data at input byte 0"


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", ""), validate=True)
    except binascii.Error:
        return False
    return True


def _expected(value: Any, key: str, parent: str) -> str:
    """Return the type a field should have had; empty where it has it, or where any will do."""
    if value is None:
        return ""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if key in _NUMBERS and not is_number:
        return "int32"
    if key in _TEXTS and not isinstance(value, str):
        return "string"
    if key in _FLAGS and not isinstance(value, bool):
        return "bool"
    if key in (_MAPS_OF_TEXT | _QUANTITIES | {"metadata", "spec"}) and not isinstance(value, dict):
        return "map" if parent else "object"
    if key in _LISTS and not isinstance(value, list):
        return "[]string" if key in ("args", "command", "accessModes") else f"[]{key}"
    return ""


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
