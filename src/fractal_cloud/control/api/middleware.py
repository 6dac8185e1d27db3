"""What holds for every request before any route sees it: how big a body may be, and how a component may be named."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fractal_cloud.control.api.problems import problem

MOST_BYTES = 8 * 1024 * 1024
MOST_BYTES_FROM_AGENTS = 64 * 1024 * 1024
_FULL_ID = re.compile(r"(/livesystems/(?P<ls>[^/]+)/components)/(?P=ls)/blueprint/(?P<component>[^/]+)(?P<rest>/.*)?\Z")


class BodyLimit:
    """Refuses bodies that are larger than anybody needs, before they fill the memory."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count what comes in; answer 413 as soon as it is too much."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most = MOST_BYTES_FROM_AGENTS if scope["path"].startswith("/agent/") else MOST_BYTES
        too_large = f"the body is larger than {most // 1024 // 1024} MiB: send less at once"
        if _announced(scope) > most:
            await problem(413, too_large)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > most:
                raise HTTPException(413, too_large)
            return message

        await self._app(scope, counted, send)


def _announced(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return int(value)
    return 0


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
