"""Bar 4: the CPU of a steady cycle, beside the loop anybody would write first with the vendor's SDK."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.child import child
from benchmarks.table import Row

ROUNDS: Final = 7
MOST: Final = 1.5
MOST_UNCHANGED: Final = 0.15


def measure(work: Path, count: int, rounds: int = ROUNDS) -> Iterator[Row]:
    """Let both take turns, each in a process of its own, so that what disturbs the machine disturbs both."""
    with child("agent", str(work)) as agent, child("bare") as bare:
        turns = [(agent.ask("go")["cpu"], bare.ask("go")["cpu"], agent.ask("judge")["cpu"]) for _ in range(rounds)]
    quiet, loop, judged = (median(turn[index] for turn in turns) for index in range(3))
    what = f"{count:>6,} VPCs: CPU of a steady cycle, by that of boto3's paginator and a comparison"
    yield Row("4", what, quiet, loop, "s", MOST, note=f"median of {rounds} turns each")
    what = f"{count:>6,} VPCs: CPU of a cycle that judges all of them anew, by the same loop"
    yield Row("4", what, judged, loop, "s", None, note="as after any change in the scope")
    what = f"{count:>6,} VPCs: CPU of a steady cycle, by {MOST_UNCHANGED:g} of that loop"
    yield Row("4", what, quiet, loop * MOST_UNCHANGED, "s", None, note="a later bar, not enforced yet")
