"""What a cluster does to writes before it stores them: mutating admission policies, and who owns which field. Pure.

Owners are kept for specs, data, labels and annotations, as far as writes change them: enough to ask who set a value.
As on a server, nobody owns a field that was removed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Kind, Object

__all__ = ["Admission", "Writer", "owned"]

_OWNED: Final = ("spec", "data")
_OWNED_METADATA: Final = ("labels", "annotations")
_LIST_KEYS: Final = (("containerPort", "protocol"), ("port", "protocol"), ("name",))
"""By what the items of a list are distinguished, the first that all of them have; else the list is owned as a whole."""
_Path = tuple[str, ...]


class Admission:
    """Mutating admission policies (fields that every write of a kind ends up with, whatever it says), and quotas."""

    def __init__(self) -> None:
        self._overrides: dict[str, dict[str, Any]] = {}
        self._quotas: dict[tuple[str, str], int] = {}

    def override(self, kind: str, **fields: Any) -> None:
        """Have every write of a kind set these fields of its spec: `override("Deployment", replicas=1)`."""
        self._overrides.setdefault(kind, {}).update(fields)

    def reset(self) -> None:
        """Take every policy away."""
        self._overrides.clear()
        self._quotas.clear()

    def limit(self, kind: str, most: int, namespace: str = "default") -> None:
        """Allow at most so many objects of a kind in a namespace, as a ResourceQuota called `small` does."""
        self._quotas[kind, namespace] = most

    def over_quota(self, kind: Kind, namespace: str, used: int) -> str:
        """Return why one more is refused, in the words of a server; nothing where it is not."""
        most = self._quotas.get((kind.kind, namespace))
        if most is None or used < most:
            return ""
        what = f"count/{kind.resource}" if kind.group else kind.plural
        return f"exceeded quota: small, requested: {what}=1, used: {what}={used}, limited: {what}={most}"

    def admitted(self, kind: Kind, item: Object) -> Object:
        """Return the object as the policies leave it."""
        fields = self._overrides.get(kind.kind)
        return {**item, "spec": {**item["spec"], **copy.deepcopy(fields)}} if fields else item


@dataclass(frozen=True)
class Writer:
    """Who writes: the field manager, whether by `Update` or `Apply`, and to which subresource."""

    manager: str
    operation: str = "Update"
    subresource: str = ""

    def wrote(self, entry: Object) -> bool:
        """Return whether an entry of managedFields is this writer's."""
        found = (entry["manager"], entry["operation"], entry.get("subresource", ""))
        return found == (self.manager, self.operation, self.subresource)


def owned(before: Object | None, after: Object, writer: Writer, at: str) -> Object:
    """Return the object with its managedFields: who wrote which field last."""
    old = dict(_fields(before)) if before is not None else {}
    new = dict(_fields(after))
    changed = {path for path, value in new.items() if path not in old or old[path] != value}
    gone = old.keys() - new.keys()
    entries: list[Object] = copy.deepcopy(before["metadata"].get("managedFields") or []) if before is not None else []
    if changed or gone:
        for entry in entries:
            entry["fieldsV1"] = _tree({path for path in _paths(entry["fieldsV1"]) if path not in changed | gone})
    if changed:
        mine = next((entry for entry in entries if writer.wrote(entry)), None)
        if mine is None:
            mine = {"manager": writer.manager, "operation": writer.operation, "apiVersion": after["apiVersion"]}
            mine |= {"fieldsType": "FieldsV1", "fieldsV1": {}}
            mine |= {"subresource": writer.subresource} if writer.subresource else {}
            entries.append(mine)
        mine["time"] = at
        mine["fieldsV1"] = _tree({*_paths(mine["fieldsV1"]), *changed})
    entries = [entry for entry in entries if entry["fieldsV1"]]
    return {**after, "metadata": {**after["metadata"], "managedFields": entries}} if entries else after


def _fields(item: Object) -> Iterator[tuple[_Path, Any]]:
    """Return the fields that have owners, each with its value."""
    for name in _OWNED:
        if name in item:
            yield from _leaves(item[name], (f"f:{name}",))
    for name in _OWNED_METADATA:
        for key, value in (item["metadata"].get(name) or {}).items():
            yield ("f:metadata", f"f:{name}", f"f:{key}"), value


def _leaves(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, f"f:{key}"))
    elif isinstance(value, list) and (names := _keys_of(value)):
        for item in value:
            key = json.dumps({name: item[name] for name in names}, separators=(",", ":"))
            yield from _leaves(item, (*path, f"k:{key}"))
    else:
        yield path, value


def _keys_of(items: list[Any]) -> tuple[str, ...]:
    if not items or not all(isinstance(item, dict) for item in items):
        return ()
    return next((names for names in _LIST_KEYS if all(set(names) <= set(item) for item in items)), ())


def _paths(tree: Object, path: _Path = ()) -> Iterator[_Path]:
    for key, inner in tree.items():
        if inner:
            yield from _paths(inner, (*path, key))
        else:
            yield (*path, key)


def _tree(paths: set[_Path]) -> Object:
    tree: Object = {}
    for path in sorted(paths):
        here = tree
        for key in path:
            here = here.setdefault(key, {})
    return tree
