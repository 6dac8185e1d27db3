"""How a mutation is doing, from how its components are doing (C8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.model.status import MutationStatus, Status
from fractal_cloud.rules.mutation import Progress, causes, mutation_status

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
        ("what waits for a person fails it", [_part("a", Status.INSTANTIATING, stuck=True)], "Failed"),
        ("also in manual override", [_part("a", Status.MANUAL_OVERRIDE, stuck=True)], "Failed"),
        ("also a deletion", [_part("a", Status.DELETING, **DONE, deleting=True, stuck=True)], "Failed"),
        (
            "what has reached its generation is not waited for, although it could not be read since",
            [_part("a", Status.ACTIVE, **DONE, stuck=True)],
            "Completed",
        ),
        (
            "what waits for one that rests, but for which a person must act",
            [
                _part("a", Status.MANUAL_OVERRIDE, **DONE, stuck=True),
                _part("b", Status.INSTANTIATING, waits_for=("a",)),
            ],
            "Failed",
        ),
        (
            "what waits for one that rests goes on",
            [_part("a", Status.ACTIVE, **DONE), _part("b", Status.INSTANTIATING, waits_for=("a",))],
            "InProgress",
        ),
        (
            "one waits for a person, but another still moves",
            [_part("a", Status.INSTANTIATING, stuck=True), _part("b", Status.DELETING, deleting=True)],
            "InProgress",
        ),
    ],
)
def test_a_mutation_follows_its_components(reason: str, parts: list[Progress], expected: str) -> None:
    assert mutation_status(parts) is MutationStatus(expected), reason


NAMES = ("a", "b", "c", "d", "e")


@st.composite
def _mutations(draw: st.DrawFn) -> list[Progress]:
    """Any components of one mutation, in any state, waiting for any others, cycles included."""
    return [
        Progress(
            component_id=name,
            status=draw(st.sampled_from(Status)),
            generation=2,
            observed_generation=draw(st.integers(1, 2)),
            dealt_generation=draw(st.integers(1, 2)),
            deleting=draw(st.booleans()),
            waits_for=tuple(draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))),
            stuck=draw(st.booleans()),
        )
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]


def _can_go_on(part: Progress, parts: list[Progress]) -> bool:
    """Whether nothing that it waits for, however far away, is halted: written as a search, not as the rule is."""
    by_id = {other.component_id: other for other in parts}
    seen: set[str] = set()
    todo = [part.component_id]
    while todo:
        name = todo.pop()
        if name in seen or name not in by_id:
            continue
        seen.add(name)
        other = by_id[name]
        tried = other.generation in (other.observed_generation, other.dealt_generation)
        if other.stuck or (tried and other.status in (Status.FAILED, Status.MISSING)):
            return False
        todo.extend(other.waits_for)
    return True


@given(_mutations())
def test_completed_means_all_settled_and_failed_means_that_nothing_goes_on(parts: list[Progress]) -> None:
    waiting = [part for part in parts if not part.is_settled]
    going_on = [part for part in waiting if _can_go_on(part, parts)]
    expected = (
        MutationStatus.IN_PROGRESS if going_on else MutationStatus.FAILED if waiting else MutationStatus.COMPLETED
    )
    assert mutation_status(parts) is expected


@given(_mutations(), st.randoms(use_true_random=False))
def test_the_order_of_the_components_says_nothing(parts: list[Progress], chance: Any) -> None:
    shuffled = list(parts)
    chance.shuffle(shuffled)
    assert mutation_status(shuffled) is mutation_status(parts)
    assert sorted(causes(shuffled)) == sorted(causes(parts))


@given(_mutations())
def test_a_failed_mutation_names_a_cause_and_only_what_is_halted(parts: list[Progress]) -> None:
    by_id = {part.component_id: part for part in parts}
    named = causes(parts)
    assert named or mutation_status(parts) is not MutationStatus.FAILED
    assert all(by_id[name].is_halted for name in named)
