"""Writes that failed in one cycle: what a component says of it, and when the write is tried again (S21)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from fractal_cloud.agent.accepted import USED_UP_BY, verb_of
from fractal_cloud.agent.backoff import PERMANENT, clock_time, is_due, next_try
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.report_builder import ReportBuilder
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.writing import Outcome
from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    DependencyMissing,
    Overtaken,
    Protected,
    Throttled,
    Transient,
    UnderWay,
    Unexpected,
    Unreadable,
)
from fractal_cloud.model.observed import Refusal
from fractal_cloud.model.status import Status
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import JournalEntry
from fractal_cloud.rules import words
from fractal_cloud.rules.judge import Judgement, Verb


class WriteErrors:
    """The failed writes of one cycle. Each is remembered with its component until a try goes through.

    So another agent knows it too, and a wake (another component's change, a watch, a restart) never brings the next try
    forward: only the control plane does, which clears what is remembered when an operator wants it tried now.
    """

    def __init__(
        self, held: HeldScope, report: ReportBuilder, offers: Mapping[str, OfferFacts], cycle: timedelta
    ) -> None:
        self._held = held
        self._report = report
        self._offers = offers
        self._cycle = cycle
        self._failed: set[str] = set()

    @property
    def exist(self) -> bool:
        """Whether anything failed, or is being held back because it did; what is used up is tried by nobody again."""
        refusals = (tracked.memory.refusal for tracked in self._held.work.tracked.values())
        return bool(self._failed) or any(one is not None and one.until is not None for one in refusals)

    def allow(self, tracked: Tracked, verb: Verb, now: datetime) -> bool:
        """Whether a write may be tried: not after an error in this cycle, not while backing off."""
        if tracked.uid in self._failed or tracked.given_up:
            return False
        if self._held.backoff.throttled(tracked.type, now) is not None:
            return False
        return not self.is_held_back(tracked, verb, now)

    def is_held_back(self, tracked: Tracked, verb: Verb, now: datetime) -> bool:
        """Whether this very write failed before, and its next try is not due yet."""
        refusal = tracked.memory.refusal
        if refusal is None or refusal.verb != verb.value:
            return False
        return refusal.until is not None and not is_due(refusal.until, now, self._cycle)

    def next_try(self, now: datetime) -> datetime | None:
        """When the next of the writes that are held back is due."""
        found = (t.memory.refusal.until for t in self._held.work.tracked.values() if t.memory.refusal is not None)
        return min((until for until in found if until is not None and until > now), default=None)

    def add(self, outcome: Outcome, noted: EntryRef, now: datetime) -> None:
        """A write failed: remember it, and when it is tried again."""
        tracked, step, error = outcome.planned.tracked, outcome.planned.step, outcome.error
        assert error is not None, "only what failed is added"
        self._failed.add(tracked.uid)
        if isinstance(error, UnderWay):  # neither refused nor done: what was refused before stands until it is
            return
        before = tracked.memory.refusal
        is_same = before is not None and before.verb == step.verb.value
        times, since = (before.times + 1, before.since) if before is not None and is_same else (1, now)
        message, until = f"{step.verb} failed: {error.message}", None
        if step.verb in USED_UP_BY:
            message = _used_up(step.verb, error)
        else:
            until = next_try(error, times, now, self._cycle)
            if isinstance(error, DependencyMissing):
                message = words.waits_for_missing(error)
            if isinstance(error, PERMANENT):
                message = f"{message}; next try at {clock_time(until)}"
        traits = self._offers[tracked.type].traits
        is_blocked = step.verb is Verb.DELETE and isinstance(error, Conflict) and not isinstance(error, Overtaken)
        if is_blocked:
            message = f"{message}; {words.ways_out(tracked, frozen=traits.tags_frozen, is_part=traits.is_part)}"
        fails = _is_failure(tracked, step.verb, error, holds_data=traits.holds_data)
        self._remember(
            tracked,
            Refusal(
                verb=step.verb.value,
                message=message,
                since=since,
                times=times,
                until=until,
                failed=fails,
                blocked=is_blocked,
                entry=noted.entry,
                digest=noted.digest,
            ),
        )

    def add_refused_later(self, tracked: Tracked, entry: JournalEntry, error: CloudError, now: datetime) -> None:
        """What the cloud accepted for an operator's request was refused afterwards: nobody tries it again (G10)."""
        verb = verb_of(entry)
        assert verb is not None, "only what uses a request up is followed so"
        self._failed.add(tracked.uid)
        refusal = Refusal(
            verb=verb.value, message=_used_up(verb, error), since=now, times=1, failed=False, entry=entry.id
        )
        self._remember(tracked, refusal)

    def forget(self, tracked: Tracked) -> None:
        """A write went through, or what was refused is no longer wanted."""
        if tracked.memory.refusal is not None:
            self._remember(tracked, None)

    def _remember(self, tracked: Tracked, refusal: Refusal | None) -> None:
        tracked.memory = replace(tracked.memory, refusal=refusal)
        self._report.unpublished.add(tracked.uid)

    def is_tried_again(self, tracked: Tracked) -> bool:
        """Whether it is Failed from an earlier try at the same declaration: it stays so until a try goes through."""
        return tracked.memory.refusal is not None and tracked.memory.status is Status.FAILED

    def explain(self, tracked: Tracked, judgement: Judgement, now: datetime) -> Judgement:
        """What went wrong, or is not tried again yet, in the judgement's place."""
        explained = self._explain(tracked, judgement)
        refusal = tracked.memory.refusal
        # A deletion that was refused for two settled cycles because of what is not part of it waits for a person (C8).
        if refusal is None or not refusal.blocked:
            return explained
        is_stuck = tracked.memory.stuck or now - refusal.since >= 2 * self._cycle
        return replace(explained, stuck=True) if is_stuck else explained

    def _explain(self, tracked: Tracked, judgement: Judgement) -> Judgement:
        refusal = tracked.memory.refusal
        step = judgement.step
        if judgement.finished:  # what failed on the way there does not matter any more
            self.forget(tracked)
            return judgement
        if tracked.given_up and step is not None and tracked.uid not in self._failed:
            stance, message = tracked.memory.stance, words.given_up(tracked.given_up[-1])
            return replace(judgement, stance=stance, message=message, carried_out=False, finished=False)
        if refusal is None:
            return judgement
        is_creating = _is_being_created(tracked, judgement)
        if tracked.uid in self._failed or is_creating or (step is not None and step.verb.value == refusal.verb):
            status = Status.FAILED if refusal.failed else judgement.status
            return replace(
                judgement,
                status=status,
                stance=tracked.memory.stance,
                message=words.tried_again(refusal.message) if is_creating else refusal.message,
                carried_out=False,
                finished=False,
            )
        is_push = refusal.verb == Verb.PUSH.value
        if is_push and judgement.stance.is_read_only and judgement.rule != "S0":
            return replace(judgement, message=f"{refusal.message}; {judgement.message}")
        if step is None and (judgement.carried_out or judgement.stance.is_read_only):
            self.forget(tracked)
        return judgement


def _used_up(verb: Verb, error: CloudError) -> str:
    what = "Force Push" if verb is Verb.PUSH else "the transfer"
    return f"{what} failed and is used up: {error.cause}; ask again once that is resolved"


def _is_being_created(tracked: Tracked, judgement: Judgement) -> bool:
    """Whether a creation that was refused before is asked for again, and the cloud has yet to say what became of it."""
    refusal, intent = tracked.memory.refusal, tracked.memory.intent
    if refusal is None or refusal.verb != Verb.CREATE.value or intent is None:
        return False
    return judgement.status is Status.INSTANTIATING and (judgement.step is None or intent.resource_id is not None)


def _is_failure(tracked: Tracked, verb: Verb, error: CloudError, *, holds_data: bool) -> bool:
    """Whether the component is Failed by it; else its status is what it would be without."""
    if isinstance(error, Unexpected):
        return True
    if isinstance(error, Throttled | Transient | Overtaken | Unreadable | DependencyMissing) or verb in (
        Verb.UNTAG,
        Verb.PUSH,
        Verb.TRANSFER,
    ):
        return False
    if isinstance(error, Conflict) and tracked.deleting:
        return isinstance(error, Protected) or holds_data
    return True


def was_taken_over(outcome: Outcome) -> bool:
    """A write that was refused because somebody took the resource over is no error: it is S7 (S16, S21).

    What a Force Push is for carries no managed-by before: that it has none says nothing of anybody.
    """
    if outcome.planned.step.verb in (Verb.PUSH, Verb.TAG):
        return False
    sighting = outcome.view.sighting if outcome.view is not None else None
    refused = isinstance(outcome.error, Denied | Overtaken)
    return refused and sighting is not None and not sighting.protocol.is_managed
