"""Kinds of values that several types of Aruba Cloud share, checked when they are declared."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

_NAME: Final = re.compile(r"(?=.*[a-z])[A-Za-z0-9][A-Za-z0-9-]{2,48}[A-Za-z0-9]\Z")


class Part(BaseModel):
    """One entry of a list parameter, compared in one spelling."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", hide_input_in_errors=True
    )

    def flat(self) -> dict[str, Any]:
        """The entry as it is compared: what says nothing is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def resource_name(name: str) -> str:
    """A name Aruba takes; raises where it is none."""
    if not _NAME.match(name):
        raise ValueError(
            f"{name!r} is no name Aruba takes: 4 to 50 letters, digits and inner hyphens, one of them a small letter"
        )
    return name


def _block(text: str) -> str:
    try:
        block = IPv4Network(text, strict=False)
    except ValueError as error:
        raise ValueError(f"{text!r} is no IPv4 block: write it like '192.168.1.0/24'") from error
    if str(block) != text:
        raise ValueError(f"{text!r} has bits set behind its prefix: write {str(block)!r}")
    return text


Block = Annotated[str, AfterValidator(_block), Field(examples=["192.168.1.0/24"])]
"""An IPv4 block."""

Location = Annotated[str, Field(pattern=r"^[A-Za-z]{4}-[A-Za-z0-9]+$", examples=["ITBG-Bergamo"])]
"""A region such as ``ITBG-Bergamo``."""

DataCenter = Annotated[str, Field(pattern=r"^[A-Za-z]{4}-\d+$", examples=["ITBG-1"])]
"""A zone of a region such as ``ITBG-1``."""

Project = Annotated[str, Field(examples=["my-project"])]
"""What a declaration calls a project: its id or its name."""
