"""Turns a token into who it belongs to; what was looked up is believed for a few seconds."""

from __future__ import annotations

import hmac
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.store import Store, tokens
from fractal_cloud.control.store.database import DatabaseError, utc_now
from fractal_cloud.control.store.failures import DatabaseUnavailable
from fractal_cloud.model.access_token import can_be_a_token

BELIEVED_SECONDS: Final = 5.0
USED_SECONDS: Final = 120.0
"""A token that was used in so many seconds is looked up again together with whichever is asked for."""
_MOMENT: Final = 0.1
_MOST_REMEMBERED: Final = 10_000
ADMIN: Final = Principal(tokens.ADMIN_ID, "admin", Role.ADMIN)


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
        return self.remembered_hash(tokens.hashed(secret))

    def remembered_hash(self, secret_hash: str) -> Principal | None:
        """The same of a token of which only the hash is at hand."""
        if hmac.compare_digest(secret_hash, self._admin_hash):
            return ADMIN
        known = self._known.get(secret_hash)
        if known is None:
            return None
        known.used = self._now()
        return known.principal if known.until > known.used else None

    def was_known(self, secret: str) -> bool:
        """Whether it was somebody's when it was last looked up, a while ago or just now."""
        return tokens.hashed(secret) in self._known

    def verify(self, secret: str) -> Principal | None:
        """Who it is, as the store has it; None for a token nobody has.

        A text that is no token of ours is refused without asking: guessing costs the database nothing.
        """
        secret_hash = tokens.hashed(secret)
        if hmac.compare_digest(secret_hash, self._admin_hash):
            return ADMIN
        return self._verified(secret_hash) if can_be_a_token(secret) else None

    def of_hash(self, secret_hash: str) -> Principal | None:
        """Who a token belongs to of which only the hash is at hand: that of a session, or of a request that is open."""
        return self.remembered_hash(secret_hash) or self._verified(secret_hash)

    def _verified(self, secret_hash: str) -> Principal | None:
        """Who it is, as the store has it.

        Whoever was known until now has all others in use looked up by the same statement: a thousand agents that come
        every few seconds cost one read in ``BELIEVED_SECONDS``, not one each. Who comes meanwhile waits a moment for
        it, and then asks for itself alone.
        """
        if secret_hash not in self._known or not self._renewing.acquire(timeout=_MOMENT):
            return self._ask(secret_hash, ())
        try:
            return self.remembered_hash(secret_hash) or self._ask(secret_hash, self._in_use())
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
        found = {row.hash: _principal(row) for row in rows}
        self._note_uses(rows)
        with self._lock:
            if forgotten == self._forgotten:  # else one of them may have been revoked since it was read
                self._remember(asked, found, began)
        return found.get(secret_hash)

    def _note_uses(self, rows: Iterable[Any]) -> None:
        """Store when tokens were last used, now and then; of agents' that is known from their heartbeats."""
        due = {row.id for row in rows if row.role != Role.AGENT and _is_use_due(row)}
        if due:
            with suppress(DatabaseError, DatabaseUnavailable), self._store.write() as tx:  # reading goes on without it
                tokens.note_uses(tx, due)

    def note_expired_use(self, principal: Principal) -> None:
        """Record that somebody came with a token that has expired."""
        with self._store.write() as tx:
            tokens.note_expired_use(tx, principal.id)

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


def _principal(row: Any) -> Principal:
    return Principal(
        row.id,
        row.name,
        Role(row.role),
        providers=frozenset(row.providers),
        waits=row.waits,
        environments=frozenset(row.environments),
        realms=frozenset(row.realms),
        expires_at=row.expires_at,
        has_expired=row.expires_at is not None and row.expires_at <= (row.now or utc_now()),
    )


def _is_use_due(row: Any) -> bool:
    now = row.now or utc_now()
    is_valid = row.expires_at is None or row.expires_at > now
    return is_valid and (row.last_used_at is None or row.last_used_at <= now - tokens.USE_NOTED_EVERY)
