"""The RFC 6902 patch that makes one JSON value another: as few operations as possible, lists element by element.

Nothing but what differs is in it, so that whatever a person changed elsewhere meanwhile stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any

Operation = dict[str, Any]


def patch(before: Mapping[str, Any], after: Mapping[str, Any], at: str = "") -> list[Operation]:
    """The operations that make an object the other, in an order in which each can be carried out."""
    return list(_of_object(before, after, at))


def pointer(at: str, step: str | int) -> str:
    """A step deeper, as a JSON pointer writes it."""
    return f"{at}/{str(step).replace('~', '~0').replace('/', '~1')}"


def _of_object(before: Mapping[str, Any], after: Mapping[str, Any], at: str) -> Iterator[Operation]:
    for name in before:
        if name not in after:
            yield {"op": "remove", "path": pointer(at, name)}
    for name, value in after.items():
        if name in before:
            yield from _of_value(before[name], value, pointer(at, name))
        else:
            yield {"op": "add", "path": pointer(at, name), "value": value}


def _of_value(before: Any, after: Any, at: str) -> Iterator[Operation]:
    if _text(before) == _text(after):
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _of_object(before, after, at)
    elif isinstance(before, list) and isinstance(after, list) and before:
        yield from _of_list(before, after, at)
    else:
        yield {"op": "replace", "path": at, "value": after}


def _of_list(before: list[Any], after: list[Any], at: str) -> Iterator[Operation]:
    """From the end to the beginning, so that the places of what comes before stay what they are."""
    texts = [_text(one) for one in before], [_text(one) for one in after]
    for tag, i1, i2, j1, j2 in reversed(SequenceMatcher(None, *texts, autojunk=False).get_opcodes()):
        if tag == "equal":
            continue
        common = min(i2 - i1, j2 - j1)
        for place in reversed(range(i1 + common, i2)):
            yield {"op": "remove", "path": pointer(at, place)}
        for place in reversed(range(j1 + common, j2)):
            yield {"op": "add", "path": pointer(at, i1 + common), "value": after[place]}
        for place in range(common):
            yield from _of_value(before[i1 + place], after[j1 + place], pointer(at, i1 + place))


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
