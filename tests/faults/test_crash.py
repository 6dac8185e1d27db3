"""The agent dies, or loses an answer, at every single effect it has: nothing is made twice, nothing is lost (S17).

Dying right after one effect is dying right before the next, so every effect is struck before, after, and by the loss
of its answer. The long run has all faults at all effects of all types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.lives import Life, strike_all, strike_whole
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.offers.aws.cases import example_of, prepare
from tests.offers.aws.examples import EXAMPLES

KINDS = {kind.__name__: kind for kind in EXAMPLES}
# The effects of each one's life, at least: what is counted below must not shrink unnoticed.
EFFECTS = {kind.__name__: example.effects for kind, example in EXAMPLES.items()}
WHOLE = 20
DEADLY = (Fault.KILLED_AFTER, Fault.ANSWER_LOST)
# Struck at every effect by one of the two faults, in turn; `make soak` strikes every effect by all of them.
IN_TURN = set(KINDS) - {"AwsVpc"}
Strike = Callable[[str, Sequence[Fault]], None]


@pytest.fixture
def strike(
    session_sandbox: Sandbox, tmp_path: Path, record_property: Callable[[str, object], None]
) -> Callable[[str, Sequence[Fault]], None]:
    """Have faults happen at every effect of one type's life, and print how many that were."""

    def run(kind: str, faults: Sequence[Fault]) -> None:
        with faulty_world(session_sandbox, tmp_path, FaultyWorld) as world:
            example = example_of(KINDS[kind], world.person.client)
            offer = installed()[KINDS[kind].type]
            prepare(KINDS[kind], world.person.client)
            effects = strike_all(lambda number: Life(offer, example, world, number), world, faults)
        points = sum(map(len, effects.values()))
        print(f"{kind}: {points} crash points: {effects}")
        record_property("crash points", points)
        assert points >= EFFECTS[kind]

    return run


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10")
@pytest.mark.parametrize("fault", DEADLY)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in IN_TURN])
def test_a_life_goes_on_whatever_effect_the_agent_does_not_survive(kind: str, fault: Fault, strike: Strike) -> None:
    strike(kind, [fault])


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10")
@pytest.mark.parametrize("kind", sorted(IN_TURN))
def test_a_life_goes_on_whatever_effect_is_struck_by_one_fault_or_another(kind: str, strike: Strike) -> None:
    strike(kind, DEADLY)


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "O10")
def test_a_whole_livesystem_comes_and_goes_whatever_effect_is_struck(
    session_sandbox: Sandbox, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with faulty_world(session_sandbox, tmp_path, FaultyWorld) as world:
        prepare(KINDS["AwsEc2Instance"], world.person.client)
        example = example_of(KINDS["AwsEc2Instance"], world.person.client)
        effects = strike_whole(example, world, DEADLY)
    points = sum(map(len, effects.values()))
    print(f"a whole LiveSystem: {points} crash points: {effects}")
    record_property("crash points", points)
    assert points >= WHOLE


@pytest.mark.soak
@pytest.mark.rule("S17")
@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("kind", KINDS)
def test_a_life_goes_on_whatever_happens_at_whatever_effect(kind: str, fault: Fault, strike: Strike) -> None:
    strike(kind, [fault])


@pytest.mark.rule("S17")
def test_a_full_run_strikes_several_hundred_crash_points() -> None:
    lives = sum(points * (1 if kind in IN_TURN else len(DEADLY)) for kind, points in EFFECTS.items())
    assert lives + WHOLE >= 290
