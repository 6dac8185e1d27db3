"""The accounts that one agent works in: whose credentials sign a call, and how many calls a second it may make.

The clients of the SDK are shared by all accounts, because each takes a megabyte: what differs is found when a request
is signed. How credentials are fetched stands in the session.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from pydantic import Field, model_validator

from fractal_cloud.model.errors import Throttled
from fractal_cloud.model.realm_entry import RealmEntry

LONGEST_WAIT: Final = 20.0
"""How long, in seconds, a call may wait for its turn; later it counts as throttled, and the agent backs off."""

_ROLE: Final = r"^arn:aws[a-z-]*:iam::\d{12}:role/[A-Za-z0-9_+=,.@/-]+$"


class AwsRealm(RealmEntry):
    """An account: reached by a role, by a profile of the SDK's configuration, or by the agent's own credentials.

    ``calls_per_second``: the most that this agent calls AWS for it, so that others have their share of AWS's limits.
    """

    account: str = Field(default="", pattern=r"^(\d{12})?$")
    role: str = Field(default="", pattern=f"{_ROLE}|^$")
    external_id: str = Field(default="", max_length=1224)
    profile: str = ""
    calls_per_second: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _is_one_account(self) -> AwsRealm:
        if self.role and self.profile:
            raise ValueError("role and profile are two ways: a profile may name the role itself")
        if self.external_id and not self.role:
            raise ValueError("externalId goes with role")
        if self.role and self.account not in ("", self.in_role):
            raise ValueError(f"account is {self.account!r}, but the role is in {self.in_role!r}")
        if not self.role and not self.account:
            raise ValueError("account is missing: without a role nothing says which one is meant")
        return self

    @property
    def in_role(self) -> str:
        """The account that the role's ARN names."""
        return self.role.split(":")[4] if self.role else ""

    @property
    def expected(self) -> str:
        """The id of the account that must answer."""
        return self.account or self.in_role


_acting: ContextVar[str] = ContextVar("fractal_cloud_aws_account", default="")


@contextmanager
def acting_in(account: str) -> Iterator[None]:
    """Sign the calls of this thread inside with the credentials of an account; empty: with the agent's own."""
    token = _acting.set(account)
    try:
        yield
    finally:
        _acting.reset(token)


class AccountCredentials:
    """What the SDK takes for its one set of credentials: those of the account that this thread is acting in.

    It has the attributes that the SDK asks its own class for. ``own``: the agent's; None where it has none.
    """

    method: Final = "fractal-cloud-accounts"

    def __init__(self, own: Any) -> None:
        self._own = own
        self._sources: dict[str, Any] = {}

    def add(self, account: str, source: Any) -> None:
        """Let ``source``, credentials of the SDK, sign for an account."""
        self._sources[account] = source

    def load_credentials(self) -> AccountCredentials:
        """How the SDK asks its provider of credentials for them."""
        return self

    def _current(self) -> Any:
        account = _acting.get()
        return self._sources[account] if account else self._own

    def get_frozen_credentials(self) -> Any:
        """The credentials of this moment, renewed if need be."""
        current = self._current()
        return None if current is None else current.get_frozen_credentials()

    def get_deferred_property(self, name: str) -> Callable[[], Any]:
        """How the SDK asks for what is known only after credentials were fetched."""

        def found() -> Any:
            return getattr(self._current(), name, None)

        return found

    @property
    def access_key(self) -> str | None:
        """The key's public part."""
        return getattr(self.get_frozen_credentials(), "access_key", None)

    @property
    def secret_key(self) -> str | None:
        """The key's secret part."""
        return getattr(self.get_frozen_credentials(), "secret_key", None)

    @property
    def token(self) -> str | None:
        """The session's part."""
        return getattr(self.get_frozen_credentials(), "token", None)


class Pace:
    """Lets calls through at most so often a second, evenly; safe to share by threads."""

    def __init__(
        self,
        calls_per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._gap = 1 / calls_per_second
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self, account: str) -> None:
        """Wait for the next turn; raises ``Throttled`` where too many are waiting already."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            if turn - now > LONGEST_WAIT:
                refused = Throttled(
                    f"the agent's own limit for account {account} is reached ({1 / self._gap:g} calls a second): "
                    "raise callsPerSecond in its file of realms, or leave it some cycles"
                )
                refused.after_seconds = turn - now
                raise refused
            self._next = turn + self._gap
        if turn > now:
            self._sleep(turn - now)
