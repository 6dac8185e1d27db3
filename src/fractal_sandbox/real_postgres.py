"""The real database behind the sandbox's managed ones: a PostgreSQL that somebody started, named by its address."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit

__all__ = ["REAL_POSTGRES", "SETTING", "RealServer"]

SETTING = "FRACTAL_SANDBOX_POSTGRES_URL"


class RealServer:
    """Where managed databases lead: set by a test, or by the environment of `fractal sandbox`; None: nowhere."""

    def __init__(self) -> None:
        self._url: str | None = None

    def set(self, url: str | None) -> None:
        """Lead all databases that are created from now on to that server: `postgresql://user:password@host:port`."""
        self._url = url

    def get(self) -> SplitResult | None:
        url = self._url or os.environ.get(SETTING)
        return urlsplit(url) if url else None

    def let_in(self, role: str, password: str) -> None:
        """Have the server know somebody who may make roles, by that password; where there is a server."""
        if self.get() is None:
            return
        import psycopg
        from psycopg import sql

        name, secret = sql.Identifier(role), sql.Literal(password)
        with psycopg.connect(self._url or os.environ[SETTING], autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [role]).fetchone():
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEROLE").format(name))
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, secret))


REAL_POSTGRES = RealServer()
