"""Values that mean the same though they are written otherwise, and that no comparer knows: `SPELLED` says where.

The actual value is shown as it is declared where the two mean the same, so that neither drifts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fractal_cloud.offers.aws.resources.tables.normalisations import SPELLED

_PROTOCOLS: Final = {"1": "icmp", "6": "tcp", "17": "udp", "58": "icmpv6"}
Same = Callable[[str, str], bool]


def _protocol(text: str) -> str:
    return _PROTOCOLS.get(text, text).lower()


_SAME: Final[Mapping[str, Same]] = {
    "trimmed": lambda declared, actual: declared.rstrip() == actual.rstrip(),
    "protocol": lambda declared, actual: _protocol(declared) == _protocol(actual),
    "version": lambda declared, actual: f"{actual}.".startswith(f"{declared}."),
    "custom": lambda declared, actual: actual == f"custom:{declared}",
    "log group": lambda declared, actual: declared.removesuffix(":*") == actual.removesuffix(":*"),
    "dashes": lambda declared, actual: declared.replace("-", "_") == actual.replace("-", "_"),
}


def as_declared(type_name: str, actual: Mapping[str, Any], declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """The actual values with those that mean the same as a declared one at the same place written as that one is."""
    rows = [(kind, path) for kind, paths in SPELLED.items() for path in paths.get(type_name, ())]
    rows = [(kind, path) for kind, path in rows if path.partition(".")[0] in actual.keys() & declared.keys()]
    if not rows:
        return actual
    found = copy.deepcopy(dict(actual))
    for kind, path in rows:
        ours = [value for value in _values(declared, path.split(".")) if isinstance(value, str)]
        _write(found, path.split("."), ours, _SAME[kind])
    return found


def _values(value: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from _values(one, steps[1:] if steps[0] == "*" else steps)
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from _values(value[steps[0]], steps[1:])


def _write(value: Any, steps: list[str], ours: list[str], is_same: Same) -> None:
    if isinstance(value, list):
        for one in value:
            _write(one, steps[1:] if steps[0] == "*" else steps, ours, is_same)
    elif isinstance(value, dict) and steps[0] in value:
        inner = value[steps[0]]
        if len(steps) > 1:
            _write(inner, steps[1:], ours, is_same)
        elif isinstance(inner, (str, int)) and not isinstance(inner, bool):
            value[steps[0]] = next((one for one in ours if is_same(one, str(inner))), inner)
