"""What an agent holds per component, once it has claimed a scope and run several cycles of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final

from benchmarks.child import child
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from benchmarks.stock import VPC, Declared

MOST: Final = 3 * 1024
TRACED: Final = (200, 1_000)


def _weight(stage: Stage, count: int, *, traced: bool) -> int:
    work = stage.work(count)
    stage.canned.stock(Declared(VPC, count).lots)
    with child("agent", str(work), traced=traced) as agent:
        return int(agent.ask("weigh")["traced" if traced else "resident"])


def measure(stage: Stage) -> Iterator[Result]:
    """The growth from the smaller to the bigger scope, in fresh processes."""
    if sys.platform != "linux":
        yield Result("memory", "agent", 0, note="measured on Linux only")
        return
    for traced, (few, many) in ((False, (1_000, 10_000)), (True, TRACED)):
        weights = [_weight(stage, count, traced=traced) for count in (few, many)]
        grown = round((weights[1] - weights[0]) / (many - few))
        what = f"bytes per component, from {few:,}"
        bar = Bar(what, grown, MOST, "B", most=None if traced else 1.0)
        subject = "objects alive (tracemalloc)" if traced else "resident memory"
        note = "" if traced else "after garbage collection and malloc_trim"
        figures = {"memory MB": weights[1] / 1e6, "per component B": grown}
        yield Result("memory", subject, many, figures, (bar,), note)


JOBS: Final = (Job("memory", "what an agent at rest holds", measure, 60),)
