"""What went wrong in one cycle, what a component says of it, and when the refused is tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from fractal_cloud.agent.outlook import OfferFacts
from fractal_cloud.agent.scope import HeldScope, Refusal
from fractal_cloud.agent.writing import Outcome
from fractal_cloud.model.errors import CloudError, Conflict, Denied, Invalid, Overtaken, Protected, Throttled, Transient
from fractal_cloud.model.status import Status
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.rules.judge import Judgement, Verb

LONGEST_PAUSE = timedelta(hours=1)


class Troubles:
    """The failed writes of one cycle; what the cloud refuses for good is kept in the scope across cycles (S21)."""

    def __init__(self, held: HeldScope, offers: Mapping[str, OfferFacts], cycle: timedelta) -> None:
        self._held = held
        self._offers = offers
        self._cycle = cycle
        self._failed: dict[str, tuple[Verb, CloudError]] = {}

    @property
    def are_there(self) -> bool:
        """Whether anything failed, or is being held back because it was refused."""
        return bool(self._failed) or bool(self._held.refusals)

    def allow(self, tracked: Tracked, now: datetime) -> bool:
        """Whether a write may be tried: not after trouble in this cycle, not while backing off."""
        if tracked.uid in self._failed:
            return False
        until = self._held.throttled_until.get(tracked.type)
        if until is not None and now < until:
            return False
        refusal = self._held.refusals.get(tracked.uid)
        if refusal is None or refusal.generation != tracked.generation:
            self._held.refusals.pop(tracked.uid, None)
            return True
        return now >= refusal.until

    def add(self, tracked: Tracked, verb: Verb, error: CloudError, now: datetime) -> None:
        """A write failed; what the cloud calls permanent is not hammered."""
        self._failed[tracked.uid] = (verb, error)
        self._held.failing[tracked.uid] = tracked.generation
        if verb is Verb.DELETE and isinstance(error, Conflict) and not isinstance(error, Overtaken):
            self._held.blocked.setdefault(tracked.uid, now)
        if not isinstance(error, Denied | Invalid):
            return
        before = self._held.refusals.get(tracked.uid)
        times = before.times + 1 if before is not None else 1
        pause = min(self._cycle * 2 ** min(times - 1, 8), LONGEST_PAUSE)
        self._held.refusals[tracked.uid] = Refusal(tracked.generation, now + pause, error.message, times)

    def forget(self, tracked: Tracked) -> None:
        """A write went through, or a new declaration starts again."""
        self._held.refusals.pop(tracked.uid, None)
        self._held.failing.pop(tracked.uid, None)
        self._held.blocked.pop(tracked.uid, None)

    def is_tried_again(self, tracked: Tracked) -> bool:
        """Whether it is Failed from an earlier try at the same declaration: it stays so until a try goes through."""
        is_same = self._held.failing.get(tracked.uid) == tracked.generation
        return is_same and tracked.memory.status is Status.FAILED

    def tell(self, tracked: Tracked, judgement: Judgement, now: datetime) -> Judgement:
        """What went wrong, or is not tried again yet, in the judgement's place."""
        reported = self._tell(tracked, judgement)
        return replace(reported, stuck=True) if self._is_blocked(tracked, now) else reported

    def _is_blocked(self, tracked: Tracked, now: datetime) -> bool:
        """Whether a deletion was refused for two settled cycles because of something that is not part of it (C8).

        Once published it stays so until a try goes through: another agent does not count from the beginning.
        """
        since = self._held.blocked.get(tracked.uid)
        return since is not None and (tracked.memory.stuck or now - since >= 2 * self._cycle)

    def _tell(self, tracked: Tracked, judgement: Judgement) -> Judgement:
        failed = self._failed.get(tracked.uid)
        if failed is not None:
            verb, error = failed
            status = self._status(tracked, judgement, verb, error)
            return self._instead(tracked, judgement, status, f"{verb} failed: {error.message}")
        if tracked.uid not in self._held.refusals:
            return judgement
        if judgement.step is not None:
            return self._instead(tracked, judgement, Status.FAILED, tracked.memory.message)
        if judgement.rule != "S0":
            self.forget(tracked)  # what was refused is no longer wanted
        return judgement

    def _status(self, tracked: Tracked, judgement: Judgement, verb: Verb, error: CloudError) -> Status | None:
        if isinstance(error, Throttled | Transient | Overtaken) or verb is Verb.UNTAG:
            return judgement.status
        if isinstance(error, Conflict) and tracked.deleting:
            keeps = isinstance(error, Protected) or self._offers[tracked.type].traits.holds_data
            return Status.FAILED if keeps else Status.DELETING
        return Status.FAILED

    def _instead(self, tracked: Tracked, judgement: Judgement, status: Status | None, message: str) -> Judgement:
        stance = tracked.memory.stance
        return replace(judgement, status=status, stance=stance, message=message, carried_out=False, finished=False)


def was_taken_over(outcome: Outcome) -> bool:
    """A write that was refused because somebody took the resource over is no error: it is S7 (S16, S21)."""
    sighting = outcome.view.sighting if outcome.view is not None else None
    refused = isinstance(outcome.error, Denied | Overtaken)
    return refused and sighting is not None and not sighting.protocol.is_managed
