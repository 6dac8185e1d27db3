"""Bar 2: creating costs one writing call per resource, one per setting the create call cannot carry, and one bulk read.

Runs against the sandbox, because a creation must really be kept; its lists grow with the square of what it holds, so
the numbers are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.rig import bench, pointed_at
from benchmarks.stock import GROUP, VPC, Declared
from benchmarks.table import Row
from fractal_cloud.model.status import Status
from fractal_cloud.sandbox import Sandbox

SIZES: Final = (50, 100, 200)


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of resource with so many settings that need a call of their own."""

    title: str
    kind: str
    settings: int
    more: Mapping[str, Any] = field(default_factory=dict)


CASES: Final = (
    Case("VPCs", VPC, 0),
    Case("VPCs with one DNS setting", VPC, 1, {"enableDnsHostnames": True}),
    Case("security groups with rules", GROUP, 1),
)


@dataclass(frozen=True, slots=True)
class Cost:
    """The calls a deploy took, from the first look to rest."""

    writes: int
    calls_of_first_cycle: int


def deploy(sandbox: Sandbox, declared: Declared) -> Cost:
    """Deploy into an empty sandbox, in one cycle, and see that nothing is written afterwards."""
    sandbox.reset()
    with bench(declared.work(settled=False)) as made:
        before = len(sandbox.aws.calls)
        made.cycle()
        calls = len(sandbox.aws.calls) - before
        statuses = {tracked.memory.status for tracked in made.held.tracked.values()}
        assert statuses == {Status.ACTIVE}, f"not deployed in one cycle: {statuses}"
        made.settle()
        return Cost(sandbox.aws.calls.count(writes_only=True), calls)


def measure(sizes: Sequence[int] = SIZES) -> Iterator[Row]:
    """Rows for every kind and size, and one per kind for how calls grow with their number."""
    with Sandbox() as sandbox, pointed_at(sandbox.url):
        for case in CASES:
            totals = []
            for size in sizes:
                declared = Declared(case.kind, size, case.more)
                parents = declared.parents.count if declared.parents is not None else 0
                cost = deploy(sandbox, declared)
                totals.append(cost.calls_of_first_cycle - parents)
                floor = size * (1 + case.settings) + parents
                what = f"{size:>6,} {case.title}: writing calls of their deploy"
                yield Row("2", what, cost.writes, floor, exact=True, note=f"all calls: {cost.calls_of_first_cycle:,}")
                if not case.settings:
                    what = f"{size:>6,} {case.title}: all calls of their deploy"
                    note = "one each, a list before and a list after"
                    yield Row("2", what, cost.calls_of_first_cycle, size + 2, exact=True, note=note)
            first, second, third = totals
            expected = (second - first) * (sizes[2] - sizes[1]) / (sizes[1] - sizes[0])
            what = f"{case.title}: calls added from {sizes[1]} to {sizes[2]}, by the growth before"
            yield Row("2", what, third - second, expected, exact=True, note="linear in their number")
