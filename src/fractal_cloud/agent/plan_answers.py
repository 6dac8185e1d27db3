"""What an agent is asked beside its cycles: what a deploy would do in a scope, and what a type is that nobody knows.

Which questions there are is heard with a claim, in ``main``; what a plan says is decided in ``planning``.
"""

from __future__ import annotations

import structlog

from fractal_cloud.agent.client import ControlPlane, ControlPlaneRefuses, ControlPlaneUnreachable, LeaseLost
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.learning import Learner
from fractal_cloud.agent.planning import plan
from fractal_cloud.agent.reaching import Reachability
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.identity import Scope
from fractal_cloud.model.wire import PlanResult, PlanTask

log = structlog.get_logger()


class PlanAnswers:
    """Answers one question after the other, each from any thread; nothing is written for it."""

    def __init__(self, control: ControlPlane, reachable: Reachability, learner: Learner) -> None:
        self._control = control
        self._reachable = reachable
        self._learner = learner

    def answer(self, task: PlanTask, context: CycleContext) -> None:
        """Answer it, if its provider is reached; one that cannot be answered is asked again, or of others."""
        scope = Scope.from_key(task.work.scope)
        if scope.provider not in self._reachable.sessions:
            return
        try:
            held = self._reachable.hold(scope)
            self._reachable.connect(held)
            answer = self._learned(held, task.learn) if task.learn else plan(task, held, context)
            self._control.answer_plan(task.id, answer)
        except (ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost) as error:
            log.warning("plan not answered", plan=task.id, error=str(error))
        except Exception:
            log.exception("plan failed: an error of the agent itself", plan=task.id)

    def _learned(self, held: HeldScope, component_type: str) -> PlanResult:
        try:
            return PlanResult(learned=self._learner.learn(held.cloud, component_type))
        except CloudError as error:
            return PlanResult(why=f"does not say: {error.message}")
