"""Blocks of addresses and amounts, each in its one spelling. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from ipaddress import ip_network
from typing import Any, Final

_UNITS: Final[Mapping[str, Decimal]] = {
    **{
        unit: Decimal(10) ** (3 * power)
        for power, unit in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
    },
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}


def network(value: Any) -> Any:
    """A block of addresses in its one spelling; anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return str(ip_network(value, strict=False))
    except ValueError:
        return value


def quantity(value: Any) -> Any:
    """An amount as Kubernetes writes it, as a number: ``500m`` is ``0.5``, ``1Gi`` is ``1024Mi``; else as it is."""
    text = str(value)
    number = text.rstrip("".join({letter for unit in _UNITS for letter in unit}))
    try:
        return Decimal(number) * _UNITS[text[len(number) :]]
    except (InvalidOperation, KeyError):
        return value
