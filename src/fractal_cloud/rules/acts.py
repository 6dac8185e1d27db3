"""Groups events for people: what one act led to is one line, which can be opened (docs/decisions/0105). Pure.

Events stay as they are, append-only and complete (C4); programs read every one of them. Here belongs only how a page of
them is shown: breaking the glass is a request, a new status and a broken glass, and people did one thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from fractal_cloud.model.event import EventKind
from fractal_cloud.model.status import Status

Event = Mapping[str, Any]

WINDOW: Final = timedelta(minutes=10)
"""What comes later than this after the last event of an act is a line of its own."""

_BEGINS: Final = frozenset(
    {EventKind.GLASS_REQUESTED, EventKind.FORCE_PUSH_REQUESTED, EventKind.DEPLOYED, EventKind.DELETE_REQUESTED}
)
"""What a person asked for: always the first event of an act."""
_AT_ONCE: Final = frozenset({EventKind.OVERRIDE_EXTENDED, EventKind.OVERRIDE_HANDED_OVER})
"""What a person did and nobody has to carry out."""
_ENDS: Final = frozenset(
    {EventKind.GLASS_BROKEN, EventKind.READOPTED, EventKind.FORCE_PUSH_REFUSED, EventKind.REQUEST_VOIDED}
)
"""After the report that holds one of these, nothing more is expected of a request."""
_GOES_ON: Final = frozenset({Status.INSTANTIATING, Status.MUTATING, Status.RECONCILE_REQUESTED, Status.DELETING})
_LEADING: Final = (
    *(EventKind.FORCE_PUSH_REFUSED, EventKind.REQUEST_VOIDED, EventKind.GLASS_BROKEN, EventKind.READOPTED),
    *(EventKind.RESOURCE_LOST, EventKind.OWNER_CHANGED, EventKind.DEPLOYED, EventKind.DELETED),
    *(EventKind.DELETE_REQUESTED, EventKind.GLASS_REQUESTED, EventKind.FORCE_PUSH_REQUESTED),
    *(EventKind.DRIFT_CORRECTED, EventKind.DRIFT_FOUND, EventKind.LINK_CHANGE_APPLIED, EventKind.LINK_CHANGE_FOUND),
)
"""Which event of an act says best what happened; the first that is there. A status alone comes after all of them."""
_ALONE: Final = frozenset({Status.FAILED.value, Status.MISSING.value, Status.MANUAL_OVERRIDE.value})


@dataclass(slots=True)
class Act:
    """Events that belong together, the oldest first; never empty."""

    events: list[Event]
    is_open: bool = False

    @property
    def lead(self) -> Event:
        """The event that says what happened; of several like it the newest."""
        ranks = {kind: rank for rank, kind in enumerate(_LEADING)}
        newest_first = self.events[::-1]
        return min(newest_first, key=lambda event: ranks.get(event["kind"], len(ranks)))

    @property
    def rest(self) -> Sequence[Event]:
        """The other events, the oldest first."""
        return [event for event in self.events if event is not self.lead]

    @property
    def at(self) -> Any:
        """When its newest event was recorded."""
        return self.events[-1]["at"]

    @property
    def seq(self) -> int:
        """The number of its oldest event: it stays the same while more events join."""
        return int(self.events[0]["seq"])

    @property
    def by(self) -> str:
        """Who did it: the person that asked for it, else whoever the leading event names."""
        first = self.events[0]
        return str(first["by"] if first["kind"] in _BEGINS else self.lead["by"])

    @property
    def change(self) -> str:
        """The status before and after it, if it changed those of its components alike; else empty."""
        steps: dict[Any, list[Event]] = {}
        for event in self.events:
            if event["kind"] == EventKind.STATUS_CHANGED:
                steps.setdefault(event["componentId"], []).append(event)
        changes = {(str(some[0]["before"]), str(some[-1]["after"])) for some in steps.values()}
        alike = changes if len(changes) == 1 else set()
        return "".join(f"{before} → {after}" for before, after in alike if before != after)

    @property
    def summary(self) -> Event:
        """One event that stands for all of it: the leading one, with who did it, when it was over, and the statuses."""
        before, _, after = self.change.partition(" → ")
        statuses = {"before": before, "after": after} if after else {}
        # What differs is shown from both halves of such an event: they stay.
        keeps = isinstance(self.lead["before"], Mapping) or isinstance(self.lead["after"], Mapping)
        return {**self.lead, **({} if keeps else statuses), "by": self.by, "at": self.at}

    @property
    def components(self) -> int:
        """How many components it reaches."""
        return len({event["componentId"] for event in self.events} - {None})


def acts(page: Iterable[Event]) -> list[Act]:
    """A page of events, newest first, as acts, newest first by their last event.

    Together are: events of one component from one report; what a request led to until it was carried out or refused;
    the steps of a component that is still in progress; and below a deploy or delete, or with the others of one report,
    the components that only moved on (one that failed, is missing or in override is a line of its own). An act that
    reaches over the end of a page is shown with what is on the page.
    """
    found: list[Act] = []
    current: dict[tuple[Any, Any], Act] = {}
    for event in sorted(page, key=lambda one: int(one["seq"])):
        key = event["liveSystemId"], event["componentId"]
        act = current.get(key)
        if act is None or not _belongs(event, act):
            act = Act([])
            found.append(act)
            current[key] = act
        act.events.append(event)
        act.is_open = _is_open(act)
    return sorted(_one_report(_below_deploys(found)), key=lambda act: int(act.events[-1]["seq"]), reverse=True)


def _moment(event: Event) -> datetime:
    at = event["at"]
    return datetime.fromisoformat(at) if isinstance(at, str) else at


def _belongs(event: Event, act: Act) -> bool:
    """Whether an event goes on with what the newest act of its component began."""
    if event["kind"] in _BEGINS or event["kind"] in _AT_ONCE:
        return False
    passed = _moment(event) - _moment(act.events[-1])
    if not passed:
        return event["componentId"] is not None
    return act.is_open and passed <= WINDOW


def _is_open(act: Act) -> bool:
    """Whether more is expected: a request nobody carried out yet, or a component that is still in progress."""
    if any(event["kind"] in _ENDS for event in act.events):
        return False
    changes = [event for event in act.events if event["kind"] == EventKind.STATUS_CHANGED]
    if changes:
        return changes[-1]["after"] in _GOES_ON
    first = act.events[0]
    return first["kind"] in _BEGINS and first["componentId"] is not None


def _below_deploys(found: Sequence[Act]) -> list[Act]:
    """Put what a deploy or delete led to below it."""
    kept: list[Act] = []
    newest: dict[Any, Act] = {}
    for act in sorted(found, key=lambda one: one.seq):
        first = act.events[0]
        above = newest.get(first["liveSystemId"])
        if first["componentId"] is None:
            if first["kind"] == EventKind.DELETED and above is not None and _is_soon(act, above):
                above.events += act.events
                continue
            if first["kind"] in _BEGINS:
                newest[first["liveSystemId"]] = act
        elif above is not None and _is_soon(act, above) and _only_moved_on(act):
            above.events += act.events
            continue
        kept.append(act)
    for act in newest.values():
        act.events.sort(key=lambda event: int(event["seq"]))
    return kept


def _one_report(found: Iterable[Act]) -> list[Act]:
    """Put together the components that one report moved on to the same status."""
    kept: list[Act] = []
    batches: dict[tuple[Any, ...], Act] = {}
    for act in found:
        last = act.events[-1]
        if last["componentId"] is None or not _only_moved_on(act):
            kept.append(act)
            continue
        same = last["liveSystemId"], last["by"], last["at"], last["after"]
        if same in batches:
            batches[same].events += act.events
        else:
            batches[same] = act
            kept.append(act)
    for act in batches.values():
        act.events.sort(key=lambda event: int(event["seq"]))
    return kept


def _is_soon(act: Act, above: Act) -> bool:
    return _moment(act.events[0]) - max(map(_moment, above.events)) <= WINDOW


def _only_moved_on(act: Act) -> bool:
    """Whether a component only changed its status, and to none that somebody has to see by itself.

    Drift is a line of its own: nothing says whether the deploy made it or a person.
    """
    return all(event["kind"] == EventKind.STATUS_CHANGED and event["after"] not in _ALONE for event in act.events)
