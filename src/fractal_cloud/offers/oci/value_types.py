"""Kinds of values that several OCI types share, checked when they are declared and so before anything is called."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StringConstraints

_BUCKET: Final = re.compile(r"[A-Za-z0-9._-]{1,256}\Z")
_IPV4: Final = r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$"
LARGEST, SMALLEST = 16, 30


def _canonical_block(text: str) -> str:
    try:
        block = IPv4Network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no IPv4 block: write it like '10.0.0.0/16'") from error
    if not LARGEST <= block.prefixlen <= SMALLEST:
        raise ValueError(f"{text!r} is of a size OCI refuses: take a block between /{LARGEST} and /{SMALLEST}")
    if str(block) != text:
        raise ValueError(f"{text!r} has bits set behind its prefix: write {str(block)!r}")
    return text


def bucket_name(name: str) -> str:
    """A name OCI takes for a bucket; raises where it is none."""
    if not _BUCKET.match(name):
        raise ValueError(f"{name!r} is no bucket name: take up to 256 letters, digits, dots, - and _")
    return name


Block = Annotated[
    str, StringConstraints(pattern=_IPV4), AfterValidator(_canonical_block), Field(examples=["10.0.0.0/16"])
]
"""The IPv4 block of a VCN or a subnet."""

Region = Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d+$", examples=["eu-frankfurt-1"])]

DnsLabel = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]{0,14}$", examples=["vcn1"])]

Compartment = Annotated[str, Field(examples=["platform/network"])]
"""What a declaration calls a compartment."""
