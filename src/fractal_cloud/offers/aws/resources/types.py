"""The packaged catalogue of AWS's resource types: one file, made by `scripts/aws_types.py`, read service by service.

The index is read on first use (names and summaries); the schemas of a service when one of its types is first asked
for. What is parsed is kept, as little as is asked for; nothing here knows an account's own types.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from fractal_cloud.offers.aws.resources.schema import AwsType, parse

FILE: Final = "aws_types.zip"
INDEX: Final = "index.json"
_KEPT_SERVICES: Final = 4


@dataclass(frozen=True, slots=True)
class TypeLine:
    """One type in a list: its name, and the first sentence of AWS's description."""

    name: str
    summary: str


def find(name: str) -> AwsType | None:
    """The type of that name; None where the catalogue has none that is usable."""
    return _found(name) if name in _index()["types"] else None


def names() -> tuple[str, ...]:
    """The names of all usable types, sorted."""
    return tuple(_index()["types"])


def summaries() -> Iterator[TypeLine]:
    """Every usable type with its description in a sentence, by name."""
    return (TypeLine(name, summary) for name, summary in _index()["types"].items())


def as_of() -> str:
    """The day of the schemas, as ``2026-10-20``."""
    return str(_index()["asOf"])


def unusable(name: str) -> str:
    """Why a type that AWS has cannot be declared, in words that follow «it»; empty for one that is not known here."""
    return str(_index()["unusable"].get(name, ""))


def document(name: str) -> Mapping[str, Any]:
    """The schema document of a usable type, as it is packaged."""
    found: Mapping[str, Any] = _service(name.split("::")[1])[name]
    return found


@cache
def _found(name: str) -> AwsType:
    return parse(document(name))


@cache
def _index() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_read(INDEX))
    return found


_services: dict[str, dict[str, Any]] = {}


def _service(name: str) -> dict[str, Any]:
    """The documents of one service; only the last few are kept, for they are needed until they are parsed."""
    found = _services.get(name)
    if found is None:
        found = json.loads(_read(f"{name}.json"))
        while len(_services) >= _KEPT_SERVICES:
            _services.pop(next(iter(_services)), None)
        _services[name] = found
    return found


def _read(member: str) -> bytes:
    with resources.files(__package__).joinpath(FILE).open("rb") as file, zipfile.ZipFile(file) as archive:
        return archive.read(member)
