"""What of a component's actual values can be written into its declaration, so that they are kept (G14). Pure.

A person reviews and deploys it; nothing here writes a file. Secrets, and what names another component, are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.model.reference import has_reference, needs_filling
from fractal_cloud.model.tag_rules import tag_key
from fractal_cloud.rules.hiding import SENSITIVE, holds_hidden
from fractal_cloud.rules.nested.path import root, value_at, with_value

_NO_FACTS: Final[Mapping[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Absorbed:
    """One parameter as it is to be declared, if it is to be written at all, and what is left to a person."""

    is_written: bool
    value: Any = None
    left: Sequence[str] = ()


def absorbed(parameter: str, declared: Any, actual: Any, facts: Mapping[str, Any] | None) -> Absorbed:
    """What to declare for a parameter that differs; ``facts`` is what the schema says of it."""
    known = _NO_FACTS if facts is None else facts
    left: list[str] = []
    if holds_hidden(actual):
        hidden, actual = _without_hidden(declared, actual)
        left = [f"{parameter}{path} differs, and is not shown: change it by hand" for path in hidden]
        if actual is None or actual == declared:
            return Absorbed(is_written=False, left=left)
    if known.get("reference"):
        return Absorbed(
            is_written=False, left=[*left, f"{parameter} names another component, and is {actual!r} in the cloud"]
        )
    if known.get("compare") == "unordered" and isinstance(declared, list) and isinstance(actual, list):
        actual = _in_order(declared, actual)
    return Absorbed(is_written=True, value=actual, left=left)


def absorbed_inside(parameters: Mapping[str, Any], name: str, differing: Mapping[str, Any]) -> Absorbed:
    """What to declare for a parameter of which values inside differ; ``differing``: the actual ones, by their paths.

    ``parameters``: as they are declared, with references unresolved.
    """
    values, left = dict(parameters), []
    for path, actual in sorted(differing.items()):
        stands = value_at(parameters, path)
        if holds_hidden(actual):
            left.append(f"{path} differs, and is not shown: change it by hand")
        elif needs_filling(stands) or has_reference(stands):
            left.append(f"{path} is filled in from elsewhere, and is {actual!r} in the cloud")
        else:
            values = with_value(values, path, actual)
    is_written = values.get(name) != parameters.get(name) and values.get(name) is not None
    return Absorbed(is_written=is_written, value=values.get(name), left=left)


def inside_of(drift: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The actual values of a drift that stand inside parameters, by parameter and path."""
    found: dict[str, dict[str, Any]] = {}
    for path, both in drift.items():
        name = root(path)
        if name != path and tag_key(path) is None:
            found.setdefault(name, {})[path] = both.get("actual")
    return found


def _without_hidden(declared: Any, actual: Any) -> tuple[list[str], Any]:
    """Where an actual value differs and is hidden, as paths; and the value as it can be written (A8).

    A secret, or what may hold one, is never written into a file: there it stays as it is declared.
    """
    if not isinstance(actual, Mapping):
        return [""], None
    known = declared if isinstance(declared, Mapping) else {}
    hidden = [key for key, one in actual.items() if holds_hidden(one)]
    differing = [f".{key}" for key in hidden if key not in known or actual[key] != SENSITIVE]
    kept = {
        key: known[key] if key in hidden else one for key, one in actual.items() if key in known or key not in hidden
    }
    return differing, kept


def _in_order(declared: list[Any], actual: list[Any]) -> list[Any]:
    """A list whose order means nothing, in the order it was declared in; what is new comes last."""
    left = [_without_unset(one) for one in actual]
    kept = []
    for one in declared:
        if _without_unset(one) in left:
            left.remove(_without_unset(one))
            kept.append(one)
    return [*kept, *left]


def _without_unset(value: Any) -> Any:
    """A value without the parts that are not set."""
    if isinstance(value, Mapping):
        return {key: _without_unset(one) for key, one in value.items() if one is not None}
    return value
