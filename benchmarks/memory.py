"""Bar 6: what an agent holds per component, once it has claimed a scope and run several cycles of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.child import child
from benchmarks.rig import Canned
from benchmarks.stock import VPC, Declared
from benchmarks.table import Row

MOST: Final = 3 * 1024
TRACED: Final = (200, 1_000)


def _weight(canned: Canned, count: int, work: Path, *, traced: bool) -> int:
    canned.stock(Declared(VPC, count).lots)
    with child("agent", str(work), traced=traced) as agent:
        return int(agent.ask("weigh")["traced" if traced else "resident"])


def measure(canned: Canned, works: dict[int, Path]) -> Iterator[Row]:
    """The growth from the smaller to the bigger scope, in fresh processes."""
    if sys.platform != "linux":
        yield Row("6", "memory per component: measured on Linux only", 0, 0, most=None)
        return
    for traced, (few, many) in ((False, (1_000, 10_000)), (True, TRACED)):
        grown = _weight(canned, many, works[many], traced=traced) - _weight(canned, few, works[few], traced=traced)
        kind = "objects alive (tracemalloc)" if traced else "resident memory"
        what = f"{kind} per component, from {few:,} to {many:,} VPCs"
        note = "" if traced else "after garbage collection and malloc_trim"
        yield Row("6", what, round(grown / (many - few)), MOST, "B", None if traced else 1.0, note=note)
