"""Nested values, declared beside actual: every place at which they differ, each compared as its schema says. Pure.

Of objects only what is declared is compared, at every depth. An empty list or map that is declared is the same as none.
What the cloud never returns is compared by digests, elsewhere; how a difference is corrected is the matter of
``correct``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from fractal_cloud.rules.nested.alternatives import excluded
from fractal_cloud.rules.nested.comparers import KEYS, OF_TYPES, SAME, Key, plain_key
from fractal_cloud.rules.nested.matching import by_key, matched
from fractal_cloud.rules.nested.path import ANY, Element, Path, element_of_set, entry_name, is_covered, key_text
from fractal_cloud.rules.nested.shape import DEEPEST, Shape

_MOST_SIGNATURES: Final = 50
_MOST_PAIRS: Final = 100_000
"""How many pairs of elements one comparison holds side by side, however deep: the values come from clouds."""
_OF_LISTS: Final = frozenset({"", "exact", "unordered", "cidrs", "entries"})


class Difference(NamedTuple):
    """One place at which values differ; None stands for nothing, on either side."""

    path: Path
    declared: Any
    actual: Any


class Match(NamedTuple):
    """Which elements of two lists are the same, by their places, and which have no partner."""

    pairs: Mapping[int, int]
    only_declared: Sequence[int]
    only_actual: Sequence[int]


def is_nothing(value: Any) -> bool:
    """Whether a value says as much as none: an empty list or map, or null."""
    return value is None or (isinstance(value, Mapping | list | tuple) and not value)


def single_key(shape: Shape) -> Key:
    """How the single value at one place is compared."""
    return KEYS.get(shape.compare) or KEYS.get(OF_TYPES.get(shape.type, ""), plain_key)


def is_same(shape: Shape, declared: Any, actual: Any) -> bool:
    """Whether two values, each compared as a whole, are the same thing."""
    if is_nothing(declared) and is_nothing(actual):
        return True
    if actual is None and "default" in shape.marks:
        actual = shape.marks["default"]
    try:
        key = single_key(shape)
        return key(declared) == key(actual) and SAME.get(shape.compare, _always)(declared, actual)
    except (RecursionError, ValueError, TypeError):
        return False


def _always(declared: Any, actual: Any) -> bool:
    del declared, actual
    return True


def element_of(shape: Shape, value: Any) -> Element | None:
    """What distinguishes an element of a keyed list; None where it lacks one of its keys."""
    if not isinstance(value, Mapping):
        return None
    keys = []
    for name in shape.keys:
        of_key = shape.items.property(name)
        text = key_text(value.get(name, of_key.marks.get("default")))
        if text is None:
            return None
        keys.append((name, text))
    return Element(tuple(keys))


def keyed(shape: Shape, values: Sequence[Any]) -> dict[Element, Any] | None:
    """The elements of a list by their keys; None where one lacks a key, or two have the same."""
    found: dict[Element, Any] = {}
    for value in values:
        element = element_of(shape, value)
        if element is None or element in found:
            return None
        found[element] = value
    return found


def with_keys(shape: Shape, value: Any) -> Any:
    """An element with the defaults of the keys that it leaves out: they say which element it is."""
    if not isinstance(value, Mapping):
        return value
    of_keys = {name: shape.items.property(name).marks for name in shape.keys if value.get(name) is None}
    return {**value, **{name: marks["default"] for name, marks in of_keys.items() if "default" in marks}}


def as_list(value: Any) -> list[Any] | None:
    """A list without what is null in it; None where it is no list."""
    if value is None:
        return []
    return [one for one in value if one is not None] if isinstance(value, list | tuple) else None


def is_skipped(shape: Shape) -> bool:
    """Whether a place is never compared with what the cloud returns."""
    return bool(shape.marks.get("readOnly") or shape.marks.get("writeOnly"))


class Comparison:
    """Compares values of one type. ``ignored``: paths of what is not compared (G15).

    ``ours``: entries that were set by us alone (``Sighting.ours``): they count as declared once, not as others'.
    """

    def __init__(self, ignored: Collection[Path] = (), ours: Collection[str] = ()) -> None:
        self._ignored = ignored
        self._ours = ours
        self._pairs_left = _MOST_PAIRS

    def differences(self, path: Path, shape: Shape, declared: Any, actual: Any) -> Iterator[Difference]:
        """Every place below a path at which what is declared is not what is actual."""
        if declared is None or self.is_ignored(path) or is_skipped(shape):
            return
        if self.is_entered(path, shape):
            below = self._below(path, shape, declared, actual)
            if below is not None:
                yield from below
                return
        if not is_same(shape, declared, actual):
            yield Difference(path, declared, actual)

    @staticmethod
    def is_entered(path: Path, shape: Shape) -> bool:
        """Whether a list or an object is compared by what is in it, and not as one value."""
        return shape.compare in _OF_LISTS and len(path) < DEEPEST

    def is_ignored(self, path: Path) -> bool:
        """Whether a path is not compared."""
        return bool(self._ignored) and is_covered(path, self._ignored)

    def differs(self, path: Path, shape: Shape, declared: Any, actual: Any) -> bool:
        """Whether there is any difference."""
        return next(self.differences(path, shape, declared, actual), None) is not None

    def _below(self, path: Path, shape: Shape, declared: Any, actual: Any) -> Iterable[Difference] | None:
        """The differences inside a value; None where it is to be compared as a whole."""
        is_left_out = actual is None and not is_nothing(declared)
        seen = shape.marks.get("default") if is_left_out else actual
        if isinstance(declared, Mapping) and (seen is None or isinstance(seen, Mapping)):
            if shape.kind == "object":
                return self._in_object(path, shape, declared, seen or {})
            return self._in_map(path, shape, declared, seen or {}) if shape.kind == "map" else None
        if shape.kind == "list" and isinstance(declared, list | tuple):
            ours, theirs = as_list(declared), as_list(seen)
            if ours is not None and theirs is not None:
                return self._in_list(path, shape, ours, theirs, Difference(path, declared, actual))
        return None

    def _in_object(
        self, path: Path, shape: Shape, declared: Mapping[Any, Any], actual: Mapping[Any, Any]
    ) -> Iterator[Difference]:
        for name, value in declared.items():
            place, seen = (*path, str(name)), actual.get(name)
            below = self.differences(place, shape.property(str(name)), value, seen)
            first = next(below, None)
            if first is not None:
                yield first
                yield from below
            elif seen is None and isinstance(value, Mapping) and self._is_unchosen(place, shape, declared, actual):
                yield Difference(place, value, None)

    def _is_unchosen(self, place: Path, shape: Shape, declared: Mapping[Any, Any], actual: Mapping[Any, Any]) -> bool:
        """Whether a declared object that says nothing but by being there is not, and another alternative is."""
        name = str(place[-1])
        if self.is_ignored(place) or is_skipped(shape.property(name)):
            return False
        return bool(excluded(shape.node, shape.root, declared, actual, {**actual, name: declared[name]}))

    def _in_map(
        self, path: Path, shape: Shape, declared: Mapping[Any, Any], actual: Mapping[Any, Any]
    ) -> Iterator[Difference]:
        yield from self._in_object(path, shape, declared, actual)
        if shape.has_others and not self._ours:
            return
        for name, value in actual.items():
            place = (*path, str(name))
            if declared.get(name) is None and value is not None and self._is_to_go(place, shape):
                yield Difference(place, None, value)

    def _is_to_go(self, place: Path, shape: Shape) -> bool:
        """Whether an entry that is not declared is a difference: others' entries are not, and ours are."""
        return (not shape.has_others or entry_name(place) in self._ours) and not self.is_ignored(place)

    def _in_list(
        self, path: Path, shape: Shape, ours: list[Any], theirs: list[Any], whole: Difference
    ) -> Iterator[Difference]:
        by_keys = (keyed(shape, ours), keyed(shape, theirs)) if shape.order == "keyed" else (None, None)
        if by_keys[0] is not None and by_keys[1] is not None:
            yield from self._in_keyed(path, shape, by_keys[0], by_keys[1])
        elif self._is_list_different(path, shape, ours, theirs):
            yield whole

    def _in_keyed(
        self, path: Path, shape: Shape, ours: Mapping[Element, Any], theirs: Mapping[Element, Any]
    ) -> Iterator[Difference]:
        for element, value in ours.items():
            place = (*path, element)
            if element in theirs:
                rest = {name: one for name, one in value.items() if name not in shape.keys}
                yield from self.differences(place, shape.items, rest, theirs[element])
            elif not self.is_ignored(place):
                yield Difference(place, value, None)
        if shape.has_others and not self._ours:
            return
        for element, value in theirs.items():
            if element not in ours and self._is_to_go((*path, element), shape):
                yield Difference((*path, element), None, value)

    def _is_list_different(self, path: Path, shape: Shape, ours: list[Any], theirs: list[Any]) -> bool:
        if shape.order == "ordered":
            below = (*path, ANY)
            return len(ours) != len(theirs) or any(
                self.differs(below, shape.items, one, other) for one, other in zip(ours, theirs, strict=True)
            )
        found = self.match(path, shape, ours, theirs)
        if found.only_declared:
            return True
        return any(not shape.has_others or self.is_stale(path, theirs[at]) for at in found.only_actual)

    def is_stale(self, path: Path, value: Any) -> bool:
        """Whether an element of a set is one that only we set, though it is not declared (any more)."""
        element = element_of_set(value) if self._ours else None
        return element is not None and entry_name((*path, element)) in self._ours

    # --- elements of lists in which the order says nothing

    def match(self, path: Path, shape: Shape, ours: Sequence[Any], theirs: Sequence[Any]) -> Match:
        """Which elements of two lists are the same. What one list has twice counts once."""
        if shape.order == "keyed":
            ours = [with_keys(shape, one) for one in ours]
        mine, others = self._once(shape.items, ours), self._once(shape.items, theirs)
        once = {place: places[0] for places in others for place in places}
        ones = [places[0] for places in mine]
        found = self._partners(path, shape, (ours, ones), (theirs, [places[0] for places in others]))
        if len(found) < len(ones) and len(others) < len(theirs):  # one of several that are the same may be another's
            found = max(found, self._partners(path, shape, (ours, ones), (theirs, range(len(theirs)))), key=len)
        taken = {once[place] for place in found.values()}
        return Match(
            found,
            [place for place in ones if place not in found],
            [places[0] for places in others if places[0] not in taken],
        )

    def _partners(
        self,
        path: Path,
        shape: Shape,
        ours: tuple[Sequence[Any], Sequence[int]],
        theirs: tuple[Sequence[Any], Sequence[int]],
    ) -> dict[int, int]:
        """Which of some places in one list goes with which of some in the other."""
        (mine, at), (others, there) = ours, theirs
        below = (*path, ANY)
        sides = [mine[place] for place in at], [others[place] for place in there]
        candidates = _Candidates(self, below, shape.items, sides)
        same = partial(self._is_same_element, below, shape.items, candidates)
        found = matched(len(at), len(there), candidates.of, same)
        return {at[one]: there[other] for one, other in found.items()}

    def _is_same_element(self, path: Path, shape: Shape, candidates: _Candidates, one: int, other: int) -> bool:
        self._pairs_left -= 1
        return self._pairs_left >= 0 and not self.differs(path, shape, candidates.ours[one], candidates.theirs[other])

    @staticmethod
    def _once(shape: Shape, values: Sequence[Any]) -> list[list[int]]:
        """The places of a list's elements, those that are equal together."""
        return list(by_key([safe_key(partial(_whole_key, shape), one) for one in values]).values())


def safe_key(key: Key, value: Any) -> str:
    """A value's key, whatever the value is."""
    try:
        return key(value)
    except (RecursionError, ValueError, TypeError):
        return f"!{type(value).__name__}"


def _whole_key(shape: Shape, value: Any, depth: int = 0) -> str:
    """The key of a value with all that is in it: what is nothing is left out, and what has no order is put in one."""
    if depth >= DEEPEST or shape.compare in SAME:
        return plain_key(value)
    if is_nothing(value):
        return ""
    if shape.compare in _OF_LISTS and isinstance(value, Mapping) and shape.kind in ("object", "map"):
        of_each = [(str(name), one) for name, one in value.items() if one is not None]
        chosen = {name for name, one in of_each if isinstance(one, Mapping)}  # by being there it may say which it is
        inner = {name: _whole_key(shape.property(name), one, depth + 1) for name, one in of_each}
        inner = {name: key for name, key in inner.items() if key or shape.kind == "map" or name in chosen}
        return plain_key(inner) if inner else ""
    if shape.compare in _OF_LISTS and shape.kind == "list" and isinstance(value, list | tuple):
        keys = [_whole_key(shape.items, one, depth + 1) for one in value if one is not None]
        return plain_key(keys if shape.order == "ordered" else sorted(set(keys)))
    return single_key(shape)(value)


class _Candidates:
    """Which actual elements a declared one may be the same as, found by the single values that it declares."""

    def __init__(
        self, comparison: Comparison, path: Path, shape: Shape, sides: tuple[Sequence[Any], Sequence[Any]]
    ) -> None:
        self.ours, self.theirs = sides
        self._comparison = comparison
        self._path = path
        self._shape = shape
        self._places: dict[tuple[Path, ...], dict[str, list[int]]] = {}

    def of(self, place: int) -> Sequence[int]:
        """The places of those that may be the same."""
        value = self.ours[place]
        singles = (path for path, _ in _singles((), self._shape, value))
        signature = tuple(path for path in singles if not self._comparison.is_ignored((*self._path, *path)))
        places = self._places.get(signature)
        if places is None:
            if len(self._places) >= _MOST_SIGNATURES:
                return range(len(self.theirs))
            places = by_key([self._key(signature, other) for other in self.theirs])
            self._places[signature] = places
        return places.get(self._key(signature, value), ())

    def _key(self, signature: tuple[Path, ...], value: Any) -> str:
        return "|".join(self._single(path, value) for path in signature)

    def _single(self, path: Path, value: Any) -> str:
        shape = self._shape
        for step in path:
            assert isinstance(step, str), "only objects are entered"
            shape = shape.property(step)
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is None and "default" in shape.marks:
            value = shape.marks["default"]
        return "" if is_nothing(value) else safe_key(single_key(shape), value)


def _singles(path: Path, shape: Shape, value: Any) -> Iterator[tuple[Path, Any]]:
    """Every declared single value of an element, by its path through objects; what is in lists and maps is left out."""
    if value is None or is_skipped(shape) or len(path) >= DEEPEST:
        return
    if isinstance(value, Mapping) and shape.kind == "object" and shape.compare in _OF_LISTS:
        for name, one in sorted(value.items(), key=lambda item: str(item[0])):
            yield from _singles((*path, str(name)), shape.property(str(name)), one)
    elif shape.kind not in ("list", "map") or shape.compare not in _OF_LISTS:
        yield path, value
