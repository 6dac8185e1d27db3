"""Reading objects as the API server does: fields nobody knows are dropped, and values of a wrong type refused.

What fields there are stands in `schema.json`, which `scripts/kubernetes_schema.py` writes from the official client's
models. All other kinds are held against what
a real server publishes, custom ones against their definitions. Pure; rules about values are in `validating.py`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from fractal_sandbox.kubernetes.errors import ApiError, Cause, bad_request, invalid, unreadable_patch
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.quantities import is_quantity
from fractal_sandbox.kubernetes.structure import held_against

__all__ = ["read_object"]

_QUANTITY: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
# Text to the client, but the server reads numbers too.
_QUANTITIES: Final = frozenset({"requests", "limits", "capacity", "allocatedResources", "sizeLimit", "divisor"})
_SCALARS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "text": ("string", lambda value: isinstance(value, str)),
    "number": ("int32", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "flag": ("bool", lambda value: isinstance(value, bool)),
    "number-or-text": (
        "intstr.IntOrString",
        lambda value: isinstance(value, int | str) and not isinstance(value, bool),
    ),
    "quantity": ("resource.Quantity", lambda value: isinstance(value, int | float | str) and is_quantity(value)),
    "base64": ("[]uint8", lambda value: isinstance(value, str) and _is_base64(value)),
    "any": ("", lambda _: True),
}


@cache
def _schema() -> dict[str, dict[str, str]]:
    text = files("fractal_sandbox.kubernetes").joinpath("schema.json").read_text()
    found: dict[str, dict[str, str]] = json.loads(text)
    found["Secret"] |= {"data": "{base64}"}
    found["ConfigMap"] |= {"binaryData": "{base64}"}
    return found


@dataclass
class _Reader:
    unknown: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def read(self, value: Any, form: str, path: str) -> Any:
        if value is None:
            return None
        if form in _SCALARS:
            wanted, fits = _SCALARS[form]
            if not fits(value):
                self.wrong.append(_wrong(value, path, wanted))
            return value
        if form.startswith("["):
            if not isinstance(value, list):
                self.wrong.append(_wrong(value, path, f"[]{form[1:-1]}"))
                return value
            return [self.read(inner, form[1:-1], f"{path}[{index}]") for index, inner in enumerate(value)]
        if not isinstance(value, dict):
            self.wrong.append(_wrong(value, path, form))
            return value
        if form.startswith("{"):
            return {key: self.read(inner, form[1:-1], f"{path}.{key}") for key, inner in value.items()}
        return self._read_fields(value, _schema()[form], path)

    def _read_fields(self, value: Object, fields: dict[str, str], path: str) -> Object:
        known: Object = {}
        for name, inner in value.items():
            where = f"{path}.{name}" if path else name
            if name in fields:
                form = fields[name].replace("text", "quantity") if name in _QUANTITIES else fields[name]
                known[name] = self.read(inner, form, where)
            else:
                self.unknown.append(where)
        return known


def read_object(kind: Kind, item: Object, *, is_strict: bool = False, is_patched: bool = False) -> Object:
    """Return an object with its known fields only; raises the refusal of one, or of a patch's outcome, that is wrong.

    `is_strict` is how a client asks to have unknown fields refused instead of dropped, as kubectl does.
    """
    reader = _Reader()
    causes: list[Cause] = []
    if kind.is_custom or kind.kind not in _schema():
        known, found = held_against(kind.node, item, is_custom=kind.is_custom)
        read = {**known, "metadata": reader.read(item["metadata"], "ObjectMeta", "metadata")}
        reader.unknown += found.unknown
        causes += found.causes
        if kind.is_custom:
            causes += [_mistyped(path, value, wanted) for path, value, wanted in found.wrong]
        else:
            reader.wrong += [_wrong(value, path, wanted) for path, value, wanted in found.wrong]
    else:
        read = reader.read(item, kind.kind, "")
    if reader.wrong:
        raise _refusal(kind, f"json: cannot unmarshal {reader.wrong[0]}", is_patched=is_patched)
    if reader.unknown and is_strict:
        fields = ", ".join(f'unknown field "{path}"' for path in reader.unknown)
        raise _refusal(kind, f"strict decoding error: {fields}", is_patched=False)
    if causes:
        raise invalid(kind, str(item["metadata"].get("name", "")), causes)
    assert isinstance(read, dict)
    return read


def _mistyped(path: str, value: Any, wanted: str) -> Cause:
    """The refusal of a custom object's value: its schema is held against it like any other rule."""
    return Cause.wrong(path, _word(value), f"{path} in body must be of type {wanted}: {json.dumps(_word(value))}")


def _refusal(kind: Kind, fault: str, *, is_patched: bool) -> ApiError:
    if is_patched:
        return unreadable_patch(fault)
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {fault}')


def _wrong(value: Any, path: str, wanted: str) -> str:
    if wanted == "resource.Quantity":
        return f"{path}: quantities must match the regular expression '{_QUANTITY}'"
    if wanted == "[]uint8":
        return f"{path}: decode base64: illegal base64 data at input byte 0"
    return f"{_word(value)} into Go struct field {path} of type {wanted}"


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", ""), validate=True)
    except binascii.Error:
        return False
    return True


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
