"""Where two values of a parameter differ, element by element: what was added, removed or changed, and where.

A list of rules that differs in one of fifty has one difference. Pure, and bounded in what it costs: the values come
from clouds and agents. ``diff_words`` words the differences; ``drift`` decides whether values differ at all.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from fractal_cloud.rules.nested.amounts import network


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""Stands for the side on which an element is not."""

_UNORDERED: Final = frozenset({"unordered", "cidrs", "identified"})
_NAMES: Final = ("name", "id", "key")
_DEEPEST: Final = 16
# What two ordered lists may cost: aligning them takes time by the product of their lengths.
_MOST_ALIGNED: Final = 250_000


class Item(NamedTuple):
    """An element of a list: its place there, and its name where it has one."""

    place: int
    name: str = ""


Step = str | Item
Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ElementDifference:
    """One element that differs. Added: ``before`` is absent; removed: ``after`` is. A whole value has an empty path.

    A removed or changed item of a list stands at its place before, an added one at its place after.
    """

    path: Path
    before: Any
    after: Any

    @property
    def sign(self) -> Literal["+", "-", "~"]:
        """Whether it was added, removed or changed."""
        if self.before is ABSENT:
            return "+"
        return "-" if self.after is ABSENT else "~"


def element_differences(before: Any, after: Any, compare: str | None = None) -> Iterator[ElementDifference]:
    """Every element in which two values differ.

    ``compare``: how the parameter is compared, as its type says; None where that is not known. Then the order of a list
    counts only where nothing else differs, because clouds answer in an order of their own.
    """
    return _differences((), before, after, compare)


def _differences(path: Path, before: Any, after: Any, compare: str | None) -> Iterator[ElementDifference]:
    if len(path) < _DEEPEST:
        if isinstance(before, Mapping) and isinstance(after, Mapping) and not {*before, *after} & _REFERENCES:
            yield from _entries(path, before, after)
            return
        if isinstance(before, list | tuple) and isinstance(after, list | tuple):
            yield from _items(path, before, after, compare)
            return
    if _key(before) != _key(after):
        yield ElementDifference(path, before, after)


_REFERENCES: Final = frozenset({"$secret", "$output", "$find"})
"""What stands for one value, though it is written as a map."""


def _entries(path: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ElementDifference]:
    for key in sorted({*before, *after}):
        was, is_now = before.get(key, ABSENT), after.get(key, ABSENT)
        if was is ABSENT or is_now is ABSENT:
            yield ElementDifference((*path, key), was, is_now)
        else:
            yield from _differences((*path, key), was, is_now, None)


def _items(path: Path, before: Sequence[Any], after: Sequence[Any], compare: str | None) -> Iterator[ElementDifference]:
    key: Callable[[Any], str] = _network_key if compare == "cidrs" else _key
    ours, theirs = [key(item) for item in before], [key(item) for item in after]
    if compare in _UNORDERED:
        yield from _unordered(path, (before, after), _of_sets(ours, theirs))
        return
    is_only_order = Counter(ours) == Counter(theirs)
    if is_only_order or compare is not None:
        if len(ours) * len(theirs) <= _MOST_ALIGNED:
            yield from _ordered(path, (before, after), ours, theirs)
        elif ours != theirs:
            yield ElementDifference(path, before, after)
        return
    yield from _unordered(path, (before, after), _of_multisets(ours, theirs))


Sides = tuple[Sequence[Any], Sequence[Any]]
Places = tuple[list[int], list[int]]


def _of_sets(ours: Sequence[str], theirs: Sequence[str]) -> Places:
    """The places of what only one side has; how often it has what both have does not matter."""
    return _only(ours, set(theirs)), _only(theirs, set(ours))


def _only(keys: Sequence[str], others: set[str]) -> list[int]:
    return [place for place, key in enumerate(keys) if key not in others]


def _of_multisets(ours: Sequence[str], theirs: Sequence[str]) -> Places:
    """The places of what one side has more often than the other."""
    return _surplus(ours, Counter(ours) - Counter(theirs)), _surplus(theirs, Counter(theirs) - Counter(ours))


def _surplus(keys: Sequence[str], more: Counter[str]) -> list[int]:
    found = []
    for place, key in enumerate(keys):
        if more[key] > 0:
            more[key] -= 1
            found.append(place)
    return found


def _unordered(path: Path, sides: Sides, places: Places) -> Iterator[ElementDifference]:
    """What only one side has; two of one name are one that changed."""
    before, after = sides
    names = _names(before, places[0])
    others = {name: place for place, name in _names(after, places[1]).items()}
    changed = set(names.values()) & set(others)
    for place in places[0]:
        name = names.get(place)
        if name in changed:
            yield from _differences((*path, Item(place, name)), before[place], after[others[name]], None)
        else:
            yield ElementDifference((*path, Item(place)), before[place], ABSENT)
    same = {others[name] for name in changed}
    for place in places[1]:
        if place not in same:
            yield ElementDifference((*path, Item(place)), ABSENT, after[place])


def _names(items: Sequence[Any], places: Iterable[int]) -> dict[int, str]:
    """What names the items at these places, where that is a name each has to itself."""
    found = {place: name for place in places if (name := _name(items[place]))}
    often = Counter(found.values())
    return {place: name for place, name in found.items() if often[name] == 1}


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return ""
    return next((value for key in _NAMES if isinstance(value := item.get(key), str) and value), "")


def _ordered(path: Path, sides: Sides, ours: Sequence[str], theirs: Sequence[str]) -> Iterator[ElementDifference]:
    before, after = sides
    for verb, low, high, from_, to in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if verb == "equal":
            continue
        pairs = min(high - low, to - from_)
        for step in range(pairs):
            yield from _differences((*path, Item(low + step)), before[low + step], after[from_ + step], None)
        for place in range(low + pairs, high):
            yield ElementDifference((*path, Item(place)), before[place], ABSENT)
        for place in range(from_ + pairs, to):
            yield ElementDifference((*path, Item(place)), ABSENT, after[place])


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _network_key(value: Any) -> str:
    return _key(network(value) if isinstance(value, str) else value)
