"""Where names are unique, and what finds a resource: never a protocol tag, always offer, scope and name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

ID_PATTERN: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z")
ID_TWICE: Final = "which another component has: give each its own id, and both the same `name` if need be"
"""What is wrong with an id that two components have; their resources may well have one name."""
ID_RULE: Final = "1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit"


def is_id(text: str) -> bool:
    """Whether a text may be the id of a LiveSystem or a component (T9)."""
    return ID_PATTERN.match(text) is not None


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """One unit of work: all components of one provider in one account really reached and one place in it."""

    provider: str
    realm: str
    place: str

    @property
    def key(self) -> str:
        """The scope in one line: ``aws/123456789012/eu-west-1``."""
        return f"{self.provider}/{self.realm}/{self.place}"

    @classmethod
    def from_key(cls, key: str) -> Scope:
        """The scope a key was made from."""
        provider, realm, place = key.split("/", 2)
        return cls(provider, realm, place)


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """The natural identity: offer, scope and name; ``parent`` is the name of the component the name is unique in.

    Two components with equal identities speak of one resource, whoever declares them.
    """

    type: str
    scope: Scope
    name: str
    parent: str = ""

    @property
    def key(self) -> str:
        """The identity in one line, as the control plane stores it."""
        inside = f"{self.parent}/" if self.parent else ""
        return f"{self.type}:{self.scope.key}:{inside}{self.name}"
