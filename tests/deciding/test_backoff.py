"""The one definition of back-off: how waits grow, and how others are given them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fractal_cloud.model.backoff import Backoff

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BACKOFF = Backoff.in_seconds(1, 60)


@pytest.mark.parametrize(
    ("times", "seconds"), [(0, 1), (1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (10_000, 60)]
)
def test_a_wait_doubles_up_to_the_longest(times: int, seconds: float) -> None:
    assert BACKOFF.delay(times) == timedelta(seconds=seconds)


def test_the_other_side_may_ask_for_longer_and_never_for_less() -> None:
    assert BACKOFF.next_try(NOW, 2, at_least=30) == NOW + timedelta(seconds=30)
    assert BACKOFF.next_try(NOW, 2, at_least=1) == NOW + timedelta(seconds=2)


def test_there_is_a_wait_between_two_attempts_and_none_after_the_last() -> None:
    assert Backoff.in_seconds(0.2, 0.6, factor=3).waits(3) == (0.2, 0.6)
    assert Backoff.in_seconds(0.1, 0.5, factor=5).waits(3) == (0.1, 0.5)
    assert BACKOFF.waits(1) == ()


def test_stamina_is_given_the_same_waits() -> None:
    given = Backoff.in_seconds(0.02, 1.0, factor=3, jitter=0.05).for_stamina()
    assert given == {
        "wait_initial": timedelta(seconds=0.02),
        "wait_max": timedelta(seconds=1),
        "wait_jitter": timedelta(seconds=0.05),
        "wait_exp_base": 3,
    }
