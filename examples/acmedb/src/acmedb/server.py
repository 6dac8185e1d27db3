"""AcmeDB itself: a proprietary database with an HTTP API, small enough to run on a laptop. It knows nothing of Fractal.

python -m acmedb.server --port 8900 --token of-the-agent --token of-a-person

GET    /account                          who the token belongs to
GET    /databases?after=ID               a page of databases; `next` is where the next one begins
POST   /databases                        make one: name, size, version, maxConnections, deletionProtection, labels
GET    /databases/ID                     one database, with its ETag
PATCH  /databases/ID                     change it; a label that is null goes; If-Match is respected
DELETE /databases/ID?backup=yes          delete it, and keep a last backup; If-Match is respected
GET    /backups                          the names of databases that are gone and left a backup
GET    /users                            the users of all databases, without their passwords
PUT    /databases/ID/users/NAME          make or change a user: keyspace, access, note, password
DELETE /databases/ID/users/NAME          delete a user
POST   /login                            database, user, password: 200 or 401; needs no token
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, urlsplit

ACCOUNT: Final = "acme-0001"
PAGE: Final = 100
SIZES: Final = ("small", "medium", "large")
VERSIONS: Final = ("7", "8")
_CHANGEABLE: Final = ("size", "maxConnections", "deletionProtection")
_DEFAULTS: Final = {"size": "small", "version": "8", "maxConnections": 100, "deletionProtection": False}


class Refused(Exception):
    """A request that is not carried out."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass
class Database:
    """One database. ``users``: by name, each with a hash in place of its password."""

    id: str
    name: str
    values: dict[str, Any]
    labels: dict[str, str]
    ready_at: float
    revision: int = 1
    users: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def etag(self) -> str:
        """Another one after every change, labels included; users are none of it."""
        return f'"{self.id}-{self.revision}"'

    def shown(self, host: str, port: int) -> dict[str, Any]:
        """The database as the API shows it."""
        state = "available" if time.monotonic() >= self.ready_at else "creating"
        about = {"id": self.id, "name": self.name, "state": state, "etag": self.etag, "host": host, "port": port}
        return {**about, **self.values, "labels": dict(self.labels)}


class AcmeServer(ThreadingHTTPServer):
    """The server. ``provision_seconds``: how long a new database is being created."""

    daemon_threads = True

    def __init__(self, tokens: list[str], port: int = 0, host: str = "127.0.0.1") -> None:
        super().__init__((host, port), _Request)
        self.tokens = tokens
        self.provision_seconds = 0.0
        self.lock = threading.RLock()
        self.databases: dict[str, Database] = {}
        self.backups: list[str] = []

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.05,), name="acmedb", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.shutdown()
        self.server_close()

    def forget(self) -> None:
        """Throw everything away."""
        with self.lock:
            self.databases.clear()
            self.backups.clear()
            self.provision_seconds = 0.0

    # --- databases

    def page(self, after: str) -> dict[str, Any]:
        """A page of databases, in the order of their ids."""
        rest = sorted(one for one in self.databases if one > after)
        shown = [self.shown(self.databases[one]) for one in rest[:PAGE]]
        return {"items": shown, "next": rest[PAGE - 1] if len(rest) > PAGE else ""}

    def shown(self, database: Database) -> dict[str, Any]:
        """A database as the API shows it."""
        return database.shown(str(self.server_address[0]), int(self.server_address[1]))

    def create(self, body: Mapping[str, Any]) -> Database:
        """Make a database; its name must be free."""
        name = str(body.get("name", ""))
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
            raise Refused(422, "invalid", f"name {name!r} is not allowed")
        if any(one.name == name for one in self.databases.values()):
            raise Refused(409, "exists", f"there is a database {name!r} already")
        values = {**_DEFAULTS, **{key: body[key] for key in _DEFAULTS if body.get(key) is not None}}
        _check(values)
        made = Database(
            f"db-{secrets.token_hex(4)}", name, values, _labels({}, body), time.monotonic() + self.provision_seconds
        )
        self.databases[made.id] = made
        return made

    def find(self, database_id: str, etag: str | None = None) -> Database:
        """One database, still as the etag says."""
        found = self.databases.get(database_id)
        if found is None:
            raise Refused(404, "unknown", f"there is no database {database_id!r}")
        if etag is not None and etag != found.etag:
            raise Refused(412, "changed", f"database {found.name!r} was changed since {etag}")
        return found

    def change(self, database: Database, body: Mapping[str, Any]) -> None:
        """Change what the body names."""
        fixed = sorted(set(body) - {*_CHANGEABLE, "labels"})
        if fixed:
            raise Refused(422, "fixed", f"{', '.join(fixed)} cannot be changed")
        values = {**database.values, **{key: body[key] for key in _CHANGEABLE if key in body}}
        _check(values)
        database.values = values
        database.labels = _labels(database.labels, body)
        database.revision += 1

    def delete(self, database: Database, *, with_backup: bool) -> None:
        """Delete a database with all its users, unless it is protected."""
        if database.values["deletionProtection"]:
            raise Refused(409, "protected", f"database {database.name!r} has deletionProtection")
        del self.databases[database.id]
        if with_backup:
            self.backups.append(database.name)

    # --- users

    def users(self) -> list[dict[str, Any]]:
        """All users of all databases."""
        found = [(one.id, user) for one in self.databases.values() for user in one.users.values()]
        return [{"database": owner, **{k: v for k, v in user.items() if k != "hash"}} for owner, user in found]

    def put_user(self, database: Database, name: str, body: Mapping[str, Any]) -> None:
        """Make or change a user; one that is there keeps its password where none is given."""
        before = database.users.get(name, {})
        if not before and not body.get("password"):
            raise Refused(422, "invalid", f"user {name!r} is new and needs a password")
        user = {key: str(body.get(key, before.get(key, ""))) for key in ("keyspace", "access", "note")}
        has_new = bool(body.get("password"))
        kept = _hashed(str(body["password"])) if has_new else before["hash"]
        database.users[name] = {"name": name, **user, "hash": kept}

    def login(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Let a user in who knows the password."""
        for database in self.databases.values():
            user = database.users.get(str(body.get("user", "")))
            if database.name == body.get("database") and user is not None:
                if secrets.compare_digest(user["hash"], _hashed(str(body.get("password", "")))):
                    return {"user": user["name"], "keyspace": user["keyspace"], "access": user["access"]}
                break
        raise Refused(401, "login", "no such user, or another password")


def _hashed(password: str) -> str:
    return hashlib.sha256(password.encode()).hexdigest()


def _labels(before: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, str]:
    merged: dict[str, Any] = {**before, **(body.get("labels") or {})}
    return {str(key): str(value) for key, value in merged.items() if value is not None}


def _check(values: Mapping[str, Any]) -> None:
    for name, allowed in (("size", SIZES), ("version", VERSIONS)):
        if values[name] not in allowed:
            raise Refused(422, "invalid", f"{name} is {values[name]!r}: it is one of {', '.join(allowed)}")
    if not isinstance(values["maxConnections"], int) or not 1 <= values["maxConnections"] <= 10_000:
        raise Refused(422, "invalid", "maxConnections is a number between 1 and 10000")
    if not isinstance(values["deletionProtection"], bool):
        raise Refused(422, "invalid", "deletionProtection is true or false")


class _Request(BaseHTTPRequestHandler):
    """One request: who asks, what for, and the answer as JSON."""

    protocol_version = "HTTP/1.1"
    server: AcmeServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the standard library
        """Say nothing."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(length) if length else b"{}"
        etag = ""
        try:
            body = json.loads(text)
            if not isinstance(body, dict):
                raise Refused(400, "invalid", "the body is no object")
            with self.server.lock:
                status, found, etag = self._carry_out(body)
        except ValueError:
            status, found = 400, {"code": "invalid", "message": "the body is no JSON"}
        except Refused as refusal:
            status, found = refusal.status, {"code": refusal.code, "message": refusal.message}
        content = json.dumps(found).encode() if found is not None else b""
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(content)), "ETag": etag}
        for name, value in {**headers, "X-Request-Id": f"acme-{secrets.token_hex(6)}"}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815  # their names in the standard library

    def _carry_out(self, body: Mapping[str, Any]) -> tuple[int, Any, str]:
        """Status, body and etag of the answer."""
        address, server = urlsplit(self.path), self.server
        parts = tuple(address.path.strip("/").split("/"))
        if (self.command, parts) == ("POST", ("login",)):
            return 200, server.login(body), ""
        if self.headers.get("Authorization", "").removeprefix("Bearer ") not in server.tokens:
            raise Refused(401, "token", "the token is unknown")
        match self.command, parts:
            case "GET", ("account",):
                return 200, {"account": ACCOUNT}, ""
            case "GET", ("backups",):
                return 200, {"items": server.backups}, ""
            case "GET", ("users",):
                return 200, {"items": server.users()}, ""
            case "GET", ("databases",):
                return 200, server.page(parse_qs(address.query).get("after", [""])[0]), ""
            case "POST", ("databases",):
                made = server.create(body)
                return 201, server.shown(made), made.etag
            case _, ("databases", database_id):
                return self._one(server.find(database_id, self.headers.get("If-Match")), body)
            case "PUT", ("databases", database_id, "users", name):
                server.put_user(server.find(database_id), name, body)
                return 200, {"name": name}, ""
            case "DELETE", ("databases", database_id, "users", name):
                if server.find(database_id).users.pop(name, None) is None:
                    raise Refused(404, "unknown", f"there is no user {name!r}")
                return 204, None, ""
        raise Refused(404, "unknown", f"there is no {self.command} {address.path}")

    def _one(self, database: Database, body: Mapping[str, Any]) -> tuple[int, Any, str]:
        if self.command == "DELETE":
            self.server.delete(database, with_backup="backup=yes" in urlsplit(self.path).query)
            return 204, None, ""
        if self.command == "PATCH":
            self.server.change(database, body)
        elif self.command != "GET":
            raise Refused(405, "method", f"a database knows no {self.command}")
        return 200, self.server.shown(database), database.etag


def main() -> None:
    """Run a server until it is ended."""
    options = argparse.ArgumentParser(prog="acmedb.server", description="A small AcmeDB. It forgets when it stops.")
    options.add_argument("--port", type=int, default=8900)
    options.add_argument("--token", action="append", required=True, help="may be given several times")
    given = options.parse_args()
    server = AcmeServer(given.token, given.port)
    print(f"AcmeDB: {server.url}", flush=True)  # noqa: T201  # it is a program
    server.serve_forever()


if __name__ == "__main__":
    main()
