"""How a mutation is doing, from how its components are doing (C8)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.model.status import MutationStatus, Status
from fractal_cloud.rules.mutation import Progress, mutation_status

DONE = {"observed_generation": 2, "dealt_generation": 2}
pytestmark = pytest.mark.rule("C8")


def _part(name: str, status: Status, **more: Any) -> Progress:
    values = {"generation": 2, "observed_generation": 1, "dealt_generation": 1, **more}
    return Progress(component_id=name, status=status, **values)


@pytest.mark.parametrize(
    ("reason", "parts", "expected"),
    [
        ("nothing is declared: there is nothing to wait for", [], "Completed"),
        (
            "every resting status counts once the generation is reached",
            [
                _part("a", Status.ACTIVE, **DONE),
                _part("b", Status.EXTERNALLY_MANAGED, **DONE),
                _part("c", Status.MANUAL_OVERRIDE, **DONE),
            ],
            "Completed",
        ),
        ("active, but at the generation before", [_part("a", Status.ACTIVE)], "InProgress"),
        ("the cloud is still at work", [_part("a", Status.MUTATING, **DONE)], "InProgress"),
        ("a failure that the generation before left behind", [_part("a", Status.FAILED)], "InProgress"),
        ("a failure of this generation", [_part("a", Status.FAILED, dealt_generation=2)], "Failed"),
        ("a loss of this generation", [_part("a", Status.MISSING, **DONE)], "Failed"),
        (
            "one failed, but another still moves",
            [_part("a", Status.FAILED, dealt_generation=2), _part("b", Status.INSTANTIATING)],
            "InProgress",
        ),
        (
            "one failed, and all others wait on it, however far away",
            [
                _part("a", Status.FAILED, dealt_generation=2),
                _part("b", Status.INSTANTIATING, waits_for=("a",)),
                _part("c", Status.INSTANTIATING, waits_for=("b",)),
                _part("d", Status.ACTIVE, **DONE),
            ],
            "Failed",
        ),
        (
            "what waits on something that moves, moves",
            [_part("a", Status.INSTANTIATING), _part("b", Status.INSTANTIATING, waits_for=("a",))],
            "InProgress",
        ),
        (
            "what waits on each other has not failed",
            [_part("a", Status.INSTANTIATING, waits_for=("b",)), _part("b", Status.INSTANTIATING, waits_for=("a",))],
            "InProgress",
        ),
        (
            "being deleted is under way, whatever it shows",
            [_part("a", Status.ACTIVE, **DONE, deleting=True)],
            "InProgress",
        ),
        ("a deletion that is refused has failed", [_part("a", Status.FAILED, **DONE, deleting=True)], "Failed"),
    ],
)
def test_a_mutation_follows_its_components(reason: str, parts: list[Progress], expected: str) -> None:
    assert mutation_status(parts) is MutationStatus(expected), reason
