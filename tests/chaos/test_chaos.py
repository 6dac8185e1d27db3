"""Real processes that break while people break glass: SAFETY and LIVENESS after every single fault.

The short play has every kind of fault once or twice. The long ones draw theirs from a seed; a play that fails prints
its seed, and ``FRACTAL_CHAOS_SEED=… make soak PYTEST_ARGS=tests/chaos`` plays it again. Processes do not run in
lockstep: a seed brings back the faults and the actions, not every interleaving.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Final

import pytest

from tests import postgres
from tests.chaos.faults import (
    CLOUD,
    WEATHER,
    BadWeather,
    CloudErrors,
    Fault,
    Killed,
    Paused,
    SessionsCut,
    WrongClock,
    draw,
    missing,
)
from tests.chaos.play import play
from tests.chaos.stage import POSTGRES, staged

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL server: install Debian's postgresql"),
    pytest.mark.xdist_group("chaos"),
    pytest.mark.rule("S16", "S17", "S20", "T1", "T3", "C4", "C7"),
]
RecordProperty = Callable[[str, object], None]

LONG: Final = 52
"""Faults in a long play; four of them are more than two hundred."""
LONG_SECONDS: Final = 1_200.0
SEEDS: Final = (1, 2, 3, 4)
FOUND: Final[dict[int, str]] = {}
"""Seeds that found something, and what: they are played for ever after."""


def _short() -> list[Fault]:
    faults: list[Fault] = [
        Killed(0.5, "agent-1"),
        CloudErrors(1.5, "loses answers having done it", CLOUD["loses answers having done it"]),
        Killed(0.3, POSTGRES),
        BadWeather(1.5, "agent-2→planes", WEATHER["swallowing"]),
        Paused(1.5, "agent-3"),
        SessionsCut(0.3),
        Killed(0.3, "plane-1"),
        CloudErrors(1.5, "ends pages early", CLOUD["ends pages early"]),
    ]
    return faults if missing() else [*faults, WrongClock(1.5, "agent-2", 3600)]


def _seeds() -> list[int]:
    given = os.environ.get("FRACTAL_CHAOS_SEED")
    return [int(given)] if given else [*SEEDS, *FOUND]


@pytest.mark.timeout(900)
def test_every_kind_of_fault_is_survived(record_property: RecordProperty) -> None:
    """In the order of the list; what people do meanwhile is drawn."""
    with staged(0) as stage:
        played = play(stage, 0, [(fault,) for fault in _short()])
    record_property("faults of real processes", sum(played.faults.values()))


@pytest.mark.soak
@pytest.mark.parametrize("seed", _seeds())
def test_many_faults_are_survived(seed: int, record_property: RecordProperty) -> None:
    """As many as the seed draws, within a bounded time."""
    with staged(seed) as stage:
        played = play(stage, seed, draw(random.Random(seed), LONG), time.monotonic() + LONG_SECONDS)
    record_property("faults of real processes", sum(played.faults.values()))


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_every_kind_of_fault_can_be_tried_here() -> None:
    """Where something is missing, the summary says what was left out."""
    kinds = {fault.kind for storm in draw(random.Random(0), LONG) for fault in storm}
    assert kinds == {"killed", "paused", "database restarted", "database sessions cut", "network", "cloud", "clock"}
