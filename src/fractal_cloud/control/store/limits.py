"""How much of a database one process uses, and how long it waits for it, before it says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server process takes of PostgreSQL; SQLite, which is this process's own, needs none of it.

    ``connections``: at most so many, and one more that listens. ``wait_seconds``: for one of them to be free.
    ``statement_seconds``: for one statement. ``lock_seconds``: for a row somebody else holds. ``idle_seconds``: for a
    transaction that does nothing; its process hangs, and others wait for what it holds.
    """

    connections: int = 20
    wait_seconds: float = 5.0
    statement_seconds: float = 30.0
    lock_seconds: float = 10.0
    idle_seconds: float = 60.0

    @property
    def session(self) -> dict[str, str]:
        """The settings of every PostgreSQL session, as its SET takes them.

        What is asked for is nearly always a few rows by their keys, which lie in memory: PostgreSQL is told that an
        index costs no more than that. Left to think of turning disks, it reads a whole table of some hundred rows.
        """
        return {
            "statement_timeout": f"{self.statement_seconds * 1000:.0f}ms",
            "lock_timeout": f"{self.lock_seconds * 1000:.0f}ms",
            "idle_in_transaction_session_timeout": f"{self.idle_seconds * 1000:.0f}ms",
            "random_page_cost": "1.1",
        }


DEFAULT_LIMITS = Limits()
