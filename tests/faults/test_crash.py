"""The agent dies, or loses an answer, at every single effect it has: nothing is made twice, nothing is lost (S17)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_cloud.sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.lives import Life, strike_all
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.offers.cases import CASES, example_of, prepare

KINDS = {kind.__name__: kind for kind in CASES}
# At least so many effects has the life of each: what is counted below must not shrink unnoticed.
EFFECTS = dict.fromkeys(KINDS, 20)


@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10")
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("kind", KINDS)
def test_a_life_is_lived_whatever_effect_the_agent_does_not_survive(
    kind: str,
    fault: Fault,
    session_sandbox: Sandbox,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    with faulty_world(session_sandbox, tmp_path, FaultyWorld) as world:
        example = example_of(KINDS[kind], world.person.client)
        offer = installed()[KINDS[kind].type]
        prepare(KINDS[kind], world.person.client)
        struck = strike_all(lambda number: Life(offer, example, world, number), world, fault)
    record_property("crash points", struck.count)
    print(f"{kind}, {fault}: {struck.count} crash points: {struck.points}")
    assert struck.count >= EFFECTS[kind]
