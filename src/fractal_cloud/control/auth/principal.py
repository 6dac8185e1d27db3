"""Who speaks, in which role, and what that role may reach."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a token is for: everything, everything but tokens, only reading, or only the agents' protocol."""

    ADMIN = "admin"
    OPERATOR = "operator"
    READER = "reader"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Principal:
    """The bearer of a token; ``providers`` empty means that an agent may speak for all.

    ``waits``: the token stood in a backup that was restored, and no admin has confirmed it yet (C9).
    """

    id: str
    name: str
    role: Role
    providers: frozenset[str] = frozenset()
    waits: bool = False

    def may(self, method: str, path: str) -> bool:
        """Whether the role reaches a route."""
        if self.role is Role.ADMIN:
            return True
        is_agents = path.startswith("/agent/")
        if self.role is Role.AGENT:
            return is_agents
        if is_agents or path == "/tokens" or path.startswith("/tokens/"):
            return False
        return self.role is Role.OPERATOR or method in ("GET", "HEAD")
