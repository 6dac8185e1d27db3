"""What settled links cost, and how fast a change gets around.

The clouds are the two in memory of the tests, because what is counted is what the agents do: runs of handlers, calls,
reports. The control plane is the real one, on a SQLite file.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from fractal_cloud.agent.client import ControlPlane
from fractal_cloud.model.wire import Report, Reported
from tests.links.world import PROVIDERS, World, database, link, workload, world

WORKLOADS: Final = 1_000
SOURCES: Final = 100
"""Of one database; every workload is linked to two."""
LEASE_CYCLE: Final = 600.0
"""Cycles are run by hand; this long, no lease runs out however slow the machine is."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted. ``checks``: runs of functions that verify in bulk; ``kinds``: how many of these there are.

    ``reached``: sources that know of the change of one target after one further cycle.
    """

    links: int
    handlers: int
    checks: int
    kinds: int
    calls: int
    lists: int
    reports: int
    reached: int
    sources: int


CHECKS: Final = frozenset({"granted", "used", "routes_open"})


class Counting(ControlPlane):
    """The way to the control plane, with the reports counted that go there."""

    def __init__(self, plane: ControlPlane, sent: list[Report]) -> None:
        self.__dict__ = {**plane.__dict__, "sent": sent}

    def report(self, report: Report) -> Reported:
        """Count it, and publish it."""
        sent: list[Report] = self.__dict__["sent"]
        sent.append(report)
        return super().report(report)


def _declared(workloads: int, size: int = 1) -> list[dict[str, Any]]:
    """Databases in the east, the first of that size; workloads in the west, each linked to two of them."""
    count = workloads * 2 // SOURCES
    databases = [database(f"db-{n}", parameters={"size": size if n == 0 else 1}) for n in range(count)]
    targets = [(f"db-{n % count}", f"db-{(n + 1) % count}") for n in range(workloads)]
    apps = [workload(f"app-{n}", *(link(t, database="x") for t in pair)) for n, pair in enumerate(targets)]
    return [*databases, *apps]


def _settle(made: World) -> None:
    for _ in range(20):
        results = made.cycle()
        if all(result.settled and not result.writes and not result.changes for result in results):
            return
    raise AssertionError("the links never came to rest")


def count(workloads: int, folder: Path) -> Counted:
    """Deploy, come to rest, count one steady cycle; then change one target, and see who knows."""
    with world(folder, cycle_seconds=LEASE_CYCLE) as made:
        reports: list[Report] = []
        for provider in PROVIDERS:
            made.restart_agent(provider, lambda plane: Counting(plane, reports))
        made.deploy("ls-a", *_declared(workloads))
        _settle(made)
        made.cycle()
        reports.clear()
        stores = (made.east, made.west)
        for store in stores:
            store.handler_runs.clear()
            store.calls.clear()
        made.cycle()
        runs = {name: n for store in stores for name, n in store.handler_runs.items()}
        calls = {name: n for store in stores for name, n in store.calls.items()}
        steady = len(reports)
        made.deploy("ls-a", *_declared(workloads, size=9))
        made.cycle("east")  # the database is changed, and every role of it published anew
        made.cycle("west")
        endpoints = [made.fields("ls-a", f"app-{n}").get("databaseLink.db-0.endpoint") for n in range(workloads)]
        return Counted(
            links=2 * workloads,
            handlers=sum(n for name, n in runs.items() if name not in CHECKS),
            checks=sum(n for name, n in runs.items() if name in CHECKS),
            kinds=2,
            calls=sum(calls.values()),
            lists=4,
            reports=steady,
            reached=endpoints.count("db-0.toy:5009"),
            sources=SOURCES,
        )


def measure(_: Stage) -> Iterator[Result]:
    """All that is held to a bar, in one result."""
    with tempfile.TemporaryDirectory() as folder:
        found = count(WORKLOADS, Path(folder))
    bars = (
        Bar("no half runs", found.handlers, 0, exact=True),
        Bar("one check per kind of half", found.checks, found.kinds, exact=True),
        Bar("a list per type and per check", found.calls, found.lists, exact=True),
        Bar("no report", found.reports, 0, exact=True),
        Bar("sources that know of a changed target one cycle later", found.reached, found.sources, exact=True),
    )
    figures = {"cloud calls": found.calls, "reports": found.reports}
    yield Result("links", "two agents, settled links", found.links, figures, bars)


JOBS: Final = (Job("links", "what settled links cost, and how fast a change gets around", measure, 70),)
