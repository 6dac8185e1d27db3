"""Stands before every route: no token, no entry. What a route does is not known here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fractal_cloud.control.auth.authenticator import Authenticator
from fractal_cloud.control.auth.principal import Principal
from fractal_cloud.control.store import tokens
from fractal_cloud.control.store.failures import DatabaseUnavailable, again

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
# The dashboard asks for the token itself, on a page; see control/dashboard.
OPEN_PREFIXES = ("/ui", "/ui/")
STRANGERS_AT_ONCE = 4
"""Tokens that were nobody's so far and are looked up at the same time: a flood of them takes no more threads."""
Refuse = Callable[..., Response]


class Authentication:
    """Lets a request in with a token whose role reaches the route, and passes on to the route who speaks."""

    def __init__(self, app: ASGIApp, authenticator: Authenticator, refuse: Refuse) -> None:
        self._app = app
        self._authenticator = authenticator
        self._refuse = refuse
        self._strangers = asyncio.Semaphore(STRANGERS_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse with 401 or 403, or pass on."""
        if scope["type"] != "http" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        secret = _bearer(scope)
        principal = None if secret is None else self._authenticator.remembered(secret)
        if principal is None and secret is not None:
            try:
                principal = await self._verified(secret)
            except DatabaseUnavailable as error:
                after = {"Retry-After": str(error.after_seconds)}
                await self._refuse(503, error.message, "unavailable", headers=after)(scope, receive, send)
                return
        if principal is None:
            why = "the Authorization header is missing" if secret is None else "the token is not known here"
            detail = f"{why}: send «Authorization: Bearer <token>» with a token of this control plane"
            answer = self._refuse(401, detail, "unauthorized", headers={"WWW-Authenticate": "Bearer"})
            await answer(scope, receive, send)
        elif principal.has_expired:
            await run_in_threadpool(again, lambda: self._authenticator.note_expired_use(principal))
            headers = {"WWW-Authenticate": "Bearer"}
            detail = f"token {principal.name!r}: {principal.refusal}"
            await self._refuse(401, detail, "unauthorized", headers=headers)(scope, receive, send)
        elif not principal.is_accepted:
            detail = f"token {principal.name!r}: {principal.refusal}"
            await self._refuse(403, detail, "forbidden")(scope, receive, send)
        elif not principal.may(scope["method"], scope["path"]):
            detail = _why_not(principal)
            await self._refuse(403, detail, "forbidden")(scope, receive, send)
        else:
            state: dict[str, Any] = scope.setdefault("state", {})
            state["principal"] = principal
            state["token_hash"] = tokens.hashed(secret or "")
            await self._app(scope, receive, send)

    async def _verified(self, secret: str) -> Principal | None:
        """Ask the store; for tokens that were nobody's so far, only a few at a time, however many are tried."""
        if self._authenticator.was_known(secret):
            return await run_in_threadpool(again, lambda: self._authenticator.verify(secret))
        async with self._strangers:
            return await run_in_threadpool(again, lambda: self._authenticator.verify(secret))


def _why_not(principal: Principal) -> str:
    """Why a token does not reach a route."""
    if principal.sees is not None:
        names = ", ".join(sorted(principal.sees))
        return f"token {principal.name!r} is bound to the environment {names}, and this is about all: use another token"
    return f"a token with the role {principal.role.value!r} may not do this: use one with another role"


def _is_open(path: str) -> bool:
    return path in OPEN_PATHS or path == OPEN_PREFIXES[0] or path.startswith(OPEN_PREFIXES[1])


def _bearer(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, secret = value.decode("latin-1").partition(" ")
            return secret.strip() if scheme.lower() == "bearer" and secret.strip() else None
    return None
