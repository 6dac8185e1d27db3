"""Until when an agent's leases hold: by both of its clocks, each set by itself; no test waits for either."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from fractal_cloud.agent import deadline
from fractal_cloud.agent.clock import Clock
from fractal_cloud.agent.deadline import Deadline, Moment
from fractal_cloud.agent.scope import AbsentReads


@dataclass
class Clocks:
    """Both clocks of a machine, set by hand."""

    steady: float = 100.0
    wall: float = 1_000_000.0

    def __call__(self) -> Moment:
        return Moment(self.steady, self.wall)


def test_before_the_first_answer_nothing_may_be_written() -> None:
    for steady, wall in ((0.0, 0.0), (100.0, 1_000_000.0), (-5.0, -5.0), (-5.0, 5.0)):
        assert Deadline(Clocks(steady, wall)).has_passed()
    assert Deadline().has_passed()


@pytest.mark.parametrize(
    ("steady", "wall", "passed", "reason"),
    [
        (0.0, 0.0, False, "no time went by"),
        (9.9, 9.9, False, "not yet"),
        (10.0, 9.9, True, "to the second: the control plane may give it to somebody else now"),
        (9.9, 10.0, True, "whichever clock says so first"),
        (10.0, 10.0, True, "both say so"),
        (11.0, 0.0, True, "the machine slept, and its wall clock was not set yet"),
        (0.0, 11.0, True, "it was frozen from outside, and its wall clock was set right again"),
        (11.0, -500.0, True, "somebody set the wall clock back"),
        (0.0, -500.0, False, "that alone makes no lease longer or shorter"),
    ],
)
def test_whichever_clock_says_first_that_it_is_too_late_is_believed(
    steady: float, wall: float, passed: bool, reason: str
) -> None:
    clocks = Clocks()
    mine = Deadline(clocks)
    mine.renew(clocks(), 10.0)
    clocks.steady += steady
    clocks.wall += wall
    assert mine.has_passed() is passed, reason


def test_time_counts_from_what_was_asked_and_not_from_the_answer() -> None:
    clocks = Clocks()
    mine = Deadline(clocks)
    asked = clocks()
    clocks.steady += 8.0
    clocks.wall += 8.0
    mine.renew(asked, 10.0)
    assert not mine.has_passed()
    clocks.steady += 2.0
    assert mine.has_passed()
    mine.renew(clocks(), 10.0)
    assert not mine.has_passed(), "and a later renewal counts"


def test_now_is_both_clocks_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "steady", lambda: 5.0)
    monkeypatch.setattr(time, "time", lambda: 7.0)
    assert deadline.moment() == Moment(steady=5.0, wall=7.0)
    assert Deadline()._now() == Moment(5.0, 7.0)


def test_the_steady_clock_goes_on_while_the_machine_sleeps_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 3.0)
    monkeypatch.setattr(time, "clock_gettime", {77: 4.0}.__getitem__)
    monkeypatch.setattr(deadline, "_BOOTTIME", 77)
    assert deadline.steady() == 4.0
    monkeypatch.setattr(deadline, "_BOOTTIME", None)
    assert deadline.steady() == 3.0


@pytest.mark.rule("S17")
def test_absent_reads_know_how_far_apart_the_first_and_the_last_were() -> None:
    reads = AbsentReads()
    assert (reads.count, reads.span) == (0, timedelta())
    for at, span in ((50.0, 0), (52.0, 2), (60.0, 10)):
        reads.count_one(at)
        assert reads.span == timedelta(seconds=span)
    assert reads.count == 3


def test_the_control_planes_time_goes_on_with_the_steady_clock_alone() -> None:
    clocks = Clocks(wall=datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    clock = Clock(clocks)
    assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC), "until it is set, this machine's own"
    clock.set(datetime(2030, 1, 1, tzinfo=UTC))
    clocks.steady += 5.0
    clocks.wall -= 1_000.0
    assert clock.now() == datetime(2030, 1, 1, 0, 0, 5, tzinfo=UTC), "whoever sets this machine's wall clock"
