"""Roles for links inside a PostgreSQL server, whoever runs it: made, checked, and taken away again.

A role bears the link's mark as its comment (L17); one without it is somebody else's and is left alone. Passwords reach
the server as SCRAM verifiers only, so that none stands in its log. A user who may not make roles does it by a function
that an administrator made for it, where there is one (`fractal agent policy --provider postgres --with-links`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, LiteralString

from fractal_cloud.model.errors import CloudError, Conflict, Denied, Invalid, Transient, Unreadable
from fractal_cloud.offers.link_types import Access, DatabaseLink
from fractal_cloud.offers.secret import Secret

if TYPE_CHECKING:
    from psycopg import Connection

MARK: Final = "fractal-cloud-link:"
CONNECT_SECONDS: Final = 10
STATEMENT_MILLISECONDS: Final = 20_000
_LONGEST_NAME: Final = 63
_GRANTS: Final[dict[Access, dict[str, LiteralString]]] = {
    "read-only": {"TABLES": "SELECT", "SEQUENCES": "SELECT"},
    "read-write": {"TABLES": "SELECT, INSERT, UPDATE, DELETE", "SEQUENCES": "USAGE, SELECT, UPDATE"},
}


@dataclass(frozen=True, slots=True)
class Server:
    """How the server is reached by somebody who may make roles in it.

    ``meant_for``: the one component (``ls-shop/db``) it was given for, where its ``application_name`` says so.
    """

    host: str
    port: int
    user: str
    password: Secret
    database: str = "postgres"
    sslmode: str = "prefer"
    meant_for: str = ""

    @classmethod
    def from_dsn(cls, dsn: str) -> Server:
        """The server that a connection string names."""
        psycopg = _psycopg()
        try:
            parts = psycopg.conninfo.conninfo_to_dict(dsn)
            port = int(str(parts.get("port", 5432)))
        except (psycopg.Error, ValueError):
            # Nothing of what was said of it goes on: the string holds a password.
            text = "the connection string of the database cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/DB"
            raise Invalid(text) from None
        return cls(
            host=str(parts.get("host", "localhost")),
            port=port,
            user=str(parts.get("user", "postgres")),
            password=Secret(str(parts.get("password", ""))),
            database=str(parts.get("dbname", "postgres")),
            sslmode=str(parts.get("sslmode", "prefer")),
            meant_for=str(parts.get("application_name", "")),
        )


@dataclass(frozen=True, slots=True)
class Role:
    """One link's role: its name, the mark it bears, and its rights in one database."""

    name: str
    mark: str
    database: str
    access: Access

    @classmethod
    def of(cls, mark: str, source_id: str, settings: DatabaseLink) -> Role:
        """The role of one link; the same for every try."""
        digest = hashlib.sha256(mark.encode()).hexdigest()[:10]
        readable = re.sub(r"[^a-z0-9]+", "_", source_id)[: _LONGEST_NAME - len(digest) - 4]
        return cls(f"fc_{readable}_{digest}", mark, settings.database, settings.access)

    @property
    def comment(self) -> str:
        """What its comment says: by this it is recognised, and its rights are compared."""
        return f"{MARK}{self.mark} {self.access} on {self.database}"


def dsn_setting(live_system_id: str, component_id: str) -> str:
    """Name the environment variable that may hold one database's connection string, for servers no cloud reports."""
    name = f"{live_system_id}_{component_id}".upper().replace("-", "_")
    return f"FRACTAL_POSTGRES_DSN_{name}"


def server_from_setting(live_system_id: str, component_id: str) -> Server | None:
    """The server that the agent's environment names for a component, if it does.

    The ids of two components may make one name (``ls-a``, ``b-db``; ``ls-a-b``, ``db``): whoever pins the string to the
    one it is meant for keeps the other out.
    """
    setting, asking = dsn_setting(live_system_id, component_id), f"{live_system_id}/{component_id}"
    dsn = os.environ.get(setting)
    if not dsn:
        return None
    server = Server.from_dsn(dsn)
    if "/" in server.meant_for and server.meant_for != asking:
        raise Denied(f"{setting} is meant for another component than {asking!r}: rename it, so that it has its own")
    return server


def find_roles(server: Server) -> dict[str, str]:
    """The comments of all roles that links made in a server and that can log in, by name; one query."""
    with _connected(server) as connection:
        rows = connection.execute(
            "SELECT rolname, shobj_description(oid, 'pg_authid') FROM pg_roles "
            "WHERE rolcanlogin AND shobj_description(oid, 'pg_authid') LIKE %s",
            [f"{MARK}%"],
        )
        return dict(rows.fetchall())


def grant(server: Server, role: Role, password: Secret | None) -> None:
    """Bring the role to its rights; with a password, it has that one from now on. What it lacks is added (L5)."""
    with _connected(server) as connection:
        known = _comment_of(connection, role.name)
        _check_ours(role, known)
        if known is None:
            _create(connection, role.name)
        if password is not None:
            _set_password(connection, role, password)
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [role.database]).fetchone():
            raise Conflict(f"the server has no database {role.database!r}: create it, and the link is carried out")
        _change(connection, "login", role.name)
        _run(connection, "GRANT CONNECT ON DATABASE {} TO {}", role.database, role.name)
    with _connected(replace(server, database=role.database)) as connection:
        _grant_inside(connection, role)
    with _connected(server) as connection:  # last: only a role that is complete says so
        _change(connection, "comment", role.name, role.comment)


def revoke(server: Server, role: Role, databases: set[str]) -> None:
    """Take the role away: its sessions end, what it made stays and goes to the server's own user."""
    with _connected(server) as connection:
        known = _comment_of(connection, role.name)
        if known is None:
            return
        _check_ours(role, known)
        _change(connection, "nologin", role.name)
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", [role.name])
        there = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
    for database in sorted((databases | {server.database}) & there):
        with _connected(replace(server, database=database)) as connection:
            _run(connection, "REASSIGN OWNED BY {} TO CURRENT_USER", role.name)
            _run(connection, "DROP OWNED BY {}", role.name)
    with _connected(server) as connection:
        if _comment_of(connection, role.name) is not None:
            _change(connection, "drop", role.name)


def leave(server: Server, role: Role, database: str) -> None:
    """Take the role's rights in a database away that the link does not name any more; what it made there stays."""
    with _connected(server) as connection:
        if _comment_of(connection, role.name) is None:
            return
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
            return
        _run(connection, "REVOKE ALL ON DATABASE {} FROM {}", database, role.name)
    with _connected(replace(server, database=database)) as connection:
        _run(connection, "REASSIGN OWNED BY {} TO CURRENT_USER", role.name)
        _run(connection, "DROP OWNED BY {}", role.name)


def _check_ours(role: Role, comment: str | None) -> None:
    if comment is not None and comment and not comment.startswith(f"{MARK}{role.mark} "):
        raise Conflict(f"the server has a role {role.name!r} that this link did not make: rename or drop it")


def _comment_of(connection: Connection[Any], name: str) -> str | None:
    """The comment of a role, empty where it has none; None where there is no such role."""
    found = connection.execute(
        "SELECT shobj_description(oid, 'pg_authid') FROM pg_roles WHERE rolname = %s", [name]
    ).fetchone()
    return None if found is None else found[0] or ""


def _set_password(connection: Connection[Any], role: Role, password: Secret) -> None:
    verifier = connection.pgconn.encrypt_password(password.reveal().encode(), role.name.encode(), b"scram-sha-256")
    _change(connection, "password", role.name, verifier.decode())


# Each change of a role, for a user who may make roles. The function for one who may not knows them by the same names.
_CHANGES: Final[dict[str, LiteralString]] = {
    "login": "ALTER ROLE {} LOGIN",
    "nologin": "ALTER ROLE {} NOLOGIN",
    "password": "ALTER ROLE {} PASSWORD ",
    "comment": "COMMENT ON ROLE {} IS ",
    "drop": "DROP ROLE {}",
}
_BY_FUNCTION: Final = (
    "SELECT NOT (rolcreaterole OR rolsuper) "
    "AND to_regprocedure('fractal_cloud.change_role(text, text, text)') IS NOT NULL "
    "FROM pg_roles WHERE rolname = current_user"
)


def _create(connection: Connection[Any], name: str) -> None:
    """Make a role that can log in and has no rights, and be a member of it: so what it makes can be granted."""
    if _is_by_function(connection):
        connection.execute("SELECT fractal_cloud.change_role('create', %s, NULL)", [name])
        return
    _run(connection, "CREATE ROLE {} LOGIN", name)
    _run(connection, "GRANT {} TO CURRENT_USER", name)


def _change(connection: Connection[Any], action: str, name: str, value: str | None = None) -> None:
    if _is_by_function(connection):
        connection.execute("SELECT fractal_cloud.change_role(%s, %s, %s)", [action, name, value])
        return
    statement = _CHANGES[action]
    _run(connection, statement if value is None else statement + _literal(connection, value), name)


def _is_by_function(connection: Connection[Any]) -> bool:
    found = connection.execute(_BY_FUNCTION).fetchone()
    return found is not None and bool(found[0])


def _grant_inside(connection: Connection[Any], role: Role) -> None:
    """The role's rights in its database: on all that is there, and on what is made later, by whomever links let in."""
    _run(connection, "GRANT USAGE ON SCHEMA public TO {}", role.name)
    if role.access == "read-write":
        _run(connection, "GRANT CREATE ON SCHEMA public TO {}", role.name)
    else:
        _run(connection, "REVOKE CREATE ON SCHEMA public FROM {}", role.name)
        _run(connection, "REASSIGN OWNED BY {} TO CURRENT_USER", role.name)  # an owner may always write
    makers = [name for (name,) in connection.execute(_MAKERS, [f"{MARK}%read-write on {role.database}"])]
    for kind, rights in _GRANTS[role.access].items():
        _run(connection, f"REVOKE ALL ON ALL {kind} IN SCHEMA public FROM {{}}", role.name)
        _run(connection, f"GRANT {rights} ON ALL {kind} IN SCHEMA public TO {{}}", role.name)
        for maker in (None, *makers):
            made_by = "ALTER DEFAULT PRIVILEGES " + ("FOR ROLE {} " if maker else "") + "IN SCHEMA public "
            names = (maker, role.name) if maker else (role.name,)
            _run(connection, made_by + f"REVOKE ALL ON {kind} FROM {{}}", *names)
            _run(connection, made_by + f"GRANT {rights} ON {kind} TO {{}}", *names)


_MAKERS: Final = "SELECT rolname FROM pg_roles WHERE shobj_description(oid, 'pg_authid') LIKE %s ORDER BY rolname"


def _run(connection: Connection[Any], statement: LiteralString, *names: str) -> None:
    from psycopg import sql

    connection.execute(sql.SQL(statement).format(*(sql.Identifier(name) for name in names)))


def _literal(connection: Connection[Any], text: str) -> Any:
    """A text as it stands in a statement, braces doubled; PostgreSQL takes no parameters in such statements."""
    from psycopg import sql

    return sql.Literal(text).as_string(connection).replace("{", "{{").replace("}", "}}")


def _psycopg() -> Any:
    try:
        import psycopg
        import psycopg.conninfo
    except ModuleNotFoundError as missing:
        raise Invalid("psycopg is not installed: `pip install 'fractal-cloud[postgres]'` brings it") from missing
    return psycopg


@contextmanager
def _connected(server: Server) -> Iterator[Connection[Any]]:
    """A connection of its own for a few statements; whatever goes wrong is raised as one of the closed set."""
    psycopg = _psycopg()
    try:
        with psycopg.connect(
            host=server.host,
            port=server.port,
            user=server.user,
            password=server.password.reveal() or None,
            dbname=server.database,
            sslmode=server.sslmode,
            connect_timeout=CONNECT_SECONDS,
            options=f"-c statement_timeout={STATEMENT_MILLISECONDS}",
            tcp_user_timeout=STATEMENT_MILLISECONDS,  # a server that went away without a word says no timeout either
            keepalives_idle=CONNECT_SECONDS,
            keepalives_interval=CONNECT_SECONDS // 2,
            keepalives_count=2,
            autocommit=True,
            application_name="fractal-cloud",
        ) as connection:
            yield connection
    except psycopg.Error as error:
        raise _error_of(error, server) from None


def _error_of(error: Any, server: Server) -> CloudError:
    """The server's refusal in our closed set; its words are kept, but for anything after the first line."""
    psycopg = _psycopg()
    code = error.sqlstate or ""
    said = (str(error).strip().splitlines() or ["no answer"])[0]
    where = f"PostgreSQL at {server.host}:{server.port}"
    if code.startswith("28") or code == "42501":
        return Denied(f"{where} refuses user {server.user!r}: {said}", code=code)
    if isinstance(error, psycopg.OperationalError) and not code:
        return Unreadable(f"{where} cannot be reached: {said}")
    if code.startswith(("08", "53", "57")):
        return Transient(f"{where} failed: {said}", code=code)
    return Conflict(f"{where} refuses: {said}", code=code)
