"""How a deploy or a delete is doing, over every small set of components there is (C8)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from fractal_cloud.model.status import MutationStatus, Status
from fractal_cloud.rules.mutation import Progress, causes, mutation_status

DONE, FAILED, GOING = MutationStatus.COMPLETED, MutationStatus.FAILED, MutationStatus.IN_PROGRESS
RESTS = {Status.ACTIVE, Status.EXTERNALLY_MANAGED, Status.MANUAL_OVERRIDE, Status.DELETED}
FAILS = {Status.FAILED, Status.MISSING}


def one(name: str = "web", status: Status = Status.ACTIVE, **more: Any) -> Progress:
    values: dict[str, Any] = {"generation": 2, "observed_generation": 2, **more}
    return Progress(name, status, **values)


def test_progress_is_plain_unless_said_otherwise() -> None:
    assert Progress("web", Status.ACTIVE, 1, 1) == Progress("web", Status.ACTIVE, 1, 1, 0, False, (), False)


@pytest.mark.rule("C8", "S22")
def test_one_component_rests_fails_or_goes_on() -> None:
    for status, observed, dealt in itertools.product(Status, (1, 2, 3), (0, 1, 2, 3)):
        component = one(status=status, observed_generation=observed, dealt_generation=dealt)
        settled = status in RESTS and observed >= 2
        failed = status in FAILS and (observed >= 2 or dealt >= 2)
        assert component.is_settled is settled, component
        assert component.has_failed is failed, component
        assert mutation_status([component]) is (DONE if settled else FAILED if failed else GOING)


@pytest.mark.rule("C8")
def test_what_is_deleted_rests_only_when_it_is_gone_whatever_generation_was_seen() -> None:
    for status, observed in itertools.product(Status, (0, 2)):
        component = one(status=status, deleting=True, observed_generation=observed)
        assert component.is_settled is (status is Status.DELETED)


@pytest.mark.rule("C8")
def test_nothing_left_is_complete() -> None:
    assert mutation_status([]) is DONE
    assert mutation_status(iter([one()])) is DONE


BAD, BUSY = one("bad", Status.FAILED), one("busy", Status.MUTATING)


@pytest.mark.rule("C8")
@pytest.mark.parametrize(
    ("components", "expected", "reason"),
    [
        ([one(), BAD], FAILED, "the rest rests"),
        ([one(), BUSY, BAD], GOING, "something moves"),
        ([one("w", Status.INSTANTIATING, waits_for=("bad",)), BAD], FAILED, "it waits on what failed"),
        (
            [
                one("a", Status.INSTANTIATING, waits_for=("b",)),
                one("b", Status.INSTANTIATING, waits_for=("c", "bad")),
                one("c", Status.INSTANTIATING, waits_for=("bad",)),
                BAD,
            ],
            FAILED,
            "however far away",
        ),
        (
            [one("a", Status.INSTANTIATING, waits_for=("b",)), one("b", Status.INSTANTIATING, waits_for=("a",)), BAD],
            GOING,
            "who waits on each other waits on nobody that failed",
        ),
        (
            [
                one("a", Status.INSTANTIATING, waits_for=("b", "bad")),
                one("b", Status.INSTANTIATING, waits_for=("a",)),
                BAD,
            ],
            FAILED,
            "in a circle, one of whom waits on what failed",
        ),
        ([one("a", Status.INSTANTIATING, waits_for=("busy",)), BUSY, BAD], GOING, "it waits on what moves"),
        ([one("a", Status.INSTANTIATING, waits_for=("elsewhere",))], GOING, "elsewhere nothing has failed"),
        (
            [one("a", Status.INSTANTIATING, waits_for=("old",)), one("old", Status.FAILED, observed_generation=1)],
            GOING,
            "a failure that an older generation left says nothing",
        ),
        (
            [one("a", Status.INSTANTIATING, waits_for=("bad",)), one("b", Status.INSTANTIATING), BAD],
            GOING,
            "of two, one waits on nothing",
        ),
    ],
)
def test_it_has_failed_when_nothing_moves_but_for_what_waits_on_a_failure(
    components: list[Progress], expected: MutationStatus, reason: str
) -> None:
    for order in itertools.permutations(components):
        assert mutation_status(order) is expected, reason


STUCK = one("stuck", Status.DELETING, deleting=True, stuck=True)
RESTING = one("resting", Status.MANUAL_OVERRIDE, stuck=True)


@pytest.mark.rule("C8")
@pytest.mark.parametrize(
    ("components", "expected", "why"),
    [
        ([STUCK], FAILED, ["stuck"]),
        ([one(), STUCK], FAILED, ["stuck"]),
        ([STUCK, BUSY], GOING, ["stuck"]),
        ([BAD, one("a", Status.DELETING, waits_for=("stuck",)), STUCK], FAILED, ["bad", "stuck"]),
        ([RESTING], DONE, []),
        ([RESTING, one("a", Status.INSTANTIATING, waits_for=("resting",))], FAILED, ["resting"]),
        ([one(waits_for=("resting",)), RESTING], DONE, []),
        ([BUSY, one("a", Status.INSTANTIATING, waits_for=("busy",))], GOING, []),
        ([], DONE, []),
    ],
)
def test_what_waits_for_a_person_holds_up_what_waits_for_it_and_is_named(
    components: list[Progress], expected: MutationStatus, why: list[str]
) -> None:
    assert mutation_status(components) is expected
    assert causes(components) == why
    assert mutation_status(iter(components)) is expected
    assert causes(iter(components)) == why


def test_who_is_stuck_or_failed_is_halted() -> None:
    for stuck, status in itertools.product((False, True), Status):
        component = one(status=status, stuck=stuck)
        assert component.is_halted is (stuck or status in FAILS)


@pytest.mark.rule("C8")
def test_a_cause_is_named_however_many_settled_components_lie_between() -> None:
    parts = [
        one("a", Status.INSTANTIATING, observed_generation=1, waits_for=("d",)),
        one("b", stuck=True),
        one("d", waits_for=("b",)),
    ]
    assert mutation_status(parts) is FAILED
    assert causes(parts) == ["b"]
