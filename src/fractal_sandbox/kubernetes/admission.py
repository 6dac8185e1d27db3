"""What a cluster does to writes before it stores them: mutating admission policies, and who owns which field. Pure.

Owners are kept for the specs of Deployments, as far as writes change them: enough to ask who set a value back.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any, Final

from fractal_sandbox.kubernetes.kinds import Kind, Object

__all__ = ["Admission", "owned"]

_OWNED: Final = frozenset({"Deployment"})
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


def owned(before: Object | None, after: Object, manager: str, subresource: str, at: str) -> Object:
    """Return the object with its managedFields: who wrote which field of the spec last."""
    if after["kind"] not in _OWNED:
        return after
    old = dict(_leaves(before["spec"])) if before is not None else {}
    changed = {path for path, value in _leaves(after["spec"]) if path not in old or old[path] != value}
    entries: list[Object] = copy.deepcopy(before["metadata"].get("managedFields") or []) if before is not None else []
    if changed:
        for entry in entries:
            entry["fieldsV1"] = _tree({path for path in _paths(entry["fieldsV1"]) if path not in changed})
        mine = next((e for e in entries if (e["manager"], e.get("subresource", "")) == (manager, subresource)), None)
        if mine is None:
            mine = {"manager": manager, "operation": "Update", "apiVersion": after["apiVersion"]}
            mine |= {"fieldsType": "FieldsV1", "fieldsV1": {}, **({"subresource": subresource} if subresource else {})}
            entries.append(mine)
        mine["time"] = at
        mine["fieldsV1"] = _tree({*_paths(mine["fieldsV1"]), *changed})
        entries = [entry for entry in entries if entry["fieldsV1"]]
    return {**after, "metadata": {**after["metadata"], "managedFields": entries}} if entries else after


def _leaves(value: Any, path: _Path = ("f:spec",)) -> Iterator[tuple[_Path, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, f"f:{key}"))
    elif isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        for item in value:
            name = json.dumps({"name": item["name"]}, separators=(",", ":"))
            yield from _leaves(item, (*path, f"k:{name}"))
    else:
        yield path, value


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
