"""PostgreSQL servers that somebody runs already: what is declared of them, and the roles that links make inside.

The roles serve every PostgreSQL, whoever runs it: the managed databases of the clouds too. Nothing here decides.
"""

from fractal_cloud.offers.offer import Provider, Session
from fractal_cloud.offers.postgres.roles import (
    Role,
    Server,
    dsn_setting,
    find_roles,
    grant,
    leave,
    revoke,
    server_from_setting,
)

__all__ = [
    "PROVIDER",
    "Role",
    "Server",
    "dsn_setting",
    "find_roles",
    "grant",
    "leave",
    "revoke",
    "server_from_setting",
]


def _connect() -> Session:
    from fractal_cloud.offers.postgres.cloud import PostgresSession

    return PostgresSession()


PROVIDER = Provider(name="postgres", title="PostgreSQL", connect=_connect)
