"""Calls of the agent that never answer, and the clock by which it gives them up: time passes only while one hangs.

A history waits for no real time, and gives up nothing that is merely slow: how busy the machine is changes nothing.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from fractal_cloud.agent.main import Agent
from fractal_cloud.agent.watchdog import Watchdog
from fractal_sandbox.fault_injection import Knobs
from fractal_sandbox.fault_settings import Hang

CALL_SECONDS = 0.02
"""How often a watchdog reads its clock, and by how much that passes at once."""
LATE = "writes hang and are done late"
HANGS: dict[str, dict[str, Any]] = {
    "reads hang": {"operation": "Describe*"},
    "writes hang": {"writes_only": True},
    "writes hang when done": {"when": "after", "writes_only": True},
    LATE: {"writes_only": True},
}
LONG = 60  # of real seconds, for what happens at once on any machine that is not broken


class Hanging:
    """The calls that hang, and the clock of the watchdogs of all agents of a history."""

    def __init__(self, knobs: Knobs) -> None:
        self._knobs = knobs
        self._lock = threading.Lock()
        self._now = 0.0
        self._passed = 0
        self._dogs: list[Watchdog] = []
        self._late: list[Hang] = []
        self.given_up = 0

    def watch(self, agent: Agent) -> None:
        """Give an agent this clock, before its first call."""
        dog = agent._watchdog
        dog._clock = self._time
        self._dogs.append(dog)

    def _time(self) -> float:
        # A watchdog asks under its own lock, and again and again while it waits: nothing here may ask for that lock.
        with self._lock:
            is_alone = sum(len(dog._under_way) for dog in self._dogs) == 1
            if is_alone and len(self._knobs.hanging) > self._passed:
                self._passed += 1
                self.given_up += 1
                self._now += CALL_SECONDS
            return self._now

    def begin(self, how: str, nth: int) -> None:
        """Let one call hang. What was not carried out before never is, or, if late, at the end of the cycle."""
        rule = self._knobs.hang(times=1, nth=nth, actor="agent", **HANGS[how])
        if how == LATE:
            self._late.append(rule)

    def carry_out_late(self) -> None:
        """The cycle is over: what was only late happens now, within the window of S17."""
        due = [rule for rule in self._knobs.hanging if any(rule is late for late in self._late)]
        for rule in due:
            self._knobs.remove(rule)
        if due:
            self._wait(lambda: not any(rule is one for rule in due for one in self._knobs.hanging))

    def release(self) -> None:
        """Take every knob back, cut off all that hang, and wait until the agents know."""
        self._knobs.reset()
        self._late.clear()
        self._wait(lambda: not self._knobs.hanging)

    def _wait(self, is_over: Any) -> None:
        until = time.monotonic() + LONG
        while not is_over() or self._out() > len(self._knobs.hanging):
            assert time.monotonic() < until, f"{self._out()} calls have not returned: {self._knobs.hanging}"
            time.sleep(0.002)
        with self._lock:
            self._passed = len(self._knobs.hanging)

    def _out(self) -> int:
        return sum(dog._out.total() for dog in self._dogs)
