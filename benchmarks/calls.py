"""The cloud calls of a steady cycle are the fewest the cloud's pages allow; and it publishes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks import stock
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from benchmarks.rig import Canned, bench
from benchmarks.stock import BUCKET, CLUSTER, DATABASE, GROUP, INSTANCE, SERVICE, SUBNET, VPC, Declared

SIZES: Final = (100, 1_000, 10_000)
TITLES: Final = {
    VPC: "VPCs",
    SUBNET: "subnets (and their VPCs)",
    GROUP: "security groups (and their VPCs)",
    INSTANCE: "EC2 instances",
    DATABASE: "RDS instances",
    CLUSTER: "ECS clusters",
    SERVICE: "ECS services (and their clusters)",
    BUCKET: "S3 buckets, with their tags",
}
CALLS_OF_A_VPC: Final = 7
"""What Terraform and Crossplane ask to refresh one VPC: see docs/benchmarks.md."""


def _pages(count: int, size: int) -> int:
    return -(-count // size)


def floor(declared: Declared) -> int:
    """The fewest calls that return everything of so many things, by the vendor's largest pages."""
    count = declared.count
    parents = declared.parents.count if declared.parents is not None else 0
    clusters = 2 * _pages(count if declared.kind == CLUSTER else parents, 100)
    match declared.kind:
        case stock.DATABASE:
            return _pages(count, 100)
        case stock.CLUSTER:
            return clusters
        case stock.SERVICE:
            sizes = [min(1_000, count - first) for first in range(0, count, 1_000)]
            return clusters + sum(_pages(size, 100) + _pages(size, 10) for size in sizes)
        case stock.BUCKET:
            return _pages(count, 10_000) + _pages(count, 100)
        case _:
            return _pages(count, 1_000) + _pages(parents, 1_000)


def steady_calls(canned: Canned, declared: Declared) -> int:
    """The calls of a cycle in which nothing changed, which must also publish nothing."""
    canned.stock(declared.lots)
    with bench(declared.work(settled=True)) as made:
        made.cycle()  # takes over: what the work did not remember yet is published once
        made.cycle()  # decides about that, and so confirms the account first, by a call of its own (S26)
        published = made.control.publications
        canned.calls()
        result = made.cycle()
        assert result.settled, f"{declared.kind}: {result}"
        assert made.control.publications == published, "a steady cycle publishes nothing"
        return sum(canned.calls().values())


def measure(stage: Stage, sizes: Sequence[int] = SIZES) -> Iterator[Result]:
    """One result per kind and size."""
    for kind, title in TITLES.items():
        for size in sizes:
            declared = Declared(kind, size)
            note = f"a call per resource: {size:,}"
            if kind == VPC:
                note += f"; Terraform's and Crossplane's {CALLS_OF_A_VPC} a VPC: {CALLS_OF_A_VPC * size:,}"
            made = steady_calls(stage.canned, declared)
            bar = Bar("the fewest calls the cloud's pages allow", made, floor(declared), exact=True)
            yield Result("calls", title, size, {"cloud calls": made}, (bar,), note)


JOBS: Final = (Job("calls", "cloud calls of a cycle in which nothing changed", measure, 10),)
