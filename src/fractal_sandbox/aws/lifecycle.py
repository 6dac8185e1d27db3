"""Resources that take their time: hidden after creation, pending, modifying, deleting.

moto does everything at once. Here a resource has, besides moto's state, at most one phase that changes how answers
show it, and a time during which they do not show it at all. A slow deletion of what moto would drop at once is put
off until its phase is over. How long all this takes, the knobs say; without them nothing here has any effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from fractal_sandbox.aws.answer import Answer, AwsError
from fractal_sandbox.aws.descriptors import RESOURCES, Ref
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.calls import Call
from fractal_sandbox.fault_injection import Countdown, Knobs
from fractal_sandbox.monitor_rules import Change

__all__ = ["Lifecycle", "PhaseName"]

PhaseName = Literal["creating", "modifying", "stopping", "starting", "deleting"]
_VANISHING = ("db", "eks-cluster")  # moto drops these when they are deleted; the others stay as dead remains


@dataclass
class _Phase:
    name: PhaseName
    countdown: Countdown
    running_before: int = 0


class Lifecycle:
    """The phases of all resources. Used only under the cloud's lock."""

    def __init__(self, knobs: Knobs, dispatch: Callable[[AwsRequest], Answer]) -> None:
        self._knobs = knobs
        self._dispatch = dispatch
        self.reset()

    def reset(self) -> None:
        self._hidden: dict[Ref, Countdown] = {}
        self._phases: dict[Ref, _Phase] = {}
        self._put_off: dict[Ref, AwsRequest] = {}

    @property
    def is_idle(self) -> bool:
        return not self._hidden and not self._phases

    def settle(self) -> None:
        """Carry out the deletions whose time has come, and forget phases that are over."""
        for ref, phase in list(self._phases.items()):
            if phase.countdown.is_over:
                del self._phases[ref]
                if ref in self._put_off:
                    self._dispatch(self._put_off.pop(ref))
        for ref, countdown in list(self._hidden.items()):
            if countdown.is_over:
                del self._hidden[ref]

    def phase(self, ref: Ref) -> PhaseName | None:
        """Return the phase a resource is in; None if it is settled."""
        phase = self._phases.get(ref)
        return None if phase is None or phase.countdown.is_over else phase.name

    @property
    def hidden(self) -> list[Ref]:
        """What no answer shows yet."""
        return [ref for ref, countdown in self._hidden.items() if not countdown.is_over]

    def is_hidden(self, ref: Ref) -> bool:
        countdown = self._hidden.get(ref)
        return countdown is not None and not countdown.is_over

    def count_hidden_read(self, ref: Ref) -> None:
        """Count a read in which a hidden resource would have shown."""
        self._hidden[ref].count_read()

    # What happens to resources

    def hide(self, ref: Ref) -> None:
        """Keep what was just created out of answers for as long as the knobs say."""
        hidden = self._knobs.countdown("late_visibility", ref.kind)
        if hidden is not None:
            self._hidden[ref] = hidden

    def created(self, ref: Ref) -> None:
        self.hide(ref)
        self._enter(ref, "creating", self._knobs.countdown("slow_creation", ref.kind))

    def modified(self, ref: Ref, call: Call, running_before: int = 0) -> None:
        name: PhaseName = "modifying"
        if call.operation.startswith("Stop"):
            name = "stopping"
        elif call.operation.startswith("Start"):
            name = "starting"
        self._enter(ref, name, self._knobs.countdown("slow_modification", ref.kind), running_before)

    def deleted(self, ref: Ref) -> None:
        """Take up the deletion of something that stays as a dead remain."""
        self._enter(ref, "deleting", self._knobs.countdown("slow_deletion", ref.kind))

    def put_off(self, ref: Ref, request: AwsRequest) -> bool:
        """Take up the deletion of something moto would drop at once, to be carried out later; return whether it was."""
        countdown = self._knobs.countdown("slow_deletion", ref.kind) if ref.kind in _VANISHING else None
        if countdown is None:
            return False
        self._enter(ref, "deleting", countdown)
        self._put_off[ref] = request
        return True

    def refuse_if_busy(self, ref: Ref, change: Change) -> None:
        """Raise what AWS answers to a change of a database or a cluster that is still at work."""
        phase = self.phase(ref)
        if phase is None or change.kind not in ("modify", "delete"):
            return
        if ref.kind == "db":
            raise AwsError("InvalidDBInstanceState", f"DB instance {ref.id} is not in available state: {phase}.")
        if ref.kind == "eks-cluster":
            raise AwsError("ResourceInUseException", f"Cluster {ref.id} is {phase}: wait until it is ACTIVE.", 409)

    # How answers show them

    def shape(self, ref: Ref, item: Any, *, is_read: bool) -> bool:
        """Write the phase of a resource into its item of an answer; return whether anything was changed."""
        phase = self._phases.get(ref)
        if phase is None or phase.countdown.is_over or not isinstance(item, dict):
            return False
        _show(ref.kind, phase, item)
        if is_read:
            phase.countdown.count_read()
        return True

    def _enter(self, ref: Ref, name: PhaseName, countdown: Countdown | None, running_before: int = 0) -> None:
        # What shows no such phase is changed at once on the real service too.
        if countdown is not None and name in RESOURCES[ref.kind].facts["phases"]:
            self._phases[ref] = _Phase(name, countdown, running_before)


def _show(kind: str, phase: _Phase, item: dict[str, Any]) -> None:
    """Write what the descriptor says of a phase into an item."""
    if kind == "ecs-service" and phase.name != "deleting":
        _show_rollout(phase, item)
        return
    for name, value in RESOURCES[kind].facts["phases"][phase.name].items():
        if value is None:
            item.pop(name, None)
        else:
            item[name] = value


def _show_rollout(phase: _Phase, item: dict[str, Any]) -> None:
    """Show a service of ECS whose tasks are still coming up."""
    wanted = item.get("desiredCount", 0)
    item["runningCount"] = phase.running_before
    item["pendingCount"] = max(wanted - phase.running_before, 0)
    for deployment in item.get("deployments", [])[:1]:
        deployment["rolloutState"] = "IN_PROGRESS"
        deployment["runningCount"] = item["runningCount"]
        deployment["pendingCount"] = item["pendingCount"]
