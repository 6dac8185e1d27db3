"""Turns a token into who it belongs to; what was looked up is believed for a few seconds."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.store import Store, tokens

BELIEVED_SECONDS: Final = 5.0
USED_SECONDS: Final = 120.0
"""A token that was used in so many seconds is looked up again together with whichever is asked for."""
_MOMENT: Final = 0.1
_MOST_REMEMBERED: Final = 10_000
ADMIN: Final = Principal("admin", "admin", Role.ADMIN)


@dataclass(slots=True)
class _Known:
    """Who a token belongs to, until when that is believed, and when it was last used."""

    principal: Principal
    until: float
    used: float


class Authenticator:
    """Knows the admin's token by heart, and every other from the store; ``now`` reads a clock that nobody sets."""

    def __init__(self, store: Store, admin_token: str, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._admin_hash = tokens.hashed(admin_token)
        self._known: dict[str, _Known] = {}
        self._forgotten = 0
        self._lock = threading.Lock()
        self._renewing = threading.Lock()

    def remembered(self, secret: str) -> Principal | None:
        """Who it is, if that is known without asking the store."""
        secret_hash = tokens.hashed(secret)
        if hmac.compare_digest(secret_hash, self._admin_hash):
            return ADMIN
        known = self._known.get(secret_hash)
        if known is None:
            return None
        known.used = self._now()
        return known.principal if known.until > known.used else None

    def verify(self, secret: str) -> Principal | None:
        """Who it is, as the store has it; None for a token nobody has.

        Whoever was known until now has all others in use looked up by the same statement: a thousand agents that come
        every few seconds cost one read in ``BELIEVED_SECONDS``, not one each. Who comes meanwhile waits a moment for
        it, and then asks for itself alone.
        """
        secret_hash = tokens.hashed(secret)
        if secret_hash not in self._known or not self._renewing.acquire(timeout=_MOMENT):
            return self._ask(secret_hash, ())
        try:
            return self.remembered(secret) or self._ask(secret_hash, self._in_use())
        finally:
            self._renewing.release()

    def _in_use(self) -> list[str]:
        since = self._now() - USED_SECONDS
        with self._lock:
            self._known = {key: known for key, known in self._known.items() if known.used > since}
            return list(self._known)

    def _ask(self, secret_hash: str, besides: Iterable[str]) -> Principal | None:
        began, forgotten = self._now(), self._forgotten
        asked = {secret_hash, *besides}
        with self._store.read() as tx:
            rows = tokens.find(tx, asked)
        found = {
            row.hash: Principal(row.id, row.name, Role(row.role), frozenset(row.providers), row.waits) for row in rows
        }
        with self._lock:
            if forgotten == self._forgotten:  # else one of them may have been revoked since it was read
                self._remember(asked, found, began)
        return found.get(secret_hash)

    def _remember(self, asked: set[str], found: dict[str, Principal], began: float) -> None:
        if len(self._known) + len(found) > _MOST_REMEMBERED:
            self._known.clear()
        for secret_hash in asked - found.keys():
            self._known.pop(secret_hash, None)
        for secret_hash, principal in found.items():
            before = self._known.get(secret_hash)
            used = began if before is None else before.used
            self._known[secret_hash] = _Known(principal, began + BELIEVED_SECONDS, used)

    def forget(self) -> None:
        """Ask the store again for everybody: a token was revoked."""
        with self._lock:
            self._forgotten += 1
            self._known.clear()
