"""What one control plane carries: a hundred thousand and a million components, reports, and a thousand idle agents.

The servers are `fractal serve` in processes of their own, the agents coroutines in this one; all share the machine.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks import control_fill
from benchmarks.control_agents import CYCLE_SECONDS, Agent, Times, report_steadily, settle_all
from benchmarks.control_planes import Planes, database, serving
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from fractal_cloud.control.store import open_store

CHANGES_PER_SECOND: Final = 2_000
PER_REPORT: Final = 10
IDLE_AGENTS: Final = 1_000
REPORT: Final = "/agent/report"
SECONDS: Final = float(os.environ.get("FRACTAL_BENCH_SECONDS", "30"))
Work = Callable[[list[Agent]], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Run:
    """What a run showed: requests, their times, and the cores that servers, database and this process used."""

    times: Times
    seconds: float
    servers: float
    postgres: float
    agents: float

    def figures(self, path: str) -> dict[str, float]:
        """The run in numbers, for the requests to one path."""
        told = self.times.taken[path]
        return {
            "requests/s": round(sum(map(len, self.times.taken.values())) / self.seconds, 1),
            f"{path.rpartition('/')[2]}s/s": round(len(told) / self.seconds, 1),
            "median ms": round(self.times.percentile(path, 0.5), 1),
            "p99 ms": round(self.times.percentile(path, 0.99), 1),
            "servers' cores": round(self.servers, 3),
            "PostgreSQL's cores": round(self.postgres, 3),
            "agents' cores": round(self.agents, 3),
        }


def _measured(planes: Planes, agents: int, tokens: list[str], work: Work) -> Run:
    """Let agents settle, and measure what some work of theirs takes."""
    return asyncio.run(_run(planes, agents, tokens, work))


async def _run(planes: Planes, count: int, tokens: list[str], work: Work) -> Run:
    times = Times()
    agents = [Agent(n + 1, planes.urls[n % len(planes.urls)], tokens[n], times) for n in range(count)]
    await settle_all(agents)
    times.taken.clear()
    servers, database_used = planes.cpu_seconds()
    own, started = time.process_time(), time.perf_counter()
    await work(agents)
    seconds = time.perf_counter() - started
    after = planes.cpu_seconds()
    for agent in agents:
        agent.close()
    return Run(
        times,
        seconds,
        (after[0] - servers) / seconds,
        (after[1] - database_used) / seconds,
        (time.process_time() - own) / seconds,
    )


def _filled(url: str, components: int, accounts: int) -> tuple[list[str], float]:
    """Fill a database; the agents' tokens, and how long it took."""
    store = open_store(url)
    try:
        started = time.perf_counter()
        control_fill.fill(store, components, accounts)
        return control_fill.give_tokens(store, accounts), time.perf_counter() - started
    finally:
        store.close()


def _reporting(per_second: float) -> Work:
    """So many reports a second, for as long as a measurement takes."""

    async def work(agents: list[Agent]) -> None:
        await report_steadily(agents, per_second, SECONDS, PER_REPORT)

    return work


def reports(_stage: Stage) -> Iterator[Result]:
    """2,000 changes a second in reports of ten, on PostgreSQL, with one server and with two."""
    agents = 100
    with TemporaryDirectory() as folder, database("postgresql", Path(folder)) as url:
        tokens, _ = _filled(url, 100_000, agents)
        for processes in (1, 2):
            with serving(url, processes, Path(folder)) as planes:
                run = _measured(planes, agents, tokens, _reporting(CHANGES_PER_SECOND / PER_REPORT))
            p99 = run.times.percentile(REPORT, 0.99)
            yield Result(
                "control-reports",
                f"{processes} server{'s' if processes > 1 else ''}, PostgreSQL",
                CHANGES_PER_SECOND,
                run.figures(REPORT),
                (
                    Bar(
                        "p99 of a report of 10 at 2,000 changes a second",
                        p99,
                        50.0,
                        "ms",
                        most=1.0 if processes > 1 else None,
                    ),
                ),
                "every change is a new status, drift and an output field, and raises two events",
            )


def rows(_stage: Stage) -> Iterator[Result]:
    """1 % of all components change in every cycle of 180 s: SQLite and PostgreSQL, 100,000 and 1,000,000 components."""
    for kind in ("sqlite", "postgresql"):
        for components in _sizes():
            with TemporaryDirectory() as folder, database(kind, Path(folder)) as url:
                agents = min(100, components // 1_000)
                tokens, filling = _filled(url, components, agents)
                per_second = components * 0.01 / CYCLE_SECONDS / PER_REPORT
                with serving(url, 1, Path(folder)) as planes:
                    run = _measured(planes, agents, tokens, _reporting(per_second))
                figures = {**run.figures(REPORT), "filling s": round(filling, 1)}
                yield Result("control-rows", f"1 server, {kind}", components, figures, note="1 % change in a cycle")


def idle(_stage: Stage) -> Iterator[Result]:
    """1,000 agents with 1,000 components each, and nothing happens."""
    components = IDLE_AGENTS * 1_000
    with TemporaryDirectory() as folder, database("postgresql", Path(folder)) as url:
        tokens, filling = _filled(url, components, IDLE_AGENTS)
        with serving(url, 1, Path(folder)) as planes:
            run = _measured(planes, IDLE_AGENTS, tokens, lambda all_: _idle(all_, 2 * SECONDS))
        used = run.servers + run.postgres
        yield Result(
            "control-idle",
            "1 server, PostgreSQL",
            components,
            {**run.figures("/agent/claim"), "filling s": round(filling, 1)},
            (Bar("cores used by server and PostgreSQL, 1,000 idle agents", used, 0.5, "cores", most=1.0),),
            "1,000 agents",
        )


async def _idle(agents: list[Agent], seconds: float) -> None:
    until = time.perf_counter() + seconds
    await asyncio.gather(*(agent.idle(until) for agent in agents))


def _sizes() -> list[int]:
    return [int(size) for size in os.environ.get("FRACTAL_BENCH_ROWS", "100000,1000000").split(",")]


JOBS: Final = (
    Job("control-reports", "reports of ten changes, 2,000 changes a second, on PostgreSQL", reports, 80),
    Job("control-rows", "1 % of 100,000 and of 1,000,000 components change in a cycle", rows, 81),
    Job("control-idle", "1,000 agents with 1,000 components each, at rest", idle, 82),
)
