"""Who owns which field of an object, as the server records it: `metadata.managedFields`. Pure.

Fields are entered as the kind's schema says: maps by their keys, lists with keys by these, sets by their elements, all
else as a whole. As on a server, nobody owns a field that was removed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.kubernetes.converting import in_version
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.published import Node

__all__ = ["Changes", "Path", "Writer", "entries_of", "fields_of", "owned", "paths_of", "with_entries"]

Path = tuple[str, ...]
_NOT_OWNED: Final = frozenset({"apiVersion", "kind", "metadata"})
_OWNED_METADATA: Final = ("labels", "annotations", "finalizers")


@dataclass(frozen=True)
class Writer:
    """Who writes: the field manager, whether by `Update` or `Apply`, and to which subresource."""

    manager: str
    operation: str = "Update"
    subresource: str = ""

    def wrote(self, entry: Object, api_version: str) -> bool:
        """Return whether an entry of managedFields is this writer's: updates in another version have their own."""
        found = (entry["manager"], entry["operation"], entry.get("subresource", ""))
        is_same = entry["apiVersion"] == api_version or self.operation == "Apply"
        return is_same and found == (self.manager, self.operation, self.subresource)

    def entry(self, api_version: str, paths: Iterable[Path], at: str) -> Object:
        """Return this writer's entry for these fields."""
        made: Object = {"manager": self.manager, "operation": self.operation, "apiVersion": api_version, "time": at}
        made |= {"subresource": self.subresource} if self.subresource else {}
        return {**made, "fieldsType": "FieldsV1", "fieldsV1": _tree(set(paths))}


def owned(before: Object | None, after: Object, writer: Writer, at: str, kind: Kind) -> Object:
    """Return the object with its managedFields after an update: who wrote which field last."""
    changes = Changes(before, after, kind)
    changed, gone = changes.of(after["apiVersion"])
    entries = entries_of(before)
    if changed or gone:
        for entry in entries:
            lost = set().union(*changes.of(entry["apiVersion"]))
            entry["fieldsV1"] = _tree({path for path in paths_of(entry) if path not in lost})
    if changed:
        mine = next((entry for entry in entries if writer.wrote(entry, after["apiVersion"])), None)
        held = set(paths_of(mine)) if mine is not None else set()
        entries = [entry for entry in entries if entry is not mine]
        entries.append(writer.entry(after["apiVersion"], held | changed, at))
    return with_entries(after, entries)


class Changes:
    """Which fields differ between two states of an object, in any version: each manager's are named in its own."""

    def __init__(self, before: Object | None, after: Object, kind: Kind) -> None:
        self._before = before
        self._after = after
        self._kind = kind
        self._found: dict[str, tuple[set[Path], set[Path]]] = {}

    def of(self, api_version: str) -> tuple[set[Path], set[Path]]:
        """Return the fields that are new or have another value, and those that are gone."""
        if api_version not in self._found:
            kind = self._kind.at(api_version)
            old = dict(fields_of(in_version(kind, self._before), kind.node)) if self._before is not None else {}
            new = dict(fields_of(in_version(kind, self._after), kind.node))
            changed = {path for path, value in new.items() if path not in old or old[path] != value}
            self._found[api_version] = (changed, old.keys() - new.keys())
        return self._found[api_version]


def entries_of(item: Object | None) -> list[Object]:
    """Return a copy of an object's entries."""
    return copy.deepcopy(item["metadata"].get("managedFields") or []) if item is not None else []


def with_entries(item: Object, entries: list[Object]) -> Object:
    """Return the object with these entries; those that own nothing any more are left out."""
    kept = [entry for entry in entries if entry["fieldsV1"]]
    metadata = {key: value for key, value in item["metadata"].items() if key != "managedFields"}
    return {**item, "metadata": {**metadata, **({"managedFields": kept} if kept else {})}}


def fields_of(item: Object, node: Node) -> Iterator[tuple[Path, Any]]:
    """Return the fields that have owners, each with its value."""
    for name, value in item.items():
        if name not in _NOT_OWNED:
            yield from _leaves(value, (f"f:{name}",), node.child(name))
    for name in _OWNED_METADATA:
        there = (item.get("metadata") or {}).get(name)
        if isinstance(there, dict):
            for key, value in there.items():
                yield ("f:metadata", f"f:{name}", f"f:{key}"), value
        for value in there if isinstance(there, list) else ():
            yield ("f:metadata", f"f:{name}", f"v:{json.dumps(value)}"), value


def _leaves(value: Any, path: Path, node: Node) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value and not node.is_atomic_map:
        for key, item in value.items():
            yield from _leaves(item, (*path, f"f:{key}"), node.child(key))
    elif isinstance(value, list) and value and node.list_kind == "map" and all(isinstance(one, dict) for one in value):
        for item in value:
            yield from _leaves(item, (*path, f"k:{_as_text(node.key_of(item))}"), node.items)
    elif isinstance(value, list) and value and node.list_kind == "set":
        for item in value:
            yield (*path, f"v:{_as_text(item)}"), item
    else:
        yield path, value


def _as_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def paths_of(entry: Object) -> Iterator[Path]:
    """Return the fields that an entry owns."""
    yield from _paths(entry["fieldsV1"], ())


def _paths(tree: Object, path: Path) -> Iterator[Path]:
    for key, inner in tree.items():
        if inner:
            yield from _paths(inner, (*path, key))
        else:
            yield (*path, key)


def _tree(paths: set[Path]) -> Object:
    tree: Object = {}
    for path in sorted(paths):
        here = tree
        for key in path:
            here = here.setdefault(key, {})
    return tree
