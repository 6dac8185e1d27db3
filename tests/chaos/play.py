"""One play: a seed, a stage, and one fault after the other while people go on with their work."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.chaos.audit import Auditor
from tests.chaos.faults import Storm
from tests.chaos.people import PATIENCE, People
from tests.chaos.stage import CYCLE, Stage


@dataclass
class Played:
    """What a play came through."""

    faults: Counter[str] = field(default_factory=Counter)
    cycles: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        ordered = sorted(self.cycles)
        middle, longest = ordered[len(ordered) // 2], ordered[-1]
        return (
            f"{sum(self.faults.values())} faults in {self.seconds:.0f} s ({kinds}); at rest after {middle} cycles "
            f"of {CYCLE:g} s in the middle, {longest} at most"
        )


def play(stage: Stage, seed: int, storms: Sequence[Storm], until: float | None = None) -> Played:
    """Let the storms happen, one after the other, and read everything after each; stop early at a time given."""
    dice = random.Random(f"people-{seed}")
    people = People(stage)
    auditor = Auditor(stage, people)
    played = Played()
    began = time.monotonic()
    people.begin()
    auditor.audit()
    auditor.cycles.clear()
    with ThreadPoolExecutor(1, thread_name_prefix="people") as busy:
        for number, storm in enumerate(storms, 1):
            if until is not None and time.monotonic() > until:
                break
            done = len(people.history)
            try:
                for fault in storm:
                    fault.inject(stage)
                acting = busy.submit(people.act, dice)
                time.sleep(max(fault.hold for fault in storm))
                stage.repair()
                acting.result(PATIENCE * 4)
                auditor.audit()
            except BaseException as error:
                actions = "; ".join(people.history[done:])
                error.add_note(f"storm {number} of seed {seed}: {storm}; people: {actions}")
                error.add_note(f"again: FRACTAL_CHAOS_SEED={seed} pytest tests/chaos")
                raise
            played.faults.update(fault.kind for fault in storm)
            print(f"{number}: {storm}: {'; '.join(people.history[done:])}: {auditor.cycles[-1]} cycles", flush=True)
    played.cycles = auditor.cycles
    played.seconds = time.monotonic() - began
    return played
