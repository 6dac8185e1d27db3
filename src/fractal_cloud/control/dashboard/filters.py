"""The templates' filters: text for JSON, times, short type names, differences. Nothing here makes HTML."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from fractal_cloud.rules import staleness as rules_staleness
from fractal_cloud.rules.acts import acts
from fractal_cloud.rules.diff_words import event_text, lines_of, sides
from fractal_cloud.rules.status_words import in_words
from fractal_cloud.rules.value_diff import element_differences
from fractal_cloud.rules.words import generation_applied

Json = Mapping[str, Any]

_MOST_LETTERS: Final = 120
_MOST_ELEMENTS: Final = 50
"""So many elements of one parameter are shown one by one; a page stays a page."""

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


def stale_words(last_read: str | datetime | None) -> str:
    """What stands beside the status of something that nobody reads (C11)."""
    return rules_staleness.stale_words(None if last_read is None else moment(last_read), datetime.now(UTC))


def is_past(value: str | datetime) -> bool:
    """Whether a time has come."""
    return moment(value) <= datetime.now(UTC)


def seconds(value: float) -> str:
    """A span of time as people read it."""
    return f"{value:.1f} s" if value < 10 else f"{value:,.0f} s"


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
class Side:
    """One element of a parameter in which the cloud differs from the declaration.

    ``label``: the parameter, and where in it. ``sign``: ``+`` is only in the cloud, ``-`` only declared, ``~`` in both.
    """

    label: str
    sign: str
    declared: str | None
    actual: str | None


@dataclass(frozen=True, slots=True)
class Pair:
    """One parameter as declared and as it is; ``known`` is False while nobody has read it."""

    name: str
    declared: Any
    actual: Any
    differs: bool
    known: bool = True

    @property
    def elements(self) -> list[Side]:
        """Where a list or a map differs; empty for one value, which is shown whole."""
        found = list(islice(element_differences(self.declared, self.actual), _MOST_ELEMENTS + 1))
        if not self.differs or not found or not found[0].path:
            return []
        shown = [Side(*sides(self.name, one)) for one in found[:_MOST_ELEMENTS]]
        return [*shown, *([Side(self.name, "~", "…", "…")] if len(found) > _MOST_ELEMENTS else [])]


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


def said(event: Json) -> str:
    """An event's message, where it says more than what changed."""
    return "" if event["kind"] in DIFFERENCES else event["message"]


def lines_of_drift(component: Json) -> list[str]:
    """What differs, in words: ``+`` is only in the cloud, ``-`` is only declared."""
    return [str(line) for line in lines_of(component["outputFields"].get("drift") or {}, _MOST_LETTERS)]


def realms(agent: Json) -> list[str]:
    """What an agent reaches, each once: several names may lead to one account."""
    return list(dict.fromkeys(f"{one['provider']} {one['realm']}" for one in agent["reaches"]))


def is_calm(live_system: Json) -> bool:
    """Whether nothing about a LiveSystem asks for attention: it is one line in a table."""
    return live_system["status"] == "Active" and not (live_system["overrides"] or live_system.get("stale"))


def zip_same(values: Iterable[str]) -> list[tuple[str, str]]:
    """Values that are also their own words, for a choice."""
    return [(value, value) for value in values]


def without_drift(fields: Json) -> list[tuple[str, Any]]:
    """The output fields by name, but for the drift, which is shown side by side."""
    return [(name, value) for name, value in sorted(fields.items()) if name != "drift"]


DIFFERENCES: Final = frozenset({"DriftFound", "DriftCorrected", "LinkChangeFound", "LinkChangeApplied"})
"""Events whose change says all that their message does."""


def change(event: Json) -> str:
    """What an event changed, in one line; empty where its message says it all."""
    before, after = event["before"], event["after"]
    if isinstance(before, str) and isinstance(after, str):
        return f"{before} → {after}"
    return event_text(event["kind"], before, after)


def is_overdue(component: Json) -> bool:
    """Whether an override should have ended, also in the moment before anybody has recorded it."""
    until = (component["override"] or {}).get("until")
    return bool(component["overdue"] or (until and is_past(until)))


def in_step(component: Json) -> bool:
    """Whether a line says all of a component: it is as it should be, as far as anybody has read it."""
    is_settled = component["status"] in ("Active", "ExternallyManaged", "Deleted")
    return is_settled and not (drift(component) or is_overdue(component))


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "plain": plain,
    "pretty": pretty,
    "stamp": stamp,
    "clock": clock,
    "is_past": is_past,
    "stale_words": stale_words,
    "short": short,
    "seconds": seconds,
    "mark": mark,
    "by_gravity": by_gravity,
    "generation": generation,
    "drift": drift,
    "side_by_side": side_by_side,
    "without_drift": without_drift,
    "change": change,
    "acts": acts,
    "said": said,
    "in_words": in_words,
    "in_step": in_step,
    "is_overdue": is_overdue,
    "drift_lines": lines_of_drift,
    "is_calm": is_calm,
    "realms": realms,
    "zip_same": zip_same,
}
