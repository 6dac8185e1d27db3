"""Who speaks, in which role, and what that role may reach."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from fractal_cloud.control.store.tokens import WAITS
from fractal_cloud.control.store.visibility import Environments
from fractal_cloud.rules.grants import Grants

_BY_ENVIRONMENT: Final = (
    "/livesystems",
    "/components",
    "/whoami",
    "/events",
    "/agents",
    "/scopes",
    "/sealing-keys",
    "/realms",
    "/notifications",
    "/offers",
    "/openapi.json",
)
"""Routes that answer with what is in an environment alone, or with what is the same for all."""


class Role(StrEnum):
    """What a token is for: everything, everything but tokens, only reading, or only the agents' protocol."""

    ADMIN = "admin"
    OPERATOR = "operator"
    READER = "reader"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Principal:
    """The bearer of a token, and the patterns of what it is bound to.

    ``waits``: the token stood in a backup that was restored, and no admin has confirmed it yet (C9). ``has_expired``:
    it was valid until ``expires_at``.
    """

    id: str
    name: str
    role: Role
    providers: frozenset[str] = frozenset()
    waits: bool = False
    environments: frozenset[str] = frozenset()
    realms: frozenset[str] = frozenset()
    expires_at: datetime | None = None
    has_expired: bool = False

    @property
    def grants(self) -> Grants:
        """What an agent with this token may serve (A1)."""
        return Grants(self.providers, self.environments, self.realms)

    def may_serve(self, provider: str, environment: str, realm: str, name: str = "") -> bool:
        """Whether an agent with this token may serve a realm, reached in an environment by its id or this name (A1)."""
        return self.grants.may_serve(provider, environment, realm, name)

    @property
    def refusal(self) -> str:
        """Why nothing may be done with this token, whatever its role; empty where it is accepted."""
        if self.has_expired:
            at = f"{self.expires_at:%Y-%m-%d %H:%M} UTC"
            return f"it expired at {at}: ask an admin to run `fractal token rotate {self.name}`"
        return WAITS if self.waits else ""

    @property
    def is_accepted(self) -> bool:
        """Whether the token opens anything at all."""
        return not self.refusal

    @property
    def sees(self) -> Environments:
        """The environments a reader or an operator is bound to; None for all of them."""
        is_bound = self.role in (Role.READER, Role.OPERATOR) and self.environments
        return self.environments if is_bound else None

    def may(self, method: str, path: str) -> bool:
        """Whether the role reaches a route; what is about all environments is not for those who are bound to some."""
        if self.role is Role.ADMIN:
            return True
        if self.sees is not None and not path.startswith(_BY_ENVIRONMENT):
            return False
        is_agents = path.startswith("/agent/")
        if self.role is Role.AGENT:
            return is_agents
        if is_agents or path == "/tokens" or path.startswith("/tokens/"):
            return False
        return self.role is Role.OPERATOR or method in ("GET", "HEAD")
