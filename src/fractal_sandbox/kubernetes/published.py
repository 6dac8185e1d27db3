"""The kinds that a real server publishes, with the schemas of their fields: recorded facts, and a walk through them.

`published.json.gz` is written by `scripts/kubernetes_kinds.py`. A custom kind's schema is the one in its definition.
Pure; what becomes of an object that does not fit is in `structure.py`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

__all__ = ["Node", "definitions", "node_of", "published"]

Schema = Mapping[str, Any]
_NOTHING: Final[Schema] = {}
# Defaults by which the elements of a list are known; the document leaves them out.
_KEY_DEFAULTS: Final[Mapping[str, Any]] = {"protocol": "TCP"}


@cache
def published() -> Mapping[str, Any]:
    """Return the whole document: kinds by group, version and kind, and definitions."""
    found: dict[str, Any] = json.loads(
        gzip.decompress(files("fractal_sandbox.kubernetes").joinpath("published.json.gz").read_bytes())
    )
    return found


def definitions() -> Mapping[str, Schema]:
    found: Mapping[str, Schema] = published()["definitions"]
    return found


@dataclass(frozen=True)
class Node:
    """One place in a kind's schema; one of which nothing is known has an empty schema."""

    schema: Schema

    @property
    def _resolved(self) -> Schema:
        schema = self.schema
        while "$ref" in schema:
            schema = definitions().get(str(schema["$ref"]).rpartition("/")[2], _NOTHING)
        return schema

    @property
    def name(self) -> str:
        """The definition that it refers to, without its group; empty where it is none."""
        return str(self.schema.get("$ref", "")).rpartition(".")[2]

    @property
    def said(self) -> Schema:
        """What the schema says here, whatever it refers to."""
        found = self._resolved
        return {**found, **{key: value for key, value in self.schema.items() if key.startswith("x-")}}

    @property
    def properties(self) -> Schema:
        return self._resolved.get("properties") or _NOTHING

    @property
    def is_open(self) -> bool:
        """Whether fields that nobody named may stand here."""
        said = self._resolved
        return bool(not said.get("properties") or said.get("x-kubernetes-preserve-unknown-fields"))

    def child(self, name: str) -> Node:
        if name in self.properties:
            return Node(self.properties[name])
        entries = self._resolved.get("additionalProperties")
        return Node(entries) if isinstance(entries, Mapping) else Node(_NOTHING)

    @property
    def items(self) -> Node:
        return Node(self._resolved.get("items") or _NOTHING)

    @property
    def is_atomic_map(self) -> bool:
        return self.said.get("x-kubernetes-map-type") == "atomic"

    @property
    def list_kind(self) -> Literal["map", "set", "atomic"]:
        """How a server merges a list: by keys, by its elements, or not at all."""
        said = self.said
        kind = said.get("x-kubernetes-list-type")
        if kind is None and str(said.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
            kind = "map" if said.get("x-kubernetes-patch-merge-key") else "set"
        return "map" if kind == "map" else "set" if kind == "set" else "atomic"

    @property
    def keys(self) -> tuple[str, ...]:
        said = self.said
        return tuple(said.get("x-kubernetes-list-map-keys") or (said["x-kubernetes-patch-merge-key"],))

    def key_of(self, item: Mapping[str, Any]) -> dict[str, Any]:
        """By what an element of a list with keys is known."""
        found = {name: item.get(name, self._default(name)) for name in self.keys}
        return {name: value for name, value in sorted(found.items()) if value is not None}

    def _default(self, name: str) -> Any:
        return self.items.child(name).said.get("default", _KEY_DEFAULTS.get(name))


def node_of(group: str, version: str, kind: str) -> Node:
    """The schema of a built-in kind; empty where the document has none."""
    name = "/".join(part for part in (group, version, kind) if part)
    found = published()["kinds"].get(name)
    return Node({"$ref": f"#/definitions/{found['definition']}"}) if found else Node(_NOTHING)
