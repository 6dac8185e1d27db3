"""The AWS SDK's models of its services, read without what nobody here reads: their documentation.

An agent holds the model of every service it calls for as long as it lives; that of EC2 alone is a file of megabytes,
most of it text for people. What the SDK makes of a model is not changed.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any


class Models:
    """Reads the SDK's files in the place of its own reader; a path is given without its ending."""

    def exists(self, path: str) -> bool:
        """Whether there is such a file."""
        return _plain(path).is_file() or _packed(path).is_file()

    def load_file(self, path: str) -> Any:
        """What a file says; None where there is none."""
        if _plain(path).is_file():
            return _read(_plain(path).read_bytes())
        return _read(gzip.decompress(_packed(path).read_bytes())) if _packed(path).is_file() else None


def _plain(path: str) -> Path:
    return Path(f"{path}.json")


def _packed(path: str) -> Path:
    return Path(f"{path}.json.gz")


def _read(text: bytes) -> Any:
    found = json.loads(text, object_pairs_hook=_without_documentation)
    if isinstance(found, dict):
        for setting in found.get("clientContextParams", {}).values():
            setting["documentation"] = ""  # the one place where the SDK insists on it
    return found


def _without_documentation(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a model; equal words are one. A member that is called ``documentation`` is an object, and stays."""
    kept = [(name, value) for name, value in pairs if name != "documentation" or not isinstance(value, str)]
    return {sys.intern(name): sys.intern(value) if isinstance(value, str) else value for name, value in kept}
