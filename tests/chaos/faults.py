"""The closed list of what breaks. A fault is injected, holds for a while, and is repaired with all others by
``Stage.repair``; faults are plain values.

What a cloud loses by itself (its resources) is not in it: the sandbox is paused and cut off, but never killed.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, TypeAlias

from tests.chaos.processes import clocks
from tests.chaos.proxy import Weather
from tests.chaos.stage import AGENTS, PLANES, POSTGRES, SANDBOX, Stage

AGENT_WRITES: Final = {"actor": "agent", "writesOnly": True}


@dataclass(frozen=True)
class Fault(ABC):
    """One thing that breaks, and for how many seconds it stays so."""

    kind: ClassVar[str]
    hold: float

    @abstractmethod
    def inject(self, stage: Stage) -> None:
        """Break it."""


@dataclass(frozen=True)
class Killed(Fault):
    """SIGKILL; it is started again when it is repaired."""

    kind = "killed"
    program: str

    def inject(self, stage: Stage) -> None:
        stage.programs[self.program].kill()


@dataclass(frozen=True)
class Paused(Fault):
    """SIGSTOP, then SIGCONT: of agents also for longer than a lease."""

    kind = "paused"
    program: str

    def inject(self, stage: Stage) -> None:
        stage.programs[self.program].suspend()


@dataclass(frozen=True)
class DatabaseRestarted(Fault):
    """PostgreSQL is shut down in the midst of work, and started again."""

    kind = "database restarted"

    def inject(self, stage: Stage) -> None:
        stage.restart_postgres(politely=True)


@dataclass(frozen=True)
class SessionsCut(Fault):
    """PostgreSQL ends every session."""

    kind = "database sessions cut"

    def inject(self, stage: Stage) -> None:
        stage.cut_database_connections()


@dataclass(frozen=True)
class BadWeather(Fault):
    """A connection between two processes is slow, loses connections, swallows everything, or is closed."""

    kind = "network"
    proxy: str
    weather: Weather

    def inject(self, stage: Stage) -> None:
        stage.proxies[self.proxy].set(self.weather)


@dataclass(frozen=True)
class CloudErrors(Fault):
    """The cloud throttles, fails, loses answers, shows late, or ends a listing early."""

    kind = "cloud"
    what: str
    knobs: dict[str, Any] = field(hash=False)

    def inject(self, stage: Stage) -> None:
        stage.turn_knobs(self.knobs)


@dataclass(frozen=True)
class WrongClock(Fault):
    """A process's wall clock jumps, and jumps back when it is repaired."""

    kind = "clock"
    program: str
    seconds: int

    def inject(self, stage: Stage) -> None:
        stage.programs[self.program].set_clock(self.seconds)


CLOUD: Final[dict[str, dict[str, Any]]] = {
    "throttles": {"throttle": [{"rate": 3, "burst": 2, "actor": "agent"}]},
    "answers 500": {"fail": [{"actor": "agent", "times": 4}]},
    "answers 500 to writes": {"fail": [{**AGENT_WRITES, "times": 2}]},
    "answers 500 having done it": {"fail": [{**AGENT_WRITES, "when": "after", "times": 2}]},
    "loses answers having done it": {"fail": [{**AGENT_WRITES, "when": "after", "cut": True, "times": 2}]},
    "shows writes late": {"lateVisibility": [{"seconds": 2.0}]},
    "ends pages early": {"pageSize": 1, "failPage": [{"page": 2, "times": None, "actor": "agent"}]},
    "is slow": {"latency": [{"seconds": 0.3, "actor": "agent"}]},
}
WEATHER: Final[dict[str, Weather]] = {
    "slow": Weather(delay=0.25),
    "lossy": Weather(delay=0.02, loss=0.15),
    "swallowing": Weather(is_stalled=True),
    "closed": Weather(is_closed=True),
}
PROXIES: Final = (
    *(f"{name}→planes" for name in AGENTS),
    *(f"{name}→{SANDBOX}" for name in AGENTS),
    *(f"{name}→{POSTGRES}" for name in PLANES),
)


def _killed(dice: random.Random) -> Fault:
    return Killed(dice.uniform(0.2, 2.0), dice.choice([*AGENTS, *PLANES, POSTGRES]))


def _paused(dice: random.Random) -> Fault:
    program = dice.choice([*AGENTS, *AGENTS, *PLANES, POSTGRES, SANDBOX])
    long = dice.random() < 0.3 and program in AGENTS
    return Paused(dice.uniform(7.5, 10.0) if long else dice.uniform(0.5, 3.0), program)


def _database(dice: random.Random) -> Fault:
    hold = dice.uniform(0.2, 1.0)
    return DatabaseRestarted(hold) if dice.random() < 0.5 else SessionsCut(hold)


def _network(dice: random.Random) -> Fault:
    return BadWeather(dice.uniform(0.5, 3.0), dice.choice(PROXIES), WEATHER[dice.choice(sorted(WEATHER))])


def _cloud(dice: random.Random) -> Fault:
    what = dice.choice(sorted(CLOUD))
    return CloudErrors(dice.uniform(1.0, 3.0), what, CLOUD[what])


def _clock(dice: random.Random) -> Fault:
    program = dice.choice([*AGENTS, *PLANES, POSTGRES])
    # What PostgreSQL stamped with a time that has yet to come is waited for: an hour would be legal, and long.
    jumps = [-60, -5, 5, 60] if program == POSTGRES else [-3600, -60, -5, 5, 60, 3600]
    return WrongClock(dice.uniform(1.5, 3.0), program, dice.choice(jumps))


Storm: TypeAlias = tuple[Fault, ...]
"""What happens at once; repaired at once too."""
ORDER: Final = (CloudErrors, WrongClock, DatabaseRestarted, SessionsCut, BadWeather, Killed, Paused)
"""In which order a storm begins: whoever must be asked to break is asked first."""
KINDS: Final[dict[str, Callable[[random.Random], Fault]]] = {
    "killed": _killed,
    "paused": _paused,
    "database": _database,
    "network": _network,
    "cloud": _cloud,
    "clock": _clock,
}


def missing() -> str | None:
    """Which kind of fault this machine cannot try, and why."""
    return None if clocks() is not None else "no clock jumps: install Debian's faketime"


def draw(dice: random.Random, count: int) -> list[Storm]:
    """So many faults, in storms of one to three at once: every kind as often as any other, in an order of the dice."""
    able = [name for name in KINDS if name != "clock" or missing() is None]
    kinds: list[str] = []
    while len(kinds) < count:
        round_of = list(able)
        dice.shuffle(round_of)
        kinds += round_of
    faults = [KINDS[name](dice) for name in kinds[:count]]
    storms: list[Storm] = []
    while faults:
        storm = [faults.pop()]
        for _ in range(dice.randint(0, 2)):
            if faults and _are_compatible(storm, faults[-1]):
                storm.append(faults.pop())
        storms.append(tuple(sorted(storm, key=lambda fault: ORDER.index(type(fault)))))
    return storms


def _are_compatible(storm: list[Fault], fault: Fault) -> bool:
    """Whether a fault can be injected beside others: none of its kind, and nothing is asked of what does not answer."""
    if any(type(fault) is type(other) for other in storm):
        return False
    every = [*storm, fault]
    is_silent = any(isinstance(one, Killed | Paused) and one.program == POSTGRES for one in every)
    return not (is_silent and any(isinstance(one, DatabaseRestarted | SessionsCut) for one in every))
