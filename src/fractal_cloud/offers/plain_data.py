"""Whether a document is plain data that every part of the product can store, send and show.

What the data means is not checked here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from fractal_cloud.model.visible_text import is_hidden
from fractal_cloud.model.wording import Path, shown

MAX_TEXT: Final = 65_536
MAX_DEPTH: Final = 16
MAX_VENDORS_DEPTH: Final = 64
"""How deep the vendor's own values may be nested: the schema in a definition of a kind has more than thirty levels."""
MAX_NUMBER: Final = 2**63 - 1

_LINES: Final = frozenset("\n\t")


def plain_data_errors(
    value: object, path: Path = (), *, lines: bool = False, deepest: int = MAX_DEPTH
) -> Iterator[tuple[Path, str]]:
    """Everything in a value that is not plain JSON, by path.

    ``lines``: text may have line breaks and tabs; keys never may. ``deepest``: how many levels it may have.
    """
    if len(path) > deepest:
        yield path, f"lies more than {deepest} levels deep: declare it flatter"
    elif isinstance(value, str):
        yield from ((path, message) for message in _text_errors(value, lines=lines))
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, (int, float)):
        if not math.isfinite(value) or abs(value) > MAX_NUMBER:
            yield path, f"is {shown(value)}: a number must lie between -{MAX_NUMBER} and {MAX_NUMBER}"
    elif isinstance(value, Mapping):
        yield from _map_errors(value, path, lines=lines, deepest=deepest)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from plain_data_errors(item, (*path, index), lines=lines, deepest=deepest)
    else:
        yield path, f"is {shown(value)}: give text, a number, true, false, a list or an object"


def _map_errors(value: Mapping[object, object], path: Path, *, lines: bool, deepest: int) -> Iterator[tuple[Path, str]]:
    for key, item in value.items():
        if not isinstance(key, str):
            yield path, f"has the key {shown(key)}: keys are text, put it in quotes"
        elif errors := list(_text_errors(key, lines=False)):
            yield path, f"has the key {shown(key)}, which {errors[0]}"
        else:
            yield from plain_data_errors(item, (*path, key), lines=lines, deepest=deepest)


def _text_errors(text: str, *, lines: bool) -> Iterator[str]:
    if len(text) > MAX_TEXT:
        yield f"is {len(text)} characters long: {MAX_TEXT} are allowed"
    bad = next((char for char in text if is_hidden(char) and not (lines and char in _LINES)), None)
    if bad is not None:
        yield f"holds the control character U+{ord(bad):04X}: take it out"
