"""Random histories of people, agent and cloud over every kind of the files beside."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.conftest import SOAK
from tests.machine.test_providers import HISTORIES, Histories
from tests.offers.kubernetes.any_kind.stages import KINDS, Stages, marked, stages
from tests.offers.kubernetes.suite import SUITE

__all__ = ["stages"]

QUICK = ("shop.example/v2/Shelf",)
FEW = settings(HISTORIES, max_examples=40 if SOAK else 2)


@pytest.mark.hypothesis
@pytest.mark.timeout(600)
@pytest.mark.rule("S7", "S9", "S11", "S12", "S15", "S16", "S17", "S20", "G1", "G7", "G10", "O1", "O2", "T1", "T3", "T4")
@pytest.mark.parametrize("name", marked(KINDS, QUICK))
def test_whatever_people_do_to_a_kind_nothing_forbidden_is_written_and_all_comes_to_rest(
    stages: Stages, name: str
) -> None:
    with stages(name) as (stage, _):
        run_state_machine_as_test(lambda: Histories(stage, SUITE), settings=FEW)  # type: ignore[arg-type]
