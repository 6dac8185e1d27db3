"""Values of ours that somebody sets back: counted, and given up after a few times (S27). Pure; time is a value.

    written ──read back──▶ confirmed ──drift──▶ set back ──written again──▶ …
       └──still otherwise after the window──────▲  └──the third time within ten cycles──▶ given up

A value that we wrote is followed here from its first correction (or a deploy's change) on. One that stood as long as
the fight is counted begins anew: whoever changes it once in a while is corrected each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fractal_cloud.model.observed import Setback
from fractal_cloud.rules.drift import Difference, Drift

Setbacks = tuple[Setback, ...]
MOST_CALLS = 5
"""More calls than the change of one parameter takes; after so many it reads back otherwise each time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a fight is given up: ``times`` setbacks within ``span``. ``window``: how long a write may stay invisible.

    ``stands``: how long a value must stand until its fight is over.
    """

    times: int = 3
    span: timedelta = timedelta(minutes=30)
    stands: timedelta = timedelta(minutes=30)
    window: timedelta = timedelta(minutes=6)

    @classmethod
    def of(cls, cycles: int, cycle: timedelta, window: timedelta) -> Limits:
        """Those many settled cycles; long enough for writes that are only counted after a window each."""
        return cls(span=max(cycles * cycle, 4 * window), stands=cycles * cycle, window=window)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one read showed of a component: the drift that could be corrected, and the parameters that were read.

    ``is_settled``: the cloud is not at work on it. ``in_handshake``: somebody is handing it back (S9).
    """

    drift: Drift
    read: Collection[str]
    is_settled: bool = True
    in_handshake: bool = False


def after_reading(known: Setbacks, reading: Reading, now: datetime, limits: Limits) -> Setbacks:
    """What is remembered after a read; the same objects where nothing changed."""
    found: list[Setback] = []
    for one in known:
        if reading.in_handshake and not one.in_handshake:
            continue  # a handshake begins anew, once
        kept = one
        if one.parameter in reading.read and reading.is_settled:
            difference = reading.drift.get(one.parameter)
            after = _as_written(one, now, limits) if difference is None else _drifted(one, difference, now, limits)
            if after is None:
                continue
            kept = after
        if kept.in_handshake and not reading.in_handshake:
            kept = kept.model_copy(update={"in_handshake": False})
        found.append(kept)
    return tuple(found)


def _as_written(one: Setback, now: datetime, limits: Limits) -> Setback | None:
    if one.since is None:
        return one.model_copy(update={"since": now, "written": None})
    return None if one.given_up and now - one.since >= limits.stands else one


def _drifted(one: Setback, difference: Difference, now: datetime, limits: Limits) -> Setback | None:
    if one.value != digest(difference.declared):
        return None  # something else is wanted by now: a link or a reference changed
    if one.given_up:
        return one if one.since is None else one.model_copy(update={"since": None})
    if one.since is not None:
        return None if now - one.since >= limits.stands else _set_back(one, now, limits)
    if one.written is not None and now - one.written >= limits.window:
        return _set_back(one, now, limits)
    return one


def _set_back(one: Setback, now: datetime, limits: Limits) -> Setback:
    at = [*(time for time in one.at if now - time < limits.span), now]
    given_up = len(at) >= limits.times
    return one.model_copy(update={"at": at, "since": None, "written": None, "given_up": given_up})


def after_write(
    known: Setbacks,
    before: Drift,
    after: Drift,
    now: datetime,
    *,
    in_handshake: bool = False,
    has_effect: bool = False,
    unsettles: bool = False,
) -> Setbacks:
    """What is remembered after a write of the parameters in ``before`` that the cloud accepted.

    ``after``: what still differed when it was read back. A call may be one of several that a change needs: it counts
    where it changed nothing at all, and only of a parameter that was written alone is that certain; or where it was one
    too many. ``has_effect``: it changed something else of the resource, such as stopping the machine for what follows.
    ``unsettles``: so other values may differ now because of this very call, and not because somebody set them back.
    """
    known_by_name = {one.parameter: one for one in known}
    if unsettles:
        known_by_name |= {one.parameter: _unsettled(one) for one in known if one.parameter not in before}
    confirmed = [name for name in before if name not in after]
    is_idle = not has_effect and all(name in after and after[name].actual == was.actual for name, was in before.items())
    for name, difference in before.items():
        one = known_by_name.get(name) or Setback(parameter=name, at=[], in_handshake=in_handshake)
        update: dict[str, Any] = {"value": digest(difference.declared), "in_handshake": in_handshake}
        if name in confirmed:
            update |= {"since": now, "written": None, "calls": 0}
        elif is_idle:
            update |= {"since": None, "written": now if len(before) == 1 else None, "calls": 0}
        elif has_effect or after[name].actual != difference.actual:
            is_over = one.calls + 1 >= MOST_CALLS
            update |= {"since": None, "written": now if is_over else None, "calls": 0 if is_over else one.calls + 1}
        else:
            continue
        known_by_name[name] = one.model_copy(update=update)
    return tuple(known_by_name.values())


def without_tries(known: Setbacks, names: Collection[str]) -> Setbacks:
    """What is remembered after a refusal: what the cloud refused was set back by nobody (S21)."""
    return tuple(
        one.model_copy(update={"written": None, "calls": 0}) if one.parameter in names and not one.given_up else one
        for one in known
    )


def _unsettled(one: Setback) -> Setback:
    """A value that our own write of others may have changed: it is written again, and counts as no setback."""
    if one.since is None or one.given_up:
        return one
    return one.model_copy(update={"since": None, "calls": max(one.calls, 1)})


def to_write(known: Setbacks, changes: Drift) -> Drift:
    """What may be written now: nothing given up or not visible yet; what was set back, one parameter at a time.

    What is in the middle of a change that takes several calls goes on as it began.
    """
    by_name = {one.parameter: one for one in known}
    free = {name: d for name, d in changes.items() if not _is_withheld(by_name.get(name))}
    known_free = [by_name[name] for name in free if name in by_name]
    alone = sorted(one.parameter for one in known_free if one.since is None and not one.calls)
    return {alone[0]: free[alone[0]]} if alone else free


def _is_withheld(one: Setback | None) -> bool:
    return one is not None and (one.given_up or one.written is not None)


def given_up(known: Iterable[Setback]) -> tuple[Setback, ...]:
    """The parameters that are no longer corrected."""
    return tuple(one for one in known if one.given_up)


def is_waiting(known: Iterable[Setback], changes: Mapping[str, Difference]) -> bool:
    """Whether a write of one of these is not visible yet."""
    return any(one.written is not None and one.parameter in changes for one in known)


def is_timed(known: Iterable[Setback]) -> bool:
    """Whether a fight ends by time alone: its value stands as declared, and nothing else has to change."""
    return any(one.given_up and one.since is not None for one in known)


def digest(value: Any) -> str:
    """By what it is recognised whether the same value is still wanted; the value itself is not kept."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
