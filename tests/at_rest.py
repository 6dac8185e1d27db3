"""Checks every cycle that judges only some: whoever was left out would have been judged just as before.

What is left out is the agent's own idea of what may concern whom (``agent/stirring.py``); here everybody is judged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fractal_cloud.agent.cycle import Cycle
from fractal_cloud.rules.judge import Judgement, judge
from fractal_cloud.rules.remember import remember


@contextmanager
def nobody_missed() -> Iterator[list[str]]:
    """Collect everybody who was left out of a cycle, and should not have been."""
    missed: list[str] = []
    judge_affected = Cycle._judge_affected

    def checked(cycle: Cycle) -> dict[str, Judgement] | None:
        judgements = judge_affected(cycle)
        evaluator, held = cycle._evaluator, cycle._held
        left_out = [] if judgements is None else [t for t in held.tracked.values() if t.uid not in judgements]
        for tracked in left_out:
            view = evaluator.view(tracked)
            judgement = judge(tracked, view, evaluator.circumstances(tracked, view))
            memory = remember(tracked, view, judgement)
            if judgement.step is not None or memory != tracked.memory:
                missed.append(f"{tracked.live_system_id}/{tracked.component_id}: {tracked.memory} -> {memory}")
        return judgements

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cycle, "_judge_affected", checked)
        yield missed
