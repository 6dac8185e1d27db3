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

__all__ = [
    "Changes",
    "Path",
    "Writer",
    "applied_fields",
    "entries_of",
    "fields_of",
    "owned",
    "paths_of",
    "tree_of",
    "with_entries",
]

Path = tuple[str, ...]
_NOT_OWNED: Final = frozenset({"apiVersion", "kind", "metadata"})
_OWNED_METADATA: Final = ("annotations", "finalizers", "generateName", "labels", "ownerReferences")
_METADATA: Final = Node({"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"})
_ITSELF: Final = "."
_IS_THERE: Final = object()
"""In the place of a value: that there is an element, a map or a list."""


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
        return {**made, "fieldsType": "FieldsV1", "fieldsV1": tree_of(paths)}


def owned(before: Object | None, after: Object, writer: Writer, at: str, kind: Kind) -> Object:
    """Return the object with its managedFields after an update: who wrote which field last."""
    changes = Changes(before, after, kind)
    changed, gone = changes.of(after["apiVersion"])
    entries = entries_of(before)
    if changed or gone:
        for entry in entries:
            lost = set().union(*changes.of(entry["apiVersion"]))
            entry["fieldsV1"] = tree_of(path for path in paths_of(entry) if path not in lost)
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
            old = dict(_updated_fields(in_version(kind, self._before), kind)) if self._before is not None else {}
            new = dict(_updated_fields(in_version(kind, self._after), kind))
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
    return ((path, value) for path, value in _Walk().fields(item, node) if value is not _IS_THERE)


def applied_fields(config: Object, kind: Kind) -> Iterator[tuple[Path, Any]]:
    """Return what somebody owns by applying this, each with its value."""
    return _Walk(is_custom=kind.is_custom).fields(config, kind.node)


def _updated_fields(item: Object, kind: Kind) -> Iterator[tuple[Path, Any]]:
    return _Walk(is_custom=kind.is_custom, is_update=True).fields(item, kind.node)


@dataclass(frozen=True)
class _Walk:
    """A way through an object: of a built-in kind, empty maps and lists are left out, as its server does."""

    is_custom: bool = True
    is_update: bool = False

    def fields(self, item: Object, node: Node) -> Iterator[tuple[Path, Any]]:
        for name, value in item.items():
            if name not in _NOT_OWNED:
                yield from self._field(value, (), name, node)
        metadata = item.get("metadata") or {}
        for name in _OWNED_METADATA:
            if metadata.get(name):
                yield from self._field(metadata[name], ("f:metadata",), name, _METADATA)

    def _field(self, value: Any, path: Path, name: str, node: Node) -> Iterator[tuple[Path, Any]]:
        child, here = node.child(name), (*path, f"f:{name}")
        is_granular = isinstance(value, dict | list) and _is_granular(value, child)
        if is_granular and not value and not child.name and not self.is_custom:
            return
        is_always_written = bool(node.name) and name in (node.said.get("required") or ())
        if is_granular and value and self.is_update and not child.name and not is_always_written:
            yield here, _IS_THERE
        yield from self._inside(value, here, child)

    def _inside(self, value: Any, path: Path, node: Node) -> Iterator[tuple[Path, Any]]:
        if not isinstance(value, dict | list) or not value or not _is_granular(value, node):
            yield path, value
        elif isinstance(value, dict):
            for name, inner in value.items():
                yield from self._field(inner, path, name, node)
        elif node.list_kind == "set":
            yield from (((*path, f"v:{_as_text(one)}"), one) for one in value)
        else:
            for one in value:
                here = (*path, f"k:{_as_text(node.key_of(one))}")
                yield here, _IS_THERE
                yield from self._inside(one, here, node.items)


def _is_granular(value: dict[str, Any] | list[Any], node: Node) -> bool:
    """Whether parts of it have owners of their own."""
    if isinstance(value, dict):
        return not node.is_atomic_map
    return node.list_kind == "set" or (node.list_kind == "map" and all(isinstance(one, dict) for one in value))


def _as_text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def paths_of(entry: Object) -> Iterator[Path]:
    """Return the fields that an entry owns."""
    yield from _paths(entry["fieldsV1"], ())


def _paths(tree: Object, path: Path) -> Iterator[Path]:
    for key, inner in tree.items():
        if key == _ITSELF:
            yield path
        elif inner:
            yield from _paths(inner, (*path, key))
        else:
            yield (*path, key)


def tree_of(paths: Iterable[Path]) -> Object:
    """Return fields as an entry writes them."""
    tree: Object = {}
    members = sorted(paths)
    for path in members:
        _at(tree, path)
    for path in members:
        if found := _at(tree, path):
            found[_ITSELF] = {}
    return tree


def _at(tree: Object, path: Path) -> Object:
    for key in path:
        tree = tree.setdefault(key, {})
    return tree
