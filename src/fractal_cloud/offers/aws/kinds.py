"""Kinds of values that several AWS types share, checked when they are declared and so before anything is called."""

from __future__ import annotations

from ipaddress import IPv4Network, ip_network
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

_IPV4: Final = r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$"
SMALLEST, LARGEST = 28, 16


def _canonical_block(text: str) -> str:
    try:
        block = IPv4Network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no IPv4 block: write it like '10.0.0.0/16'") from error
    if not LARGEST <= block.prefixlen <= SMALLEST:
        raise ValueError(f"{text!r} is of the size AWS refuses: take a block between /{LARGEST} and /{SMALLEST}")
    if str(block) != text:
        raise ValueError(f"{text!r} has bits set behind its prefix: write {str(block)!r}")
    return text


def canonical_network(text: str) -> str:
    """A network as AWS writes it, IPv4 or IPv6; raises where it is none."""
    try:
        return str(ip_network(text, strict=False))
    except ValueError as error:
        raise ValueError(f"{text!r} is no network: write it like '10.0.0.0/8' or '::/0'") from error


Block = Annotated[str, StringConstraints(pattern=_IPV4), AfterValidator(_canonical_block)]
"""The IPv4 block of a VPC or a subnet."""

Network = Annotated[str, AfterValidator(canonical_network)]
"""Any network, brought into AWS's spelling."""

Region = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d+$", examples=["eu-west-1"])]
