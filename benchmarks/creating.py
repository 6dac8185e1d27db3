"""Creating costs one writing call per resource, one per setting the create call cannot carry, and one bulk read.

Runs against the sandbox, because a creation must really be kept; its lists grow with the square of what it holds, so
the numbers are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from benchmarks.rig import bench, pointed_at
from benchmarks.stock import GROUP, VPC, Declared
from fractal_cloud.model.status import Status
from fractal_sandbox import Sandbox

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
    """The calls a deploy took, from the first read to rest."""

    writes: int
    calls_of_first_cycle: int


def deploy(sandbox: Sandbox, declared: Declared) -> Cost:
    """Deploy into an empty sandbox, in one cycle, and see that nothing is written afterwards."""
    sandbox.reset()
    with bench(declared.work(settled=False)) as made:
        before = len(sandbox.aws.calls)
        made.cycle()
        calls = len(sandbox.aws.calls) - before
        statuses = {tracked.memory.status for tracked in made.held.work.tracked.values()}
        assert statuses == {Status.ACTIVE}, f"not deployed in one cycle: {statuses}"
        made.settle()
        return Cost(sandbox.aws.calls.count(writes_only=True), calls)


def measure(_: Stage, sizes: Sequence[int] = SIZES) -> Iterator[Result]:
    """A result for every kind and size, the last of each kind also held to how calls grew before."""
    with Sandbox() as sandbox, pointed_at(sandbox.url):
        for case in CASES:
            totals: list[int] = []
            for size in sizes:
                declared = Declared(case.kind, size, case.more)
                parents = declared.parents.count if declared.parents is not None else 0
                cost = deploy(sandbox, declared)
                calls = cost.calls_of_first_cycle
                totals.append(calls - parents)
                floor = size * (1 + case.settings) + parents
                bars = [Bar("a writing call per resource and setting", cost.writes, floor, exact=True)]
                if not case.settings:
                    # Which account it is, is confirmed once before the first write (S26).
                    bars.append(Bar("a list before and after, and the account", calls, size + 3, exact=True))
                if len(totals) == len(SIZES):
                    bars.append(_linear(totals, sizes))
                figures = {"writing calls": cost.writes, "cloud calls": calls}
                yield Result("creating", case.title, size, figures, tuple(bars))


def _linear(totals: Sequence[int], sizes: Sequence[int]) -> Bar:
    first, second, third = totals
    expected = (second - first) * (sizes[2] - sizes[1]) / (sizes[1] - sizes[0])
    return Bar(f"calls added since {sizes[1]}, by the growth before", third - second, expected, exact=True)


JOBS: Final = (Job("creating", "cloud calls of a deploy", measure, 20),)
