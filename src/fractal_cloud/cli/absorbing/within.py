"""Where something differs within a parameter: the whole parameter as it would be declared, with that alone as it is.

Only paths of named steps are entered: elements of lists, and what a reference stands in, are left to a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from fractal_cloud.model.reference import needs_filling
from fractal_cloud.rules.nested.path import PathError, parsed


@dataclass(frozen=True, slots=True)
class Within:
    """A parameter, the names that lead into it, and what is declared there."""

    parameter: str
    names: tuple[str, ...]
    declared: Any

    def replaced(self, whole: Any, value: Any) -> Any:
        """The whole parameter with a value at that place; without the place where the value is none."""
        changed = deepcopy(whole)
        place = changed
        for name in self.names[:-1]:
            place = place[name]
        if value is None:
            place.pop(self.names[-1], None)
        else:
            place[self.names[-1]] = value
        return changed


def place_within(path: str, parameters: Mapping[str, Any]) -> Within | None:
    """The place that a path means in declared parameters; None where it is left to a person."""
    try:
        steps = parsed(path)
    except PathError:
        return None
    names = [step for step in steps if isinstance(step, str)]
    if len(names) != len(steps) or len(names) < 2:
        return None
    value: Any = parameters
    for name in names[:-1]:
        value = value.get(name) if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or needs_filling(value.get(names[-1])):
        return None
    return Within(names[0], tuple(names[1:]), value.get(names[-1]))
