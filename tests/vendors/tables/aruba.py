"""Aruba's table: facts of its published OpenAPI documents, which ``scripts/aruba_facts.py`` has written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def make() -> dict[str, Any]:
    """Return the whole table."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("aruba.json").read_text())
    return found
