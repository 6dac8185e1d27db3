"""Every kind of the files beside lives through agents that die, and answers that are lost, at each of its effects."""

from __future__ import annotations

import pytest

from tests.faults.effects import Fault
from tests.faults.lives import Life, strike_all
from tests.offers.kubernetes.any_kind.stages import KINDS, Stages, marked, stages

__all__ = ["stages"]

DEADLY = (Fault.KILLED_AFTER, Fault.ANSWER_LOST)
QUICK = ("shop.example/v1/Gauge",)
EFFECTS = 12
"""How many effects are struck in the life of each kind, at least."""


@pytest.mark.timeout(400)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10", "S16")
@pytest.mark.parametrize("name", marked(KINDS, QUICK))
def test_a_kind_lives_on_whatever_effect_is_struck(stages: Stages, name: str) -> None:
    with stages(name) as (stage, offer):
        effects = strike_all(lambda number: Life(offer, stage.example, stage.world, number), stage.world, DEADLY)
        assert sum(map(len, effects.values())) >= EFFECTS, effects
