"""From one component and one read of the cloud to the next single write, and to what is to be published. Pure.

The same function serves the cycle, the guard right before a write, and the plan: only what happens with the step it
returns differs. The table itself is in ``decide``; here its verbs become steps of one writing call each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from fractal_cloud.model.observed import Setback
from fractal_cloud.model.reference import OutputReference
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.situation import Action, Decision, Fate, Presence
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tag_rules import tag_path
from fractal_cloud.model.tags import NO_TAGS, OURS, ProtocolTags, stamp
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import OperatorRequest
from fractal_cloud.rules import setbacks, words
from fractal_cloud.rules.decide import decide, decide_deletion
from fractal_cloud.rules.drift import (
    ComparedType,
    Drift,
    correctable,
    find_drift,
    find_tag_drift,
    immutable,
    in_turn,
    left_tags,
)
from fractal_cloud.rules.nested.path import is_known
from fractal_cloud.rules.requests import Answer, answer_request
from fractal_cloud.rules.situate import Claims, TypeTraits, View, is_bound_to, situate


class Verb(StrEnum):
    """One writing call to the cloud."""

    CREATE = "create"
    UPDATE = "update"
    STAMP = "stamp"
    FINISH = "finish"
    PUSH = "push"
    UNTAG = "untag"
    DELETE = "delete"
    TAG = "tag"
    TRANSFER = "transfer"


_GRAVE = frozenset({Status.FAILED, Status.MISSING})
_NEEDS_SECRETS = frozenset({Verb.CREATE, Verb.UPDATE, Verb.FINISH})
"""The calls that write what is declared, or say that all of it is written."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next write for one component, and why (the word that goes into the journal and the user agent)."""

    verb: Verb
    reason: str
    drift: Drift = field(default_factory=dict)
    add: ProtocolTags = NO_TAGS
    remove: ProtocolTags = NO_TAGS
    request: OperatorRequest | None = None


@dataclass(frozen=True, slots=True)
class Lacking:
    """Why a component cannot be written: a secret of it has no value (A8), or what was filled in does not fit its type.

    ``is_passing``: the store of the secret is asked again.
    """

    message: str
    is_passing: bool = False


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Everything a judgement depends on beside the component and what the cloud showed.

    ``declared``: the declared parameters, references resolved; those that cannot be resolved yet are left out.
    ``waits_for``: dependencies that must come first; ``renamed``: those of them that bear another name in the cloud,
    by their ids. ``dependents``: components of the same LiveSystem that need this one and are not finished; ``hosted``:
    those of them that live in it, in a scope of its own; ``left_dependents``: those that stay in the cloud although
    they are deleted here.
    ``orphan``: a resource of this LiveSystem that no component names any more (S15). ``rival``: another LiveSystem
    that is creating the same resource in this very cycle (O2). ``window_over``: an open create intent shows no more.
    ``is_own_creation``: whether what was seen is what the component's open creation made; None while that is not known.
    ``limits``: when a value that somebody sets back is given up (S27). ``lacking``: a secret of it has no value (A8),
    or what was filled in does not fit. ``unfilled``: outputs of others that it refers to and that are not there yet;
    ``unfound``: why lookups have no answer yet; ``news``: what they would find by now (C12).
    ``parent``: the component that it is in. ``parts``: those of the ``dependents`` that are parts of this one, and go
    with it (S25).
    """

    compared: ComparedType
    traits: TypeTraits
    claims: Claims
    now: datetime
    cycle: timedelta
    declared: Mapping[str, Any] = field(default_factory=dict)
    waits_for: tuple[str, ...] = ()
    renamed: Mapping[str, Sighting] = field(default_factory=dict)
    dependents: tuple[str, ...] = ()
    hosted: tuple[str, ...] = ()
    left_dependents: tuple[str, ...] = ()
    orphan: Sighting | None = None
    rival: str | None = None
    window_over: bool = True
    is_own_creation: bool | None = False
    limits: setbacks.Limits = field(default_factory=setbacks.Limits)
    lacking: Lacking | None = None
    parent: str = ""
    parts: tuple[str, ...] = ()
    unfilled: tuple[OutputReference, ...] = ()
    unfound: tuple[str, ...] = ()
    news: tuple[str, ...] = ()

    @property
    def is_filled(self) -> bool:
        """Whether everything that it refers to is there."""
        return not (self.unfilled or self.unfound)

    @property
    def needed(self) -> tuple[str, ...]:
        """The components that it waits for."""
        return tuple(dict.fromkeys([*self.waits_for, *(one.component for one in self.unfilled)]))

    @property
    def waiting(self) -> str:
        """What it waits for, in words; empty where there is nothing."""
        return words.waits_for(self.waits_for, self.unfilled, self.unfound)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What follows for one component: the status to show, the stance to take, and at most one step.

    ``status`` None: it stays. ``in_progress``: read again soon. ``carried_out``: nothing is left to do for this
    generation (S22). ``noticing``: what would change is being shown first (S12a). ``finished``: a deletion has ended;
    ``left``: its resource stays in the cloud; ``is_needed``: it is let go, and something that was left depends on it.
    ``answer``: what becomes of the operator's request. ``stuck``: nothing goes on until a person acts (C8).
    ``setbacks``: the values of ours that are followed because somebody may set them back (S27). ``tags``: what the
    declared tags of the user's own are in the cloud.
    ``fate``: how its deletion goes on; ``waits_for_cloud``: that waits for what the cloud is doing.
    """

    rule: str
    status: Status | None
    stance: Stance
    message: str
    drift: Drift = field(default_factory=dict)
    step: Step | None = None
    waits_for: tuple[str, ...] = ()
    in_progress: bool = False
    carried_out: bool = False
    noticing: bool = False
    finished: bool = False
    left: bool = False
    is_needed: bool = False
    answer: Answer | None = None
    stuck: bool = False
    setbacks: tuple[Setback, ...] = ()
    fate: Fate | None = field(default=None, compare=False)
    waits_for_cloud: bool = field(default=False, compare=False)
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def leaves_what_it_needs(self) -> bool:
        """Whether what it depends on is left too, directly or through what is only let go (O10)."""
        return self.left or self.is_needed


def judge(tracked: Tracked, view: View, context: Circumstances) -> Judgement:
    """Decide about one component (S, O10, G10, G13) and name the next write, if any is allowed."""
    judgement = _judge(tracked, view, context)
    if tracked.tags and view.sighting is not None and context.compared.taggable:
        judgement = replace(judgement, tags=context.compared.tag_rules.actual(view.sighting.tags, tracked.tags))
    if tracked.deleting or tracked.in_recovery or view.error is not None:
        return judgement
    if context.lacking is not None:
        return _without_secrets(tracked, judgement, context.lacking)
    if not context.is_filled and view.sighting is not None:
        judgement = _unfilled(tracked, judgement, context)
    return replace(judgement, message="; ".join([judgement.message, *context.news])) if context.news else judgement


def _unfilled(tracked: Tracked, judgement: Judgement, context: Circumstances) -> Judgement:
    """What follows for what is there while something that it refers to is not: the rest of it is reconciled.

    A handshake is not over before all of it is written; hands that are off have nothing to wait for.
    """
    message = f"{judgement.message}; {context.waiting}"
    is_readopted = judgement.rule in ("S9", "S11a") and judgement.carried_out
    is_finished = judgement.step is not None and judgement.step.verb is Verb.FINISH
    if judgement.stance.is_read_only and not is_readopted:
        return replace(judgement, message=message)
    return replace(
        judgement,
        step=None if is_finished else judgement.step,
        status=_working(tracked) if judgement.status is Status.ACTIVE else judgement.status,
        stance=tracked.memory.stance if is_readopted or is_finished else judgement.stance,
        message=message,
        waits_for=context.needed,
        in_progress=True,
        carried_out=False,
    )


def _working(tracked: Tracked) -> Status:
    """The status of what is being brought to its declaration."""
    return Status.INSTANTIATING if tracked.memory.observed_generation == 0 else Status.MUTATING


def _without_secrets(tracked: Tracked, judgement: Judgement, lacking: Lacking) -> Judgement:
    """What follows where a secret has no value: nothing is written that could be half of what is declared (A8).

    Hands that are off stay off, and tags are written as ever: only what the declaration would change waits.
    """
    is_blocked = judgement.step is not None and judgement.step.verb in _NEEDS_SECRETS
    if judgement.step is not None and not is_blocked:
        return judgement
    is_readopted = judgement.rule in ("S9", "S11a") and judgement.carried_out
    if not is_blocked and not is_readopted and (judgement.stance.is_read_only or judgement.status in _GRAVE):
        return replace(judgement, message=f"{judgement.message}; {lacking.message}")
    return replace(
        judgement,
        step=None,
        status=_status_without(tracked, lacking),
        stance=tracked.memory.stance if is_blocked or is_readopted else judgement.stance,
        message=lacking.message,
        in_progress=judgement.in_progress and (lacking.is_passing or not is_blocked),
        carried_out=False,
    )


def _status_without(tracked: Tracked, lacking: Lacking) -> Status | None:
    """The status of what waits for a secret: it stays while the store may answer yet, and for hands that are off."""
    is_handed_back = tracked.memory.stance is Stance.OVERRIDE
    return None if lacking.is_passing or is_handed_back else Status.FAILED


def _judge(tracked: Tracked, view: View, context: Circumstances) -> Judgement:
    if tracked.in_recovery:
        return _in_recovery(tracked, view, context)
    if context.is_own_creation is None:
        return _hidden(tracked, _sighted(view))
    drift = _drift(tracked, view, context)
    situation = situate(
        tracked,
        view,
        context.claims,
        context.traits,
        drifted=bool(correctable(context.compared, drift)),
        now=context.now,
        cycle=context.cycle,
    )
    situation = replace(situation, owes_tags=context.is_own_creation and _is_tagging_owed(tracked))
    declarers = context.claims.declarers
    answer = answer_request(tracked, view, context.traits, now=context.now, cycle=context.cycle, declarers=declarers)
    if answer is not None and answer.acts:
        return _act_on_request(tracked, view, context, answer, drift)
    if tracked.deleting:
        if view.presence is Presence.ABSENT:  # what an intent of a backup made may still show (C9, S17)
            situation = replace(situation, intent_open=tracked.memory.intent is not None)
        is_bound = view.sighting is None or is_bound_to(tracked, view.sighting)
        rule, fate = decide_deletion(situation, trace=view.trace, window_over=context.window_over, is_bound=is_bound)
        return _deletion(tracked, view, context, rule, fate, answer)
    decision = decide(situation)
    match decision.action:
        case Action.NOTICE if view.sighting is None:
            return _noticed_creation(tracked, context, decision, answer)
        case Action.CREATE:
            return _creation(tracked, view, context, decision, answer)
        case Action.TAG:
            return _tagging(tracked, decision, answer)
        case Action.READOPT:
            return _readoption(tracked, _sighted(view), context, decision, drift, answer)
        case Action.RECONCILE | Action.NOTICE:
            return _reconciliation(tracked, _sighted(view), context, decision, drift, answer)
        case _:
            return _standstill(tracked, view, context, decision, drift, answer)


def _in_recovery(tracked: Tracked, view: View, context: Circumstances) -> Judgement:
    """What a restored backup says of a component is no truth: it is read, and nothing else follows (C9)."""
    memory, drift = tracked.memory, _drift(tracked, view, context)
    message = words.in_recovery(tracked.live_system_id, view.error)
    return Judgement("C9", None, memory.stance, message, drift, waits_for=memory.waits_for, stuck=True)


def _is_tagging_owed(tracked: Tracked) -> bool:
    intent = tracked.memory.intent
    return intent is not None and intent.tagging == "owed"


def _hidden(tracked: Tracked, sighting: Sighting) -> Judgement:
    """Nothing is decided about what may be the component's own creation until its id and its tags show (S17, S13)."""
    status = None if tracked.memory.stance in (Stance.OVERRIDE, Stance.IMPORTED) else Status.INSTANTIATING
    status = Status.DELETING if tracked.deleting else status
    return Judgement("S17", status, tracked.memory.stance, words.at_work(sighting), in_progress=True)


def _tagging(tracked: Tracked, decision: Decision, answer: Answer | None) -> Judgement:
    """The second half of a creation whose call could not carry tags."""
    step = Step(Verb.TAG, "tagging", add=stamp(tracked.live_system_id, tracked.tags))
    return Judgement(
        decision.rule, decision.status, decision.stance, words.tagging(), step=step, in_progress=True, answer=answer
    )


def _sighted(view: View) -> Sighting:
    if view.sighting is None:
        raise AssertionError("only what is present is reconciled")
    return view.sighting


def _drift(tracked: Tracked, view: View, context: Circumstances) -> Drift:
    if view.sighting is None:
        return {}
    compared, sighting = context.compared, view.sighting
    of_tags = find_tag_drift(compared, tracked.tags, sighting.tags, tracked.ignored)
    return find_drift(compared, context.declared, sighting.actual, tracked.ignored, sighting.ours) | of_tags


def _act_on_request(tracked: Tracked, view: View, context: Circumstances, answer: Answer, drift: Drift) -> Judgement:
    request = answer.request
    if answer.by_memory:
        return _act_by_memory(tracked, view, context, answer, drift)
    if answer.breaks_glass:
        return Judgement(
            "G13",
            Status.MANUAL_OVERRIDE,
            Stance.OVERRIDE,
            words.breaking_glass(request),
            drift,
            Step(Verb.UNTAG, "glass", remove=ProtocolTags(managed_by=OURS), request=request),
            in_progress=True,
            answer=answer,
        )
    if answer.moves_owner:
        step = Step(Verb.TRANSFER, "transfer", add=ProtocolTags(owner=request.to), request=request)
        message = words.transferring(request)
        return Judgement("O8", None, tracked.memory.stance, message, drift, step, in_progress=True, answer=answer)
    tags = _sighted(view).protocol
    add = ProtocolTags(
        managed_by=None if tags.is_managed else OURS,
        reconcile=not tags.reconcile,
        owner=None if tags.owner is not None else tracked.live_system_id,
    )
    return Judgement(
        "G10",
        Status.RECONCILE_REQUESTED,
        tracked.memory.stance,
        words.force_pushed(request),
        drift,
        Step(Verb.PUSH, "force-push", add=add, request=request) if add != NO_TAGS else None,
        in_progress=True,
        answer=answer,
    )


def _act_by_memory(tracked: Tracked, view: View, context: Circumstances, answer: Answer, drift: Drift) -> Judgement:
    """Where tags are frozen, publishing an operator's request is all there is to it: no tag can say it (G10, G13)."""
    if answer.breaks_glass:
        return Judgement(
            "G13",
            Status.MANUAL_OVERRIDE,
            Stance.OVERRIDE,
            words.explain("S11", tracked, view, context.claims, frozen=True),
            drift,
            in_progress=tracked.deleting,
            carried_out=not tracked.deleting,
            answer=answer,
        )
    return Judgement(
        "G10",
        Status.RECONCILE_REQUESTED,
        Stance.OVERRIDE,
        words.force_pushed(answer.request),
        drift,
        in_progress=True,
        answer=answer,
    )


def _creation(
    tracked: Tracked, view: View, context: Circumstances, decision: Decision, answer: Answer | None
) -> Judgement:
    memory = tracked.memory
    if view.elsewhere is not None:
        message = words.renamed(tracked, view.elsewhere)
        return Judgement("S19", Status.FAILED, memory.stance, message, carried_out=True, answer=answer)
    if context.orphan is not None:
        message = words.orphaned(tracked, context.orphan, frozen=context.traits.tags_frozen)
        return Judgement("S15", Status.FAILED, memory.stance, message, carried_out=True, answer=answer)
    waiting = _why_creation_waits(tracked, context)
    if waiting:
        return Judgement(
            decision.rule,
            Status.INSTANTIATING,
            memory.stance,
            waiting,
            waits_for=context.needed,
            in_progress=True,
            answer=answer,
            stuck=bool(context.renamed),
        )
    tags = stamp(tracked.live_system_id, tracked.tags) if context.traits.taggable else NO_TAGS
    step = Step(Verb.CREATE, "create", add=tags)
    message = words.creating(tracked)
    return Judgement(
        decision.rule, decision.status, decision.stance, message, step=step, in_progress=True, answer=answer
    )


def _noticed_creation(tracked: Tracked, context: Circumstances, decision: Decision, answer: Answer | None) -> Judgement:
    """A part whose parent was just handed back or taken over: that it would be created is shown first (S12a, S25)."""
    message = words.creation_noticed(tracked, context.cycle)
    return Judgement(
        decision.rule, decision.status, decision.stance, message, noticing=True, in_progress=True, answer=answer
    )


def _why_creation_waits(tracked: Tracked, context: Circumstances) -> str:
    if context.renamed:
        return words.waits_for_renamed(context.renamed)
    if context.waiting:
        return context.waiting
    if context.rival is not None:
        return words.rival(context.rival)
    if tracked.memory.intent is not None and not context.window_over:
        return words.window(tracked)
    return ""


def _readoption(
    tracked: Tracked,
    sighting: Sighting,
    context: Circumstances,
    decision: Decision,
    drift: Drift,
    answer: Answer | None,
) -> Judgement:
    """Re-adopt what was handed back (S11a): it stays in override until nothing differs, and its tag comes off last."""
    before = tracked.memory.stance
    pending = Judgement(
        decision.rule,
        decision.status,
        Stance.OVERRIDE if before in (Stance.NONE, Stance.IMPORTED) else before,
        words.reading_on(),
        drift,
        in_progress=True,
        answer=answer,
        setbacks=_followed(tracked, sighting, context, drift, in_handshake=True),
    )
    unfinished = _unfinished_readoption(tracked, sighting, context, pending)
    if unfinished is not None:
        return unfinished
    readopted = replace(pending, stance=Stance.MANAGED)
    if sighting.protocol.reconcile and not context.traits.tags_frozen:
        step = Step(Verb.FINISH, "handshake", remove=ProtocolTags(reconcile=True))
        return replace(readopted, message=words.readopted(), step=step)
    message = _in_step(context, drift, in_handshake=True)
    return replace(readopted, status=Status.ACTIVE, message=message, in_progress=False, carried_out=True)


def _in_step(context: Circumstances, drift: Drift, *, in_handshake: bool = False) -> str:
    """That everything is as declared, or what of the tags is not and stays so (T10)."""
    left = left_tags(context.compared, drift, in_handshake=in_handshake)
    return words.left_tags(left) if left else words.in_step()


def _unfinished_readoption(
    tracked: Tracked, sighting: Sighting, context: Circumstances, pending: Judgement
) -> Judgement | None:
    """What is done or waited for next before a component is re-adopted; None once nothing differs any more."""
    drift, known = pending.drift, pending.setbacks
    if sighting.protocol.owner is None:
        step = Step(Verb.STAMP, "handshake", add=ProtocolTags(owner=tracked.live_system_id))
        return replace(pending, step=step, message=words.reconciling(drift))
    if not sighting.accepts_changes:
        return replace(pending, message=words.at_work(sighting))
    changes = correctable(context.compared, drift, in_handshake=True)
    writable = in_turn(context.compared, setbacks.to_write(known, changes))
    if writable:
        step = Step(Verb.UPDATE, "handshake", drift=writable)
        return replace(pending, step=step, message=words.reconciling(changes))
    if setbacks.is_waiting(known, changes):
        return replace(pending, message=words.not_visible(changes))
    if changes:
        message = words.set_back(setbacks.given_up(known))
        return replace(pending, status=Status.FAILED, message=message, in_progress=False)
    fixed = immutable(context.compared, drift)
    if fixed or tracked.identity != tracked.declared_identity:
        return replace(pending, status=Status.FAILED, message=words.cannot_change(tracked, fixed))
    return None if _is_read_whole(tracked, sighting, context) else pending


def _followed(
    tracked: Tracked, sighting: Sighting, context: Circumstances, drift: Drift, *, in_handshake: bool = False
) -> tuple[Setback, ...]:
    """The values of ours that are followed, after this read (S27); what links set is nobody's declaration."""
    known = tracked.memory.setbacks
    if not known:
        return known
    changes = correctable(context.compared, drift, in_handshake=in_handshake)
    declared = {n: d for n, d in changes.items() if not context.compared.is_linked(n)}
    read = {*map(tag_path, tracked.tags), *(one.parameter for one in known if is_known(sighting.actual, one.parameter))}
    reading = setbacks.Reading(declared, read, sighting.accepts_changes, in_handshake)
    return setbacks.after_reading(known, reading, context.now, context.limits)


def _is_read_whole(tracked: Tracked, sighting: Sighting, context: Circumstances) -> bool:
    needed = context.compared.swept - tracked.ignored
    return all(name in sighting.actual for name in tracked.parameters if name in needed)


def _reconciliation(
    tracked: Tracked,
    sighting: Sighting,
    context: Circumstances,
    decision: Decision,
    drift: Drift,
    answer: Answer | None,
) -> Judgement:
    changes = correctable(context.compared, drift)
    frozen = context.traits.tags_frozen
    if decision.action is Action.NOTICE:
        shown = words.noticed(tracked, changes, context.cycle, frozen=frozen)
        message = shown if changes else _in_step(context, drift)
        status, message = _with_failures(tracked, sighting, context, drift, decision.status, message)
        return Judgement(
            decision.rule,
            status,
            decision.stance,
            message,
            drift,
            noticing=True,
            in_progress=bool(changes),
            carried_out=not changes,
            answer=answer,
            setbacks=tracked.memory.setbacks,
        )
    reason = "deploy" if tracked.memory.observed_generation < tracked.generation else "drift"
    if changes and all(map(context.compared.is_linked, changes)):
        reason = "link"  # nobody changed anything: a link brought it, or took it away (C7)
    known = _followed(tracked, sighting, context, drift)
    writable = in_turn(context.compared, setbacks.to_write(known, changes))
    is_open, is_waiting = sighting.accepts_changes, setbacks.is_waiting(known, changes)
    step = Step(Verb.UPDATE, reason, drift=writable) if is_open and writable else None
    message = words.not_visible(changes) if is_waiting and not writable else words.reconciling(changes)
    message = message if is_open else words.at_work(sighting)
    status, message = _with_failures(tracked, sighting, context, drift, _working(tracked), message, known)
    return Judgement(
        decision.rule,
        status,
        decision.stance,
        message,
        drift,
        step,
        in_progress=step is not None or is_waiting or not is_open,
        answer=answer,
        setbacks=known,
    )


def _standstill(
    tracked: Tracked, view: View, context: Circumstances, decision: Decision, drift: Drift, answer: Answer | None
) -> Judgement:
    if decision.rule == "S0":
        assert view.error is not None
        return Judgement(
            "S0",
            None,
            decision.stance,
            words.unreadable(view.error),
            waits_for=context.waits_for,
            answer=answer,
            stuck=view.error.needs_person,
        )
    if decision.rule == "S25":
        return _held_part(tracked, view, context, decision, drift, answer)
    message = words.explain(decision.rule, tracked, view, context.claims, frozen=context.traits.tags_frozen)
    status = decision.status
    in_progress = False
    if view.elsewhere is not None:
        message = words.renamed(tracked, view.elsewhere)
        status = Status.FAILED if decision.rule == "S4a" else status  # not lost, as S19 of what holds no data
    known: tuple[Setback, ...] = ()
    if decision.rule == "S12":
        sighting = _sighted(view)
        known = _followed(tracked, sighting, context, drift)
        if left_tags(context.compared, drift):
            message = _in_step(context, drift)
        status, message = _with_failures(tracked, sighting, context, drift, Status.ACTIVE, message, known)
        in_progress = sighting.condition in (Condition.CREATING, Condition.CHANGING, Condition.DYING)
    return Judgement(
        decision.rule,
        status,
        decision.stance,
        message,
        drift,
        in_progress=in_progress,
        carried_out=not in_progress and decision.rule != "S14",
        answer=answer,
        stuck=decision.rule in ("S2", "S14") or tracked.identity != tracked.declared_identity,
        setbacks=known,
    )


def _held_part(
    tracked: Tracked, view: View, context: Circumstances, decision: Decision, drift: Drift, answer: Answer | None
) -> Judgement:
    """A part that its parent does not let the agent write to: it is read, and the message names the parent (S25)."""
    is_decided = decision.status is not None
    return Judgement(
        decision.rule,
        decision.status,
        decision.stance,
        words.held_part(context.claims.hold, context.parent, view, context.claims),
        drift,
        waits_for=() if is_decided else (context.parent,),
        in_progress=not is_decided,
        carried_out=is_decided,
        answer=answer,
        stuck=tracked.identity != tracked.declared_identity,
    )


def _with_failures(
    tracked: Tracked,
    sighting: Sighting,
    context: Circumstances,
    drift: Drift,
    status: Status | None,
    message: str,
    known: tuple[Setback, ...] = (),
) -> tuple[Status | None, str]:
    """The status of what is ours, with the cloud's own condition and what cannot be changed, or is always set back,
    counted in (S13, S18, S27).
    """
    fixed = immutable(context.compared, drift)
    failures = []
    if fixed or tracked.identity != tracked.declared_identity:
        failures.append(words.cannot_change(tracked, fixed))
    if lost := setbacks.given_up(known):
        failures.append(words.set_back(lost))
    if failures:
        return Status.FAILED, "; ".join(failures)
    match sighting.condition:
        case Condition.BROKEN:
            return Status.FAILED, words.broken(sighting)
        case Condition.CREATING:
            return Status.INSTANTIATING, words.at_work(sighting)
        case Condition.CHANGING | Condition.DYING:
            return Status.MUTATING, words.at_work(sighting)
        case Condition.SETTLED:
            return status, message


def _deletion(
    tracked: Tracked, view: View, context: Circumstances, rule: str, fate: Fate, answer: Answer | None
) -> Judgement:
    stance = tracked.memory.stance
    # Shown once, it stays shown until it is gone: the guard asks again after the deletion was published (S12a).
    noticing = fate is Fate.NOTICE or (fate is Fate.DELETE and tracked.memory.noticed_since is not None)
    is_left_for_others = fate in (Fate.NOTICE, Fate.DELETE) and bool(context.left_dependents)
    fate = Fate.LEAVE if is_left_for_others else fate

    def ended(message: str, *, left: bool = False) -> Judgement:
        return Judgement(
            rule,
            Status.DELETED,
            stance,
            message,
            carried_out=True,
            finished=True,
            left=left,
            is_needed=bool(context.left_dependents) and not left,
            answer=answer,
            fate=fate,
        )

    def waiting(message: str, step: Step | None = None, waits_for: tuple[str, ...] = ()) -> Judgement:
        return Judgement(
            rule,
            None if view.presence is Presence.UNREADABLE else Status.DELETING,
            stance,
            message,
            step=step,
            waits_for=waits_for,
            in_progress=True,
            noticing=noticing,
            answer=answer,
            stuck=view.error is not None and view.error.needs_person,
            fate=fate,
        )

    if fate is Fate.WAIT:
        above = (context.parent,) if rule == "S25" else ()
        return waiting(_why_deletion_waits(tracked, view, context, rule), waits_for=above)
    kept_for = _kept_for(context, fate)
    if kept_for:
        return waiting(words.deletion_waits(kept_for), waits_for=kept_for)
    match fate:
        case Fate.GONE:
            return ended(words.gone(tracked))
        case Fate.DROP:
            traits = context.traits
            message = words.dropped(tracked, view, frozen=traits.tags_frozen, taggable=traits.taggable)
            return ended(message, left=_stays_remembered(tracked, view))
        case Fate.LEAVE if is_left_for_others:
            return ended(words.left_for(_sighted(view), context.left_dependents), left=True)
        case Fate.LEAVE:
            return ended(_why_left(tracked, view, context, rule), left=True)
        case Fate.NOTICE:
            return waiting(words.deletion_noticed(tracked, context.cycle, frozen=context.traits.tags_frozen))
        case _ if _is_busy(_sighted(view)):
            return replace(waiting(words.at_work(_sighted(view))), waits_for_cloud=True)
        case _:
            return waiting(words.deleting(), Step(Verb.DELETE, "delete"))


def _kept_for(context: Circumstances, fate: Fate) -> tuple[str, ...]:
    """Who has to end first, whatever becomes of it: a child never loses its parent before its own end (O18).

    What lives in it cannot be read once it is gone: that it is gone is the proof of their end, too (O17).
    """
    if fate in (Fate.DELETE, Fate.NOTICE):
        return tuple(name for name in context.dependents if name not in context.parts)
    if fate is not Fate.GONE:
        return context.dependents
    return tuple(name for name in context.dependents if name not in context.hosted)


def _why_left(tracked: Tracked, view: View, context: Circumstances, rule: str) -> str:
    if rule == "S1b":
        return words.left_created_once(_sighted(view))
    if rule == "S25":
        return words.left_part(_sighted(view), context.claims.hold, context.parent)
    return words.left(tracked, view, is_bound=rule != "O19")


def _why_deletion_waits(tracked: Tracked, view: View, context: Circumstances, rule: str) -> str:
    if view.error is not None:
        return words.deletion_unreadable(tracked, view.error)
    if rule == "S25":
        return words.goes_with_parent(context.parent)
    return words.window(tracked) if rule == "S17" else words.unproven(tracked)


def _stays_remembered(tracked: Tracked, view: View) -> bool:
    """Whether a resource whose reference is dropped stays known as left: in override without an owner, or one of
    several of a name that this LiveSystem owns.
    """
    if view.fitting:
        return any(sighting.protocol.owner == tracked.live_system_id for sighting in view.fitting)
    unowned = view.sighting is not None and view.sighting.protocol.owner is None
    return unowned and tracked.memory.stance is Stance.OVERRIDE


def _is_busy(sighting: Sighting) -> bool:
    """Whether a deletion has to wait for what the cloud is doing; what is broken can be deleted."""
    return sighting.condition is not Condition.BROKEN and not sighting.accepts_changes
