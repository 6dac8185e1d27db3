"""The templates' filters: text for JSON, times, short type names, differences. Nothing here makes HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

from fractal_cloud.rules.words import generation_applied

Json = Mapping[str, Any]

# What asks for a person comes first.
STATUSES: Final = (
    *("Failed", "Missing", "Deleting", "Mutating", "Instantiating", "ReconcileRequested", "ManualOverride"),
    *("ExternallyManaged", "Active", "Deleted"),
)
MARKS: Final[Mapping[str, str]] = {
    "Failed": "✕",
    "Missing": "?",
    "Deleting": "–",
    "Deleted": "–",
    "Mutating": "…",
    "Instantiating": "…",
    "ReconcileRequested": "…",
    "ManualOverride": "!",
    "ExternallyManaged": "↗",
    "Active": "✓",
}


def plain(value: object) -> str:
    """Any value as one line: strings as they are, everything else as JSON."""
    if isinstance(value, str) and value:
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def pretty(value: object) -> str:
    """Any value as JSON on several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def moment(value: str | datetime) -> datetime:
    """A time in UTC, from a row or from JSON."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found.astimezone(UTC)


def stamp(value: str | datetime) -> str:
    """A time as programs read it."""
    return moment(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clock(value: str | datetime) -> str:
    """A time as people read it."""
    return f"{moment(value):%Y-%m-%d %H:%M:%S} UTC"


def is_past(value: str | datetime) -> bool:
    """Whether a time has come."""
    return moment(value) <= datetime.now(UTC)


def short(kind: str) -> str:
    """The last word of a component type."""
    return kind.rpartition(".")[2]


def mark(status: str) -> str:
    """A sign for a status, beside its colour and its name."""
    return MARKS.get(status, "·")


def quoted(text: str) -> str:
    """Text as it can stand in the query of a URL."""
    return quote(text, safe="/")


def by_gravity(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """How many components have each status, the gravest first."""
    order = {status: index for index, status in enumerate(STATUSES)}
    return sorted(counts.items(), key=lambda item: order.get(item[0], len(order)))


@dataclass(frozen=True, slots=True)
class Pair:
    """One parameter as declared and as it is; ``known`` is False while nobody has read it."""

    name: str
    declared: Any
    actual: Any
    differs: bool
    known: bool = True


def generation(component: Json) -> str:
    """A component's generation, and whether it was applied."""
    return generation_applied(component["generation"], component["observedGeneration"], component["status"])


def drift(component: Json) -> list[Pair]:
    """The parameters that differ."""
    found = component["outputFields"].get("drift") or {}
    return [Pair(name, both.get("declared"), both.get("actual"), differs=True) for name, both in sorted(found.items())]


def side_by_side(component: Json) -> list[Pair]:
    """Every declared parameter beside what it is in the cloud, those that differ first."""
    pairs = drift(component)
    differing = {pair.name for pair in pairs}
    outputs = component["outputFields"]
    pairs += [
        Pair(name, value, outputs.get(name), differs=False, known=name in outputs)
        for name, value in sorted(component["declaration"].get("parameters", {}).items())
        if name not in differing
    ]
    return pairs


def without_drift(fields: Json) -> list[tuple[str, Any]]:
    """The output fields by name, but for the drift, which is shown side by side."""
    return [(name, value) for name, value in sorted(fields.items()) if name != "drift"]


SIDE_BY_SIDE: Final = frozenset({"DriftFound", "LinkChangeFound"})
"""Events that are shown as declared beside actual; their message only names the parameters."""


def change(event: Json) -> str:
    """What an event changed, in one line; empty where its message says it all."""
    before, after = event["before"], event["after"]
    if event["kind"] in SIDE_BY_SIDE and isinstance(after, Mapping):
        return "; ".join(
            f"{name}: declared {plain(both.get('declared'))}, actual {plain(both.get('actual'))}"
            for name, both in sorted(after.items())
        )
    if isinstance(before, str) and isinstance(after, str):
        return f"{before} → {after}"
    return ""


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "plain": plain,
    "pretty": pretty,
    "stamp": stamp,
    "clock": clock,
    "is_past": is_past,
    "short": short,
    "mark": mark,
    "by_gravity": by_gravity,
    "generation": generation,
    "drift": drift,
    "side_by_side": side_by_side,
    "without_drift": without_drift,
    "change": change,
}
