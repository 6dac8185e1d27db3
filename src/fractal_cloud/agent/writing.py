"""Carrying out one step: guard, one writing call, and a read of what came of it.

The guard reads the resource again and judges again; only if the very same verb is still allowed does the call go out,
with the provider's precondition where there is one (S16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import structlog

from fractal_cloud.agent.accepted import is_pending
from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.component import Component
from fractal_cloud.model.errors import (
    CloudError,
    DeclarationError,
    DependencyMissing,
    GivenUp,
    Invalid,
    NotFound,
    Transient,
    Unexpected,
    Unreadable,
)
from fractal_cloud.model.reference import references
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.situation import Hold
from fractal_cloud.model.tag_rules import tag_key
from fractal_cloud.model.tags import NO_TAGS, stamp
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.call_context import CallContext
from fractal_cloud.offers.offer import AnyOffer, Offer, Wanted
from fractal_cloud.offers.refusals import describe_unexpected, missing_elsewhere
from fractal_cloud.rules import words
from fractal_cloud.rules.judge import Step, Verb
from fractal_cloud.rules.situate import ABSENT, View, found_elsewhere

log = structlog.get_logger()

# What an offer calls the call that a verb is made by.
_CALLS: Final[Mapping[Verb, str]] = {
    Verb.CREATE: "create",
    Verb.UPDATE: "update",
    Verb.DELETE: "delete",
    Verb.STAMP: "tag",
    Verb.PUSH: "tag",
    Verb.FINISH: "tag",
    Verb.UNTAG: "tag",
    Verb.TAG: "tag",
    Verb.TRANSFER: "tag",
}


@dataclass(slots=True)
class Planned:
    """A step that is about to be taken, with the journal entry that was published for it."""

    tracked: Tracked
    step: Step
    entry_id: str
    sighting: Sighting | None


@dataclass(slots=True)
class Outcome:
    """What came of one step. ``view``: what the last read of the resource showed; None if it was not read.

    ``fresh``: the same with nothing hidden, for the cloud and for nobody else (A8).

    ``is_pending``: the cloud took it, and is at work on it still.

    ``written``: the call went out. ``is_done``: the cloud took it, whatever became of the read afterwards.
    """

    planned: Planned
    view: View | None = None
    fresh: Sighting | None = field(default=None, repr=False)
    created: Sighting | None = None
    error: CloudError | None = None
    abandoned: bool = False
    race_lost: bool = False
    written: bool = False
    is_done: bool = False
    is_pending: bool = False
    request_ids: list[str] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def is_given_up(self) -> bool:
        """Whether the call did not return in time: it counts as sent, and may take effect at any moment (S24)."""
        return isinstance(self.error, GivenUp)

    @property
    def had_no_effect(self) -> bool:
        """Whether certainly nothing was written: it was not sent, or the cloud refused it."""
        is_refused = self.error is not None and not isinstance(self.error, Transient)
        return not self.written or (is_refused and not self.is_done)


class Writer:
    """Carries out steps in one scope. ``may_write`` is asked right before every call: a lost lease ends all writing.

    ``is_unopposed`` asks the control plane, right before a call, where tags are frozen and say nothing new.
    """

    def __init__(
        self,
        held: HeldScope,
        evaluator: Evaluator,
        facts: OfferFacts,
        may_write: Callable[[], bool],
        is_unopposed: Callable[[Planned], bool],
    ) -> None:
        self._is_unopposed = is_unopposed
        self._held = held
        self._evaluator = evaluator
        self._facts = facts
        self._offer = facts.offer
        self._may_write = may_write
        self._parent: View | None = None

    def carry_out(self, planned: Planned) -> Outcome:
        """One step, guarded. Whatever goes wrong is part of the outcome: it is this component's alone (S24)."""
        tracked, step = planned.tracked, planned.step
        outcome = Outcome(planned)
        if tracked.in_recovery:  # judged so before: whatever led here all the same, nothing is written (C9)
            outcome.abandoned = True
            return outcome
        named = {**step.add.declared, **declared_tags(step)}
        context = CallContext(tracked.live_system_id, tracked.component_id, step.reason, tags=named)
        with self._held.cloud.calling_as(context) as act:
            try:
                if step.verb is Verb.CREATE:
                    self._create(planned, outcome)
                else:
                    self._change(planned, outcome)
            except CloudError as error:
                outcome.error = error
            except Exception as error:
                log.exception("write failed", live_system=tracked.live_system_id, id=tracked.component_id)
                outcome.error = Unexpected(describe_unexpected(error), code=type(error).__name__)
            if outcome.error is not None and step.verb is not Verb.CREATE:
                self._read_after_error(planned, outcome)
            if isinstance(outcome.error, NotFound) and _is_elsewhere(step.verb, outcome):
                outcome.error = missing_elsewhere(outcome.error)
        outcome.request_ids = list(act.request_ids)
        return outcome

    def _create(self, planned: Planned, outcome: Outcome) -> None:
        tracked = planned.tracked
        intent = tracked.memory.intent
        token = intent.id if intent is not None else planned.entry_id
        if not self._make_secrets(tracked, is_there=False):
            outcome.abandoned = True
            return
        made = wanted(self._evaluator, self._offer, tracked, token)
        if not self._may_still_create(tracked, outcome) or not self._may_write():
            outcome.abandoned = True
            return
        outcome.written = True
        tags = stamp(tracked.live_system_id, tracked.tags) if self._facts.traits.taggable else NO_TAGS
        outcome.created = self._offer.create(self._held.cloud, made, tags)
        outcome.race_lost = self._facts.traits.is_part and _is_let_go(self._read_parent(tracked))

    def _make_secrets(self, tracked: Tracked, *, is_there: bool) -> bool:
        """Make the secrets of a component that are to be made, one call each; returns whether it may be written (A8).

        That they are made was published with the write, so that they are found again and go with the component.
        """
        for name in self._evaluator.secrets.to_make(tracked, is_there=is_there):
            if not self._may_write():
                return False
            self._evaluator.secrets.make(tracked, name)
        return True

    def _may_still_create(self, tracked: Tracked, outcome: Outcome) -> bool:
        """Whether a creation is allowed right before its call: of a part, its parent says so, read anew (S25)."""
        if not self._facts.traits.is_part:
            return True
        parent = self._read_parent(tracked)
        outcome.tags = dict(parent.sighting.tags) if parent.sighting is not None else {}
        return self._evaluator.hold(tracked, parent) is Hold.OPEN

    def _read_parent(self, tracked: Tracked) -> View:
        """The parent of a part, read anew: its tags are the part's."""
        parent = self._evaluator.parent(tracked)
        known = self._evaluator.view(parent) if parent is not None else ABSENT
        if parent is None or known.sighting is None:
            return known
        fresh = self._evaluator.offer_of(parent).read(self._held.cloud, known.sighting.resource_id)
        if fresh is None:
            return ABSENT
        if fresh.moved_to or fresh.name != known.sighting.name:
            return found_elsewhere(fresh)
        return View(sighting=self._evaluator.hidden(parent, self._evaluator.as_declared(parent, fresh)))

    def _change(self, planned: Planned, outcome: Outcome) -> None:
        step = self._guard(planned, outcome)
        fresh = outcome.fresh
        if step is None or fresh is None or self._is_opposed(planned) or not self._may_write():
            outcome.abandoned = True
            return
        if step.verb is Verb.UPDATE and not self._make_secrets(planned.tracked, is_there=True):
            outcome.abandoned = True
            return
        outcome.written = True
        self._write(planned.tracked, fresh, step)
        outcome.is_done = True
        self._read(planned, outcome)
        self._ask_why_refused(outcome, fresh)
        after = outcome.fresh
        may_be_refused_later = type(self._facts.own).why_refused is not Offer.why_refused
        outcome.is_pending = may_be_refused_later and outcome.error is None and is_pending(step, after)
        taken_over = after is not None and not after.protocol.is_managed and after.resource_id == fresh.resource_id
        outcome.race_lost = taken_over and not self._has_precondition(fresh, step) and step.verb is not Verb.UNTAG

    def _ask_why_refused(self, outcome: Outcome, fresh: Sighting) -> None:
        """What the cloud accepted, and had refused by the time of the read: nothing of it was done (S21)."""
        refused = self._offer.why_refused(self._held.cloud, fresh.resource_id)
        if refused is not None:
            outcome.error, outcome.is_done = refused, False

    def _is_opposed(self, planned: Planned) -> bool:
        return self._facts.traits.tags_frozen and not self._is_unopposed(planned)

    def _has_precondition(self, fresh: Sighting, step: Step) -> bool:
        is_part = self._facts.traits.is_part  # whose precondition says nothing of the tags of its parent
        return not is_part and fresh.revision is not None and _CALLS[step.verb] not in self._offer.unguarded

    def _guard(self, planned: Planned, outcome: Outcome) -> Step | None:
        """Read again and judge again; the step as it is to be taken now, or None where it no longer is."""
        view = self._read(planned, outcome)
        tagged = view if self._parent is None else self._parent
        if tagged.sighting is not None:
            outcome.tags = dict(tagged.sighting.tags)
        tracked = planned.tracked
        if planned.step.request is not None and tracked.request is None:
            tracked = replace(tracked, request=planned.step.request)
        if planned.step.verb is Verb.TAG:
            tracked = _before_tagging(tracked)
        again = self._evaluator.judge(tracked, view, self._parent)
        allowed = again.step is not None and again.step.verb is planned.step.verb
        return again.step if allowed else None

    def _read(self, planned: Planned, outcome: Outcome) -> View:
        """Read the resource; the outcome knows it from now on."""
        outcome.fresh = None
        outcome.view = view = self._view(planned, outcome)
        return view

    def _view(self, planned: Planned, outcome: Outcome) -> View:
        sighting = planned.sighting
        resource_id = sighting.resource_id if sighting is not None else planned.tracked.memory.resource_id
        assert resource_id is not None, "only what was sighted is changed"
        fresh = self._offer.read(self._held.cloud, resource_id, self._swept(planned.tracked))
        if fresh is None:
            return ABSENT
        if fresh.moved_to or (sighting and (fresh.name, fresh.parent_id) != (sighting.name, sighting.parent_id)):
            return found_elsewhere(fresh)  # renamed or moved a moment ago: it is no longer what the component names
        if self._facts.traits.is_part:
            self._parent = self._read_parent(planned.tracked)
            parent = self._parent.sighting
            fresh = replace(fresh, protocol=parent.protocol if parent is not None else NO_TAGS)
        outcome.fresh = self._evaluator.as_declared(planned.tracked, fresh)
        return View(sighting=self._evaluator.hidden(planned.tracked, outcome.fresh))

    def _read_after_error(self, planned: Planned, outcome: Outcome) -> None:
        """After a failed write the resource is read once more: was it taken over? was it done after all?"""
        try:
            self._read(planned, outcome)
        except CloudError as error:
            outcome.view = View(error=error)
        except Exception as error:  # noqa: BLE001  # what could not be read is not gone (S0)
            outcome.view = View(error=Unreadable(describe_unexpected(error)))

    def _write(self, tracked: Tracked, fresh: Sighting, step: Step) -> None:
        cloud = self._held.cloud
        match step.verb:
            case Verb.UPDATE if declared_tags(step):
                self._offer.write_tags(cloud, fresh, declared_tags(step))
            case Verb.UPDATE:
                self._offer.update(cloud, fresh, wanted(self._evaluator, self._offer, tracked), frozenset(step.drift))
            case Verb.DELETE:
                self._offer.delete(cloud, fresh)
            case Verb.STAMP | Verb.PUSH | Verb.TAG:
                self._offer.tag(cloud, fresh, add=step.add, remove=NO_TAGS)
            case Verb.TRANSFER:
                assert step.add.owner is not None, "a transfer names the new owner"
                self._offer.transfer(cloud, fresh, step.add.owner)
            case Verb.FINISH | Verb.UNTAG:
                self._offer.tag(cloud, fresh, add=NO_TAGS, remove=step.remove)
            case Verb.CREATE:
                raise AssertionError("a creation has its own way")

    def _swept(self, tracked: Tracked) -> frozenset[str]:
        return frozenset(tracked.parameters) & self._facts.compared.swept - tracked.ignored


def _is_elsewhere(verb: Verb, outcome: Outcome) -> bool:
    """Whether what a write did not find is not the resource itself: that is being made, or is seen to be there."""
    is_there = outcome.view is not None and outcome.view.sighting is not None
    return verb is Verb.CREATE or (verb is Verb.UPDATE and is_there)


def declared_tags(step: Step) -> dict[str, str]:
    """The tags of the user's own that an update writes: it writes nothing else."""
    keys = {name: tag_key(name) for name in step.drift} if step.verb is Verb.UPDATE else {}
    return {key: str(step.drift[name].declared) for name, key in keys.items() if key is not None}


def wanted(evaluator: Evaluator, offer: AnyOffer, tracked: Tracked, token: str = "") -> Wanted[Component]:
    """What an offer has to bring about, the values of secrets included."""
    filled = evaluator.filled(tracked)
    parameters = evaluator.secrets.resolved(tracked, evaluator.declared(tracked))
    try:
        component = offer.component.from_resolved(tracked.component_id, parameters)
    except DeclarationError as error:
        if filled.waits or filled.seeks:  # what is required is not there: none of it can be written
            raise DependencyMissing(words.waits_for((), filled.waits, filled.seeks)) from None
        if not tracked.secrets:
            raise Invalid(f"what was filled in does not fit this type: {error}") if tracked.fills else error from None
        raise Invalid(f"a secret holds a value that this type does not take: {error}") from None
    if not tracked.parameters.get(evaluator.named_by(tracked)):
        component.name = tracked.identity.name
    parent_id = evaluator.parent_id(tracked)
    secrets = frozenset(path for path, _ in references(tracked.parameters)) if tracked.secrets else frozenset()
    ignored = frozenset(tracked.ignored)
    return Wanted(component, tracked.live_system_id, parent_id, token, ignored, secrets, tracked.tags)


def _is_let_go(view: View) -> bool:
    """Whether somebody took a resource over: it is there, and not under our management."""
    return view.sighting is not None and not view.sighting.protocol.is_managed


def _before_tagging(tracked: Tracked) -> Tracked:
    """A component as it was judged: that its tagging is begun was published meanwhile, by this very step."""
    intent = tracked.memory.intent
    assert intent is not None, "tags are owed by an open creation alone"
    owed = intent.model_copy(update={"tagging": "owed"})
    return replace(tracked, memory=replace(tracked.memory, intent=owed))
