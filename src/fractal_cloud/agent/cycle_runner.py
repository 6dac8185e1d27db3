"""Runs the cycles of scopes, one in each at a time: what a cycle needs before it, and what its end means for the loop.

When a scope is due is decided in ``main``; what happens in a cycle, in ``cycle``.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import structlog

from fractal_cloud.agent.client import ControlPlaneRefuses, ControlPlaneUnreachable, LeaseLost
from fractal_cloud.agent.cycle import Cycle, CycleResult
from fractal_cloud.agent.cycle_state import CycleContext
from fractal_cloud.agent.learning import Learner
from fractal_cloud.agent.reaching import Reachability
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.offers.call_context import CallCount, counting

log = structlog.get_logger()

AFTER_AN_ERROR: float = 5.0
"""How long, in seconds, a scope waits after a cycle that ended by an error of the agent itself."""


class CycleRunner:
    """Runs one cycle after the other, in whatever thread it is called."""

    def __init__(self, reachable: Reachability, learner: Learner, cycle_seconds: float) -> None:
        self._reachable = reachable
        self._learner = learner
        self._cycle_seconds = cycle_seconds

    def run(self, held: HeldScope, context: CycleContext) -> CycleResult:
        """One cycle of a scope."""
        started = time.monotonic()
        self._reachable.connect(held)
        count = CallCount()
        try:
            with counting(count):
                if held.work.unserved and self._learner.learn_lacking(held):
                    held.work.version = -1  # all of its work is asked for again, with what was left out
                result = Cycle(held, context).run()
        except (ControlPlaneUnreachable, ControlPlaneRefuses, LeaseLost) as error:
            # What was published is not known: forget the scope's work and ask for all of it again.
            is_refused = isinstance(error, ControlPlaneRefuses)
            (log.error if is_refused else log.warning)("cycle given up", scope=held.scope.key, error=str(error))
            held.work.version = -1
            held.work.invalidate()
            return CycleResult(again_in=self._cycle_seconds if is_refused else 1.0, settled=False)
        finally:
            held.observed.is_writing = False
            held.observed.cycle_seconds, held.observed.calls = time.monotonic() - started, count
        log.debug(
            "cycle",
            scope=held.scope.key,
            seconds=round(held.observed.cycle_seconds, 3),
            calls=count.calls,
            writes=result.writes,
            changes=result.changes,
        )
        return result


def result_of(running: Future[CycleResult]) -> CycleResult:
    """What a cycle that has ended came to, whatever ended it."""
    error = running.exception()
    if error is not None:
        log.error("cycle failed: an error of the agent itself", exc_info=error)
        return CycleResult(again_in=AFTER_AN_ERROR, settled=False)
    return running.result()


def wait_for_any(running: list[Future[CycleResult]], seconds: float) -> None:
    """Wait until one of these ends, and not for longer than that."""
    done = threading.Event()
    for future in running:
        future.add_done_callback(lambda _: done.set())
    done.wait(seconds)
