"""The session at AcmeDB: the one file that speaks HTTP to it. What is asked of it, and why, does not belong here."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from fractal_cloud.model.errors import (
    CloudError,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Overtaken,
    Protected,
    Throttled,
    Transient,
    Unreadable,
)
from fractal_cloud.model.identity import Scope
from fractal_cloud.offers.call_context import note_request, user_agent
from fractal_cloud.offers.offer import Cloud, Session

URL: Final = "ACMEDB_URL"
TOKEN: Final = "ACMEDB_TOKEN"
SECONDS: Final = 20.0
_BY_STATUS: Final[Mapping[int, type[CloudError]]] = {
    401: Denied,
    403: Denied,
    404: NotFound,
    409: Conflict,
    412: Overtaken,
    429: Throttled,
}
_CLEAR: Final = (Denied, NotFound, Throttled)


class AcmeSession(Session):
    """AcmeDB with the address and the token of this process's environment."""

    def __init__(self) -> None:
        self._url = os.environ.get(URL, "").rstrip("/")
        self._token = os.environ.get(TOKEN, "")
        if not self._url or not self._token:
            raise Denied(f"the address or the token of AcmeDB is not set: set {URL} and {TOKEN}")

    def realms(self) -> Mapping[str, str]:
        """The one account that the token opens, asked of AcmeDB."""
        return {"": str(self.send("GET", "/account")["account"])}

    def at(self, scope: Scope) -> Acme:
        """The databases of the account."""
        return Acme(self, scope)

    def send(self, method: str, path: str, body: Any = None, etag: str | None = None) -> Any:
        """Make one call, once; whatever goes wrong is raised as one of ``fractal_cloud.model.errors``."""
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "User-Agent": user_agent(),
            **({"If-Match": etag} if etag is not None else {}),
        }
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data, headers, method=method)  # noqa: S310  # the operator's setting
        is_read = method == "GET"
        try:
            with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310  # the same
                note_request("" if is_read else answer.headers.get("X-Request-Id", ""))
                text = answer.read()
                return json.loads(text) if text else None
        except HTTPError as error:
            raise _error_of(error, f"{method} {path}", is_read=is_read) from None
        except (OSError, HTTPException, ValueError) as error:
            kind = Unreadable if is_read else Transient
            raise kind(f"AcmeDB at {self._url} gives no answer to {method} {path}: {error}") from error


class Acme(Cloud):
    """The databases of one account, and their users: the calls there are."""

    def __init__(self, session: AcmeSession, scope: Scope) -> None:
        self._session = session
        self.scope = scope

    def databases(self) -> Iterator[dict[str, Any]]:
        """All databases, page by page."""
        after = ""
        while True:
            page = self._session.send("GET", f"/databases?after={quote(after)}")
            yield from page["items"]
            after = page["next"]
            if not after:
                return

    def database(self, database_id: str) -> dict[str, Any] | None:
        """One database; None where AcmeDB says there is none."""
        try:
            found: dict[str, Any] = self._session.send("GET", f"/databases/{database_id}")
        except NotFound:
            return None
        return found

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Make a database."""
        made: dict[str, Any] = self._session.send("POST", "/databases", body)
        return made

    def change(self, database_id: str, etag: str | None, body: Mapping[str, Any]) -> None:
        """Change a database that is still as the etag says."""
        self._session.send("PATCH", f"/databases/{database_id}", body, etag)

    def delete(self, database_id: str, etag: str | None) -> None:
        """Delete a database that is still as the etag says, and keep a last backup; gone already is success."""
        try:
            self._session.send("DELETE", f"/databases/{database_id}?backup=yes", etag=etag)
        except NotFound:
            return

    def users(self) -> list[dict[str, Any]]:
        """The users of all databases, in one call."""
        found: list[dict[str, Any]] = self._session.send("GET", "/users")["items"]
        return found

    def put_user(self, database_id: str, name: str, body: Mapping[str, Any]) -> None:
        """Make or change a user."""
        self._session.send("PUT", f"/databases/{database_id}/users/{name}", body)

    def drop_user(self, database_id: str, name: str) -> None:
        """Delete a user; gone already, with its database or without, is success."""
        try:
            self._session.send("DELETE", f"/databases/{database_id}/users/{name}")
        except NotFound:
            return


def _error_of(error: HTTPError, call: str, *, is_read: bool) -> CloudError:
    """AcmeDB's refusal in the closed set; a read that fails in any way that is not «no» is unreadable, never absent."""
    request_id = error.headers.get("X-Request-Id", "")
    note_request("" if is_read else request_id)
    code, said = _said(error)
    kind = Protected if code == "protected" else _BY_STATUS.get(error.code, Invalid)
    if error.code >= 500:
        kind = Transient
    if is_read and kind not in _CLEAR:
        kind = Unreadable
    return kind(f"{said} ({call}, {error.code})", code=code, request_id=request_id)


def _said(error: HTTPError) -> tuple[str, str]:
    """The code and the message of a refusal."""
    try:
        body = json.loads(error.read())
        return str(body["code"]), str(body["message"])
    except (OSError, ValueError, LookupError, TypeError):
        return str(error.code), "AcmeDB gives no reason"
