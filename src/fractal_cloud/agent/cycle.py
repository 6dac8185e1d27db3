"""One cycle of one scope: read, judge, write in waves, publish what changed.

    read ──▶ sweep ──▶ judge ──▶ publish intents ──▶ write a wave ──▶ read again ──┐
                         ▲                                                        │ until nothing is left to write
                         └────────────────────────────────────────────────────────┘
    ──▶ links ──▶ publish what changed, and the outcomes

The order of the phases is here; the phases are in ``observing``, ``waves``, ``outcomes`` and ``conclusions``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from typing import Any, Final

from fractal_cloud.agent.backoff import unsettled
from fractal_cloud.agent.change_authors import ChangeAuthors
from fractal_cloud.agent.change_detection import affected, can_judge_separately, needs_recheck
from fractal_cloud.agent.conclusions import Conclusions
from fractal_cloud.agent.cycle_state import CycleContext, CycleState
from fractal_cloud.agent.filling import lookup_key
from fractal_cloud.agent.observing import Observer
from fractal_cloud.agent.outcomes import Outcomes
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.unread import unread_parts
from fractal_cloud.agent.waves import Waves
from fractal_cloud.agent.writing import wanted
from fractal_cloud.model.errors import CloudError, OtherRealm, Unexpected
from fractal_cloud.model.reference import find_references
from fractal_cloud.model.situation import Presence
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wording import path_text
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import Offer
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules.judge import Judgement, Verb
from fractal_cloud.rules.setbacks import is_timed

MAX_WAVES: Final = 40
"""More single writes than any component needs in one cycle: what is left then waits for the next one."""


@dataclass(frozen=True, slots=True)
class CycleResult:
    """When to read again at the latest, and what was done; ``is_elsewhere``: another realm was reached (S26)."""

    again_in: float
    writes: int = 0
    changes: int = 0
    settled: bool = True
    is_elsewhere: bool = False


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """Why a scope is not at rest after a cycle, if so."""

    in_progress: bool
    noticing: bool
    unread: bool
    failing: bool
    links: bool

    def __bool__(self) -> bool:
        return self.in_progress or self.noticing or self.unread or self.failing or self.links


class Cycle:
    """One pass over one scope. A new one is made for every pass; what must live longer is in ``HeldScope``."""

    def __init__(self, held: HeldScope, context: CycleContext) -> None:
        self._held = held
        self._work = held.work
        self._context = context
        self._state = state = CycleState(held, context)
        self._evaluator = state.evaluator
        self._errors = state.errors
        self._links = state.links
        self._observer = Observer(state)
        self._authors = ChangeAuthors(state)
        self._affected: frozenset[str] | None = None

    # Made when first asked for: a cycle that finds everything as it was needs none of them.

    @cached_property
    def _waves(self) -> Waves:
        return Waves(self._state, self._observer)

    @cached_property
    def _outcomes(self) -> Outcomes:
        return Outcomes(self._state, self._observer)

    @cached_property
    def _conclusions(self) -> Conclusions:
        return Conclusions(self._state)

    def run(self) -> CycleResult:
        """Read, decide, write and publish, once."""
        held, work = self._held, self._work
        was_quiet, recheck = work.is_quiet, work.recheck
        work.invalidate()  # until this one has come to its end
        rotated = self._state.secrets.refresh() | self._evaluator.lookups.refresh()
        changed, is_swept_anew = self._observer.read()
        due = self._authors.due
        is_same = changed == [] and not is_swept_anew and not rotated and not due
        if was_quiet and is_same and self._links.is_intact():
            work.is_quiet, work.recheck, held.observed.read_at = True, recheck, self._evaluator.now
            return CycleResult(again_in=self._context.settings.cycle_seconds)
        if not self._observer.confirm_realm():
            return self._without_realm()
        self._authors.before, held.observed.read_at = held.observed.read_at, self._evaluator.now
        held.observed.is_writing = True
        if recheck is not None and changed is not None and not is_swept_anew:
            self._affected = recheck | rotated | due | affected(held, self._context.offers, changed)
        return self._reconcile()

    def _reconcile(self) -> CycleResult:
        """Bring the scope to what is declared, as far as one cycle can."""
        self._work.link_tasks = None  # known anew only after all links were checked
        self._state.refresh()
        self._observer.count_absent_reads()
        self._observer.trace_absent()
        judgements = self._settle()
        if self._state.may_write():
            self._links.run(judgements)
        self._authors.end(judgements)
        self._authors.name_opponents(judgements, self._evaluator.judge)
        changes = self._conclusions.publish(judgements)
        self._held.observed.unread = unread_parts(self._held, self._evaluator, self._authors.before, self._affected)
        return self._result(judgements, changes)

    def _without_realm(self) -> CycleResult:
        """Say of every component why nothing is known of it; its links and its resource are left as they are."""
        self._state.refresh()
        judgements = self._judge(list(self._work.tracked.values()))
        changes = self._conclusions.publish(judgements)
        result = self._result(judgements, changes)
        return replace(result, is_elsewhere=isinstance(self._observer.unconfirmed, OtherRealm))

    def dry_run(self) -> dict[str, Judgement]:
        """Read and judge, and write nothing, neither to the cloud nor to the control plane."""
        self._state.secrets.refresh()
        self._observer.read_for_plan()
        self._state.refresh()
        self._observer.trace_absent()
        judgements = self._judge(list(self._work.tracked.values()))
        self._waves.next_wave(judgements)  # confirms what vanished, and names rivals, as a cycle would
        self._state.refresh()
        return self._judge(list(self._work.tracked.values()))

    def is_absent(self, tracked: Tracked) -> bool:
        """Whether the cloud was read, and has no resource of this component."""
        return self._evaluator.view(tracked).presence is Presence.ABSENT

    def found(self, tracked: Tracked) -> dict[str, list[Any]]:
        """What the lookups of a component found, by the path of each; those without an answer are left out (C12)."""
        answers = self._evaluator.filled(tracked).found
        paths = ((path, lookup_key(lookup)) for path, lookup in find_references(tracked.parameters))
        return {path_text(path).removeprefix("."): answers[key] for path, key in paths if key in answers}

    def rehearse(self, tracked: Tracked, judgement: Judgement) -> CloudError | None:
        """Why the cloud would refuse what would be written of a component, where it can be asked without doing it."""
        step, offer = judgement.step, self._state.offer_of(tracked)
        is_asked = type(self._context.offers[tracked.type].own).rehearse is not Offer.rehearse
        if step is None or step.verb not in (Verb.CREATE, Verb.UPDATE) or not is_asked:
            return None
        try:
            made = wanted(self._evaluator, offer, tracked)
            seen = self._evaluator.view(tracked).sighting
            with self._held.cloud.calling_as(CallContext(tracked.live_system_id, tracked.component_id, "plan")):
                offer.rehearse(self._held.cloud, made, seen, frozenset(step.drift))
        except CloudError as error:
            return error
        except Exception as error:  # noqa: BLE001  # one component's error stays its own (S24)
            return Unexpected(describe_unexpected(error))
        return None

    # --- judging and writing, wave by wave

    def _settle(self) -> dict[str, Judgement]:
        """Write until nothing is left to write; the last judgements of all, or of all those that are not at rest."""
        few = self._judge_affected()
        if few is not None:
            return few
        judgements: dict[str, Judgement] = {}
        pending: Iterable[Tracked] = list(self._work.tracked.values())
        for wave_number in range(MAX_WAVES):
            judgements.update(self._judge(pending))
            if wave_number == 0:
                self._authors.begin(judgements)
            wave = self._waves.next_wave(judgements)
            if not wave and self._waves.has_findings:
                self._waves.has_findings = False
                continue  # nothing is written, but what the direct reads showed must be said (S19)
            if not wave or not self._state.may_write():
                return judgements
            self._outcomes.apply(self._waves.write(wave, judgements))
            pending = list(self._work.tracked.values())
        return self._judge(pending)

    def _judge_affected(self) -> dict[str, Judgement] | None:
        """Judge only those whom a change may affect; None if one is to be written to: that may affect anybody."""
        if self._affected is None:
            return None
        judgements = self._judge([t for t in self._work.tracked.values() if t.uid in self._affected])
        if any(judgement.step is not None for judgement in judgements.values()):
            return None
        self._authors.begin(judgements)
        return judgements

    def _judge(self, components: Iterable[Tracked]) -> dict[str, Judgement]:
        """Judge all; who is left behind or has ended changes what follows for those it depends on (O10)."""
        evaluator = self._evaluator
        judgements = {tracked.uid: evaluator.judge(tracked) for tracked in components}
        deleting = [tracked for tracked in self._work.tracked.values() if tracked.deleting]
        while deleting:
            finished = {t.uid for t in deleting if judgements[t.uid].finished}
            left = {t.uid for t in deleting if judgements[t.uid].leaves_what_it_needs}
            if finished <= evaluator.finished and left <= evaluator.left:
                break
            evaluator.finished |= finished
            evaluator.left |= left
            judgements.update({t.uid: evaluator.judge(t) for t in deleting})
        return judgements

    # --- the end

    def _result(self, judgements: dict[str, Judgement], changes: int) -> CycleResult:
        """Note what the next cycle has to judge, and say when it is due."""
        work, writes = self._work, self._outcomes.writes
        judgements = {uid: judgement for uid, judgement in judgements.items() if uid in work.tracked}
        why = self._why_unsettled(judgements)
        work.is_quiet = not (why or changes or writes or self._links.writes)
        if not (why.unread or why.failing or writes):
            work.recheck = self._to_recheck(judgements)
        if not why and not changes:
            self._held.backoff.requeue_attempts = 0
            return CycleResult(self._context.settings.cycle_seconds, writes, changes)
        again_in = self._again_in(why, has_changes=bool(changes))
        return CycleResult(again_in.total_seconds(), writes, changes, settled=not why)

    def _why_unsettled(self, judgements: dict[str, Judgement]) -> _Unsettled:
        living, evaluator = judgements.values(), self._evaluator
        return _Unsettled(
            in_progress=self._conclusions.is_held
            or any(j.in_progress and not self._is_held_back(uid, j) for uid, j in judgements.items()),
            noticing=any(judgement.noticing or is_timed(judgement.setbacks) for judgement in living),
            unread=not evaluator.snapshot.is_complete or any(v.error for v in evaluator.traces.values()),
            failing=self._errors.exist or any(judgement.rule == "S24" for judgement in living),
            links=self._links.is_unfinished,
        )

    def _again_in(self, why: _Unsettled, *, has_changes: bool) -> timedelta:
        """When to read again: soon, and ever later, where something goes on; at the next try of what was refused."""
        backoff, cycle, now = self._held.backoff, self._context.settings.cycle, self._evaluator.now
        backoff.requeue_attempts = 1 if has_changes else backoff.requeue_attempts + 1
        has_moved = bool(self._outcomes.effects + self._links.moves)
        hurry = why.in_progress or why.unread or why.links or has_moved
        again_in = unsettled(cycle).delay(backoff.requeue_attempts) if hurry else cycle
        next_try = self._errors.next_try(now)
        return again_in if next_try is None else min(again_in, next_try - now)

    def _is_held_back(self, uid: str, judgement: Judgement) -> bool:
        """Whether all that is left to do for a component is a write whose next try is not due yet."""
        step, tracked = judgement.step, self._work.tracked[uid]
        return step is not None and self._errors.is_held_back(tracked, step.verb, self._evaluator.now)

    def _to_recheck(self, judgements: dict[str, Judgement]) -> frozenset[str] | None:
        """Who is judged again with any change: who was not at rest now. Who was not judged now was at rest already."""
        held, view, tracked = self._held, self._evaluator.view, self._work.tracked
        living = [(tracked[uid], judgement) for uid, judgement in judgements.items() if uid in tracked]
        changed = self._conclusions.changed
        found = {t.uid for t, j in living if t.uid in changed or needs_recheck(held, t, view(t), j)}
        return frozenset(found) if can_judge_separately(held) else None
