"""Turns a token into who it belongs to; what was looked up is believed for a few seconds."""

from __future__ import annotations

import hmac
import threading
import time

from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.store import Store, tokens

BELIEVED_SECONDS = 5.0
_MOST_REMEMBERED = 10_000
ADMIN = Principal("admin", "admin", Role.ADMIN)


class Authenticator:
    """Knows the admin's token by heart, and every other from the store."""

    def __init__(self, store: Store, admin_token: str) -> None:
        self._store = store
        self._admin_hash = tokens.hashed(admin_token)
        self._known: dict[str, tuple[float, Principal | None]] = {}
        self._lock = threading.Lock()

    def remembered(self, secret: str) -> Principal | None:
        """Who it is, if that is known without asking the store."""
        secret_hash = tokens.hashed(secret)
        if hmac.compare_digest(secret_hash, self._admin_hash):
            return ADMIN
        until, principal = self._known.get(secret_hash, (0.0, None))
        return principal if until > time.monotonic() else None

    def look_up(self, secret: str) -> Principal | None:
        """Who it is, by the store's word; None for a token nobody has."""
        secret_hash = tokens.hashed(secret)
        with self._store.read() as tx:
            row = tokens.find(tx, secret_hash)
        if row is None:
            return None
        principal = Principal(row.id, row.name, Role(row.role), frozenset(row.providers))
        with self._lock:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[secret_hash] = (time.monotonic() + BELIEVED_SECONDS, principal)
        return principal

    def forget(self) -> None:
        """Ask the store again for everybody: a token was revoked."""
        with self._lock:
            self._known.clear()
