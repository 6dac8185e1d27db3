"""Many scopes in one agent, and the same scopes shared by two and by four."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
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


def _round(agents: list[Child]) -> tuple[float, float]:
    """One cycle of every scope, all agents at once: the time until the last one is done, and the CPU of all."""
    began = time.perf_counter()
    for agent in agents:
        agent.tell("go")
    spent = [agent.answer() for agent in agents]
    return time.perf_counter() - began, sum(one["cpu"] for one in spent)


def _shared_by(stage: Stage, count: int, scopes: int, per_scope: int, rounds: int) -> dict[str, float]:
    work = str(stage.work(per_scope))
    bounds = [scopes * number // count for number in range(count + 1)]
    with ExitStack() as open_now:
        agents = [
            open_now.enter_context(Child(work, str(first), str(last), module="benchmarks.scopes", is_awaited=False))
            for first, last in pairwise(bounds)
        ]
        for agent in agents:
            agent.answer()  # they claim their scopes at the same time
        turns = [_round(agents) for _ in range(rounds)]
        weights = [agent.ask("go")["resident"] for agent in agents]
    return {
        "wall s": min(wall for wall, _ in turns),
        "CPU s": median(cpu for _, cpu in turns),
        "memory MB": max(weights),
    }


def measure(stage: Stage, scopes: int = SCOPES, per_scope: int = PER_SCOPE, rounds: int = ROUNDS) -> Iterator[Result]:
    """One agent with everything; then several, each with its share."""
    alone = 0.0
    for count in AGENTS:
        figures = _shared_by(stage, count, scopes, per_scope, rounds)
        alone = alone or figures["wall s"]
        bars: tuple[Bar, ...] = ()
        if count > 1:
            is_held = count == 2 and (os.cpu_count() or 1) >= count
            bars = (Bar("times as fast as one", alone / figures["wall s"], 1.0, least=LEAST if is_held else None),)
        note = f"{scopes} scopes of {per_scope}; memory of the biggest; no server takes part"
        yield Result("agents", f"{count} agents" if count > 1 else "1 agent", scopes * per_scope, figures, bars, note)


JOBS: Final = (Job("agents", "a round of cycles over 100,000 components in 200 scopes", measure, 65),)
