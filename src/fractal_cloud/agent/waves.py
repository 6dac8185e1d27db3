"""The writing phase of a cycle: which writes go out next, their intents published first, then the calls in parallel.

Memory first, cloud last (S17): nothing is written to the cloud before the control plane knows that it will be. One
write is carried out by ``writing``; what follows from it is in ``outcomes``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from dataclasses import dataclass, replace
from datetime import datetime

from fractal_cloud.agent.accepted import USED_UP_BY
from fractal_cloud.agent.cycle_state import CycleState
from fractal_cloud.agent.generated_secrets import with_intents
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.observing import Observer
from fractal_cloud.agent.writing import Outcome, Planned, Writer
from fractal_cloud.model.errors import FractalError, Throttled, Unexpected
from fractal_cloud.model.observed import Intent, Observed
from fractal_cloud.model.situation import Presence, Trace
from fractal_cloud.model.tags import NO_TAGS
from fractal_cloud.model.tracked import Tracked, to_change
from fractal_cloud.model.wire import ComponentChange
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules.judge import Judgement, Step, Verb
from fractal_cloud.rules.remember import observed_after

Judgements = Mapping[str, Judgement]


@dataclass(frozen=True, slots=True)
class _Intended:
    """A write that is about to go out, what is remembered before it, and the request that it uses up."""

    planned: Planned
    memory: Observed
    used_request: str | None = None

    @property
    def is_news(self) -> bool:
        """Whether something must be published before the write; a message alone can wait until after it."""
        before = self.planned.tracked.memory
        is_new = self.planned.step.verb is Verb.CREATE or self.used_request is not None
        return is_new or replace(self.memory, message=before.message) != before


class Waves:
    """The writes of one cycle, wave by wave.

    ``has_findings``: direct reads showed something of what was to be created, and that must be published (S19).
    """

    def __init__(self, state: CycleState, observer: Observer) -> None:
        self.has_findings = False
        self._state = state
        self._held = state.held
        self._context = state.context
        self._evaluator = state.evaluator
        self._report = state.report
        self._errors = state.errors
        self._observer = observer
        self._attempted: set[tuple[str, str]] = set()
        self._created: set[str] = set()

    # --- which writes go out next

    def next_wave(self, judgements: Judgements) -> list[Tracked]:
        """The components that are written to now."""
        tracked = self._held.work.tracked.values()
        wave = [t for t in tracked if self._may_try(t, judgements[t.uid].step)]
        creations = [t for t in wave if _verb(judgements[t.uid]) is Verb.CREATE]
        if not creations:
            return wave
        allowed = self._confirm_gone(self._without_rivals(creations))
        return [t for t in wave if _verb(judgements[t.uid]) is not Verb.CREATE or t.uid in allowed]

    def _may_try(self, tracked: Tracked, step: Step | None) -> bool:
        """Whether a step is tried now: not after an error, not while backing off, and no step twice in one cycle."""
        if step is None or (tracked.uid, _signature(step)) in self._attempted:
            return False
        if step.verb is Verb.DELETE and self._state.links.holds_deletion(tracked, self._evaluator.judge(tracked)):
            return False
        return self._errors.allow(tracked, step.verb, self._evaluator.now)

    def _without_rivals(self, creations: list[Tracked]) -> list[Tracked]:
        """Of several LiveSystems that would create one resource, the one deployed first does (O2)."""
        first: dict[str, Tracked] = {}
        for tracked in sorted(creations, key=lambda t: (t.deployed_at, t.live_system_id)):
            winner = first.setdefault(tracked.identity.key, tracked)
            if winner is not tracked:
                self._evaluator.rivals[tracked.uid] = winner.live_system_id
        return [tracked for tracked in first.values() if tracked.uid not in self._created]

    def _confirm_gone(self, creations: list[Tracked]) -> set[str]:
        """What had a published id, or a predicted one, is created again only after a direct read says it is gone.

        Somebody may have renamed it meanwhile (S19, S17).
        """
        evaluator = self._evaluator
        vanished = [t for t in creations if evaluator.id_to_confirm(t) is not None and t.uid not in evaluator.traces]
        self._observer.trace(vanished)
        allowed = {t.uid for t in creations if self._is_confirmed_gone(t)}
        self.has_findings = self.has_findings or len(allowed) < len(creations)
        return allowed

    def _is_confirmed_gone(self, tracked: Tracked) -> bool:
        view = self._evaluator.view(tracked)
        if view.presence is not Presence.ABSENT:
            return False
        return view.trace in (Trace.NEVER, Trace.GONE) or self._evaluator.id_to_confirm(tracked) is None

    # --- writing a wave

    def write(self, wave: list[Tracked], judgements: Judgements) -> list[Outcome]:
        """Write a wave. Of many creations the first begin while the intents of the next are being published (S17)."""
        pool = self._context.pool
        futures: list[Future[Outcome]] = []
        try:
            for part in _parts(wave, judgements, self._context.settings.concurrency):
                planned = self._publish_intents(part, judgements)
                futures.extend(pool.submit(self._carry_out, step) for step in planned)
            wait(futures, return_when=FIRST_EXCEPTION)  # woken for each, this thread would compete with the writers
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)  # whatever failed here: nothing is being written any more when the cycle is over

    def _carry_out(self, planned: Planned) -> Outcome:
        component_type, backoff = planned.tracked.type, self._held.backoff
        if component_type in backoff.throttles:
            error = Throttled("the cloud asked for fewer calls: not sent")
            return Outcome(planned, error=error, abandoned=True)
        facts = self._context.offers[component_type]
        writer = Writer(self._held, self._evaluator, facts, self._state.may_write, self._is_unopposed)
        outcome = writer.carry_out(planned)
        if isinstance(outcome.error, Throttled):
            backoff.throttle(component_type, self._context.now(), outcome.error.after_seconds)
        return outcome

    def _is_unopposed(self, planned: Planned) -> bool:
        """Whether the control plane, which gets the intent once more right before a write, still accepts it.

        Where tags are frozen, this is what the guard's read of the tags is elsewhere (S16).
        """
        try:
            self._report.confirm(planned.entry_id)
        except FractalError:
            return False
        return True

    # --- intents

    def _publish_intents(self, wave: list[Tracked], judgements: Judgements) -> list[Planned]:
        """Publish, in one request, what is about to be written and what must be remembered before it is (S17, C7)."""
        now = self._context.now()
        changes: list[ComponentChange] = []
        memories: dict[str, Observed] = {}
        planned: list[Planned] = []
        for tracked in wave:
            intended = self._intend(tracked, judgements[tracked.uid], now)
            if intended is None:
                continue
            planned.append(intended.planned)
            if intended.is_news or (tracked.finds and tracked.uid in self._report.unpublished):
                changes.append(to_change(tracked.uid, intended.memory, used_request=intended.used_request))
                memories[tracked.uid] = intended.memory
        self._report.publish(changes, memories)
        for one in planned:
            if one.step.verb in USED_UP_BY:
                one.tracked.request = None
        return planned

    def _intend(self, tracked: Tracked, judgement: Judgement, now: datetime) -> _Intended | None:
        """Write one intent into the journal; None where it cannot be made, which is this component's error alone."""
        step = judgement.step
        assert step is not None, "only components with a step are in a wave"
        self._state.keep_found(tracked)
        view = self._evaluator.view(tracked)
        entry_id = self._report.journal.intend(tracked, step, view.sighting)
        planned = Planned(tracked, step, entry_id, view.sighting)
        # What this try comes to is not known yet: it does not end what waits for a person (C8).
        memory = replace(observed_after(tracked, view, judgement), stuck=tracked.memory.stuck)
        if step.verb in (Verb.CREATE, Verb.UPDATE):
            memory = replace(memory, generated=with_intents(tracked))
        if self._errors.is_tried_again(tracked):
            memory = replace(memory, status=tracked.memory.status, message=tracked.memory.message)
        if step.verb is Verb.CREATE:
            try:
                memory = self._with_intent(tracked, memory, entry_id, now)
            except Exception as error:  # noqa: BLE001  # one component's error stays its own (S24)
                self._report.journal.withdraw(entry_id)
                failed = Outcome(planned, error=Unexpected(describe_unexpected(error)))
                self._errors.add(failed, EntryRef(), now)
                return None
        elif step.add != NO_TAGS:
            memory = _with_tagging(memory)
        self._attempted.add((tracked.uid, _signature(step)))
        used = step.request.id if step.request is not None and step.verb in USED_UP_BY else None
        return _Intended(planned, memory, used)

    def _with_intent(self, tracked: Tracked, memory: Observed, entry_id: str, now: datetime) -> Observed:
        before = tracked.memory.intent
        intent = Intent(
            id=before.id if before is not None else entry_id,
            at=now,
            attempts=before.attempts + 1 if before is not None else 1,
            tagging="owed" if self._state.offer_of(tracked).tags_follow(self._held.cloud) else "",
        )
        self._report.note_creator(tracked)
        self._created.add(tracked.uid)
        self._held.observed.absent_reads.pop(tracked.uid, None)
        return replace(memory, intent=intent, established=True, absent_since=tracked.memory.absent_since)


def _parts(wave: list[Tracked], judgements: Judgements, concurrency: int) -> Iterator[list[Tracked]]:
    """A wave, or, where all of it is created, its parts: two calls for every thread first, then ever more.

    Only creations: nothing is read or judged for them right before the call, while this thread goes on with the rest.
    """
    are_creations = all(_verb(judgements[tracked.uid]) is Verb.CREATE for tracked in wave)
    begin, size = 0, 2 * concurrency if are_creations else len(wave)
    while begin < len(wave):
        yield wave[begin : begin + size]
        begin, size = begin + size, 4 * size


def _signature(step: Step) -> str:
    """A step with what it found: tried twice in one cycle it would change nothing the second time either."""
    return f"{step.verb}:{sorted((name, str(d.actual)) for name, d in step.drift.items())}"


def _with_tagging(memory: Observed) -> Observed:
    """That tags are about to be put on is remembered first: what is without them later on was let go (S17)."""
    intent = memory.intent
    if intent is None or intent.tagging != "owed":
        return memory
    return replace(memory, intent=intent.model_copy(update={"tagging": "begun"}))


def _verb(judgement: Judgement) -> Verb | None:
    return judgement.step.verb if judgement.step is not None else None
