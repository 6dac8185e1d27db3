"""What follows from the writes of a wave: what is known, remembered and journalled of each component afterwards.

Which writes failed, and when they are tried again, is kept by ``errors``; what is read again, by ``observing``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from fractal_cloud.agent.accepted import USED_UP_BY
from fractal_cloud.agent.cycle_state import CycleState
from fractal_cloud.agent.errors import was_taken_over
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.observing import Observer
from fractal_cloud.agent.writing import Outcome
from fractal_cloud.model.errors import CloudError, Conflict, Unexpected
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.offer import Recognition
from fractal_cloud.rules.judge import Verb
from fractal_cloud.rules.setbacks import after_write, without_tries
from fractal_cloud.rules.situate import GONE, View


class Outcomes:
    """Applies the outcomes of one cycle. ``writes``: calls that went out. ``effects``: those that succeeded."""

    def __init__(self, state: CycleState, observer: Observer) -> None:
        self.writes = 0
        self.effects = 0
        self._state = state
        self._held = state.held
        self._context = state.context
        self._evaluator = state.evaluator
        self._report = state.report
        self._errors = state.errors
        self._observer = observer

    def apply(self, outcomes: list[Outcome]) -> None:
        """Apply what came of a wave, and read again what it created."""
        for outcome in outcomes:
            noted = self._report.journal.close(outcome)
            self.writes += outcome.written
            self.effects += outcome.written and outcome.error is None
            self._apply_one(outcome, noted)
        created = [outcome.planned.tracked for outcome in outcomes if outcome.created is not None]
        if created:
            self._observer.read_created(created)
        else:
            self._state.refresh()

    def _apply_one(self, outcome: Outcome, noted: EntryRef) -> None:
        self._add_events(outcome)
        if outcome.view is not None and outcome.view.error is None:
            self._apply_view(outcome, outcome.view)
        if outcome.planned.step.verb is Verb.CREATE:
            self._apply_creation(outcome, noted)
        else:
            self._apply_change(outcome, noted)

    def _add_events(self, outcome: Outcome) -> None:
        tracked, step = outcome.planned.tracked, outcome.planned.step
        if outcome.race_lost:
            message = f"managed-by was removed while a write ({step.reason}) was on its way: check the resource"
            self._report.add_event(tracked, EventKind.RACE_LOST, message)
        if outcome.is_given_up and outcome.error is not None:
            self._held.observed.reads_since.pop(tracked.uid, None)
            self._report.add_event_once(tracked, EventKind.CALL_GIVEN_UP, outcome.error.message)
        elif isinstance(outcome.error, Unexpected):
            self._report.add_event_once(tracked, EventKind.OFFER_FAILED, outcome.error.message)

    def _apply_change(self, outcome: Outcome, noted: EntryRef) -> None:
        tracked, step = outcome.planned.tracked, outcome.planned.step
        is_tagging = step.verb is Verb.TAG
        if is_tagging and outcome.had_no_effect:
            self._report.withdraw_tagging(tracked)
        if outcome.error is not None and not was_taken_over(outcome):
            self._errors.add(outcome, noted, self._evaluator.now)
            if outcome.had_no_effect and step.verb is Verb.UPDATE:
                known = without_tries(tracked.memory.setbacks, step.drift)
                tracked.memory = replace(tracked.memory, setbacks=known)
            if step.verb in USED_UP_BY:
                self._report.add_used_up(tracked)
        elif outcome.is_done:  # a step that was not tried says nothing of the one that was refused
            self._errors.forget(tracked)
            self._remember_written(tracked, step.drift.keys())
            self._follow(outcome)

    def _remember_written(self, tracked: Tracked, names: Collection[str] | None = None) -> None:
        """Remember by its digest what the cloud will never return: these differences, or all of it (A8)."""
        compared = self._context.offers[tracked.type].compared
        if not compared.write_only:
            return
        every = compared.write_only_values(self._evaluator.declared(tracked))
        blind = {name: value for name, value in every.items() if names is None or name in names}
        if blind:
            written = self._state.secrets.written(tracked, blind)
            tracked.memory = replace(tracked.memory, secrets=written)
            self._report.unpublished.add(tracked.uid)

    def _follow(self, outcome: Outcome) -> None:
        """Follow what was written from now on: somebody may set it back (S27)."""
        tracked, step, view = outcome.planned.tracked, outcome.planned.step, outcome.view
        if step.verb is not Verb.UPDATE or not outcome.is_done or view is None or view.sighting is None:
            return
        compared = self._context.offers[tracked.type].compared
        before = {name: difference for name, difference in step.drift.items() if not compared.is_linked(name)}
        after = self._evaluator.judge(tracked, view).drift
        in_handshake = step.reason == "handshake"
        known = after_write(
            tracked.memory.setbacks,
            before,
            after,
            self._evaluator.now,
            in_handshake=in_handshake,
            has_effect=_has_effect(outcome.planned.sighting, view.sighting),
            unsettles=_has_effect(outcome.planned.sighting, view.sighting, besides=before),
        )
        if known != tracked.memory.setbacks:
            tracked.memory = replace(tracked.memory, setbacks=known)
            self._report.unpublished.add(tracked.uid)

    def _apply_view(self, outcome: Outcome, view: View) -> None:
        tracked, before = outcome.planned.tracked, outcome.planned.sighting
        snapshot = self._evaluator.snapshot
        if view.sighting is not None and outcome.fresh is not None:
            snapshot.put(outcome.fresh)
            self._context.reader.record_swept(self._held, tracked, outcome.fresh, self._evaluator.now)
        elif view.elsewhere is not None and not view.elsewhere.moved_to:
            snapshot.put(view.elsewhere)
        elif before is not None:
            snapshot.drop(tracked.type, before.resource_id)
            self._evaluator.traces[tracked.uid] = self._traced(outcome, view)

    def _traced(self, outcome: Outcome, view: View) -> View:
        """What became of a resource that its name finds no more: moved, deleted by us, or gone by itself (O17)."""
        if view.elsewhere is not None:
            return view
        is_deleted = outcome.planned.step.verb is Verb.DELETE and outcome.is_done
        return GONE if is_deleted else self._evaluator.without_answer(outcome.planned.tracked)

    def _apply_creation(self, outcome: Outcome, noted: EntryRef) -> None:
        tracked = outcome.planned.tracked
        intent = tracked.memory.intent
        if outcome.created is not None and intent is not None:
            named = intent.model_copy(update={"resource_id": outcome.created.resource_id})
            tracked.memory = replace(tracked.memory, intent=named, resource_id=outcome.created.resource_id)
            if outcome.created.condition is not Condition.CREATING:  # what was accepted may still be refused (S21)
                self._errors.forget(tracked)
            self._remember_written(tracked)
            self._report.unpublished.add(tracked.uid)
            return
        error = outcome.error
        if outcome.had_no_effect and not self._may_be_its_own_rival(tracked, error):
            self._report.withdraw_intent(tracked)
        if error is not None:
            self._errors.add(outcome, noted, self._evaluator.now)

    def _may_be_its_own_rival(self, tracked: Tracked, error: CloudError | None) -> bool:
        """Whether a name is refused as taken because the try before, whose answer was lost, took it.

        Where names are not unique, it was waited for until it would have shown: somebody else is in the way.
        """
        intent = tracked.memory.intent
        is_named = self._state.offer_of(tracked).recognition is not Recognition.WINDOW
        return isinstance(error, Conflict) and is_named and intent is not None and intent.attempts > 1


def _has_effect(before: Sighting | None, after: Sighting, besides: Collection[str] = ()) -> bool:
    """Whether a read shows that a call changed anything: a value that both reads report, or the cloud being at work.

    ``besides``: values that do not count, because they were meant to change.
    """
    if before is None or before.condition is not after.condition:
        return True
    common = [name for name in before.actual if name in after.actual and name not in besides]
    return any(after.actual[name] != before.actual[name] for name in common)
