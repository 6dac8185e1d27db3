"""Values that the cloud never returns: where they stand in what is declared, by the paths that drift names. Pure.

They are compared by digests of what was written (A8), by whoever has these; here is only which values they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fractal_cloud.rules.nested.compare import as_list, element_of, keyed
from fractal_cloud.rules.nested.path import ANY, Path, written
from fractal_cloud.rules.nested.shape import Shape


def write_only_values(shape: Shape, places: tuple[Path, ...], declared: Mapping[str, Any]) -> dict[str, Any]:
    """The declared values in these places, by path; those of all elements of a list without keys as one list."""
    found: dict[str, Any] = {}
    for place in places:
        for path, value, is_one_of_many in _values((), place, shape, declared, is_one_of_many=False):
            name = written(path)
            if is_one_of_many:
                found.setdefault(name, []).append(value)
            else:
                found[name] = value
    return found


def _values(
    path: Path, rest: Path, shape: Shape, value: Any, *, is_one_of_many: bool
) -> Iterator[tuple[Path, Any, bool]]:
    if value is None:
        return
    if not rest:
        yield path, value, is_one_of_many
        return
    step, below = rest[0], rest[1:]
    if isinstance(value, Mapping):
        names = [str(name) for name in value] if step is ANY else [step] if isinstance(step, str) else []
        for name in names:
            child = shape.property(name)
            yield from _values((*path, name), below, child, value.get(name), is_one_of_many=is_one_of_many)
    elif step is ANY and isinstance(value, list | tuple):
        items = as_list(value) or []
        is_keyed = shape.order == "keyed" and keyed(shape, items) is not None
        for one in items:
            element = element_of(shape, one) if is_keyed else None
            place = (*path, ANY if element is None else element)
            yield from _values(place, below, shape.items, one, is_one_of_many=is_one_of_many or element is None)
