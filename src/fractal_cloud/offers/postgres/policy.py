"""What the agent's user at a PostgreSQL server needs, and no more: to make roles, and to grant what it owns."""

from __future__ import annotations

from typing import Final

_POLICY: Final = """\
-- For psql, once for each database that is linked to:  psql -v database=orders -f FILE
-- Then give the user a password (\\password fractal), and put it into FRACTAL_POSTGRES_DSN_<LIVESYSTEM>_<COMPONENT>.
-- Tables that somebody else owns it cannot grant: ALTER TABLE … OWNER TO fractal, for those that links may use.
SELECT 'CREATE ROLE fractal LOGIN CREATEROLE'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'fractal') \\gexec
ALTER DATABASE :"database" OWNER TO fractal;
"""


def policy() -> str:
    """The statements that make such a user; it is no superuser."""
    return _POLICY
