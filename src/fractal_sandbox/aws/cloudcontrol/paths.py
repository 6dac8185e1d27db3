"""Properties by the paths that schemas name them with: `/properties/Rules/*/Id`.

A `*` stands for every element of a list or map. Purely computational; nothing here knows a type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

__all__ = ["Path", "found", "parsed", "pruned", "text_of"]

Path: TypeAlias = tuple[str, ...]
_BEFORE: Final = "/properties/"


def parsed(text: str) -> Path:
    """Read `/properties/Rules/*/Id`; `items` and `properties` between the names are how some schemas write the same."""
    names = text.removeprefix(_BEFORE).split("/")
    return tuple("*" if name == "items" else name for name in names if name != "properties")


def text_of(path: Path) -> str:
    return _BEFORE + "/".join(path)


def found(model: Any, path: Path) -> Iterator[Any]:
    """Yield every value at a path; nothing where there is none."""
    if not path:
        yield model
    elif path[0] == "*":
        for one in model if isinstance(model, list) else model.values() if isinstance(model, Mapping) else ():
            yield from found(one, path[1:])
    elif isinstance(model, list):  # some schemas leave the `*` out
        for one in model:
            yield from found(one, path)
    elif isinstance(model, Mapping) and path[0] in model:
        yield from found(model[path[0]], path[1:])


def pruned(model: Any, path: Path) -> Any:
    """Return a model without what is at a path."""
    if not path or not isinstance(model, list | Mapping):
        return model
    if path[0] == "*" and isinstance(model, Mapping):
        return {key: pruned(one, path[1:]) for key, one in model.items()}
    if isinstance(model, list):
        rest = path[1:] if path[0] == "*" else path
        return [pruned(one, rest) for one in model]
    if path[0] not in model:
        return model
    if len(path) == 1:
        return {key: one for key, one in model.items() if key != path[0]}
    return {key: pruned(one, path[1:]) if key == path[0] else one for key, one in model.items()}
