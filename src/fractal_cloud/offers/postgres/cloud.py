"""The session at PostgreSQL servers: which network they are looked for in, and whether one answers.

Nobody logs in here: that a server is there needs no credentials. Roles are made by ``roles``, for links alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from fractal_cloud.model.errors import Unreadable
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.offer import Cloud, Session

NETWORK: Final = "FRACTAL_POSTGRES_NETWORK"
NO_NETWORK: Final = "default"
PING_SECONDS: Final = 10


class PostgresSession(Session):
    """The servers that can be reached from where this process runs."""

    def __init__(self) -> None:
        try:
            import psycopg
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(
                f"{missing.name!r} is not installed: `pip install 'fractal-cloud[postgres]'` brings it",
                name=missing.name,
            ) from missing
        self._sdk: Any = psycopg

    def realms(self) -> Mapping[str, str]:
        """The network in which host names are looked up, as its operator calls it.

        Nobody can be asked for it: the same name may be another server elsewhere, so the operator distinguishes them.
        """
        return {"": os.environ.get(NETWORK, "").strip() or NO_NETWORK}

    def at(self, scope: Scope) -> PostgresCloud:
        """One server: its place is its host and its port."""
        host, _, port = scope.place.rpartition("/")
        return PostgresCloud(self._sdk, scope, host, int(port))


class PostgresCloud(Cloud):
    """One server, as it is seen from outside."""

    def __init__(self, sdk: Any, scope: Scope, host: str, port: int) -> None:
        self._sdk = sdk
        self.scope = scope
        self.host = host
        self.port = port

    def ping(self) -> None:
        """Return if the server answers and takes connections; ``Unreadable`` else: nobody knows then what is there.

        It is asked as `pg_isready` asks, without a user: so no server refuses it.
        """
        address = self._sdk.conninfo.make_conninfo(
            host=self.host, port=self.port, dbname="postgres", connect_timeout=PING_SECONDS
        )
        answers = self._sdk.pq.Ping
        found = self._sdk.pq.PGconn.ping(address.encode())
        if found == answers.OK:
            return
        where = f"PostgreSQL at {self.host}:{self.port}"
        if found == answers.REJECT:
            raise Unreadable(f"{where} is there, but takes no connections now: it starts, stops or recovers")
        raise Unreadable(f"{where} cannot be reached: see whether it runs, and whether the agent may connect to it")
