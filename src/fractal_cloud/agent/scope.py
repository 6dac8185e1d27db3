"""What an agent holds of one scope between two cycles. All of it can be lost: the control plane tells it again."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from fractal_cloud.model.identity import Scope
from fractal_cloud.model.link import Half
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tracked import NOTHING_KNOWN, Interner, Known, Tracked
from fractal_cloud.model.wire import Outside, ScopeWork
from fractal_cloud.offers.offer import Cloud
from fractal_cloud.offers.seen_pages import Pages

if TYPE_CHECKING:
    from fractal_cloud.agent.link_handlers import Task


@dataclass(slots=True)
class Swept:
    """Parameters that were read one by one, and when."""

    values: dict[str, Any]
    at: datetime


@dataclass(slots=True)
class AbsentReads:
    """Looks that did not show what an open intent may have made, and how far apart the first and the last were (S17).

    Measured by a clock that nobody sets: the control plane's may jump, and the window must not be over for that.
    """

    count: int = 0
    span: timedelta = timedelta()
    _first: float = 0.0

    def count_one(self, at: float) -> None:
        """One more, at a moment of ``deadline.steady``."""
        if not self.count:
            self._first = at
        self.count += 1
        self.span = timedelta(seconds=at - self._first)


@dataclass(slots=True)
class Pause:
    """A half of a link that is not tried again before ``until``, unless what it is ``about`` changes (S21).

    ``entry`` and ``digest``: as in ``Refusal``.
    """

    about: str
    until: datetime
    times: int = 1
    entry: str = ""
    digest: str = ""


@dataclass(slots=True)
class HeldScope:
    """One leased scope: its components, what is known of its resources, and what the last look showed.

    ``seen`` and ``pages``: the sightings of the last look by type and id, and by type and fingerprint of their page.
    ``is_quiet``: nothing is left to do until something changes. ``watchful``: the components that are judged when
    anything changed, also where nothing of them did; None for all.
    ``is_wired``: links lead to or start at some of them. ``wires``: all of these links, once nothing is left to do.
    ``blocked``: since when the cloud refuses a deletion because of something else (C8).
    ``reads_since``: looks since a write was given up (S24). ``said``: what events have said of a component's errors
    since it was last without one. ``unswept``: what a component says of parameters that the last sweep could not read.
    ``is_lost``: the lease is gone, and nothing may be written in the scope any more; set from another thread than that
    of the cycle.
    ``confirm_realm`` raises where the realm that is reached now is not, or may not be, that of the scope (S26).
    """

    scope: Scope
    cloud: Cloud
    confirm_realm: Callable[[], None]
    token: int = 0
    version: int = -1
    tracked: dict[str, Tracked] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    outside: dict[tuple[str, str], Outside] = field(default_factory=dict)
    held_by: dict[str, list[str]] = field(default_factory=dict)
    hosted: dict[str, list[str]] = field(default_factory=dict)
    left_inside: dict[str, list[str]] = field(default_factory=dict)
    seen: dict[str, dict[str, Sighting]] = field(default_factory=dict)
    pages: dict[str, Pages] = field(default_factory=dict)
    swept: dict[str, Swept] = field(default_factory=dict)
    unswept: dict[str, str] = field(default_factory=dict)
    sweep_turn: dict[str, int] = field(default_factory=dict)
    absent_reads: dict[str, AbsentReads] = field(default_factory=dict)
    reads_since: dict[str, AbsentReads] = field(default_factory=dict)
    said: dict[str, set[str]] = field(default_factory=dict)
    pauses: dict[tuple[str, Half, str], Pause] = field(default_factory=dict)
    throttled_until: dict[str, datetime] = field(default_factory=dict)
    throttles: dict[str, int] = field(default_factory=dict)
    is_lost: bool = False
    is_quiet: bool = False
    recheck: frozenset[str] | None = None
    is_wired: bool = False
    link_tasks: list[Task] | None = None
    requeue_attempts: int = 0
    read_at: datetime | None = None

    def apply(self, work: ScopeWork, types: Container[str] | None = None) -> None:
        """Take over what the control plane told: everything, or what changed; types nobody here serves are left out."""
        if work.full:
            self.tracked.clear()
            self.known.clear()
            self.outside.clear()
            self.held_by.clear()
            self.hosted.clear()
            self.left_inside.clear()
        for uid in work.gone:
            self.forget(uid)
        copies = Interner()
        for component in work.components:
            if types is not None and component.declaration.type not in types:
                continue
            tracked = Tracked.from_wire(component, self.scope, copies)
            before = self.tracked.get(tracked.uid)
            if before is None or before.generation != tracked.generation:
                self.unswept.pop(tracked.uid, None)  # what is declared now is swept anew, before all others
            self.tracked[tracked.uid] = tracked
            for table, names in (
                (self.held_by, component.held_by),
                (self.hosted, component.lodgers),
                (self.left_inside, component.left_inside),
            ):
                table.pop(tracked.uid, None)
                if names:
                    table[tracked.uid] = names
        for resource in work.resources:
            self.known[copies.text(resource.identity)] = Known.from_wire(resource, copies)
        self.outside.update(((o.live_system_id, o.component_id), o) for o in work.outside)
        self.version = work.version
        self.invalidate()
        self.is_wired = any(tracked.is_wired for tracked in self.tracked.values())

    def invalidate(self) -> None:
        """Let the next cycle judge every component, whatever it sees."""
        self.is_quiet = False
        self.recheck = None

    def forget(self, uid: str) -> None:
        """A component is no longer this scope's business."""
        by_uid = (
            *(self.tracked, self.swept, self.unswept, self.absent_reads),
            *(self.held_by, self.hosted, self.left_inside, self.reads_since, self.said),
        )
        for table in by_uid:
            table.pop(uid, None)

    def forget_readings(self) -> None:
        """What was read may come from another realm: none of it may be used again."""
        self.seen, self.pages = {}, {}
        self.swept.clear()
        self.unswept.clear()
        self.invalidate()

    def of_type(self, component_type: str) -> Iterable[Tracked]:
        """The components of one type."""
        return (tracked for tracked in self.tracked.values() if tracked.type == component_type)

    def known_as(self, identity_key: str) -> Known:
        """What is remembered of a resource, or an empty memory."""
        return self.known.get(identity_key, NOTHING_KNOWN)
