"""Which fields of an object are ours by what the server records, and what must be applied so that nothing else changes.

A server takes away what a manager applied before and no longer names. So whoever corrects one field says again
everything that is ours already, as it was just read; the declaration is not asked for it (G15). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.tags import WRITTEN_BY_THE_CLUSTER
from fractal_cloud.rules.nested.path import Element, Path, element_of_set, entry_name, key_text

FIELD_MANAGER: Final = "fractal-cloud"
Tree = dict[str, Any]
"""Fields as ``fieldsV1`` writes them; one without inner fields is meant whole."""
_ITSELF: Final = "."
_IDENTITY: Final = ("apiVersion", "kind")
_MAPS: Final = ("labels", "annotations")
_NOT_OURS: Final = (("metadata", "labels"), ("metadata", "finalizers"), ("metadata", "ownerReferences"))


def applied_fields(item: Object) -> Tree:
    """What is ours by an earlier apply."""
    for entry in item["metadata"].get("managedFields") or []:
        is_ours = entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply"
        if is_ours and not entry.get("subresource"):
            found: Tree = entry.get("fieldsV1") or {}
            return found
    return {}


def is_applied_elsewhere(item: Object) -> bool:
    """Whether what is ours by an earlier apply is named in another version of the kind.

    There it may have other names, by which it cannot be said again: an apply would take it away.
    """
    return any(
        entry.get("manager") == FIELD_MANAGER
        and entry.get("operation") == "Apply"
        and not entry.get("subresource")
        and entry.get("apiVersion") != item["apiVersion"]
        for entry in item["metadata"].get("managedFields") or []
    )


def set_alone(item: Object) -> frozenset[str]:
    """The elements of lists, and the entries of labels and annotations, that we set and that nobody else has a part in.

    Labels of the object itself are left out: the user's tags stand among them, and a key taken out of these stays (T1).
    """
    mine: list[Tree] = []
    others: list[Tree] = []
    for entry in item["metadata"].get("managedFields") or []:
        if entry.get("subresource"):
            continue
        is_ours = entry.get("manager") == FIELD_MANAGER
        if entry.get("apiVersion") == item.get("apiVersion"):
            (mine if is_ours else others).append(entry.get("fieldsV1") or {})
        elif not is_ours:
            return frozenset()  # what somebody has a part in may have other names in another version
    return frozenset(entry_name(path) for path in _alone(mine, others, ()) if path[:2] not in _NOT_OURS)


def _alone(mine: Sequence[Tree], others: Sequence[Tree], path: Path, *, in_map: bool = False) -> Iterator[Path]:
    if not all(others):
        return  # somebody has all of it, as one value
    for key in sorted({key for tree in mine for key in tree} - {_ITSELF}):
        kind, _, text = key.partition(":")
        ours, theirs = ([tree[key] for tree in trees if key in tree] for trees in (mine, others))
        step = _step(kind, text)
        if step is None or (not path and text == "status"):
            continue
        here = (*path, step)
        if (in_map or kind in "kv") and not theirs and text not in WRITTEN_BY_THE_CLUSTER:
            yield here
        yield from _alone(ours, theirs, here, in_map=kind == "f" and text in _MAPS)


def _step(kind: str, text: str) -> str | Element | None:
    if kind == "f":
        return text
    named = json.loads(text)
    if kind == "v":
        return element_of_set(named)
    return Element(tuple((name, key_text(value) or "") for name, value in sorted(named.items())))


def configuration(item: Object, paths: Iterable[Path]) -> Object:
    """What is applied to bring the fields at these paths to what the object holds there, and to keep what is ours."""
    tree = applied_fields(item)
    recorded = [entry.get("fieldsV1") or {} for entry in item["metadata"].get("managedFields") or []]
    for path in paths:
        tree = _joined(tree, _tree(item, path, recorded) or {})
    found = _extracted(item, tree) if tree else {}
    metadata = {
        name: item["metadata"][name]
        for name in ("name", "namespace", "uid", "resourceVersion")
        if name in item["metadata"]
    }
    return {
        **{name: item[name] for name in _IDENTITY},
        **found,
        "metadata": {**(found.get("metadata") or {}), **metadata},
    }


def _tree(value: Any, path: Path, recorded: Sequence[Tree]) -> Tree | None:
    """The fields at a path, as a tree; None where the path leads nowhere. ``recorded``: what managers own here.

    A list is entered only where the server records owners of its elements: one that it takes for a single value (a
    definition whose schema it has not taken in yet) would lose every element that is not named. So would a map that
    it takes for a single value, as older servers do below what a schema leaves open.
    """
    if not path:
        return {}
    step, key, found = path[0], "", None
    if isinstance(step, str) and isinstance(value, dict) and step in value:
        key, found = f"f:{step}", value[step]
    elif isinstance(step, Element) and isinstance(value, list):
        if not any(name.startswith("k:") for tree in recorded for name in tree):
            return {}
        found = next((one for one in value if _is_meant(one, step)), None)
        names = sorted(name for name, _ in step.keys if found is not None and name in found)
        key = f"k:{json.dumps({name: found[name] for name in names}, separators=(',', ':'))}" if found else ""
    if not key:
        return None
    below = [tree[key] for tree in recorded if key in tree]
    inner: Tree | None = {} if below and not any(below) else _tree(found, path[1:], below)
    return None if inner is None else {key: inner}


def _is_meant(element: Any, step: Element) -> bool:
    return isinstance(element, dict) and all(
        key_text(element.get(name)) == text for name, text in step.keys if name in element
    )


def _joined(one: Tree, other: Tree) -> Tree:
    """Two trees in one; what either means whole is meant whole."""
    found = dict(one)
    for key, inner in other.items():
        known = found.get(key)
        found[key] = inner if known is None else ({} if not known or not inner else _joined(known, inner))
    return found


def _extracted(value: Any, tree: Tree) -> Any:
    """The part of a value that a tree names."""
    inner = {key: below for key, below in tree.items() if key != _ITSELF}
    if isinstance(value, dict):
        if not inner:
            return {} if _ITSELF in tree else value
        return {
            key[2:]: _extracted(value[key[2:]], below)
            for key, below in inner.items()
            if key.startswith("f:") and key[2:] in value
        }
    if isinstance(value, list) and inner:
        return [found for one in value if (found := _of_element(one, inner)) is not None]
    return value


def _of_element(element: Any, tree: Tree) -> Any:
    """An element of a list as far as a tree names it, by its keys or by itself; None where it does not."""
    for key, below in tree.items():
        kind, _, text = key.partition(":")
        named = json.loads(text)
        if kind == "v" and named == element:
            return element
        if kind == "k" and isinstance(element, dict) and _has(element, named):
            fields = {name for name in below if name != _ITSELF}
            return {**named, **_extracted(element, below)} if fields else element
    return None


def _has(element: Mapping[str, Any], keys: Mapping[str, Any]) -> bool:
    return all(element.get(name, value) == value for name, value in keys.items())
