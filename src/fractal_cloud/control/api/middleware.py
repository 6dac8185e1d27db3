"""What holds for every request before any route sees it: its body, its form, and how a component may be named."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from fractal_cloud.control.api.routing import replayed
from fractal_cloud.control.auth.caller import caller
from fractal_cloud.control.auth.slowing import Refuse
from fractal_cloud.control.limits import KIB, MIB, ClientLimits

MOST_BYTES_OF_FORMS: Final = 16 * KIB
MOST_BYTES_OF_READS: Final = 64 * KIB
MOST_PARAMETERS: Final = 100
MOST_COOKIES: Final = 100
_FORM: Final = b"application/x-www-form-urlencoded"
_FULL_ID = re.compile(r"(/livesystems/(?P<ls>[^/]+)/components)/(?P=ls)/blueprint/(?P<component>[^/]+)(?P<rest>/.*)?\Z")


class _Refused(Exception):
    """A request is answered with a status and a sentence, before a route sees it."""

    def __init__(self, status: int, detail: str, after_seconds: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = {} if after_seconds is None else {"Retry-After": str(after_seconds)}


class _Gone(Exception):
    """The client is gone before its body was here: there is nobody to answer."""


class Bodies:
    """Reads a body whole before the app is asked: no larger than anybody needs, and not too many at once.

    So that nothing waits for the rest of a body but a few bytes of memory: no thread, no turn of its token.
    """

    def __init__(self, app: ASGIApp, limits: ClientLimits, refuse: Refuse) -> None:
        self._app = app
        self._limits = limits
        self._refuse = refuse
        self._under_way = 0
        self._of_caller: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, and pass it on in one piece; answer what cannot be taken."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held: list[int] = []
        who = caller(scope)
        try:
            _check_form(scope)
            body = await self._read(scope, receive, who, held)
        except _Refused as error:
            await self._refuse(scope, error.status, error.detail, error.headers)(scope, receive, send)
        except _Gone:
            pass
        else:
            await self._app(scope, replayed(body, receive), send)
        finally:
            self._release(who, sum(held))

    async def _read(self, scope: Scope, receive: Receive, who: str, held: list[int]) -> bytes:
        most = self._most(scope)
        if _announced(scope) > most:
            raise _too_large(most)
        first = await receive()
        if first["type"] == "http.request" and not first.get("more_body", False):
            body: bytes = first.get("body", b"")
            if len(body) > most:
                raise _too_large(most)
            self._hold(who, len(body), held)
            return body
        parts = bytearray()
        message = first
        while True:
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", b"")
            self._hold(who, len(part), held)
            parts += part
            if len(parts) > most:
                raise _too_large(most)
            if not message.get("more_body", False):
                return bytes(parts)
            message = await receive()

    def _most(self, scope: Scope) -> int:
        path = scope["path"]
        if path.startswith("/agent/"):
            return self._limits.report_bytes
        if path == "/ui" or path.startswith("/ui/"):
            return MOST_BYTES_OF_FORMS
        return MOST_BYTES_OF_READS if scope["method"] in ("GET", "HEAD", "DELETE") else self._limits.body_bytes

    def _hold(self, who: str, size: int, held: list[int]) -> None:
        if not size:
            return
        held.append(size)
        self._under_way += size
        self._of_caller[who] += size
        most_of_one = self._limits.bodies_bytes_of_one
        if self._of_caller[who] > most_of_one:
            raise _Refused(429, f"your bodies under way have more than {_size(most_of_one)}: send fewer at once", 2)
        if self._under_way > self._limits.bodies_bytes:
            raise _Refused(503, f"the bodies under way have more than {_size(self._limits.bodies_bytes)}: try again", 2)

    def _release(self, who: str, size: int) -> None:
        if not size:
            return
        self._under_way -= size
        self._of_caller[who] -= size
        if self._of_caller[who] <= 0:
            del self._of_caller[who]


def _too_large(most: int) -> _Refused:
    return _Refused(413, f"the body is larger than {_size(most)}: send less at once")


def _size(most: int) -> str:
    return f"{most // MIB} MiB" if most >= MIB else f"{most // KIB} KiB" if most >= KIB else f"{most} bytes"


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


def _check_form(scope: Scope) -> None:
    """Refuse what is not in a form that anything here reads."""
    if scope["query_string"].count(b"&") >= MOST_PARAMETERS:
        raise _Refused(400, f"the address has more than {MOST_PARAMETERS} query parameters: send fewer")
    for name, value in scope["headers"]:
        if name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
            raise _Refused(415, f"the body is encoded as {value.decode('latin-1')!r}: send it as it is")
        if name == b"cookie" and value.count(b";") >= MOST_COOKIES:
            raise _Refused(431, f"the request has more than {MOST_COOKIES} cookies: delete those of this host")
        if name == b"content-type" and scope["path"].startswith("/ui/") and not value.lower().startswith(_FORM):
            raise _Refused(415, f"a form is sent as {value.decode('latin-1')!r}: send {_FORM.decode()}")


class FullComponentIds:
    """Lets ``{componentId}`` be the full id (``ls/blueprint/component``), its slashes encoded or not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Shorten a full id in the path; one that names another LiveSystem matches no route."""
        if scope["type"] == "http":
            match = _FULL_ID.match(scope["path"])
            if match is not None:
                path = f"{match[1]}/{match['component']}{match['rest'] or ''}"
                scope = {**scope, "path": path, "raw_path": path.encode("utf-8", "surrogateescape")}
        await self._app(scope, receive, send)
