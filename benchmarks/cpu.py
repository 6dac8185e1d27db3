"""Bar 4: the CPU of a steady cycle, beside the loop anybody would write first with the vendor's SDK."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from benchmarks.child import child
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from benchmarks.stock import VPC, Declared

COUNT: Final = 10_000
ROUNDS: Final = 7
MOST: Final = 1.5
MOST_UNCHANGED: Final = 0.15


def measure(stage: Stage, count: int = COUNT, rounds: int = ROUNDS) -> Iterator[Result]:
    """Let both take turns, each in a process of its own, so that what disturbs the machine disturbs both."""
    work = stage.work(count)
    stage.canned.stock(Declared(VPC, count).lots)
    with child("agent", str(work)) as agent, child("bare") as bare:
        turns = [(agent.ask("go")["cpu"], bare.ask("go")["cpu"], agent.ask("judge")["cpu"]) for _ in range(rounds)]
    quiet, loop, judged = (median(turn[index] for turn in turns) for index in range(3))
    note = f"median of {rounds} turns each"
    bars = (Bar("by the bare loop", quiet, loop, "s", most=MOST),)
    yield Result("cpu", "agent, nothing changed", count, {"CPU s": quiet}, bars, note)
    told = (Bar("by the bare loop", judged, loop, "s"),)
    yield Result(
        "cpu", "agent, everything judged anew", count, {"CPU s": judged}, told, "as after any change in the scope"
    )
    yield Result("cpu", "boto3's paginator and a comparison", count, {"CPU s": loop})


JOBS: Final = (Job("cpu", "CPU of a steady cycle, beside the bare loop", measure, 40),)
