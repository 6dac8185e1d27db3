"""A write that does not stick is not a fight to win: the rule by itself, against every opponent there may be (S27)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fractal_cloud.rules.drift import Difference, Drift
from fractal_cloud.rules.setbacks import (
    MOST_CALLS,
    Limits,
    Reading,
    Setbacks,
    after_reading,
    after_write,
    given_up,
    is_timed,
    to_write,
)

pytestmark = pytest.mark.rule("S27")
CYCLE = timedelta(minutes=3)
LIMITS = Limits.of(10, CYCLE, 2 * CYCLE)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("replicas", "image", "port")


@dataclass
class Play:
    """A component whose parameters are declared as 1, an agent that corrects, and opponents.

    ``policies``: parameters that every write ends up otherwise with.
    """

    policies: frozenset[str] = frozenset()
    actual: dict[str, int] = field(default_factory=lambda: dict.fromkeys(NAMES, 1))
    known: Setbacks = ()
    now: datetime = NOW
    corrections: list[tuple[str, datetime]] = field(default_factory=list)

    def drift(self) -> Drift:
        return {name: Difference(1, value) for name, value in self.actual.items() if value != 1}

    def cycle(self, *, in_handshake: bool = False) -> None:
        """Read, and write until nothing is left, as a cycle does."""
        for _ in range(10):
            reading = Reading(self.drift(), self.actual, in_handshake=in_handshake)
            self.known = after_reading(self.known, reading, self.now, LIMITS)
            step = to_write(self.known, self.drift())
            if not step:
                return
            for name in step:
                self.corrections.append((name, self.now))
                self.actual[name] = 2 if name in self.policies else 1
            self.known = after_write(self.known, step, self.drift(), self.now, in_handshake=in_handshake)
        raise AssertionError("it never came to rest")

    def count(self, name: str) -> int:
        return sum(corrected == name for corrected, _ in self.corrections)

    def lost(self) -> set[str]:
        return {one.parameter for one in given_up(self.known)}


_MOVES = st.lists(
    st.tuples(st.floats(0.05, 4), st.sets(st.sampled_from(NAMES))),
    max_size=60,
)


@given(moves=_MOVES, policies=st.sets(st.sampled_from(NAMES)))
def test_no_parameter_is_corrected_more_than_three_times_within_ten_cycles(
    moves: list[tuple[float, set[str]]], policies: set[str]
) -> None:
    """SAFETY: whoever changes what and when, wakes or not, policies or not."""
    play = Play(policies=frozenset(policies))
    for cycles, changed in moves:
        play.now += cycles * CYCLE
        play.actual.update(dict.fromkeys(changed, 5))
        play.cycle()
    for name in NAMES:
        # A correction may take several calls, at one time.
        times = sorted({at for corrected, at in play.corrections if corrected == name})
        assert all(later - first >= 10 * CYCLE for first, later in zip(times, times[3:], strict=False))


@given(moves=_MOVES)
def test_the_other_parameters_are_still_corrected(moves: list[tuple[float, set[str]]]) -> None:
    """LIVENESS: what is not given up is as declared after every cycle."""
    play = Play()
    for cycles, changed in moves:
        play.now += cycles * CYCLE
        play.actual.update(dict.fromkeys(changed, 5))
        play.cycle()
        assert set(play.drift()) <= play.lost()


def _fought(play: Play, name: str = "replicas", times: int = 4) -> Play:
    for _ in range(times):
        play.now += CYCLE
        play.actual[name] = 5
        play.cycle()
    return play


def test_the_third_setback_of_a_confirmed_value_gives_it_up() -> None:
    play = _fought(Play(), times=3)
    assert (play.lost(), play.count("replicas")) == (set(), 3)
    _fought(play, times=1)
    assert (play.lost(), play.count("replicas")) == ({"replicas"}, 3)
    _fought(play, times=50)
    assert play.count("replicas") == 3, "it is not begun again by itself"


def test_a_person_who_changes_something_once_in_a_while_is_corrected_each_time() -> None:
    play = Play()
    for _ in range(30):
        play.now += 11 * CYCLE
        play.actual["replicas"] = 5
        play.cycle()
    assert (play.lost(), play.count("replicas")) == (set(), 30)


def test_it_ends_when_the_value_has_stood_for_ten_cycles_and_not_before() -> None:
    play = _fought(Play())
    play.actual["replicas"] = 1
    play.cycle()
    assert is_timed(play.known)
    play.now += 10 * CYCLE - timedelta(seconds=1)
    play.cycle()
    assert play.lost() == {"replicas"}
    play.now += timedelta(seconds=1)
    play.cycle()
    assert play.lost() == set()
    _fought(play, times=1)
    assert play.count("replicas") == 4, "it is corrected again"


def test_a_value_that_flaps_does_not_stand() -> None:
    play = _fought(Play())
    for _ in range(10):
        for value in (1, 5):
            play.actual["replicas"] = value
            play.now += 6 * CYCLE
            play.cycle()
    assert play.lost() == {"replicas"}


def test_a_handshake_begins_anew_once_and_is_given_up_in_its_turn() -> None:
    play = Play(policies=frozenset({"replicas"}))
    play.actual["replicas"] = 2
    for _ in range(12):
        play.now += CYCLE
        play.cycle()
    assert play.lost() == {"replicas"}
    before = play.count("replicas")
    for _ in range(40):
        play.now += CYCLE
        play.cycle(in_handshake=True)
    assert play.lost() == {"replicas"}
    assert play.count("replicas") == before + 3, "each of which was read back otherwise"
    play.policies = frozenset()
    play.actual["replicas"] = 1
    play.cycle()
    play.actual["replicas"] = 5
    play.cycle(in_handshake=True)
    assert play.actual["replicas"] == 1, "another handshake begins anew"


def test_what_a_policy_changes_is_written_again_only_after_the_window() -> None:
    play = Play(policies=frozenset({"replicas"}))
    play.actual["replicas"] = 2
    for _ in range(12):
        play.cycle()
        play.now += timedelta(seconds=5)
    assert play.count("replicas") == 1
    for _ in range(20):
        play.now += CYCLE
        play.cycle()
    assert (play.lost(), play.count("replicas")) == ({"replicas"}, 3)


def test_a_value_that_is_wanted_otherwise_by_now_was_not_set_back() -> None:
    """A reference or a link changed what is declared, though nobody deployed."""
    known = after_write((), {"subnet": Difference("a", "b")}, {}, NOW)
    for number in range(9):
        drift = {"subnet": Difference(f"c{number}", "a")}
        known = after_reading(known, Reading(drift, {"subnet"}), NOW, LIMITS)
        assert to_write(known, drift) == drift
        known = after_write(known, drift, {}, NOW)
    assert not given_up(known)


def test_what_was_not_read_or_is_being_changed_is_not_counted() -> None:
    known = after_write((), {"size": Difference(1, 2)}, {"size": Difference(1, 2)}, NOW)
    drift = {"size": Difference(1, 2)}
    much_later = NOW + timedelta(days=1)
    assert after_reading(known, Reading({}, set()), much_later, LIMITS) == known
    assert after_reading(known, Reading(drift, {"size"}, is_settled=False), much_later, LIMITS) == known
    assert after_reading(known, Reading(drift, {"size"}), much_later, LIMITS)[0].at == [much_later]


def test_a_call_that_is_one_of_several_is_no_write_that_does_not_stick() -> None:
    known = after_write((), {"rules": Difference("ab", "c")}, {"rules": Difference("ab", "abc")}, NOW)
    assert to_write(known, {"rules": Difference("ab", "abc")})
    known = after_write(known, {"rules": Difference("ab", "abc")}, {}, NOW)
    assert (known[0].at, known[0].since) == ([], NOW)


def test_a_value_that_reads_back_differently_each_time_is_not_written_for_ever() -> None:
    known: Setbacks = ()
    writes, now = 0, NOW
    for number in range(2_000):
        drift = {"note": Difference("ours", f"theirs {number}")}
        known = after_reading(known, Reading(drift, {"note"}), now, LIMITS)
        if to_write(known, drift):
            writes += 1
            known = after_write(known, drift, {"note": Difference("ours", f"theirs {number + 1}")}, now)
        now += timedelta(seconds=5)
    assert given_up(known)
    assert writes <= 15


@pytest.mark.rule("S27")
def test_a_call_that_prepares_a_change_is_no_write_that_did_not_stick() -> None:
    resize = {"size": Difference("large", "small")}
    known = after_write((), resize, resize, NOW, has_effect=True)
    assert to_write(known, resize) == resize, "the machine was stopped for it: what it was stopped for comes next"
    known = after_write(known, resize, {}, NOW)
    assert [one.at for one in known] == [[]]


@pytest.mark.rule("S27")
def test_preparing_again_and_again_is_one_call_too_many_in_the_end() -> None:
    resize = {"size": Difference("large", "small")}
    known: Setbacks = ()
    for _ in range(MOST_CALLS):
        assert to_write(known, resize) == resize
        known = after_write(known, resize, resize, NOW, has_effect=True)
    assert to_write(known, resize) == {}


@pytest.mark.rule("S27")
def test_what_our_own_write_of_another_parameter_changed_was_set_back_by_nobody() -> None:
    """A machine is stopped to be resized and started again, as often as somebody resizes it by hand."""
    stopped = {"state": Difference("running", "stopped")}
    size = {"size": Difference("small", "large")}
    known = after_write((), stopped, {}, NOW)
    for times in range(1, 6):
        at = NOW + times * CYCLE
        known = after_write(known, size, {**size, **stopped}, at, has_effect=True, unsettles=True)
        known = after_reading(known, Reading({**size, **stopped}, ("state", "size")), at, LIMITS)
        assert set(to_write(known, {**size, **stopped})) == {"size", "state"}
        known = after_write(known, {**size, **stopped}, {}, at)
        assert not given_up(known)
        assert all(not one.at for one in known), "nobody set anything back"
    known = after_reading(known, Reading(stopped, ("state", "size")), NOW + 6 * CYCLE, LIMITS)
    assert [len(one.at) for one in known if one.parameter == "state"] == [1], "this time it was somebody"
