"""How many scopes an agent may hold: all that have work are spread evenly among the living agents that reach them.

Scopes that the same agents may serve are one pool. Of N scopes and k agents each holds N // k, and N % k of them one
more: those who have one more already, then whoever asks first. What is computed here is a wish: who holds what is
decided by the rows of ``scopes`` alone, so a share that was computed from an old snapshot is only uneven for a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fractal_cloud.rules.grants import missing

Realm = tuple[str, str]
"""A provider, and an account (or the like) there."""


class Place(NamedTuple):
    """A realm, and what is in some of its scopes: an environment, or the label of one that several share (A1)."""

    provider: str
    realm: str
    label: str


class Reaching(NamedTuple):
    """What agents reach, and the patterns of the environments that their tokens are bound to."""

    realms: frozenset[Realm]
    environments: frozenset[str]

    def may_lease(self, place: Place, inside: frozenset[str]) -> bool:
        """Whether they may lease scopes of a place in which these environments are."""
        return (place.provider, place.realm) in self.realms and not missing(self.environments, inside)


@dataclass(slots=True)
class Pool:
    """The scopes that the same living agents may serve: how many of both, where, and how many each agent holds."""

    agents: int
    places: set[Place] = field(default_factory=set)
    scopes: int = 0
    held: Counter[str] = field(default_factory=Counter)

    @property
    def floor(self) -> int:
        """What every agent holds at least, once all is spread."""
        return self.scopes // self.agents

    @property
    def free(self) -> int:
        """How many nobody alive holds."""
        return self.scopes - self.held.total()

    @property
    def _rest(self) -> int:
        return self.scopes % self.agents

    def capacity_for(self, agent: str) -> int:
        """How many more scopes an agent may lease: up to its share, and one more while such places are left."""
        others_with_more = sum(1 for other, many in self.held.items() if other != agent and many > self.floor)
        most = self.floor + (1 if others_with_more < self._rest else 0)
        return max(0, most - self.held[agent])

    def surplus(self, agent: str) -> int:
        """How many an agent holds beyond its share; those who hold most keep the one more that some may have."""
        above = sorted((a for a, many in self.held.items() if many > self.floor), key=lambda a: (-self.held[a], a))
        most = self.floor + (1 if agent in above[: self._rest] else 0)
        return max(0, self.held[agent] - most)


def pools(
    of: Reaching,
    reaches: Mapping[Reaching, int],
    counts: Iterable[tuple[Place, str | None, int]],
    inside: Mapping[str | None, frozenset[str]],
) -> list[Pool]:
    """The pools that an agent may lease from, from how many of the living reach what, and scopes by place and holder.

    ``of``: what the agent reaches. ``inside``: the environments that each label stands for.
    """
    found: dict[frozenset[Reaching], Pool] = {}
    for place, holder, many in counts:
        environments = inside[place.label]
        if not of.may_lease(place, environments):
            continue
        reaching = frozenset(reach for reach in reaches if reach.may_lease(place, environments))
        pool = found.setdefault(reaching, Pool(max(1, sum(reaches[reach] for reach in reaching))))
        pool.places.add(place)
        pool.scopes += many
        if holder is not None:
            pool.held[holder] += many
    return list(found.values())


def to_give_back(surplus: int) -> int:
    """How many of a surplus are asked back at once: half of it, so that a newcomer gets its share in a few rounds."""
    return (surplus + 1) // 2


def asked_back(agent: str, of: Sequence[Pool], held: Mapping[str, Place]) -> list[str]:
    """The scopes an agent is asked to give back, of those it holds (key to place): the last by key."""
    found: list[str] = []
    for pool in of:
        own = sorted(key for key, place in held.items() if place in pool.places)
        count = to_give_back(pool.surplus(agent))
        found += own[len(own) - count :] if count else []
    return found
