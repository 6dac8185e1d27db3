"""What an agent's token is bound to (A1): providers, environments and realms, each by names or shell-style patterns.

Who holds a token, and which realm a name is bound to, is known elsewhere; here names are only held against patterns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import sha256
from typing import Final


@dataclass(frozen=True, slots=True)
class Grants:
    """Patterns of names; an empty list covers nothing, and only ``*`` covers everything."""

    providers: frozenset[str] = frozenset()
    environments: frozenset[str] = frozenset()
    realms: frozenset[str] = frozenset()

    @classmethod
    def of(cls, providers: Iterable[str], environments: Iterable[str], realms: Iterable[str]) -> Grants:
        """Grants of lists, as they are stored."""
        return cls(frozenset(providers), frozenset(environments), frozenset(realms))

    @property
    def is_complete(self) -> bool:
        """Whether it says all three; a token made before realms were asked for does not."""
        return bool(self.providers and self.environments and self.realms)

    @property
    def digest(self) -> str:
        """What distinguishes these grants from any others."""
        words = [sorted(self.providers), sorted(self.environments), sorted(self.realms)]
        return sha256(json.dumps(words).encode()).hexdigest()

    def has_provider(self, provider: str) -> bool:
        """Whether a provider is covered."""
        return _matches(provider, self.providers)

    def has_environment(self, environment: str) -> bool:
        """Whether an environment is covered."""
        return _matches(environment, self.environments)

    def has_realm(self, realm: str) -> bool:
        """Whether a realm is covered, given its id or a name under which it is reached; no realm has an empty one."""
        return bool(realm) and _matches(realm, self.realms)

    def names_realm(self, name: str) -> bool:
        """Whether a name is covered by a pattern that says something of it: ``*`` names nothing in particular."""
        return bool(name) and _matches(name, (pattern for pattern in self.realms if pattern.strip("*?")))

    def may_serve(self, provider: str, environment: str, realm: str, name: str = "") -> bool:
        """Whether all three cover a realm that is reached in an environment, by its id or by its name."""
        covers_realm = self.has_realm(realm) or self.has_realm(name)
        return self.has_provider(provider) and self.has_environment(environment) and covers_realm


NOTHING: Final = Grants()
EVERYTHING: Final = Grants.of("*", "*", "*")


def _matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


@lru_cache(4_096)
def missing(patterns: frozenset[str], names: frozenset[str]) -> frozenset[str]:
    """The names that no pattern covers; the same few are asked for at every claim."""
    return frozenset(name for name in names if not _matches(name, patterns))
