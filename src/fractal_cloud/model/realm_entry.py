"""One realm as an agent's file of realms names it; each provider adds how its realms are reached.

Which realm really answers is asked of the cloud (S26), and never taken from here.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Name = Annotated[str, Field(pattern=r"^[^\x00-\x20\x7f/*]{1,200}$")]
"""What declarations call a realm: one printable word, and no pattern."""


class RealmEntry(BaseModel):
    """``name``: what declarations call it; its id counts, too. ``default``: it is meant where they name none."""

    model_config = ConfigDict(
        coerce_numbers_to_str=True,  # an account's id is digits, and YAML's own number
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
    )

    name: Name | None = None
    default: bool = False
