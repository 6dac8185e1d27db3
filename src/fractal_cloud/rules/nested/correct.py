"""An actual value with only some of its differences corrected: what an update writes, and nothing else. Pure.

What nobody declared stays as the cloud returned it: other properties of an object, other entries where these are
somebody else's, and the elements of a list that are as declared. Which differences there are: see ``compare``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from fractal_cloud.rules.nested.alternatives import excluded
from fractal_cloud.rules.nested.compare import Comparison, Match, as_list, element_of, is_skipped, keyed, with_keys
from fractal_cloud.rules.nested.matching import MOST_PAIRS
from fractal_cloud.rules.nested.path import ANY, Element, Path, Step, of_name
from fractal_cloud.rules.nested.shape import Shape, shape_of

_NAMES: Final = ("Id", "id", "ID", "Key", "key", "Name", "name", "Sid")


def corrected(
    actual: Mapping[str, Any],
    declared: Mapping[str, Any],
    schema: Mapping[str, Any],
    paths: Iterable[str],
    ignored: Collection[str] = (),
    ours: Collection[str] = (),
) -> dict[str, Any]:
    """The actual value with these paths, as a drift names them, brought to their declared values.

    Neither argument is changed. ``ignored``: paths in which a declared value is never written (G15). ``ours``: entries
    that were set by us alone, and go where they are no longer declared.
    """
    correction = _Correction([of_name(name) for name in ignored], ours)
    found: Any = dict(actual)
    shape = shape_of(schema)
    for name in sorted(set(paths)):
        found = correction.along((), of_name(name), shape, declared, found)
    return dict(correction.without_excluded((), shape, declared, actual, found or {}))


class _Correction:
    def __init__(self, ignored: Collection[Path], ours: Collection[str]) -> None:
        self._comparison = Comparison(ignored, ours)

    def along(self, above: Path, path: Path, shape: Shape, declared: Any, actual: Any) -> Any:
        """A value in which what a path leads to is brought to its declared value; None: it is removed."""
        if not path:
            return self._brought(above, shape, declared, actual)
        step, rest = path[0], path[1:]
        place = (*above, step)
        if isinstance(step, Element):
            return self._of_element(place, rest, shape, declared, actual)
        if step is ANY:
            return self._of_each(place, rest, shape, declared, actual)
        found = dict(actual) if isinstance(actual, Mapping) else self._beginning(above, shape, declared)
        ours = declared.get(step) if isinstance(declared, Mapping) else None
        value = self.along(place, rest, shape.property(step), ours, found.get(step))
        return _with(found, step, value)

    def _beginning(self, path: Path, shape: Shape, declared: Any) -> dict[str, Any]:
        """What an object that is not there begins with: what is declared of it that is no difference, as defaults are.

        No path leads to that, and the cloud may want it said.
        """
        entries = declared.items() if isinstance(declared, Mapping) and shape.kind == "object" else ()
        return {
            name: _shown(shape.property(name), value)
            for name, value in entries
            if value is not None
            and not (is_skipped(shape.property(name)) or self._is_fixed((*path, name), shape))
            and not self._comparison.differs((*path, name), shape.property(name), value, None)
        }

    def _of_element(self, place: Path, rest: Path, shape: Shape, declared: Any, actual: Any) -> Any:
        step = place[-1]
        ours = next((one for one in as_list(declared) or () if element_of(shape, one) == step), None)
        found, is_there = [], False
        for one in as_list(actual) or ():
            if element_of(shape, one) != step:
                found.append(one)
                continue
            is_there = True
            value = self.along(place, rest, shape.items, ours, one)
            found += [] if value is None else [value]
        return found if is_there or ours is None else [*found, ours]

    def _of_each(self, place: Path, rest: Path, shape: Shape, declared: Any, actual: Any) -> Any:
        """Every element of a list that has a declared one, or every declared entry of a map."""
        if isinstance(declared, Mapping) and isinstance(actual, Mapping):
            found = dict(actual)
            for name, one in declared.items():
                value = self.along((*place[:-1], str(name)), rest, shape.property(str(name)), one, found.get(name))
                found = _with(found, name, value)
            return found
        ours, theirs = as_list(declared), as_list(actual)
        if ours is None or theirs is None:
            return actual
        pairs = {
            theirs_at: ours_at for ours_at, theirs_at in self._match(place[:-1], shape, ours, theirs).pairs.items()
        }
        return [
            self.along(place, rest, shape.items, ours[pairs[at]], one) if at in pairs else one
            for at, one in enumerate(theirs)
        ]

    # --- whole values

    def _brought(self, path: Path, shape: Shape, declared: Any, actual: Any) -> Any:
        """An actual value as it is declared, with what nobody declared left in it."""
        if declared is None or actual is None or self._comparison.is_ignored(path):
            return declared if not self._comparison.is_ignored(path) or actual is None else actual
        if shape.marks.get("readOnly"):
            return actual
        if shape.marks.get("writeOnly"):
            return declared
        if self._comparison.is_entered(path, shape):
            if shape.kind in ("object", "map") and isinstance(declared, Mapping) and isinstance(actual, Mapping):
                return self._brought_entries(path, shape, declared, actual)
            ours, theirs = as_list(declared), as_list(actual)
            if shape.kind == "list" and ours is not None and theirs is not None:
                return self._brought_list(path, shape, ours, theirs)
        return declared if self._comparison.differs(path, shape, declared, actual) else actual

    def _brought_entries(
        self, path: Path, shape: Shape, declared: Mapping[str, Any], actual: Mapping[str, Any]
    ) -> dict[str, Any]:
        is_whole = shape.kind == "map" and not shape.has_others
        found = {
            name: one
            for name, one in actual.items()
            if not is_whole or declared.get(name) is not None or self._comparison.is_ignored((*path, str(name)))
        }
        for name, value in declared.items():
            if value is not None:
                step = str(name)
                found = _with(found, name, self._brought((*path, step), shape.property(step), value, found.get(name)))
        return self._without_excluded(path, shape, (declared, actual), found)

    def without_excluded(self, path: Path, shape: Shape, declared: Any, before: Any, after: Any) -> Any:
        """A corrected value without what stood in it in place of what is declared, however deep."""
        if before is None or before == after:
            return after
        if isinstance(declared, Mapping) and isinstance(before, Mapping) and isinstance(after, Mapping):
            inner = {
                name: self.without_excluded(
                    (*path, str(name)), shape.property(str(name)), declared.get(name), before.get(name), one
                )
                for name, one in after.items()
            }
            return self._without_excluded(path, shape, (declared, before), inner)
        if shape.kind != "list" or shape.order != "keyed":
            return after
        ours, theirs = keyed(shape, as_list(declared) or ()) or {}, keyed(shape, as_list(before) or ()) or {}
        return [self._of_keyed(path, shape, (ours, theirs), one) for one in as_list(after) or ()]

    def _of_keyed(
        self, path: Path, shape: Shape, sides: tuple[Mapping[Element, Any], Mapping[Element, Any]], after: Any
    ) -> Any:
        element = element_of(shape, after)
        if element is None:
            return after
        declared, before = (side.get(element) for side in sides)
        return self.without_excluded((*path, element), shape.items, declared, before, after)

    def _without_excluded(
        self, path: Path, shape: Shape, sides: tuple[Mapping[str, Any], Mapping[str, Any]], after: dict[str, Any]
    ) -> dict[str, Any]:
        """An object without what stood in it in place of what is declared: the cloud refuses both together."""
        declared, before = sides
        names = excluded(shape.node, shape.root, declared, before, after)
        return {name: one for name, one in after.items() if name not in names or self._is_fixed((*path, name), shape)}

    def _is_fixed(self, path: Path, shape: Shape) -> bool:
        """Whether an entry is not ours to take away."""
        marks = shape.property(str(path[-1])).marks
        return self._comparison.is_ignored(path) or bool(marks.get("readOnly") or marks.get("immutable"))

    def _brought_list(self, path: Path, shape: Shape, ours: list[Any], theirs: list[Any]) -> list[Any]:
        """A list in which what is as declared stays where it is, and the rest is changed one by one."""
        if shape.order == "ordered":
            return self._brought_in_order(path, shape, ours, theirs)
        found = self._match(path, shape, ours, theirs)
        partners = {theirs_at: ours_at for ours_at, theirs_at in found.pairs.items()}
        partners |= _of_one_name(ours, theirs, found)
        kept = []
        for at, one in enumerate(theirs):
            if at in partners:
                step: Step = element_of(shape, one) or ANY if shape.order == "keyed" else ANY
                mine = with_keys(shape, ours[partners[at]]) if shape.order == "keyed" else ours[partners[at]]
                kept.append(self._kept((*path, step), shape.items, mine, one))
            elif shape.has_others and not (shape.order == "set" and self._comparison.is_stale(path, one)):
                kept.append(one)
        used = set(partners.values())
        return [*kept, *(ours[at] for at in found.only_declared if at not in used)]

    def _kept(self, path: Path, shape: Shape, declared: Any, actual: Any) -> Any:
        """An element as it is declared; one that is so already stays as it is, but for what is never returned."""
        is_same = _shown(shape, declared) == declared and not self._comparison.differs(path, shape, declared, actual)
        return actual if is_same else self._brought(path, shape, declared, actual)

    def _brought_in_order(self, path: Path, shape: Shape, ours: list[Any], theirs: list[Any]) -> list[Any]:
        """A list as it is declared, each element made of the one that it was: wherever that stands now."""
        below = (*path, ANY)
        first = 0
        while first < min(len(ours), len(theirs)) and not self._differs(below, shape, ours[first], theirs[first]):
            first += 1
        last = 0
        most = min(len(ours), len(theirs)) - first
        while last < most and not self._differs(below, shape, ours[-1 - last], theirs[-1 - last]):
            last += 1
        between = self._brought_between(
            below, shape, ours[first : len(ours) - last], theirs[first : len(theirs) - last]
        )
        return [*theirs[:first], *between, *theirs[len(theirs) - last :]]

    def _brought_between(self, below: Path, shape: Shape, ours: list[Any], theirs: list[Any]) -> list[Any]:
        partners: dict[int, int] = {}
        left = list(range(len(theirs)))
        if len(ours) * len(theirs) <= MOST_PAIRS:
            for at, one in enumerate(ours):
                same = next((there for there in left if not self._differs(below, shape, one, theirs[there])), None)
                if same is not None:
                    partners[at] = same
                    left.remove(same)
        rest = [at for at in range(len(ours)) if at not in partners]
        named = {at: there for there, at in _of_one_name(ours, theirs, Match(partners, rest, left)).items()}
        rest = [at for at in rest if at not in named]
        left = [there for there in left if there not in named.values()]
        partners |= named
        if len(rest) == len(left):  # one that changed is where it was
            partners |= zip(rest, left, strict=True)
        return [
            self._kept(below, shape.items, one, theirs[partners[at]]) if at in partners else one
            for at, one in enumerate(ours)
        ]

    def _differs(self, below: Path, shape: Shape, ours: Any, theirs: Any) -> bool:
        return self._comparison.differs(below, shape.items, ours, theirs)

    def _match(self, path: Path, shape: Shape, ours: list[Any], theirs: list[Any]) -> Match:
        """Which elements belong together: by their keys, by their places, or because they are the same."""
        if shape.order == "ordered":
            return Match({at: at for at in range(min(len(ours), len(theirs)))}, (), ())
        by_keys = (keyed(shape, ours), keyed(shape, theirs)) if shape.order == "keyed" else (None, None)
        if by_keys[0] is None or by_keys[1] is None:
            return self._comparison.match(path, shape, ours, theirs)
        places = {element: at for at, element in enumerate(by_keys[1])}
        pairs = {at: places[element] for at, element in enumerate(by_keys[0]) if element in places}
        only_declared = [at for at in range(len(ours)) if at not in pairs]
        taken = set(pairs.values())
        return Match(pairs, only_declared, [at for at in range(len(theirs)) if at not in taken])


def _of_one_name(ours: list[Any], theirs: list[Any], found: Match) -> dict[int, int]:
    """Elements that differ and have the same name, where that is a name each has to itself: one that changed."""
    mine, others = _names(ours, found.only_declared), _names(theirs, found.only_actual)
    return {others[name]: at for name, at in mine.items() if name in others}


def _names(values: list[Any], places: Iterable[int]) -> dict[str, int]:
    found: dict[str, int] = {}
    double = set()
    for at in places:
        value = values[at]
        said = ((key, value[key]) for key in _NAMES if isinstance(value, Mapping) and isinstance(value.get(key), str))
        name = next((f"{key}={text}" for key, text in said), None)
        if name is None:
            continue
        if name in found:
            double.add(name)
        found[name] = at
    return {name: at for name, at in found.items() if name not in double}


def _shown(shape: Shape, value: Any) -> Any:
    """A value without what the cloud never returns: that is written by itself."""
    if not isinstance(value, Mapping):
        return value
    inner = ((name, shape.property(str(name)), one) for name, one in value.items())
    return {name: _shown(at, one) for name, at, one in inner if not is_skipped(at)}


def _with(found: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    if value is None:
        return {key: one for key, one in found.items() if key != name}
    return {**found, name: value}
