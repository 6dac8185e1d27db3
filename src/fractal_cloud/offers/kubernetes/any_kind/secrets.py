"""The values of Secrets: declared as references, written as the server keeps them, never seen beside what is declared.

Pure. Whatever is declared in ``stringData`` stands in ``data`` afterwards, encoded; nothing else is ever written there.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.offers.kubernetes.any_kind.facts import HIDDEN
from fractal_cloud.offers.kubernetes.kinds import Object

_STORED: Final = "data"


def stored(declared: Mapping[str, Any]) -> dict[str, Any]:
    """Declared fields as the server keeps them: both ways of saying a value in ``data``, encoded."""
    found = {name: value for name, value in declared.items() if name not in HIDDEN}
    values = {key: _encoded(one) for name in HIDDEN for key, one in (declared.get(name) or {}).items()}
    return {**found, _STORED: values} if values or any(name in declared for name in HIDDEN) else found


def shown(item: Object) -> dict[str, Any]:
    """The values that an object holds, under both names by which they may be declared."""
    values = {key: _decoded(one) for key, one in (item.get(_STORED) or {}).items()}
    return {name: dict(values) for name in HIDDEN}


def only_declared(actual: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Actual values without those that are not declared under the same name."""
    found = {name: value for name, value in actual.items() if name not in HIDDEN}
    for name in HIDDEN:
        keys = declared.get(name) or {}
        found[name] = {key: one for key, one in (actual.get(name) or {}).items() if key in keys}
    return found


def _encoded(text: Any) -> str:
    return base64.b64encode(str(text).encode("utf-8", "surrogateescape")).decode("ascii")


def _decoded(text: Any) -> str:
    try:
        return base64.b64decode(str(text), validate=True).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        return str(text)
