"""From an object as it is to the object as it should be, as a JSON Patch (RFC 6902) that names only what differs.

Paths into a list go by position. So a patch carries ``test`` operations: if somebody edited the list meanwhile, the
server refuses the whole patch, and no other entry is overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fractal_cloud.offers.kubernetes.kinds import Object
from fractal_cloud.offers.kubernetes.tags import escaped

_MISSING = object()


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Object]:
    """The operations that make ``after`` of ``before``.

    Lists of equal length are compared entry by entry. Before an entry changes, a ``test`` checks its name, or the whole
    entry where it has none; a list whose length changes is tested and replaced as a whole.
    """
    return list(_of_maps("", before, after))


def _of_maps(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Object]:
    for key in [*before, *(key for key in after if key not in before)]:
        here = f"{path}/{escaped(key)}"
        if key not in after:
            yield {"op": "remove", "path": here}
        elif key not in before:
            yield {"op": "add", "path": here, "value": after[key]}
        else:
            yield from _of_values(here, before[key], after[key])


def _of_values(path: str, before: Any, after: Any) -> Iterator[Object]:
    if before == after and type(before) is type(after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _of_maps(path, before, after)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        yield from _of_lists(path, before, after)
    else:
        if isinstance(before, list):
            yield {"op": "test", "path": path, "value": before}
        yield {"op": "replace", "path": path, "value": after}


def _of_lists(path: str, before: list[Any], after: list[Any]) -> Iterator[Object]:
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        changes = list(_of_values(f"{path}/{index}", old, new))
        name = old.get("name") if isinstance(old, dict) else None
        if changes and name is not None:
            yield {"op": "test", "path": f"{path}/{index}/name", "value": name}
        elif changes:
            yield {"op": "test", "path": f"{path}/{index}", "value": old}
        yield from changes


def test_passes(item: Mapping[str, Any], test: Mapping[str, Any]) -> bool:
    """Whether a ``test`` operation would pass on an object; the server does not say which one failed."""
    found: Any = item
    for part in str(test["path"]).split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(key, _MISSING)
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return False
    return bool(found == test["value"])
