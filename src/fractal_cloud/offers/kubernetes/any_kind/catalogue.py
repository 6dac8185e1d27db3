"""The packaged catalogue of Kubernetes' own kinds: one file, made by `scripts/kubernetes_kinds.py`."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Final

from fractal_cloud.offers.kubernetes.any_kind.kind_facts import KindFacts, type_name

FILE: Final = "kinds.json.gz"


def find(component_type: str) -> KindFacts | None:
    """The kind of that type, or None where the catalogue has none."""
    said = _whole()["kinds"].get(component_type)
    name = type_name(component_type)
    if said is None or name is None:
        return None
    definitions = _whole()["definitions"]
    return KindFacts(
        name=name,
        plural=said["plural"],
        is_namespaced=said["namespaced"],
        verbs=frozenset(said["verbs"]),
        schema=definitions[said["definition"]],
        definitions=definitions,
        description=said["description"],
    )


def names() -> tuple[str, ...]:
    """The types of all kinds, sorted."""
    return tuple(sorted(_whole()["kinds"]))


def descriptions() -> Iterator[tuple[str, str]]:
    """Each type with its kind's description, by type."""
    return ((name, str(_whole()["kinds"][name]["description"])) for name in names())


def as_of() -> str:
    """The day of the published document."""
    return str(_whole()["asOf"])


def release() -> str:
    """The release of Kubernetes that published it."""
    return str(_whole()["release"])


@cache
def _whole() -> dict[str, Any]:
    with resources.files(__package__).joinpath(FILE).open("rb") as file:
        found: dict[str, Any] = json.loads(gzip.decompress(file.read()))
    return found
