"""What an agent holds of one scope between two cycles: its work, what was observed there, and what is backing off.

All of it can be lost: the control plane sends the work again, and the rest is read again. Nothing here reads a cloud,
decides or publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from fractal_cloud.agent.backoff import RECORD, RECORD_DENIED, RECORD_REFUSED, THROTTLED
from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.link import Half
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tracked import NOTHING_KNOWN, Interner, Known, Tracked
from fractal_cloud.model.wire import Outside, ScopeCycle, ScopeWork, Unread, WorkComponent
from fractal_cloud.offers.call_context import CallCount
from fractal_cloud.offers.offer import Cloud
from fractal_cloud.offers.seen_pages import Pages
from fractal_cloud.rules.changed_by import is_waiting

if TYPE_CHECKING:
    from fractal_cloud.agent.link_handlers import Task

_AT_ONCE: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Work:
    """What the control plane wants in the scope, and what of it is left to do.

    ``known``: what is remembered of its resources. ``held_by``, ``hosted``, ``left_inside``: of components by uid, what
    depends on them elsewhere, what they host, and what was left inside of them.
    ``unserved``: types that are declared here, and that nobody here serves.
    ``is_wired``: links lead to or start at some of them. ``has_secrets``: some of them refer to secrets.
    ``link_tasks``: all links of these, once nothing is left to do.
    ``is_quiet``: nothing is left to do until something changes. ``recheck``: the components that are judged when
    anything changed, also where nothing of them did; None for all.
    """

    version: int = -1
    tracked: dict[str, Tracked] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    outside: dict[tuple[str, str], Outside] = field(default_factory=dict)
    held_by: dict[str, list[str]] = field(default_factory=dict)
    hosted: dict[str, list[str]] = field(default_factory=dict)
    left_inside: dict[str, list[str]] = field(default_factory=dict)
    unserved: set[str] = field(default_factory=set)
    is_wired: bool = False
    has_secrets: bool = False
    link_tasks: list[Task] | None = None
    is_quiet: bool = False
    recheck: frozenset[str] | None = None

    def of_type(self, component_type: str) -> Iterable[Tracked]:
        """The components of one type."""
        return (tracked for tracked in self.tracked.values() if tracked.type == component_type)

    def known_as(self, identity_key: str) -> Known:
        """What is remembered of a resource, or an empty memory."""
        return self.known.get(identity_key, NOTHING_KNOWN)

    def apply(self, sent: ScopeWork, scope: Scope, types: Container[str] | None) -> list[str]:
        """Apply what the control plane sent, without types that nobody here serves; returns who is declared anew."""
        interner = Interner()
        served = [c for c in sent.components if types is None or c.declaration.type in types]
        self.unserved |= {c.declaration.type for c in sent.components} - {c.declaration.type for c in served}
        declared = [self._apply_component(component, scope, interner) for component in served]
        for resource in sent.resources:
            self.known[interner.text(resource.identity)] = Known.from_wire(resource, interner)
        self.outside.update(((o.live_system_id, o.component_id), o) for o in sent.outside)
        self.version = sent.version
        self.invalidate()
        self.is_wired = any(tracked.is_wired for tracked in self.tracked.values())
        self.has_secrets = any(tracked.secrets for tracked in self.tracked.values())
        return [uid for uid in declared if uid is not None]

    def _apply_component(self, component: WorkComponent, scope: Scope, interner: Interner) -> str | None:
        """Replace one component; returns its uid where its declaration is a new one."""
        tracked = Tracked.from_wire(component, scope, interner)
        before = self.tracked.get(tracked.uid)
        self.tracked[tracked.uid] = tracked
        for table, names in (
            (self.held_by, component.held_by),
            (self.hosted, component.hosted),
            (self.left_inside, component.left_inside),
        ):
            table.pop(tracked.uid, None)
            if names:
                table[tracked.uid] = names
        return None if before is not None and before.generation == tracked.generation else tracked.uid

    def clear(self) -> None:
        """Forget all of it: everything follows anew."""
        for table in (self.tracked, self.known, self.outside, self.held_by, self.hosted, self.left_inside):
            table.clear()
        self.unserved.clear()

    def forget(self, uid: str) -> None:
        """Forget one component."""
        for table in (self.tracked, self.held_by, self.hosted, self.left_inside):
            table.pop(uid, None)

    def invalidate(self) -> None:
        """Let the next cycle judge every component, whatever it reads."""
        self.is_quiet = False
        self.recheck = None


@dataclass(slots=True)
class Swept:
    """Parameters that were read one by one, and when; ``before``: when they were read the time before, if they were."""

    values: dict[str, Any]
    at: datetime
    before: datetime | None = None


@dataclass(slots=True)
class AbsentReads:
    """Reads that did not show what an open intent may have made, and how far apart the first and the last were (S17).

    Measured by a clock that nobody sets: the control plane's may jump, and the window must not be over for that.
    """

    count: int = 0
    span: timedelta = timedelta()
    _first: float = 0.0

    def count_one(self, at: float) -> None:
        """Count one more, at a moment of ``deadline.steady``."""
        if not self.count:
            self._first = at
        self.count += 1
        self.span = timedelta(seconds=at - self._first)

    def cover(self, window: timedelta) -> bool:
        """Whether they are enough to conclude something: two at least, so far apart."""
        return self.count >= 2 and self.span >= window


@dataclass(slots=True)
class Observation:
    """What was read in the scope.

    ``read_at``: when, the last time. ``unread``: what that read did not show, by type or by uid (S0, C11).
    ``is_writing``: what it showed is still being reconciled. ``cycle_seconds`` and ``calls``: how long the last cycle
    took, and what it called. ``seen`` and ``pages``: the sightings of that read by type and id, and by type and
    fingerprint of their page. ``swept``: by uid, the parameters that are read one by one; ``unswept``: what a component
    says of those that the last sweep could not read; ``sweep_turn``: by type, who is swept next. ``bulk_swept`` and
    ``bulk_unswept``: the same of those that are read of many in one call.
    ``absent_reads``: by uid, reads that did not show it. ``reads_since``: reads since a write was given up (S24).
    ``reported``: what events have reported of a component's errors since it was last without one.
    """

    read_at: datetime | None = None
    unread: dict[str, Unread] = field(default_factory=dict)
    is_writing: bool = False
    cycle_seconds: float = 0.0
    calls: CallCount = field(default_factory=CallCount)
    seen: dict[str, dict[str, Sighting]] = field(default_factory=dict)
    pages: dict[str, Pages] = field(default_factory=dict)
    swept: dict[str, Swept] = field(default_factory=dict)
    unswept: dict[str, str] = field(default_factory=dict)
    sweep_turn: dict[str, int] = field(default_factory=dict)
    bulk_swept: dict[str, Swept] = field(default_factory=dict)
    bulk_unswept: dict[str, str] = field(default_factory=dict)
    absent_reads: dict[str, AbsentReads] = field(default_factory=dict)
    reads_since: dict[str, AbsentReads] = field(default_factory=dict)
    reported: dict[str, set[str]] = field(default_factory=dict)

    @property
    def swept_since(self) -> datetime | None:
        """The time of the oldest sweep that still counts."""
        return min((swept.at for swept in self.swept.values()), default=None)

    def unswept_of(self, uid: str) -> str:
        """What a component says of swept parameters that could not be read; empty where all could."""
        return "; ".join(note for table in (self.unswept, self.bulk_unswept) if (note := table.get(uid)))

    def cycle(self) -> ScopeCycle:
        """How the last cycle went, as a heartbeat reports it (C11)."""
        calls = self.calls
        return ScopeCycle(
            seconds=round(self.cycle_seconds, 3),
            calls=calls.calls,
            throttles=calls.throttles,
            errors=calls.errors,
            is_writing=self.is_writing,
            unread=dict(self.unread),
        )

    def forget(self, uid: str) -> None:
        """Forget what was observed of one component."""
        for table in (self.swept, self.unswept, self.bulk_swept, self.bulk_unswept, self.absent_reads):
            table.pop(uid, None)
        self.reads_since.pop(uid, None)
        self.reported.pop(uid, None)

    def forget_readings(self) -> None:
        """Forget what was read: it may come from another realm."""
        self.seen, self.pages = {}, {}
        for table in (self.swept, self.unswept, self.bulk_swept, self.bulk_unswept):
            table.clear()


@dataclass(slots=True)
class LinkRetry:
    """A half of a link that is not tried again before ``until``, unless what it is ``about`` changes (S21).

    ``entry`` and ``digest``: as in ``Refusal``.
    """

    about: str
    until: datetime
    times: int = 1
    entry: str = ""
    digest: str = ""


@dataclass(slots=True)
class ScopeBackoff:
    """What is left alone in the scope for a while, or is tried ever more rarely.

    Refused writes of components are not among it: they are remembered with the component (``errors``).
    ``throttled_until`` and ``throttles``: by type, until when a service that asked for fewer calls is left alone, and
    how often in a row it asked. ``requeue_attempts``: cycles in a row after which something was left to do.
    """

    throttled_until: dict[str, datetime] = field(default_factory=dict)
    throttles: dict[str, int] = field(default_factory=dict)
    links: dict[tuple[str, Half, str], LinkRetry] = field(default_factory=dict)
    requeue_attempts: int = 0

    def throttle(self, component_type: str, now: datetime, asked_for: float = 0.0) -> None:
        """Leave one service alone for a while, longer each time, and as long as it asked for; the others go on."""
        times = self.throttles.get(component_type, 0) + 1
        self.throttles[component_type] = times
        self.throttled_until[component_type] = THROTTLED.next_try(now, times, asked_for)

    def throttled(self, component_type: str, now: datetime) -> datetime | None:
        """Until when a service is left alone; None if it may be called."""
        until = self.throttled_until.get(component_type)
        return until if until is not None and now < until else None


@dataclass(slots=True)
class Enquiries:
    """When the cloud's record of changes is asked next, by component (``change_authors``), and whether it may be.

    ``refusals``: how often in a row it did not answer; ``until``: it is left alone until then; ``denied``: for good.
    """

    next_ask: dict[str, datetime] = field(default_factory=dict)
    asked: dict[str, int] = field(default_factory=dict)
    refusals: int = 0
    until: datetime | None = None
    denied: bool = False

    def may_ask(self, now: datetime) -> bool:
        """Whether the record may be asked at all."""
        return self.until is None or now >= self.until

    def is_denied(self, now: datetime) -> bool:
        """Whether it need not be tried, because it was denied a while ago."""
        return self.denied and not self.may_ask(now)

    def answered(self) -> None:
        """The record answered."""
        self.refusals, self.until, self.denied = 0, None, False

    def refuse(self, now: datetime, *, is_denied: bool = False) -> None:
        """It did not: leave it alone for a while, longer each time."""
        self.refusals += 1
        self.denied = is_denied
        self.until = (RECORD_DENIED if is_denied else RECORD_REFUSED).next_try(now, self.refusals)

    def ask_again(self, uid: str, now: datetime, deadline: datetime) -> None:
        """What is asked did not show yet: ask again, ever later, and at the deadline for the last time."""
        times = self.asked[uid] = self.asked.get(uid, 0) + 1
        soon = RECORD.next_try(now, times)
        self.next_ask[uid] = min(soon, deadline) if deadline > now else soon

    def forget(self, uid: str) -> None:
        """Nothing is asked of this component any more."""
        self.next_ask.pop(uid, None)
        self.asked.pop(uid, None)


def _nowhere(place: str) -> Cloud:
    raise Unreadable(f"{place!r} cannot be reached from here")


@dataclass(slots=True)
class HeldScope:
    """One leased scope: its cloud, its work, what was observed there, and what is backing off.

    ``confirm_realm`` raises where the realm that is reached now is not, or may not be, that of the scope (S26).
    ``is_lost``: the lease is gone, and nothing may be written in the scope any more; set from another thread than that
    of the cycle. ``secret_prints``: by what a secret that changed is noticed, by LiveSystem and name (A8);
    ``lookup_prints``: the same of what is looked for in other places (C12). ``elsewhere``: the cloud in another place
    of the same realm, to be read.
    """

    scope: Scope
    cloud: Cloud
    confirm_realm: Callable[[], None]
    token: int = 0
    is_lost: bool = False
    work: Work = field(default_factory=Work)
    observed: Observation = field(default_factory=Observation)
    secret_prints: dict[tuple[str, str], str] = field(default_factory=dict, repr=False)
    lookup_prints: dict[tuple[str, str], Any] = field(default_factory=dict, repr=False)
    elsewhere: Callable[[str], Cloud] = _nowhere
    backoff: ScopeBackoff = field(default_factory=ScopeBackoff)
    enquiries: Enquiries = field(default_factory=Enquiries)

    def apply(self, sent: ScopeWork, types: Container[str] | None = None) -> None:
        """Apply what the control plane sent: everything, or what changed; types nobody here serves are left out."""
        if sent.full:
            self.work.clear()
        for uid in sent.gone:
            self.forget(uid)
        for uid in self.work.apply(sent, self.scope, types):
            self.observed.unswept.pop(uid, None)  # it is swept anew, before all others
            self.observed.bulk_unswept.pop(uid, None)
        for component in sent.components:  # an agent before this one may have left questions open
            if component.uid in self.work.tracked and is_waiting(component.memory.changed_by):
                self.enquiries.next_ask.setdefault(component.uid, _AT_ONCE)

    def forget(self, uid: str) -> None:
        """Forget a component that is no longer in this scope."""
        self.work.forget(uid)
        self.observed.forget(uid)
        self.enquiries.forget(uid)

    def forget_readings(self) -> None:
        """Forget what was read: it may come from another realm, and nothing may follow from it."""
        self.observed.forget_readings()
        self.work.invalidate()
