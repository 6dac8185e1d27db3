"""Quantities such as `500m` and `1Gi`, in the one spelling the API server answers with, and in order.

The server reads `0.5` and answers `500m`, reads `1024Mi` and answers `1Gi`: a provider that compares text finds drift.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

__all__ = ["canonical", "is_quantity", "value_of"]

_QUANTITY: Final = re.compile(r"(?P<number>[+-]?(\d+(\.\d*)?|\.\d+))(?P<unit>[numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3))


def is_quantity(text: Any) -> bool:
    return _QUANTITY.fullmatch(str(text)) is not None


def value_of(text: Any) -> Decimal:
    """Return a quantity as a number; raises ValueError where it is none."""
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        raise ValueError(f"no quantity: {text!r}")
    number, unit = Decimal(found["number"]), found["unit"] or ""
    if unit in _BINARY:
        return number * Decimal(1024) ** _BINARY.index(unit)
    exponents = {**dict(_DECIMAL), "u": -6, "n": -9}
    exponent = exponents[unit] if unit in exponents else int(unit[1:])
    return number.scaleb(exponent)


def canonical(text: Any) -> Any:
    """Return the server's spelling of a quantity; what is none stays as it is, and is refused later."""
    found = _QUANTITY.fullmatch(str(text))
    if found is None:
        return text
    unit, value = found["unit"] or "", value_of(text)
    if unit in _BINARY[1:] and value == value.to_integral_value():
        return _binary(int(value))
    if unit and unit[0] in "eE" and unit[1:]:
        return _scientific(value)
    return _decimal(value)


def _binary(value: int) -> str:
    unit = 0
    while value and value % 1024 == 0 and unit < len(_BINARY) - 1:
        value //= 1024
        unit += 1
    return f"{value}{_BINARY[unit]}"


def _decimal(value: Decimal) -> str:
    value = value.scaleb(3).to_integral_value(ROUND_CEILING).scaleb(-3)  # nothing is finer than milli
    for unit, exponent in _DECIMAL:
        scaled = value.scaleb(-exponent)
        if scaled == scaled.to_integral_value() and (scaled or not unit):
            return f"{int(scaled)}{unit}"
    raise AssertionError("every number of thousandths has a unit")


def _scientific(value: Decimal) -> str:
    exponent = 0
    while value and value % 1000 == 0:
        value /= 1000
        exponent += 3
    return f"{int(value)}e{exponent}" if exponent else _decimal(value)
