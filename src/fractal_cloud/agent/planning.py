"""A plan is the cycle's path with the writes left out (S20, C6)."""

from __future__ import annotations

from fractal_cloud.agent.cycle import Cycle
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.scope import HeldScope
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
}
_BY_RULE = {
    "S0": PlannedAction.UNKNOWN,
    "S4": PlannedAction.CREATE,
    "S5": PlannedAction.IMPORT,
    "S6": PlannedAction.IMPORT,
    "S6a": PlannedAction.IMPORT,
    "S8": PlannedAction.IMPORT,
    "S9": PlannedAction.CHANGE,
    "S11a": PlannedAction.CHANGE,
    "S17": PlannedAction.CREATE,
}


def plan(task: PlanTask, held: HeldScope, context: CycleContext) -> PlanResult:
    """What the agent would do with the components asked about, if the work were like that; ``held``: still empty."""
    held.apply(task.work, context.offers)
    judgements = Cycle(held, context).dry_run()
    asked = [held.work.tracked[uid] for uid in task.uids if uid in held.work.tracked]
    return PlanResult(components=[_planned(tracked, judgements[tracked.uid], context) for tracked in asked])


def _planned(tracked: Tracked, judgement: Judgement, context: CycleContext) -> PlannedComponent:
    offer = context.offers[tracked.type].offer
    return PlannedComponent(
        uid=tracked.uid,
        component_id=tracked.component_id,
        type=tracked.type,
        action=_action(tracked, judgement),
        rule=judgement.rule,
        message="is not there yet" if _is_creation(judgement) else judgement.message,
        changes={name: difference.to_json() for name, difference in sorted(judgement.drift.items())},
        warnings=offer.warnings(frozenset(judgement.drift)) if judgement.step is not None else [],
        resource_id=tracked.memory.resource_id,
        holds_data=offer.holds_data,
    )


def _is_creation(judgement: Judgement) -> bool:
    return judgement.step is not None and judgement.step.verb is Verb.CREATE


def _action(tracked: Tracked, judgement: Judgement) -> PlannedAction:
    if judgement.step is not None:
        return _BY_VERB[judgement.step.verb]
    if judgement.status is Status.MISSING or (judgement.stuck and judgement.rule != "S2"):
        return PlannedAction.FAIL  # as the mutation would (C8); what is gone in override rests there
    if judgement.rule in _BY_RULE and judgement.status is not Status.FAILED:
        return _BY_RULE[judgement.rule]
    if judgement.status is Status.FAILED:
        return PlannedAction.FAIL
    if tracked.deleting:
        if judgement.finished:
            return PlannedAction.LEAVE if judgement.left else PlannedAction.DROP
        return PlannedAction.DELETE
    if judgement.noticing:
        return PlannedAction.CHANGE if judgement.drift else PlannedAction.NOTHING
    if judgement.status is Status.MANUAL_OVERRIDE:
        return PlannedAction.LEAVE
    return PlannedAction.NOTHING
