"""The last phase of a cycle: what follows for every component in the end, published in one request.

What is collected for the report on the way is in ``report_builder``; what is remembered of a component is decided by
``rules.remember``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import structlog

from fractal_cloud.agent.accepted import undone
from fractal_cloud.agent.cycle_state import CycleState
from fractal_cloud.agent.evaluator import unjudged
from fractal_cloud.model.errors import CloudError, Throttled, Unreadable
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.observed import Observed
from fractal_cloud.model.status import Status
from fractal_cloud.model.tracked import Tracked, to_change
from fractal_cloud.model.wire import ComponentChange
from fractal_cloud.rules import words
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.remember import observed_after
from fractal_cloud.rules.situate import View

log = structlog.get_logger()

UNUSABLE = View(error=Unreadable("what was read of it cannot be used"))
"""Stands for what was seen of a component that could not be judged: nothing follows from it."""


class _Conclusion(NamedTuple):
    """What is published of one component."""

    judgement: Judgement
    view: View
    memory: Observed


class Conclusions:
    """Concludes one cycle.

    ``changed``: the components of which something was published. ``is_held``: one could not end for its secrets.
    """

    def __init__(self, state: CycleState) -> None:
        self.changed: frozenset[str] = frozenset()
        self.is_held = False
        self._state = state
        self._held = state.held
        self._work = state.held.work
        self._context = state.context
        self._evaluator = state.evaluator
        self._report = state.report
        self._reported_errors: set[tuple[str, str, str]] = set()

    # --- publishing

    def publish(self, judgements: dict[str, Judgement]) -> int:
        """Publish everything that changed in this cycle, in one request; nothing at all if nothing changed.

        Returns how many components changed.
        """
        concluded = self._hold_families({uid: self._conclude(uid, judgements) for uid in judgements})
        changes: list[ComponentChange] = []
        memories: dict[str, Observed] = {}
        finished: list[Tracked] = []
        for tracked in [self._work.tracked[uid] for uid in judgements]:
            conclusion = self._remembered(tracked, concluded[tracked.uid])
            change = self._change(tracked, conclusion)
            if change is not None:
                changes.append(change)
                memories[tracked.uid] = conclusion.memory
            else:
                tracked.memory = conclusion.memory  # equal, but made of the very objects that the sighting is made of
            if conclusion.judgement.finished:
                finished.append(tracked)
        self._report.publish(changes, memories)
        self.changed = frozenset(memories)
        for change in changes:
            if change.used_request:
                self._work.tracked[change.uid].request = None
        for tracked in finished:
            self._report.forget_gone(tracked, self._evaluator.view(tracked), judgements[tracked.uid])
            self._held.forget(tracked.uid)
        return len(changes)

    def _conclude(self, uid: str, judgements: dict[str, Judgement]) -> Judgement:
        """What follows for one component in the end; what goes wrong here goes wrong for it alone (S24)."""
        tracked = self._work.tracked[uid]
        try:
            self._settle_accepted(tracked)
            judgement = self._state.errors.explain(tracked, judgements[uid], self._evaluator.now)
            return self._end_generated(tracked, self._hold_the_wired(tracked, judgement))
        except Exception as error:
            log.exception("component cannot be concluded", live_system=tracked.live_system_id, id=tracked.component_id)
            return unjudged(tracked, error)

    def _settle_accepted(self, tracked: Tracked) -> None:
        """Say what the cloud accepted for an operator's request, and refused afterwards (G10, O8)."""
        if not tracked.open_writes:
            return
        view = self._evaluator.view(tracked)
        for entry in undone(tracked, view):
            assert entry.resource_id is not None, "what is tagged is there"
            offer = self._state.offer_of(tracked)
            why = offer.why_refused(self._held.cloud, entry.resource_id) or CloudError(words.ACCEPTED_AND_NOT_DONE)
            self._state.errors.add_refused_later(tracked, entry, why, self._evaluator.now)
            self._report.journal.fail(tracked, entry, why.message)
            self._report.add_used_up(tracked)

    def _remembered(self, tracked: Tracked, judgement: Judgement) -> _Conclusion:
        """What is published of one component; what goes wrong here goes wrong for it alone (S24)."""
        try:
            view = self._evaluator.view(tracked)
            self._state.keep_found(tracked)
            self._state.keep_made(tracked)
            return _Conclusion(judgement, view, observed_after(tracked, view, judgement))
        except Exception as error:
            log.exception("component cannot be published", live_system=tracked.live_system_id, id=tracked.component_id)
            judgement = unjudged(tracked, error)
            return _Conclusion(judgement, UNUSABLE, observed_after(tracked, UNUSABLE, judgement))

    def _change(self, tracked: Tracked, conclusion: _Conclusion) -> ComponentChange | None:
        """What the report says of one component, beside its events and its resource; None if nothing is new."""
        judgement, view, memory = conclusion.judgement, conclusion.view, conclusion.memory
        used = self._used_request(tracked, judgement)
        self._add_error_events(tracked, view, judgement)
        self._report.note_resource(tracked, view, judgement)
        window_over = self._is_effect_known(tracked)
        self._report.journal.close_open_writes(tracked, view, judgement, window_over=window_over)
        if not tracked.given_up:
            self._held.observed.reads_since.pop(tracked.uid, None)
        is_unpublished = tracked.uid in self._report.unpublished
        if not (memory != tracked.memory or used or judgement.finished or is_unpublished):
            return None
        is_left = judgement.finished and judgement.leaves_what_it_needs
        return to_change(tracked.uid, memory, used_request=used, finished=judgement.finished, left=is_left)

    def _used_request(self, tracked: Tracked, judgement: Judgement) -> str | None:
        answer = judgement.answer
        if answer is None or tracked.request is None or not answer.is_used_up:
            return None
        if answer.acts and judgement.step is not None:
            return None  # not carried out in this cycle: it is used up by publishing its intent, not before
        if answer.refusal:
            kind = EventKind.TRANSFER_REFUSED if answer.moves_owner else EventKind.FORCE_PUSH_REFUSED
            self._report.add_event(tracked, kind, answer.refusal)
        return answer.request.id

    def _add_error_events(self, tracked: Tracked, view: View, judgement: Judgement) -> None:
        """Report each error in an event once; of many components with the same one, by the first of them (S24)."""
        if judgement.rule == "S24":
            self._report.add_event_once(tracked, EventKind.OFFER_FAILED, judgement.message)
        elif view.error is not None:
            key = (tracked.live_system_id, tracked.type, view.error.message)
            evaluator, uid = self._evaluator, tracked.uid
            traced = evaluator.traces[uid].error if uid in evaluator.traces else None
            is_its_own = view.error in (evaluator.snapshot.error_of(tracked), traced, evaluator.failed_views.get(uid))
            if is_its_own and key not in self._reported_errors and not isinstance(view.error, Throttled):
                self._reported_errors.add(key)
                self._report.add_event_once(tracked, EventKind.UNREADABLE, view.error.message)
        elif judgement.status is not Status.FAILED and not tracked.given_up:
            self._held.observed.reported.pop(tracked.uid, None)

    def _is_effect_known(self, tracked: Tracked) -> bool:
        """Whether a write that was given up would have shown by now, had it taken effect (S17, S24)."""
        reads = self._held.observed.reads_since.get(tracked.uid)
        return reads is not None and reads.cover(self._context.settings.visibility)

    # --- who may end

    def _hold_families(self, concluded: dict[str, Judgement]) -> dict[str, Judgement]:
        """Let nobody end before its dependents have, nor what is left before what it depends on is left too.

        A judgement expects that others end; only here is it certain who really does, in this very report (O10, O18).
        """
        ending = [self._work.tracked[uid] for uid, judgement in concluded.items() if judgement.finished]
        while ending:
            held = [tracked for tracked in ending if self._is_too_early(tracked, concluded)]
            if not held:
                break
            for tracked in held:
                concluded[tracked.uid] = _not_finished(concluded[tracked.uid])
            ending = [tracked for tracked in ending if concluded[tracked.uid].finished]
        return concluded

    def _is_too_early(self, tracked: Tracked, concluded: dict[str, Judgement]) -> bool:
        family = [other for other in self._evaluator.dependents_here(tracked) if other.uid in concluded]
        if concluded[tracked.uid].leaves_what_it_needs:
            family += [other for other in self._evaluator.dependencies_here(tracked) if other.deleting]
        return not all(concluded[other.uid].finished for other in family)

    def _hold_the_wired(self, tracked: Tracked, judgement: Judgement) -> Judgement:
        """What links made is taken back before the component ends, also where its resource is gone (L10)."""
        if not judgement.finished or not self._state.links.holds_deletion(tracked, judgement):
            return judgement
        return _not_finished(judgement)

    def _end_generated(self, tracked: Tracked, judgement: Judgement) -> Judgement:
        """Delete the secrets that were made for a component before it ends, unless what uses them stays (A8, O10)."""
        if not judgement.finished or judgement.left or judgement.is_needed or not tracked.memory.generated:
            return judgement
        why = self._state.secrets.drop(tracked) if self._state.may_write() else words.GENERATED_LEFT
        self.is_held = self.is_held or bool(why)
        return replace(_not_finished(judgement), message=why) if why else judgement


def _not_finished(judgement: Judgement) -> Judgement:
    """A deletion that would have ended, and has to wait."""
    return replace(judgement, status=Status.DELETING, finished=False, carried_out=False, in_progress=True)
