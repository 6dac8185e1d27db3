"""What one control plane carries: a hundred thousand and a million components, reports, and a thousand idle agents.

The servers are `fractal serve` in processes of their own, the agents coroutines in this one; all share the machine.
Databases are filled once and shared by the jobs.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import uvloop

from benchmarks import control_fill
from benchmarks.control_agents import Agent, Times, begin, live_on, report_steadily
from benchmarks.control_fill import CYCLE_SECONDS, Held
from benchmarks.control_planes import Planes, database, rows_written, serving
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result
from fractal_cloud.control.store import open_store

CHANGES_PER_SECOND: Final = 2_000
PER_REPORT: Final = 10
PER_AGENT: Final = 1_000
REPORT, CLAIM, BEAT = "/agent/report", "/agent/claim", "/agent/heartbeat"
SECONDS: Final = float(os.environ.get("FRACTAL_BENCH_SECONDS", "30"))
WARMING_SECONDS: Final = 5.0
"""So long the same is done before it counts: servers that just started have nothing prepared and nothing in memory."""
RUNS: Final = 3
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
        times = self.times.taken[path]
        return {
            "requests/s": round(sum(map(len, self.times.taken.values())) / self.seconds, 1),
            f"{path.rpartition('/')[2]}s/s": round(len(times) / self.seconds, 1),
            "median ms": round(self.times.percentile(path, 0.5), 1),
            "p99 ms": round(self.times.percentile(path, 0.99), 1),
            "servers' cores": round(self.servers, 3),
            "PostgreSQL's cores": round(self.postgres, 3),
            "agents' cores": round(self.agents, 3),
        }

    def cpu_of_one(self, path: str) -> dict[str, float]:
        """What one request to a path costs, where these are all there are."""
        each = 1000 * self.seconds / len(self.times.taken[path])
        return {"server ms each": round(self.servers * each, 2), "PostgreSQL ms each": round(self.postgres * each, 2)}


@dataclass(frozen=True, slots=True)
class Filled:
    """A database with so many components, a thousand for each agent."""

    kind: str
    url: str
    components: int
    filling_seconds: float

    @property
    def agents(self) -> int:
        """How many agents hold it."""
        return self.components // PER_AGENT


@contextmanager
def _filling(kind: str, components: int) -> Iterator[Filled]:
    with TemporaryDirectory() as folder, database(kind, Path(folder)) as url:
        started = time.perf_counter()
        store = open_store(url)
        try:
            control_fill.fill(store, components, components // PER_AGENT)
        finally:
            store.close()
        taken = round(time.perf_counter() - started, 1)
        os.sync()  # what the filling left to be written is no load of the jobs'
        yield Filled(kind, url, components, taken)


def filled_once(stage: Stage, kind: str, components: int) -> Filled:
    """A database with so many components, filled once and shared by the jobs."""
    return stage.shared(f"{kind}, {components}", lambda: _filling(kind, components))


def _leased(filled: Filled) -> list[Held]:
    store = open_store(filled.url)
    try:
        return control_fill.lease(store, filled.agents)
    finally:
        store.close()


def _measured(filled: Filled, processes: int, held: list[Held], work: Work, before: Work | None = None) -> Run:
    """Measure what some work of the agents that hold a database takes of the servers on it; not what they do before."""
    with (
        TemporaryDirectory() as folder,
        serving(filled.url, processes, Path(folder)) as planes,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        times = Times()
        urls = planes.urls
        agents = [Agent(n + 1, urls[n % len(urls)], has, times) for n, has in enumerate(held)]
        return runner.run(_run(planes, agents, times, work, before))


async def _run(planes: Planes, agents: list[Agent], times: Times, work: Work, before: Work | None = None) -> Run:
    await begin(agents)
    if before is not None:
        await before(agents)
    times.taken.clear()
    servers, postgres = planes.cpu_seconds()
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
        (after[1] - postgres) / seconds,
        (time.process_time() - own) / seconds,
    )


def _reporting(per_second: float, seconds: float = SECONDS) -> Work:
    """So many reports a second, for as long as a measurement takes."""
    return partial(report_steadily, per_second=per_second, seconds=seconds, many=PER_REPORT)


async def _working(agents: list[Agent]) -> None:
    """The life of agents of whose components 1 % change in a cycle: a report of ten from each."""
    per_second = len(agents) * PER_AGENT * 0.01 / CYCLE_SECONDS / PER_REPORT
    await asyncio.gather(live_on(agents, SECONDS), report_steadily(agents, per_second, SECONDS, PER_REPORT))


def reports(stage: Stage) -> Iterator[Result]:
    """2,000 changes a second in reports of ten, on PostgreSQL, with one server and with two, three times each in turn.

    What a second of a machine is worth changes by half while others use it too: of the three runs the middle one is
    listed, and the p99 of all.
    """
    filled = filled_once(stage, "postgresql", min(sizes()))
    per_second = CHANGES_PER_SECOND / PER_REPORT
    warming, work = _reporting(per_second, WARMING_SECONDS), _reporting(per_second, SECONDS * 2 / 3)
    runs: dict[int, list[Run]] = {1: [], 2: []}
    for _ in range(RUNS):
        for processes, taken in runs.items():
            taken.append(_measured(filled, processes, _leased(filled), work, warming))
    for processes, taken in runs.items():
        every = [run.times.percentile(REPORT, 0.99) for run in taken]
        p99 = sorted(every)[RUNS // 2]
        middle = taken[every.index(p99)]
        most = 1.0 if processes > 1 else None
        yield Result(
            "control-reports",
            f"{processes} server{'s' if processes > 1 else ''}, PostgreSQL",
            CHANGES_PER_SECOND,
            {**middle.figures(REPORT), **middle.cpu_of_one(REPORT)},
            (Bar("p99 of a report of 10 at 2,000 changes a second", p99, 50.0, "ms", most=most),),
            f"the middle one of {RUNS} runs, whose p99 were {', '.join(f'{one:.0f}' for one in every)} ms; "
            "every change is a new status, drift and an output field, and raises two events",
        )


def rows(stage: Stage) -> Iterator[Result]:
    """1 % of all components change in every cycle of 180 s: SQLite and PostgreSQL, 100,000 and 1,000,000 components."""
    for kind in ("sqlite", "postgresql"):
        for components in sizes():
            filled = filled_once(stage, kind, components)
            run = _measured(filled, 1, _leased(filled), _working)
            figures = {**run.figures(REPORT), "filling s": filled.filling_seconds}
            note = f"1 % change in a cycle; {filled.agents:,} agents, each with its polls, claims and heartbeats"
            yield Result("control-rows", f"1 server, {kind}", components, figures, note=note)


def idle(stage: Stage) -> Iterator[Result]:
    """1,000 agents with 1,000 components each, and nothing happens."""
    filled = filled_once(stage, "postgresql", max(sizes()))
    held = _leased(filled)
    before = rows_written(filled.url)
    run = _measured(filled, 1, held, lambda agents: live_on(agents, 2 * SECONDS))
    written, beats = rows_written(filled.url) - before, len(run.times.taken[BEAT])
    used = run.servers + run.postgres
    share = 100 * used / 2
    yield Result(
        "control-idle",
        "1 server, PostgreSQL",
        filled.components,
        {**run.figures(CLAIM), "% of two cores": round(share, 1), "rows written": written, "heartbeats": beats},
        (
            Bar("cores used by server and PostgreSQL, 1,000 idle agents", used, 0.5, "cores", most=1.0),
            Bar("one row written per heartbeat, and none besides", written, beats, exact=True),
        ),
        f"{filled.agents:,} agents",
    )


def sizes() -> list[int]:
    """How many components the databases have."""
    return [int(size) for size in os.environ.get("FRACTAL_BENCH_ROWS", "100000,1000000").split(",")]


JOBS: Final = (
    Job("control-reports", "reports of ten changes, 2,000 changes a second, on PostgreSQL", reports, 80),
    Job("control-rows", "1 % of 100,000 and of 1,000,000 components change in a cycle", rows, 81),
    Job("control-idle", "1,000 agents with 1,000 components each, at rest", idle, 82),
)
