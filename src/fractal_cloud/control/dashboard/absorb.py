"""The change to a declaration that would keep what was done by hand, as a diff to copy (G14); nothing is written."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import yaml

from fractal_cloud.control.store.records import Json
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.status import Status
from fractal_cloud.rules.absorb import absorbed, absorbed_inside, inside_of
from fractal_cloud.rules.nested.path import root


@dataclass(frozen=True, slots=True)
class Absorption:
    """A unified diff of one component's declaration in YAML, and what a person has to change without it."""

    diff: str
    left: Sequence[str]


def absorption(component: Json, facts: TypeFacts | None) -> Absorption | None:
    """What would keep the actual values of a component in override; None where nothing differs or nobody took it."""
    drift = component["outputFields"].get("drift") or {}
    if component["status"] != Status.MANUAL_OVERRIDE.value or not drift:
        return None
    before = {name: value for name, value in component["declaration"].items() if value not in ([], {}, None, False)}
    after: dict[str, Any] = deepcopy(before)
    left: list[str] = []
    inside = inside_of(drift)
    for name, differing in sorted(inside.items()):
        nested = absorbed_inside(before.get("parameters", {}), name, differing)
        left += nested.left
        if nested.is_written:
            after.setdefault("parameters", {})[name] = nested.value
    for name, both in sorted(drift.items()):
        if root(name) in inside and root(name) != name:
            continue
        declared = before.get("parameters", {}).get(name)
        found = absorbed(name, declared, both.get("actual"), facts.parameter_facts(name) if facts else None)
        left += found.left
        if found.is_written:
            after.setdefault("parameters", {})[name] = found.value
    name = f"{component['liveSystemId']}/{component['componentId']}"
    lines = difflib.unified_diff(_lines(before), _lines(after), f"{name} declared", f"{name} actual")
    return Absorption("".join(lines), left)


def _lines(declaration: Json) -> list[str]:
    """One component as it stands in a YAML file."""
    text: str = yaml.safe_dump([declaration], sort_keys=False, allow_unicode=True, width=1000)
    return text.splitlines(keepends=True)
