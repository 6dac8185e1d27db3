"""The accounts of the sandbox's AWS: the one that its keys belong to, and others that roles lead to.

moto keeps resources by account, and knows which account a key opens. This says which account the call under way is in,
and whose a key is that `AssumeRole` made: what an agent does in a role of another account is still the agent's doing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.iam.models import get_account_id_from

from fractal_sandbox.aws import AGENT_ACCESS_KEY
from fractal_sandbox.calls import Actor, Call

__all__ = ["Accounts", "current", "within"]

_current: ContextVar[str] = ContextVar("fractal_sandbox_aws_account", default=DEFAULT_ACCOUNT_ID)
_LEADS_ON: Final = frozenset({"AssumeRole", "AssumeRoleWithSAML", "AssumeRoleWithWebIdentity"})


def current() -> str:
    """Return the account that the call under way is in."""
    return _current.get()


@contextmanager
def within(account: str) -> Iterator[None]:
    """Let what is read inside be that of an account."""
    token = _current.set(account)
    try:
        yield
    finally:
        _current.reset(token)


class Accounts:
    """Which keys roles have given out, and to whom."""

    def __init__(self) -> None:
        self._actors: dict[str, Actor] = {}
        self.known: set[str] = set()
        self.reset()

    def reset(self) -> None:
        """Forget all keys of roles, as moto does."""
        self._actors = {AGENT_ACCESS_KEY: "agent"}
        self.known = {DEFAULT_ACCOUNT_ID}

    def actor(self, access_key: str) -> Actor:
        """Return whose key this is."""
        return self._actors.get(access_key, "person")

    def of(self, access_key: str) -> str:
        """Return the account that a key opens."""
        return get_account_id_from(access_key)

    def note(self, call: Call, answer: dict[str, Any]) -> None:
        """Remember whom a role was given to."""
        if call.service != "sts" or call.operation not in _LEADS_ON:
            return
        key = str((answer.get("Credentials") or {}).get("AccessKeyId") or "")
        if key:
            self._actors[key] = call.actor
            self.known.add(self.of(key))
