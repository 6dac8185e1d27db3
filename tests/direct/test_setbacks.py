"""Values that somebody sets back: each step of a fight by itself, with exact memories and to the second (S27)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from fractal_cloud.model.observed import Setback
from fractal_cloud.rules.drift import Difference, Drift
from fractal_cloud.rules.setbacks import (
    MOST_CALLS,
    Limits,
    Reading,
    after_reading,
    after_write,
    digest,
    given_up,
    is_timed,
    is_waiting,
    to_write,
)
from tests.direct.things import NOW, SECOND

pytestmark = pytest.mark.rule("S27")
MINUTE = timedelta(minutes=1)
LIMITS = Limits(times=3, span=30 * MINUTE, stands=20 * MINUTE, window=6 * MINUTE)
SIZE: Drift = {"size": Difference(3, 2)}


def one(**more: Any) -> Setback:
    values: dict[str, Any] = {"parameter": "size", "at": [], "value": digest(3), **more}
    return Setback(**values)


def read(known: Setback, drift: Drift | None = None, **more: Any) -> tuple[Setback, ...]:
    seen = more.pop("read", ("size",))
    return after_reading((known,), Reading(drift or {}, seen, **more), NOW, LIMITS)


def test_the_limits_are_ten_cycles_and_long_enough_for_windows() -> None:
    assert Limits() == Limits(3, 30 * MINUTE, 30 * MINUTE, 6 * MINUTE)
    assert Limits.of(10, 3 * MINUTE, 6 * MINUTE) == Limits(3, 30 * MINUTE, 30 * MINUTE, 6 * MINUTE)
    assert Limits.of(10, SECOND, 10 * SECOND) == Limits(3, 40 * SECOND, 10 * SECOND, 10 * SECOND)
    assert Reading({}, ()) == Reading({}, (), is_settled=True, in_handshake=False)
    assert MOST_CALLS == 5


# --- reading


def test_a_value_that_is_read_back_is_confirmed_and_stays_so() -> None:
    assert read(one(written=NOW - MINUTE)) == (one(since=NOW),)
    assert read(one()) == (one(since=NOW),)
    current = one(since=NOW - timedelta(days=9), at=[NOW])
    (kept,) = read(current)
    assert kept is current


@pytest.mark.parametrize(("ago", "is_over"), [(20 * MINUTE, True), (20 * MINUTE - SECOND, False), (timedelta(), False)])
def test_a_fight_that_was_given_up_ends_when_the_value_has_stood_long_enough(ago: timedelta, is_over: bool) -> None:
    known = one(given_up=True, since=NOW - ago, at=[NOW])
    assert read(known) == (() if is_over else (known,))


@pytest.mark.parametrize(("ago", "is_forgotten"), [(20 * MINUTE, True), (20 * MINUTE - SECOND, False)])
def test_a_confirmed_value_that_differs_was_set_back_unless_it_stood_long_enough(
    ago: timedelta, is_forgotten: bool
) -> None:
    assert read(one(since=NOW - ago), SIZE) == (() if is_forgotten else (one(at=[NOW]),))


@pytest.mark.parametrize(("ago", "counts"), [(6 * MINUTE, True), (6 * MINUTE - SECOND, False)])
def test_a_write_that_reads_back_otherwise_counts_after_the_window(ago: timedelta, counts: bool) -> None:
    known = one(written=NOW - ago)
    assert read(known, SIZE) == ((one(at=[NOW]),) if counts else (known,))


def test_what_was_neither_written_nor_confirmed_is_not_counted() -> None:
    assert read(one(at=[NOW - MINUTE]), SIZE) == (one(at=[NOW - MINUTE]),)


@pytest.mark.parametrize(
    ("ago", "left", "lost"),
    [
        ([1, 2], [1, 2], True),
        ([1], [1], False),
        ([29, 31], [29], False),
        ([30, 29], [29], False),
        ([1, 2, 3], [1, 2, 3], True),
    ],
)
def test_the_third_time_within_the_span_is_the_last(ago: list[int], left: list[int], lost: bool) -> None:
    known = one(since=NOW - MINUTE, at=[NOW - minutes * MINUTE for minutes in ago])
    times = [*(NOW - minutes * MINUTE for minutes in left), NOW]
    assert read(known, SIZE) == (one(at=times, given_up=lost),)


def test_what_is_given_up_is_given_up_whatever_is_read_and_begins_to_stand_anew() -> None:
    lost = one(given_up=True, at=[NOW])
    (kept,) = read(lost, SIZE)
    assert kept is lost
    assert read(one(given_up=True, at=[NOW], since=NOW - timedelta(days=1)), SIZE) == (lost,)


def test_another_wanted_value_is_another_matter() -> None:
    assert read(one(value=digest(4), since=NOW), SIZE) == ()
    assert read(one(value=digest(4), given_up=True), SIZE) == ()


def test_what_was_not_read_or_is_still_at_work_says_nothing() -> None:
    known = one(since=NOW - MINUTE)
    for reading in ({"read": ()}, {"read": ("zone",)}, {"is_settled": False}):
        (kept,) = read(known, SIZE, **reading)
        assert kept is known


def test_a_handshake_begins_anew_once() -> None:
    assert read(one(given_up=True), SIZE, in_handshake=True) == ()
    own = one(in_handshake=True, since=NOW)
    (kept,) = read(own, in_handshake=True)
    assert kept is own
    assert read(own) == (one(since=NOW),), "once it is over, it is a fight like any other"
    unread = read(own, read=())
    assert unread == (one(since=NOW),)


def test_each_parameter_is_followed_by_itself() -> None:
    zone = one(parameter="zone", value=digest("a"), since=NOW - MINUTE)
    gone = one(parameter="gone", given_up=True, since=NOW - timedelta(days=1))
    known = (gone, one(since=NOW - MINUTE), zone)
    found = after_reading(known, Reading(SIZE, ("size", "zone", "gone")), NOW, LIMITS)
    assert found == (one(at=[NOW]), zone)
    mixed = after_reading(
        (one(), one(parameter="zone", in_handshake=True)), Reading({}, (), in_handshake=True), NOW, LIMITS
    )
    assert mixed == (one(parameter="zone", in_handshake=True),)


# --- writing


def test_what_reads_back_as_written_is_confirmed() -> None:
    assert after_write((), SIZE, {}, NOW) == (one(since=NOW),)
    known = (one(written=NOW - MINUTE, calls=3, at=[NOW]),)
    assert after_write(known, SIZE, {}, NOW) == (one(since=NOW, at=[NOW]),)
    assert after_write((), SIZE, {}, NOW, in_handshake=True) == (one(since=NOW, in_handshake=True),)
    again = after_write((one(in_handshake=True),), SIZE, {}, NOW)
    assert again == (one(since=NOW),)


def test_what_changed_nothing_waits_for_its_window_if_it_was_written_alone() -> None:
    assert after_write((one(since=NOW, calls=2),), SIZE, SIZE, NOW) == (one(written=NOW),)
    both: Drift = {**SIZE, "zone": Difference("a", "b")}
    zone = one(parameter="zone", value=digest("a"))
    assert after_write((), both, both, NOW) == (one(), zone)


def test_what_changed_to_something_else_counts_its_calls_and_the_fifth_is_one_too_many() -> None:
    other: Drift = {"size": Difference(3, 7)}
    known: tuple[Setback, ...] = ()
    for calls in (1, 2, 3, 4):
        known = after_write(known, SIZE, other, NOW)
        assert known == (one(calls=calls),)
    assert after_write(known, SIZE, other, NOW) == (one(written=NOW),)
    assert after_write((one(since=NOW),), SIZE, other, NOW) == (one(calls=1),)


def test_one_call_of_several_says_nothing_of_what_it_did_not_touch() -> None:
    both: Drift = {**SIZE, "zone": Difference("a", "b")}
    left: Drift = {"zone": Difference("a", "b")}
    assert after_write((), both, left, NOW) == (one(since=NOW),)
    moved: Drift = {"size": Difference(3, 2), "zone": Difference("a", "c")}
    assert after_write((), both, moved, NOW) == (one(parameter="zone", value=digest("a"), calls=1),)
    other = one(parameter="other")
    assert after_write((other,), SIZE, {}, NOW) == (other, one(since=NOW)), "and nothing of what was not written"
    assert after_write((other,), {}, {}, NOW) == (other,)


# --- what may be written

BOTH: Drift = {"zone": Difference("a", "b"), **SIZE}


@pytest.mark.parametrize(
    ("known", "writable"),
    [
        ((), {"zone", "size"}),
        ((one(since=NOW),), {"zone", "size"}),
        ((one(given_up=True),), {"zone"}),
        ((one(given_up=True, since=NOW),), {"zone"}),
        ((one(written=NOW),), {"zone"}),
        ((one(),), {"size"}),
        ((one(), one(parameter="zone")), {"size"}),
        ((one(), one(parameter="zone", since=NOW)), {"size"}),
        ((one(parameter="zone"), one(given_up=True)), {"zone"}),
        ((one(parameter="elsewhere"),), {"zone", "size"}),
        ((one(given_up=True), one(parameter="zone", written=NOW)), set()),
    ],
)
def test_what_was_set_back_is_written_alone_and_what_is_given_up_never(known: Any, writable: set[str]) -> None:
    assert to_write(known, BOTH) == {name: BOTH[name] for name in BOTH if name in writable}


def test_who_is_given_up_waits_or_ends_by_time() -> None:
    lost, waits, stands = one(given_up=True), one(parameter="zone", written=NOW), one(parameter="x", since=NOW)
    assert given_up([lost, waits, stands]) == (lost,)
    assert is_waiting([lost, waits], BOTH)
    assert not is_waiting([waits], SIZE)
    assert not is_waiting([lost, stands], BOTH)
    assert is_timed([one(given_up=True, since=NOW)])
    assert not is_timed([lost, stands, waits])


def test_a_value_is_known_by_its_digest_alone() -> None:
    assert digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    assert len(digest("secret")) == 8
    assert len({digest(value) for value in (3, "3", None, [3], True)}) == 5
    assert digest(3) == "4e074085"
    assert digest(NOW) == digest(str(NOW))


@pytest.mark.rule("S27")
def test_a_write_that_changes_other_values_unsettles_them_and_nothing_else() -> None:
    state = {"state": Difference("running", "stopped")}
    confirmed, begun = one(since=NOW, at=[NOW]), one(since=NOW, calls=3)
    for known, after in ((confirmed, one(at=[NOW], calls=1)), (begun, one(calls=3))):
        assert after_write((known,), state, {}, NOW, unsettles=True)[0] == after
        assert after_write((known,), state, {}, NOW)[0] == known, "a call that changed nothing else unsettles nothing"
    for known in (one(written=NOW), one(since=NOW, given_up=True)):
        assert after_write((known,), state, {}, NOW, unsettles=True)[0] == known
    assert after_write((confirmed,), SIZE, {}, NOW, unsettles=True) == (one(since=NOW, at=[NOW]),), (
        "its own is confirmed"
    )
