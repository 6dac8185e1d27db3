"""A plan is the cycle's path with the writes left out (S20, C6)."""

from __future__ import annotations

from fractal_cloud.agent.cycle import Cycle
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.errors import CloudError, Denied, DependencyMissing, Invalid, NotFound
from fractal_cloud.model.status import Status
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import PlannedAction, PlannedComponent, PlanResult, PlanTask
from fractal_cloud.rules.judge import Judgement, Verb

_BY_VERB = {
    Verb.CREATE: PlannedAction.CREATE,
    Verb.UPDATE: PlannedAction.CHANGE,
    Verb.STAMP: PlannedAction.CHANGE,
    Verb.FINISH: PlannedAction.CHANGE,
    Verb.PUSH: PlannedAction.CHANGE,
    Verb.UNTAG: PlannedAction.LEAVE,
    Verb.DELETE: PlannedAction.DELETE,
    Verb.TAG: PlannedAction.CREATE,
    Verb.TRANSFER: PlannedAction.CHANGE,
}
_WITHOUT_A_STEP = {
    "S0": PlannedAction.UNKNOWN,  # cannot be read
    "S4": PlannedAction.CREATE,  # absent: its creation waits for something else
    "S5": PlannedAction.IMPORT,  # only ever read: it cannot carry tags, or says importOnly
    "S6": PlannedAction.IMPORT,  # owned by another LiveSystem
    "S6a": PlannedAction.IMPORT,  # its tags are frozen, and do not say that it is ours
    "S8": PlannedAction.IMPORT,  # claimed by another LiveSystem
    "S9": PlannedAction.CHANGE,  # being re-adopted
    "S11a": PlannedAction.CHANGE,  # being re-adopted, by its tag alone
    "S17": PlannedAction.CREATE,  # its creation was sent, and does not show yet
}
"""By rule, what a plan says of a component for which no write is next."""

_GONE_IN_OVERRIDE = "S2"


def plan(task: PlanTask, held: HeldScope, context: CycleContext) -> PlanResult:
    """What the agent would do with the components asked about, if the work were like that; ``held``: still empty."""
    held.apply(task.work, context.offers)
    cycle = Cycle(held, context)
    judgements = cycle.dry_run()
    asked = [held.work.tracked[uid] for uid in task.uids if uid in held.work.tracked]
    planned = [_planned(one, judgements[one.uid], context, cycle) for one in asked]
    errors = context.pool.map(lambda one: cycle.rehearse(one, judgements[one.uid]), asked)
    return PlanResult(components=[_rehearsed(one, error) for one, error in zip(planned, errors, strict=True)])


def _rehearsed(planned: PlannedComponent, error: CloudError | None) -> PlannedComponent:
    """What a plan says of a component after the cloud was asked. What is only missing yet may be there by then."""
    if error is None or isinstance(error, NotFound | DependencyMissing):
        return planned
    if isinstance(error, Invalid | Denied):
        return planned.model_copy(
            update={"action": PlannedAction.FAIL, "message": f"would be refused: {error.message}"}
        )
    return planned.model_copy(update={"warnings": [*planned.warnings, f"could not be tried: {error.message}"]})


def _planned(tracked: Tracked, judgement: Judgement, context: CycleContext, cycle: Cycle) -> PlannedComponent:
    offer = context.offers[tracked.type].offer
    return PlannedComponent(
        uid=tracked.uid,
        component_id=tracked.component_id,
        type=tracked.type,
        action=_action(tracked, judgement, is_absent=cycle.is_absent(tracked)),
        rule=judgement.rule,
        message="is not there yet" if _is_creation(judgement) else judgement.message,
        changes={name: difference.to_json() for name, difference in sorted(judgement.drift.items())},
        warnings=offer.warnings(frozenset(judgement.drift)) if judgement.step is not None else [],
        resource_id=tracked.memory.resource_id,
        holds_data=offer.holds_data,
        found=cycle.found(tracked) if tracked.finds else {},
    )


def _is_creation(judgement: Judgement) -> bool:
    return judgement.step is not None and judgement.step.verb is Verb.CREATE


def _action(tracked: Tracked, judgement: Judgement, *, is_absent: bool) -> PlannedAction:
    """What a plan says of one component. Tried from the top; the first line that fits decides."""
    if judgement.step is not None:  # a write is next, whatever the status shows until then
        return _BY_VERB[judgement.step.verb]
    if _would_fail(judgement):  # the mutation would fail too (C8), whatever rule led here
        return PlannedAction.FAIL
    if judgement.rule in _WITHOUT_A_STEP:  # before deletions: one that cannot be read is unknown as well
        return _WITHOUT_A_STEP[judgement.rule]
    if tracked.deleting:
        return _deletion(judgement)
    if is_absent and _waits_for_parent(judgement):
        return PlannedAction.CREATE
    if judgement.noticing:  # what differs is shown first, and written afterwards (S12a)
        return PlannedAction.CHANGE if judgement.drift else PlannedAction.NOTHING
    if judgement.status is Status.MANUAL_OVERRIDE:
        return PlannedAction.LEAVE
    return PlannedAction.NOTHING


def _waits_for_parent(judgement: Judgement) -> bool:
    """Whether it is a part of what is not ready to be written to yet, such as what is to be created (S25)."""
    return judgement.rule == "S25" and judgement.status is None


def _would_fail(judgement: Judgement) -> bool:
    """Whether it failed, or is stuck until a person acts; what is gone in override is stuck, and may stay so."""
    if judgement.status in (Status.MISSING, Status.FAILED):
        return True
    return judgement.stuck and judgement.rule != _GONE_IN_OVERRIDE


def _deletion(judgement: Judgement) -> PlannedAction:
    if not judgement.finished:
        return PlannedAction.DELETE
    return PlannedAction.LEAVE if judgement.left else PlannedAction.DROP
