"""Many scopes in one agent, and the same scopes shared by two and by four."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import cycle, pairwise
from statistics import median
from typing import Final

from benchmarks.child import Child
from benchmarks.jobs import Job, Stage
from benchmarks.result import Bar, Result

SCOPES: Final = 200
PER_SCOPE: Final = 500
AGENTS: Final = (1, 2, 4)
ROUNDS: Final = 5
LEAST: Final = 1.8


@dataclass(frozen=True)
class Size:
    """How much there is, and how often it is gone through."""

    scopes: int
    per_scope: int
    rounds: int


def _round(agents: list[Child]) -> tuple[float, float]:
    """One cycle of every scope, all agents at once: the time until the last one is done, and the CPU of all."""
    began = time.perf_counter()
    for agent in agents:
        agent.command("go")
    spent = [agent.answer() for agent in agents]
    return time.perf_counter() - began, sum(one["cpu"] for one in spent)


def _shared_by(stage: Stage, count: int, cores: Sequence[int], size: Size) -> dict[str, float]:
    """``cores``: one for each agent in turn; none: they run wherever the system puts them."""
    work = str(stage.work(size.per_scope))
    bounds = [size.scopes * number // count for number in range(count + 1)]
    with ExitStack() as open_now:
        agents = [
            open_now.enter_context(Child(work, str(first), str(last), module="benchmarks.scopes", is_awaited=False))
            for first, last in pairwise(bounds)
        ]
        for agent in agents:
            agent.answer()  # they claim their scopes at the same time
        if cores:
            for agent, core in zip(agents, cycle(cores), strict=False):
                agent.keep_to(core)
        turns = [_round(agents) for _ in range(size.rounds)]
        weights = [agent.ask("go")["resident"] for agent in agents]
    return {
        "wall s": min(wall for wall, _ in turns),
        "CPU s": median(cpu for _, cpu in turns),
        "memory MB": max(weights),
    }


def measure(stage: Stage, scopes: int = SCOPES, per_scope: int = PER_SCOPE, rounds: int = ROUNDS) -> Iterator[Result]:
    """One agent with everything, then several with a share each: an agent reads scopes in threads, so one alone on the
    machine uses more than a core. What another agent adds shows where each has a core of its own, as on machines apart.
    """
    size = Size(scopes, per_scope, rounds)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    note = f"{scopes} scopes of {per_scope}; memory of the biggest; no server takes part"
    alone = 0.0
    for count in AGENTS:
        figures = _shared_by(stage, count, cores, size)
        alone = alone or figures["wall s"]
        bars: tuple[Bar, ...] = ()
        if count > 1:
            is_held = count == 2 <= len(cores)
            bars = (Bar("times as fast as one", alone / figures["wall s"], 1.0, least=LEAST if is_held else None),)
        yield Result("agents", _subject(count, len(cores)), scopes * per_scope, figures, bars, note)
    yield Result("agents", "1 agent on all cores", scopes * per_scope, _shared_by(stage, 1, [], size), (), note)


def _subject(count: int, cores: int) -> str:
    if count == 1:
        return "1 agent on one core"
    return f"{count} agents, a core each" if count <= cores else f"{count} agents, sharing {cores} cores"


JOBS: Final = (Job("agents", "a round of cycles over 100,000 components in 200 scopes", measure, 65),)
