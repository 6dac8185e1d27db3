"""Server-side apply: what a manager's configuration makes of an object, who owns which field then, and conflicts. Pure.

A field that another manager owns with another value is a conflict, unless the apply is forced: then its owner changes.
What the manager applied before and no longer names goes, where nobody else owns it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from typing import Any

from fractal_sandbox.kubernetes.errors import ApiError
from fractal_sandbox.kubernetes.kinds import Kind, Object
from fractal_sandbox.kubernetes.managed_fields import (
    Changes,
    Path,
    Writer,
    applied_fields,
    entries_of,
    paths_of,
    tree_of,
)
from fractal_sandbox.kubernetes.published import Node

__all__ = ["applied"]


def applied(
    item: Object, config: Object, writer: Writer, at: str, kind: Kind, *, is_forced: bool
) -> tuple[Object, list[Object]]:
    """Return the object with a configuration applied to it, and its entries of managedFields.

    Raises the refusal of one that conflicts with other managers.
    """
    entries, node = entries_of(item), kind.node
    named = dict(applied_fields(config, kind))
    there = dict(applied_fields(item, kind))
    mine = next((entry for entry in entries if writer.wrote(entry, kind.api_version)), None)
    if mine is not None and mine["apiVersion"] != kind.api_version:
        raise ApiError(501, "", f"{writer.manager} applied {mine['apiVersion']} before: not stood in for here")
    others = [entry for entry in entries if entry is not mine]
    lost = {path for path, value in named.items() if path in there and there[path] != value}
    merged = _merged(copy.deepcopy(item), config, node)
    changes = Changes(item, merged, kind)

    def lost_to(entry: Object) -> set[Path]:
        return lost if entry["apiVersion"] == kind.api_version else changes.of(entry["apiVersion"])[0]

    disputed = [(entry, path) for entry in others for path in paths_of(entry) if _is_disputed(path, lost_to(entry))]
    if disputed and not is_forced:
        raise _conflicts(disputed)
    for entry in others:
        taken = {path for one, path in disputed if one is entry}
        entry["fieldsV1"] = tree_of(path for path in paths_of(entry) if path not in taken)
    before = set(paths_of(mine)) if mine is not None else set()
    kept = {path for entry in others for path in paths_of(entry)}
    still_owned = named.keys() | kept
    for path in sorted(before - named.keys(), reverse=True):
        if not any(one[: len(path)] == path for one in still_owned):
            _remove(merged, path, still_owned)
    if mine is None or before != named.keys():
        mine = writer.entry(str(config.get("apiVersion", item["apiVersion"])), named, at)
    return merged, [*others, mine]


def _is_disputed(path: Path, lost: set[Path]) -> bool:
    """Whether what somebody owns at a path is given another value, there or in a whole that holds it."""
    return any(path[: len(one)] == one for one in lost)


def _conflicts(disputed: list[tuple[Object, Path]]) -> ApiError:
    causes = []
    for entry, path in disputed:
        by = f'conflict with "{entry["manager"]}"'
        by += f' with subresource "{entry["subresource"]}"' if entry.get("subresource") else ""
        causes.append(
            {"reason": "FieldManagerConflict", "message": f"{by} using {entry['apiVersion']}", "field": _shown(path)}
        )
    many = f"{len(causes)} conflict{'s' if len(causes) > 1 else ''}"
    lines = ", ".join(f"{one['message']}: {one['field']}" for one in causes)
    return ApiError(409, "Conflict", f"Apply failed with {many}: {lines}", {"causes": causes})


def _shown(path: Path) -> str:
    parts = []
    for step in path:
        kind, _, text = step.partition(":")
        if kind == "f":
            parts.append(f".{text}")
        elif kind == "k":
            keys = ",".join(f"{name}={json.dumps(value)}" for name, value in json.loads(text).items())
            parts.append(f"[{keys}]")
        else:
            parts.append(f"[={text}]")
    return "".join(parts)


def _merged(there: Any, config: Any, node: Node) -> Any:
    """Return a value with what a configuration names put into it; a null of a configuration says nothing."""
    if isinstance(config, dict) and isinstance(there, dict) and not node.is_atomic_map:
        merged = dict(there)
        for name, value in config.items():
            if value is not None:
                merged[name] = _merged(there.get(name), value, node.child(name))
        return merged
    if isinstance(config, list) and isinstance(there, list) and node.list_kind != "atomic":
        return _merged_list(there, config, node)
    return copy.deepcopy(config)


def _merged_list(there: list[Any], config: list[Any], node: Node) -> list[Any]:
    if node.list_kind == "set":
        return [*there, *(one for one in config if one not in there)]
    merged = list(there)
    keys = [node.key_of(one) for one in there]
    for one in config:
        key = node.key_of(one)
        if key in keys:
            at = keys.index(key)
            merged[at] = _merged(there[at], one, node.items)
        else:
            merged.append(copy.deepcopy(one))
    return merged


def _remove(item: Any, path: Path, still_owned: Iterable[Path]) -> None:
    """Take a field out of an object, and with it the element of a list that nobody owns anything of any more."""
    here, way = item, []
    for depth, step in enumerate(path):
        way.append((here, step))
        if step.startswith("k:") and not any(owned[: depth + 1] == path[: depth + 1] for owned in still_owned):
            break
        here = _entered(here, step)
        if here is None:
            return
    parent, step = way[-1]
    kind, _, text = step.partition(":")
    if isinstance(parent, dict) and kind == "f":
        parent.pop(text, None)
    elif isinstance(parent, list):
        parent[:] = [one for one in parent if one is not _entered(parent, step)]


def _entered(value: Any, step: str) -> Any:
    kind, _, text = step.partition(":")
    if kind == "f":
        return value.get(text) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    named = json.loads(text)
    if kind == "v":
        return next((one for one in value if one == named), None)
    return next((one for one in value if _has(one, named)), None)


def _has(one: Any, named: dict[str, Any]) -> bool:
    return isinstance(one, dict) and all(one.get(name, value) == value for name, value in named.items())
