"""How much of a database one process uses, and how long it waits for it, before it says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server process uses of a PostgreSQL; SQLite, which is this process's own, needs no limits.

    ``connections``: at most so many, and one more that listens. ``wait_seconds``: for one of them to be free.
    ``statement_seconds``: for one statement. ``lock_seconds``: for a row somebody else holds. ``idle_seconds``: for a
    transaction that does nothing; its process hangs, and others wait for what it holds.
    """

    connections: int = 20
    wait_seconds: float = 5.0
    statement_seconds: float = 30.0
    lock_seconds: float = 10.0
    idle_seconds: float = 60.0


DEFAULT_LIMITS = Limits()
