"""Types that are parts of others (S25): read from ``parts.json``, which `make docs` writes from the product's table.

Facts about AWS alone: which type a part belongs to, and which property names it there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ["Part", "parts"]

_FILE: Final = Path(__file__).with_name("parts.json")


@dataclass(frozen=True)
class Part:
    """What a type is a part of: `property` holds one of the parent's properties `holds`, or its identifier.

    `blocks`: AWS does not delete the parent while one is there; else it goes with the parent.
    """

    parent: str
    property: str
    holds: tuple[str, ...]
    blocks: bool


@cache
def parts() -> Mapping[str, Part]:
    """Every part by its type."""
    found: dict[str, dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))
    return {
        name: Part(one["parent"], one["property"], tuple(one["holds"]), one["blocks"]) for name, one in found.items()
    }
