"""How many scopes an agent may hold: all that have work are spread evenly among the living agents that reach them.

Scopes that the same agents reach are one pool. Of N scopes and k agents each holds N // k, and N % k of them one more:
those who have one more already, then whoever asks first. What is computed here is a wish: who holds what is decided by
the rows of ``scopes`` alone, so a share that was computed from an old look is only uneven for a moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

Realm = tuple[str, str]
"""A provider, and an account (or the like) there."""


@dataclass(slots=True)
class Pool:
    """The scopes that the same living agents reach: in which realms, how many, and how many each agent holds."""

    agents: frozenset[str]
    realms: set[Realm] = field(default_factory=set)
    scopes: int = 0
    held: Counter[str] = field(default_factory=Counter)

    @property
    def floor(self) -> int:
        """What every agent holds at least, once all is spread."""
        return self.scopes // len(self.agents)

    @property
    def free(self) -> int:
        """How many nobody alive holds."""
        return self.scopes - self.held.total()

    @property
    def _rest(self) -> int:
        return self.scopes % len(self.agents)

    def room(self, agent: str) -> int:
        """How many more an agent may take: up to its share, and one more while such places are left."""
        others_with_more = sum(1 for other in self.agents if other != agent and self.held[other] > self.floor)
        most = self.floor + (1 if others_with_more < self._rest else 0)
        return max(0, most - self.held[agent])

    def surplus(self, agent: str) -> int:
        """How many an agent holds beyond its share; those who hold most keep the one more that some may have."""
        above = sorted((a for a in self.agents if self.held[a] > self.floor), key=lambda a: (-self.held[a], a))
        most = self.floor + (1 if agent in above[: self._rest] else 0)
        return max(0, self.held[agent] - most)


def pools(
    agent: str, reaches: Mapping[str, Iterable[Realm]], counts: Iterable[tuple[Realm, str | None, int]]
) -> list[Pool]:
    """The pools of one agent: ``reaches`` of all living agents; ``counts`` of scopes with work by realm and holder.

    A holder that is not alive holds nothing.
    """
    reached: dict[Realm, set[str]] = defaultdict(set)
    for name, realms in reaches.items():
        for realm in realms:
            reached[realm].add(name)
    found: dict[frozenset[str], Pool] = {}
    for realm, holder, many in counts:
        agents = frozenset(reached[realm] | {agent})
        pool = found.setdefault(agents, Pool(agents))
        pool.realms.add(realm)
        pool.scopes += many
        if holder in agents:
            pool.held[str(holder)] += many
    return list(found.values())


def to_give_back(surplus: int) -> int:
    """How many of a surplus are asked back at once: half of it, so that a newcomer gets its share in a few rounds."""
    return (surplus + 1) // 2


def asked_back(agent: str, of: Sequence[Pool], held: Mapping[str, Realm]) -> list[str]:
    """The scopes an agent is asked to give back, of those it holds (key to realm): the last by key."""
    found: list[str] = []
    for pool in of:
        own = sorted(key for key, realm in held.items() if realm in pool.realms)
        count = to_give_back(pool.surplus(agent))
        found += own[len(own) - count :] if count else []
    return found
