"""Checks the agent's change detection: a component that a cycle skipped would have been judged as before.

Which components a cycle judges is decided by ``agent/change_detection.py``; here all others are judged as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fractal_cloud.agent.cycle import Cycle
from fractal_cloud.rules.judge import Judgement, judge
from fractal_cloud.rules.remember import observed_after


@contextmanager
def collect_missed_components() -> Iterator[list[str]]:
    """Collect every component that a cycle skipped although its judgement had changed."""
    missed: list[str] = []
    judge_affected = Cycle._judge_affected

    def checked(cycle: Cycle) -> dict[str, Judgement] | None:
        judgements = judge_affected(cycle)
        evaluator, held = cycle._evaluator, cycle._held
        skipped = [] if judgements is None else [t for t in held.work.tracked.values() if t.uid not in judgements]
        for tracked in skipped:
            view = evaluator.view(tracked)
            judgement = judge(tracked, view, evaluator.circumstances(tracked, view))
            memory = observed_after(tracked, view, judgement)
            if judgement.step is not None or memory != tracked.memory:
                missed.append(f"{tracked.live_system_id}/{tracked.component_id}: {tracked.memory} -> {memory}")
        return judgements

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cycle, "_judge_affected", checked)
        yield missed
