"""The effects an agent has, one after the other, and how to end it at one of them.

An effect is a writing call to a cloud or a report to the control plane. Nothing here knows what an effect is for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import pytest

from fractal_cloud.agent.client import ControlPlane, ControlPlaneUnreachable
from fractal_cloud.model.wire import Report, Reported
from fractal_cloud.offers.aws.cloud import AwsSession, is_read
from fractal_sandbox.fault_injection import Knobs
from tests import library_caches


class Fault(StrEnum):
    """What happens at an effect."""

    KILLED_BEFORE = "killed right before it"
    KILLED_AFTER = "killed right after it"
    ANSWER_LOST = "it happens and its answer is lost"
    CALL_LOST = "it never arrives"


class Killed(BaseException):
    """The agent is dead. No handler of ours may catch it."""


class Effects:
    """Counts the effects of the running agent; the armed fault happens at the effect of the armed number, once."""

    def __init__(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self._lock = threading.Lock()
        self._after_intents: Callable[[], None] | None = None
        self.reports = 0
        self.arm()

    def arm(self, at: int | None = None, fault: Fault | None = None) -> None:
        """Count from nought again; with a number, have a fault happen at that effect."""
        with self._lock:
            self._at, self._fault = at, fault
            self._is_dead = False
            self.occurred: list[str] = []

    def revive(self) -> None:
        """Another agent takes over: it is alive, and the fault has happened already."""
        with self._lock:
            self._at, self._is_dead = None, False

    @property
    def struck(self) -> bool:
        """Whether the armed fault has happened."""
        return self._at is None

    def _next(self, name: str) -> Fault | None:
        """Count one effect; the fault that happens at it, if any."""
        with self._lock:
            if self._is_dead:
                raise Killed
            number = len(self.occurred)
            self.occurred.append(name)
            if number != self._at:
                return None
            self._at = None
            self._is_dead = self._fault in (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)
            return self._fault

    # --- the two kinds of effects

    def write(self, name: str, call: Callable[[], Any]) -> Any:
        """A writing call to a cloud."""
        fault = self._next(name)
        match fault:
            case Fault.KILLED_BEFORE:
                raise Killed
            case Fault.ANSWER_LOST:
                self._knobs.fail(when="after", cut=True, actor="agent", writes_only=True)
            case Fault.CALL_LOST:
                self._knobs.fail(when="before", cut=True, actor="agent", writes_only=True)
            case _:
                pass
        answer = call()
        if fault is Fault.KILLED_AFTER:
            raise Killed
        return answer

    def report(self, send: Callable[[Report], Reported], report: Report) -> Reported:
        """A report to the control plane."""
        self.reports += 1
        is_intent = any(entry.outcome is None for scope in report.scopes for entry in scope.journal)
        fault = self._next("intents" if is_intent else "report")
        if fault is Fault.KILLED_BEFORE:
            raise Killed
        if fault is Fault.CALL_LOST:
            raise ControlPlaneUnreachable("the test lost the report on its way")
        answer = send(report)
        if fault is Fault.KILLED_AFTER:
            raise Killed
        if fault is Fault.ANSWER_LOST:
            raise ControlPlaneUnreachable("the test lost the answer to the report")
        if is_intent and self._after_intents is not None:
            act, self._after_intents = self._after_intents, None
            act()
        return answer

    def after_next_intents(self, act: Callable[[], None]) -> None:
        """Do something once, when the next intents are published and nothing is written yet."""
        self._after_intents = act


_call = AwsSession.call


class GatedPlane(ControlPlane):
    """The way to the control plane, with every report counted as an effect."""

    effects: Effects

    def report(self, report: Report) -> Reported:
        return self.effects.report(super().report, report)


def gate(patch: pytest.MonkeyPatch, effects: Effects) -> None:
    """Have every writing call of an agent in this process counted as an effect."""

    def call(session: AwsSession, region: str, service: str, operation: str, /, **parameters: Any) -> Any:
        if is_read(operation):
            return _call(session, region, service, operation, **parameters)
        return effects.write(f"{service}:{operation}", lambda: _call(session, region, service, operation, **parameters))

    patch.setattr(AwsSession, "call", call)
    patch.setattr(AwsSession, "__init__", library_caches.connect_once)
