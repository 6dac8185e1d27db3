"""One cycle of one scope: look, judge, write in waves, publish what changed.

    look ──▶ sweep ──▶ judge ──▶ publish intents ──▶ write a wave ──▶ look again ──┐
                         ▲                                                        │ until nothing is left to write
                         └────────────────────────────────────────────────────────┘
    ──▶ links ──▶ publish what changed, and the outcomes

Memory first, cloud last (S17): nothing is written to the cloud before the control plane knows that it will be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, wait
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from fractal_cloud.agent.backoff import unsettled
from fractal_cloud.agent.change_detection import affected, can_judge_separately, changed_sightings, needs_recheck
from fractal_cloud.agent.deadline import steady
from fractal_cloud.agent.errors import WriteErrors, was_taken_over
from fractal_cloud.agent.evaluator import Evaluator, OfferFacts, unjudged
from fractal_cloud.agent.journal import EntryRef
from fractal_cloud.agent.link_handlers import LinkHandlers
from fractal_cloud.agent.link_reconciler import LinkReconciler
from fractal_cloud.agent.reading import Reader, Snapshot
from fractal_cloud.agent.report_builder import Publisher, ReportBuilder
from fractal_cloud.agent.scope import AbsentReads, HeldScope
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.agent.writing import Outcome, Planned, Writer, wanted
from fractal_cloud.model.errors import CloudError, Conflict, FractalError, OtherRealm, Throttled, Unexpected, Unreadable
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.observed import Intent, Observed
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.situation import Presence, Trace
from fractal_cloud.model.status import Status
from fractal_cloud.model.tags import NO_TAGS
from fractal_cloud.model.tracked import Tracked, to_change
from fractal_cloud.model.wire import ComponentChange
from fractal_cloud.offers.link import Handlers
from fractal_cloud.offers.offer import AnyOffer, Recognition
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.offers.secret import SealingKey
from fractal_cloud.rules.judge import Judgement, Step, Verb
from fractal_cloud.rules.remember import remember
from fractal_cloud.rules.setbacks import after_write, given_up, is_timed
from fractal_cloud.rules.situate import GONE, View, found_elsewhere

log = structlog.get_logger()

UNUSABLE = View(error=Unreadable("what was read of it cannot be used"))
"""Stands for what was seen of a component that could not be judged: nothing follows from it."""
_DEEPEST = 8
"""Deeper than any resource lies in others."""
MAX_WAVES = 40
"""More single writes than any component needs in one cycle: what is left then waits for the next one."""


@dataclass(frozen=True, slots=True)
class CycleContext:
    """What cycles share: offers, threads, the right to write, and two clocks: the control plane's, and a steady one."""

    settings: AgentSettings
    watchdog: Watchdog
    offers: dict[str, OfferFacts]
    reader: Reader
    pool: Executor
    publisher: Publisher
    handlers: Handlers
    sealing: SealingKey
    now: Callable[[], datetime]
    may_write: Callable[[], bool]
    steadily: Callable[[], float] = steady


@dataclass(frozen=True, slots=True)
class CycleResult:
    """When to look again at the latest, and what was done; ``is_elsewhere``: another realm was reached (S26)."""

    again_in: float
    writes: int = 0
    changes: int = 0
    settled: bool = True
    is_elsewhere: bool = False


class Cycle:
    """One pass over one scope. A new one is made for every pass; what must live longer is in ``HeldScope``."""

    def __init__(self, held: HeldScope, context: CycleContext) -> None:
        self._held = held
        self._work = held.work
        self._context = context
        self._report = ReportBuilder(held, context.publisher)
        self._errors = WriteErrors(held, self._report, context.offers, context.settings.cycle)
        self._affected: frozenset[str] | None = None
        self._tried: set[str] = set()
        self._found_out = False
        self._changed: frozenset[str] = frozenset()
        self._reported_errors: set[tuple[str, str, str]] = set()
        self._taken: set[tuple[str, str]] = set()
        self._writes = 0
        self._unconfirmed: CloudError | None = None
        self._effects = 0
        self._evaluator = Evaluator(held, Snapshot(), context.offers, context.settings, context.now())
        link_handlers = LinkHandlers(
            held, self._evaluator, context.offers, context.sealing, self._may_write, context.watchdog
        )
        self._links = LinkReconciler(held, self._evaluator, self._report, context.handlers, link_handlers, context.pool)

    def _may_write(self) -> bool:
        """Whether this scope is certainly still this agent's, and the agent may write at all."""
        return not self._held.is_lost and self._context.may_write()

    def run(self) -> CycleResult:
        """Look, decide, write and publish, once."""
        held, context = self._held, self._context
        was_quiet, recheck = held.work.is_quiet, held.work.recheck
        held.work.invalidate()  # until this one has come to its end
        snapshot = context.reader.read_all(held, self._parent_ids, self._evaluator.now)
        changed = changed_sightings(held, snapshot)
        held.observed.seen = {component_type: dict(found) for component_type, found in snapshot.sightings.items()}
        self._evaluator.snapshot = snapshot
        self._evaluator.refresh(context.now())
        sighted = self._sighted(held.work.tracked.values())
        swept_anew = context.reader.sweep(held, sighted, snapshot, self._evaluator.now)
        if was_quiet and changed == [] and not swept_anew and self._links.is_intact():
            held.work.is_quiet, held.work.recheck, held.observed.read_at = True, recheck, self._evaluator.now
            return CycleResult(again_in=context.settings.cycle_seconds)
        if not self._confirm_realm(snapshot):
            return self._without_realm()
        held.observed.read_at = self._evaluator.now
        if recheck is not None and changed is not None and not swept_anew:
            self._affected = recheck | affected(held, context.offers, changed)
        held.work.link_tasks = None  # known anew only after all links were looked at
        self._evaluator.refresh(context.now())
        self._count_absent_reads()
        self._trace_absent()
        judgements = self._settle()
        if self._may_write():
            self._links.run(judgements)
        self._name_opponents(judgements)
        changes = self._publish_all(judgements)
        return self._result(judgements, changes)

    def dry_run(self) -> dict[str, Judgement]:
        """Look and judge, and write nothing, neither to the cloud nor to the control plane."""
        self._evaluator.snapshot = self._context.reader.read_all(self._held, self._parent_ids, self._evaluator.now)
        self._confirm_realm(self._evaluator.snapshot)
        self._evaluator.refresh(self._context.now())
        sighted = self._sighted(self._work.tracked.values())
        self._context.reader.sweep(self._held, sighted, self._evaluator.snapshot, self._evaluator.now)
        self._evaluator.refresh(self._context.now())
        self._trace_absent()
        judgements = self._judge(list(self._work.tracked.values()))
        self._next_wave(judgements)  # confirms what vanished, and names rivals, as a cycle would
        self._evaluator.refresh(self._context.now())
        return self._judge(list(self._work.tracked.values()))

    # --- the realm that is reached (S26)

    def _confirm_realm(self, snapshot: Snapshot) -> bool:
        """Confirm, in one call, that what was read is in the realm that is meant; else nothing was read (S0).

        It is asked after the reading and before anything is decided: so nothing is written elsewhere, and nothing
        counts as gone because it was looked for elsewhere. A cycle that finds everything as it was decides nothing.
        """
        try:
            self._held.confirm_realm()
        except CloudError as error:
            self._unconfirmed = error
            snapshot.lose(error, {tracked.type for tracked in self._work.tracked.values()})
            self._held.forget_readings()
        return self._unconfirmed is None

    def _without_realm(self) -> CycleResult:
        """Say of every component why nothing is known of it; its links and its resource are left as they are."""
        self._evaluator.refresh(self._context.now())
        judgements = self._judge(list(self._work.tracked.values()))
        changes = self._publish_all(judgements)
        result = self._result(judgements, changes)
        return replace(result, is_elsewhere=isinstance(self._unconfirmed, OtherRealm))

    # --- looking

    def _parent_ids(self, offer: AnyOffer, snapshot: Snapshot) -> frozenset[str]:
        self._evaluator.snapshot = snapshot
        self._evaluator.refresh(self._context.now())
        found = (self._evaluator.parent_id(tracked) for tracked in self._work.of_type(offer.type))
        return frozenset(parent_id for parent_id in found if parent_id is not None)

    def _sighted(self, components: Iterable[Tracked]) -> list[tuple[Tracked, Sighting]]:
        """The components that declare something to sweep, with what was seen of them."""
        swept = {name: facts.compared.swept for name, facts in self._context.offers.items()}
        chosen = (tracked for tracked in components if not swept[tracked.type].isdisjoint(tracked.parameters))
        views = ((tracked, self._evaluator.view(tracked)) for tracked in chosen)
        return [(tracked, view.sighting) for tracked, view in views if view.sighting is not None]

    def _count_absent_reads(self) -> None:
        counts, at = self._held.observed.absent_reads, self._context.steadily()
        for tracked in self._work.tracked.values():
            if tracked.given_up and self._evaluator.view(tracked).error is None:
                self._held.observed.reads_since.setdefault(tracked.uid, AbsentReads()).count_one(at)
            is_counted = tracked.memory.intent is not None or self._offer(tracked).not_found_may_mean_denied
            if is_counted and self._evaluator.view(tracked).presence is Presence.ABSENT:
                counts.setdefault(tracked.uid, AbsentReads()).count_one(at)
            elif counts:
                counts.pop(tracked.uid, None)

    def _trace_absent(self) -> None:
        """Ask by their ids for those whose absence matters to others: what is deleted, and what others are in (O17).

        What is in something that is not listed is judged only once it is known what became of that; so the outer ones
        are asked for first.
        """
        for _ in range(_DEEPEST):
            absent = [t for t in self._work.tracked.values() if self._is_to_be_traced(t)]
            if not absent:
                return
            self._trace(absent)

    def _is_to_be_traced(self, tracked: Tracked) -> bool:
        if tracked.uid in self._evaluator.traces:
            return False
        if not tracked.deleting and tracked.uid not in self._evaluator.parents:
            return False
        view = self._evaluator.view(tracked)
        return view.presence is Presence.ABSENT and view.trace is Trace.UNKNOWN

    def _trace(self, absent: list[Tracked]) -> None:
        """Find out by direct reads what became of resources that their names do not find."""
        asked = [t for t in absent if self._evaluator.id_to_confirm(t) is not None]
        for tracked, found in zip(asked, self._context.pool.map(self._read_by_id, asked), strict=True):
            self._note_trace(tracked, found)
        self._evaluator.refresh(self._context.now())

    def _note_trace(self, tracked: Tracked, found: Sighting | CloudError | None) -> None:
        traces = self._evaluator.traces
        if isinstance(found, CloudError):
            traces[tracked.uid] = View(error=found)
        elif found is None:
            traces[tracked.uid] = self._evaluator.without_answer(tracked)
        elif found.name != tracked.identity.name or found.moved_to:
            traces[tracked.uid] = found_elsewhere(found)
        else:
            self._evaluator.snapshot.put(found)

    def _offer(self, tracked: Tracked) -> AnyOffer:
        return self._context.offers[tracked.type].offer

    # --- judging and writing, wave by wave

    def _settle(self) -> dict[str, Judgement]:
        """Write until nothing is left to write; the last judgements of all, or of all those that are not at rest."""
        few = self._judge_affected()
        if few is not None:
            return few
        judgements: dict[str, Judgement] = {}
        pending: Iterable[Tracked] = list(self._work.tracked.values())
        for _ in range(MAX_WAVES):
            judgements.update(self._judge(pending))
            wave = self._next_wave(judgements)
            if not wave and self._found_out:
                self._found_out = False
                continue  # nothing is written, but what the direct reads showed must be said (S19)
            if not wave or not self._may_write():
                return judgements
            outcomes = self._write(wave, judgements)
            self._apply_outcomes(outcomes)
            pending = list(self._work.tracked.values())
        return self._judge(pending)

    def _judge_affected(self) -> dict[str, Judgement] | None:
        """Judge those alone whom a change may concern; None if one is to be written to: that may concern anybody."""
        if self._affected is None:
            return None
        judgements = self._judge([t for t in self._work.tracked.values() if t.uid in self._affected])
        return None if any(judgement.step is not None for judgement in judgements.values()) else judgements

    def _judge(self, components: Iterable[Tracked]) -> dict[str, Judgement]:
        """Judge all; who is left behind or done with changes what follows for those it depends on (O10)."""
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

    def _next_wave(self, judgements: dict[str, Judgement]) -> list[Tracked]:
        held = self._held
        wave = [t for t in held.work.tracked.values() if self._may_try(t, judgements[t.uid].step)]
        creations = [t for t in wave if _verb(judgements[t.uid]) is Verb.CREATE]
        if not creations:
            return wave
        allowed = self._confirm_gone(self._without_rivals(creations))
        return [t for t in wave if _verb(judgements[t.uid]) is not Verb.CREATE or t.uid in allowed]

    def _may_try(self, tracked: Tracked, step: Step | None) -> bool:
        """Whether a step is taken now: not after an error, not while backing off, and no step twice in one cycle."""
        if step is None or (tracked.uid, _signature(step)) in self._taken:
            return False
        if step.verb is Verb.DELETE and self._links.holds_deletion(tracked, self._evaluator.judge(tracked)):
            return False
        return self._errors.allow(tracked, step.verb, self._evaluator.now)

    def _without_rivals(self, creations: list[Tracked]) -> list[Tracked]:
        """Of several LiveSystems that would create one resource, the one deployed first does (O2)."""
        first: dict[str, Tracked] = {}
        for tracked in sorted(creations, key=lambda t: (t.deployed_at, t.live_system_id)):
            winner = first.setdefault(tracked.identity.key, tracked)
            if winner is not tracked:
                self._evaluator.rivals[tracked.uid] = winner.live_system_id
        return [tracked for tracked in first.values() if tracked.uid not in self._tried]

    def _confirm_gone(self, creations: list[Tracked]) -> set[str]:
        """What had a published id, or would bear a mark, is created again only after a direct read says it is gone.

        Somebody may have renamed it meanwhile (S19, S17).
        """
        evaluator = self._evaluator
        vanished = [t for t in creations if evaluator.id_to_confirm(t) is not None and t.uid not in evaluator.traces]
        self._trace(vanished)
        allowed = {t.uid for t in creations if self._is_confirmed_gone(t)}
        self._found_out = self._found_out or len(allowed) < len(creations)
        return allowed

    def _is_confirmed_gone(self, tracked: Tracked) -> bool:
        view = self._evaluator.view(tracked)
        if view.presence is not Presence.ABSENT:
            return False
        return view.trace in (Trace.NEVER, Trace.GONE) or self._evaluator.id_to_confirm(tracked) is None

    def _read_by_id(self, tracked: Tracked) -> Sighting | CloudError | None:
        try:
            return self._offer(tracked).read(self._held.cloud, self._evaluator.id_to_confirm(tracked) or "")
        except CloudError as error:
            return error
        except Exception as error:  # noqa: BLE001  # what could not be read is not gone (S0)
            return Unreadable(describe_unexpected(error))

    def _write(self, wave: list[Tracked], judgements: dict[str, Judgement]) -> list[Outcome]:
        """Write a wave. Of many creations the first begin while the intents of the next are being published (S17)."""
        context = self._context

        def carry_out(step: Planned) -> Outcome:
            if step.tracked.type in self._held.backoff.throttles:
                error = Throttled("the cloud asked for fewer calls: not sent")
                return Outcome(step, error=error, abandoned=True)
            facts = context.offers[step.tracked.type]
            outcome = Writer(self._held, self._evaluator, facts, self._may_write, self._is_unopposed).carry_out(step)
            if isinstance(outcome.error, Throttled):
                self._held.backoff.throttle(step.tracked.type, context.now(), outcome.error.after_seconds)
            return outcome

        futures: list[Future[Outcome]] = []
        try:
            for part in _parts(wave, judgements, context.settings.concurrency):
                planned = self._publish_intents(part, judgements)
                futures.extend(context.pool.submit(carry_out, step) for step in planned)
            wait(futures, return_when=FIRST_EXCEPTION)  # woken for each, this thread would take turns with the writers
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()
            wait(futures)  # whatever failed here: nothing is being written any more when the cycle is over

    def _is_unopposed(self, planned: Planned) -> bool:
        """Whether the control plane, told of a write once more right before it, still has nothing against it.

        Where tags are frozen, this is what the guard's read of the tags is elsewhere (S16).
        """
        try:
            self._report.confirm(planned.entry_id)
        except FractalError:
            return False
        return True

    def _publish_intents(self, wave: list[Tracked], judgements: dict[str, Judgement]) -> list[Planned]:
        """Publish, in one request, what is about to be written and what must be remembered before it is (S17, C7)."""
        planned: list[Planned] = []
        changes: list[ComponentChange] = []
        memories: dict[str, Observed] = {}
        now = self._context.now()
        for tracked in wave:
            judgement = judgements[tracked.uid]
            step = judgement.step
            assert step is not None
            view = self._evaluator.view(tracked)
            entry_id = self._report.journal.intend(tracked, step, view.sighting)
            # What this try comes to is not known yet: it does not end what waits for a person (C8).
            memory = replace(remember(tracked, view, judgement), stuck=tracked.memory.stuck)
            if self._errors.is_tried_again(tracked):
                memory = replace(memory, status=tracked.memory.status, message=tracked.memory.message)
            if step.verb is Verb.CREATE:
                try:
                    memory = self._with_intent(tracked, memory, entry_id, now)
                except Exception as error:  # noqa: BLE001  # one component's trouble stays its own (S24)
                    self._report.journal.withdraw(entry_id)
                    failed = Outcome(
                        Planned(tracked, step, entry_id, None), error=Unexpected(describe_unexpected(error))
                    )
                    self._errors.add(failed, EntryRef(), now)
                    continue
            elif step.add != NO_TAGS:
                memory = _with_tagging(memory)
            used = step.request.id if step.request is not None and step.verb is Verb.PUSH else None
            is_new = step.verb is Verb.CREATE or used is not None
            if is_new or replace(memory, message=tracked.memory.message) != tracked.memory:
                changes.append(to_change(tracked.uid, memory, used_request=used))
                memories[tracked.uid] = memory
            planned.append(Planned(tracked, step, entry_id, view.sighting))
            self._taken.add((tracked.uid, _signature(step)))
        self._report.publish(changes, memories)
        for step_planned in planned:
            if step_planned.step.verb is Verb.PUSH:
                step_planned.tracked.request = None
        return planned

    def _with_intent(self, tracked: Tracked, memory: Observed, entry_id: str, now: datetime) -> Observed:
        before = tracked.memory.intent
        intent = Intent(
            id=before.id if before is not None else entry_id,
            at=now,
            attempts=before.attempts + 1 if before is not None else 1,
            tagging="owed" if self._context.offers[tracked.type].offer.tags_follow(self._held.cloud) else "",
        )
        self._report.note_creator(tracked)
        self._tried.add(tracked.uid)
        self._held.observed.absent_reads.pop(tracked.uid, None)
        return replace(memory, intent=intent, established=True, absent_since=tracked.memory.absent_since)

    # --- what came of a wave

    def _apply_outcomes(self, outcomes: list[Outcome]) -> None:
        snapshot = self._evaluator.snapshot
        created_types = {o.planned.tracked.type for o in outcomes if o.created is not None}
        for outcome in outcomes:
            noted = self._report.journal.close(outcome)
            self._writes += outcome.written
            self._effects += outcome.written and outcome.error is None
            self._apply_outcome(outcome, noted, snapshot)
        if created_types:
            self._evaluator.refresh(self._context.now())
            self._context.reader.reread(self._held, snapshot, created_types, self._parent_ids, self._evaluator.now)
            self._evaluator.snapshot = snapshot
        self._evaluator.refresh(self._context.now())
        if created_types:
            fresh = [o.planned.tracked for o in outcomes if o.created is not None]
            self._context.reader.sweep(self._held, self._sighted(fresh), snapshot, self._evaluator.now)
            self._context.reader.recall(self._held, self._sighted(self._work.tracked.values()), snapshot)
            self._evaluator.refresh(self._context.now())

    def _apply_outcome(self, outcome: Outcome, noted: EntryRef, snapshot: Snapshot) -> None:
        tracked, step = outcome.planned.tracked, outcome.planned.step
        if outcome.race_lost:
            message = f"managed-by was removed while a write ({step.reason}) was on its way: look at the resource"
            self._report.add_event(tracked, EventKind.RACE_LOST, message)
        if outcome.is_given_up and outcome.error is not None:
            self._held.observed.reads_since.pop(tracked.uid, None)
            self._report.add_event_once(tracked, EventKind.CALL_GIVEN_UP, outcome.error.message)
        elif isinstance(outcome.error, Unexpected):
            self._report.add_event_once(tracked, EventKind.OFFER_FAILED, outcome.error.message)
        if outcome.view is not None and outcome.view.error is None:
            self._apply_view(outcome, outcome.view, snapshot)
        if step.verb is Verb.CREATE:
            self._apply_creation(outcome, noted)
            return
        is_tagging = step.verb is Verb.TAG
        if is_tagging and outcome.had_no_effect:
            self._report.withdraw_tagging(tracked)
        # What is to be tagged carries no managed-by before: that it has none says nothing of anybody.
        if outcome.error is not None and (is_tagging or not was_taken_over(outcome)):
            self._errors.add(outcome, noted, self._evaluator.now)
            if step.verb is Verb.PUSH and tracked.memory.refusal is not None:
                self._report.add_event(tracked, EventKind.FORCE_PUSH_REFUSED, tracked.memory.refusal.message)
        elif outcome.is_done:  # a step that was not taken says nothing of the one that was refused
            self._errors.forget(tracked)
            self._follow(outcome)

    def _follow(self, outcome: Outcome) -> None:
        """Follow what was written from now on: somebody may set it back (S27)."""
        tracked, step, view = outcome.planned.tracked, outcome.planned.step, outcome.view
        if step.verb is not Verb.UPDATE or not outcome.is_done or view is None or view.sighting is None:
            return
        linked = self._context.offers[tracked.type].compared.linked
        before = {name: difference for name, difference in step.drift.items() if name not in linked}
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

    def _apply_view(self, outcome: Outcome, view: View, snapshot: Snapshot) -> None:
        tracked, before = outcome.planned.tracked, outcome.planned.sighting
        if view.sighting is not None:
            snapshot.put(view.sighting)
            self._context.reader.record_swept(self._held, tracked, view.sighting, self._evaluator.now)
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
            self._errors.forget(tracked)
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
        is_named = self._context.offers[tracked.type].offer.recognition is not Recognition.WINDOW
        return isinstance(error, Conflict) and is_named and intent is not None and intent.attempts > 1

    def _name_opponents(self, judgements: dict[str, Judgement]) -> None:
        """Ask the cloud who set back what was given up just now, where it can tell (S27)."""
        for uid, judgement in judgements.items():
            asked = [one for one in given_up(judgement.setbacks) if one.by is None]
            tracked = self._work.tracked[uid]
            sighting = self._evaluator.view(tracked).sighting
            if not asked or sighting is None:
                continue
            offer = self._context.offers[tracked.type].offer
            names = frozenset(one.parameter for one in asked)
            try:
                found = offer.changed_by(self._held.cloud, sighting, wanted(self._evaluator, offer, tracked), names)
            except CloudError:
                found = {}  # that it is not known is all that follows
            named = [
                one.model_copy(update={"by": found.get(one.parameter, "")}) if one in asked else one
                for one in judgement.setbacks
            ]
            tracked.memory = replace(tracked.memory, setbacks=tuple(named))
            self._report.unpublished.add(uid)
            judgements[uid] = self._evaluator.judge(tracked)

    # --- publishing

    def _publish_all(self, judgements: dict[str, Judgement]) -> int:
        """Publish everything that changed in this cycle, in one request; nothing at all if nothing changed."""
        changes: list[ComponentChange] = []
        memories: dict[str, Observed] = {}
        finished: list[str] = []
        concluded = self._hold_families({uid: self._conclude(uid, judgements) for uid in judgements})
        for tracked in [self._work.tracked[uid] for uid in judgements]:
            judgement, view, memory = self._remembered(tracked, concluded[tracked.uid])
            used = self._used_request(tracked, judgement)
            self._add_error_events(tracked, view, judgement)
            self._report.note_resource(tracked, view, judgement)
            window_over = self._is_effect_known(tracked)
            self._report.journal.close_open_writes(tracked, view, judgement, window_over=window_over)
            if not tracked.given_up:
                self._held.observed.reads_since.pop(tracked.uid, None)
            if memory != tracked.memory or used or judgement.finished or tracked.uid in self._report.unpublished:
                is_left = judgement.finished and judgement.leaves_what_it_needs
                changes.append(
                    to_change(tracked.uid, memory, used_request=used, finished=judgement.finished, left=is_left)
                )
                memories[tracked.uid] = memory
            else:
                tracked.memory = memory  # equal, but made of the very objects that the sighting is made of
            if judgement.finished:
                finished.append(tracked.uid)
        self._report.publish(changes, memories)
        self._changed = frozenset(memories)
        for change in changes:
            if change.used_request:
                self._work.tracked[change.uid].request = None
        for uid in finished:
            self._report.forget_gone(
                self._work.tracked[uid], self._evaluator.view(self._work.tracked[uid]), judgements[uid]
            )
            self._held.forget(uid)
        return len(changes)

    def _conclude(self, uid: str, judgements: dict[str, Judgement]) -> Judgement:
        """What follows for one component in the end; what goes wrong here goes wrong for it alone (S24)."""
        tracked = self._work.tracked[uid]
        try:
            judgement = self._errors.explain(tracked, judgements[uid], self._evaluator.now)
            return self._hold_the_wired(tracked, judgement)
        except Exception as error:
            log.exception("component cannot be concluded", live_system=tracked.live_system_id, id=tracked.component_id)
            return unjudged(tracked, error)

    def _remembered(self, tracked: Tracked, judgement: Judgement) -> tuple[Judgement, View, Observed]:
        """What is published of one component; what goes wrong here goes wrong for it alone (S24)."""
        try:
            view = self._evaluator.view(tracked)
            return judgement, view, remember(tracked, view, judgement)
        except Exception as error:
            log.exception("component cannot be published", live_system=tracked.live_system_id, id=tracked.component_id)
            judgement = unjudged(tracked, error)
            return judgement, UNUSABLE, remember(tracked, UNUSABLE, judgement)

    def _add_error_events(self, tracked: Tracked, view: View, judgement: Judgement) -> None:
        """Have each error said in an event once; of many components with the same one, by the first of them (S24)."""
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

    def _used_request(self, tracked: Tracked, judgement: Judgement) -> str | None:
        answer = judgement.answer
        if answer is None or tracked.request is None or not answer.is_used_up:
            return None
        if answer.acts and judgement.step is not None:
            return None  # not carried out in this cycle: it is used up by publishing its intent, not before
        if answer.refusal:
            self._report.add_event(tracked, EventKind.FORCE_PUSH_REFUSED, answer.refusal)
        return answer.request.id

    def _hold_families(self, concluded: dict[str, Judgement]) -> dict[str, Judgement]:
        """Let nobody end before its dependents have, nor what is left before what it depends on is left too.

        A judgement foresees that others end; only here is it certain who really does, in this very report (O10, O18).
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
        """What links made is taken back before the component is done with, also where its resource is gone (L10)."""
        if not judgement.finished or not self._links.holds_deletion(tracked, judgement):
            return judgement
        return _not_finished(judgement)

    # --- the end

    def _result(self, judgements: dict[str, Judgement], changes: int) -> CycleResult:
        held, settings = self._held, self._context.settings
        judgements = {uid: judgement for uid, judgement in judgements.items() if uid in held.work.tracked}
        living = judgements.values()
        in_progress = any(j.in_progress and not self._is_held_back(uid, j) for uid, j in judgements.items())
        noticing = any(judgement.noticing or is_timed(judgement.setbacks) for judgement in living)
        unread = not self._evaluator.snapshot.is_complete or any(v.error for v in self._evaluator.traces.values())
        failing = self._errors.exist or any(judgement.rule == "S24" for judgement in living)
        links = self._links
        settled = not (in_progress or noticing or unread or failing or links.is_unfinished)
        held.work.is_quiet = settled and not changes and not self._writes and not links.writes
        if not (unread or failing or self._writes):
            held.work.recheck = self._to_recheck(judgements)
        if settled and not changes:
            held.backoff.requeue_attempts = 0
            return CycleResult(settings.cycle_seconds, self._writes, changes)
        if changes:
            held.backoff.requeue_attempts = 0
        held.backoff.requeue_attempts += 1
        hurry = in_progress or unread or links.is_unfinished or bool(self._effects + links.moves)
        again_in = unsettled(settings.cycle).delay(held.backoff.requeue_attempts) if hurry else settings.cycle
        next_try = self._errors.next_try(self._evaluator.now)
        if next_try is not None:
            again_in = min(again_in, next_try - self._evaluator.now)
        return CycleResult(again_in.total_seconds(), self._writes, changes, settled)

    def _is_held_back(self, uid: str, judgement: Judgement) -> bool:
        """Whether all that is left to do for a component is a write whose next try is not due yet."""
        step = judgement.step
        return step is not None and self._errors.is_held_back(self._work.tracked[uid], step.verb, self._evaluator.now)

    def _to_recheck(self, judgements: dict[str, Judgement]) -> frozenset[str] | None:
        """Who is judged again with any change: who was not at rest now. Who was not judged now was at rest already."""
        held, view, tracked = self._held, self._evaluator.view, self._work.tracked
        living = [(tracked[uid], judgement) for uid, judgement in judgements.items() if uid in tracked]
        found = {t.uid for t, j in living if t.uid in self._changed or needs_recheck(held, t, view(t), j)}
        return frozenset(found) if can_judge_separately(held) else None


def _not_finished(judgement: Judgement) -> Judgement:
    """A deletion that would have ended, and has to wait."""
    return replace(judgement, status=Status.DELETING, finished=False, carried_out=False, in_progress=True)


def _has_effect(before: Sighting | None, after: Sighting, besides: Collection[str] = ()) -> bool:
    """Whether a read shows that a call changed anything: a value that both reads report, or the cloud being at work.

    ``besides``: values that do not count, because they were meant to change.
    """
    if before is None or before.condition is not after.condition:
        return True
    common = [name for name in before.actual if name in after.actual and name not in besides]
    return any(after.actual[name] != before.actual[name] for name in common)


def _parts(wave: list[Tracked], judgements: dict[str, Judgement], concurrency: int) -> Iterator[list[Tracked]]:
    """A wave, or, where all of it is created, its parts: two calls for every thread first, then ever more.

    Only creations: nothing is read or judged for them right before the call, while this thread goes on with the rest.
    """
    are_creations = all(_verb(judgements[tracked.uid]) is Verb.CREATE for tracked in wave)
    begin, size = 0, 2 * concurrency if are_creations else len(wave)
    while begin < len(wave):
        yield wave[begin : begin + size]
        begin, size = begin + size, 4 * size


def _signature(step: Step) -> str:
    """A step with what it found: taken twice in one cycle it would change nothing the second time either."""
    return f"{step.verb}:{sorted((name, str(d.actual)) for name, d in step.drift.items())}"


def _with_tagging(memory: Observed) -> Observed:
    """That tags are about to be put on is remembered first: what is without them later on was let go (S17)."""
    intent = memory.intent
    if intent is None or intent.tagging != "owed":
        return memory
    return replace(memory, intent=intent.model_copy(update={"tagging": "begun"}))


def _verb(judgement: Judgement) -> Verb | None:
    return judgement.step.verb if judgement.step is not None else None
