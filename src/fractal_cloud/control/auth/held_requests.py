"""Ends streams and long polls whose caller has lost access: a token was revoked or has expired, or a session ended.

Everything else is over before that matters; it is checked when it comes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fractal_cloud.control.auth.authenticator import BELIEVED_SECONDS
from fractal_cloud.control.store.failures import DatabaseUnavailable
from fractal_cloud.control.store.signals import TOKENS, Signals

_HELD_PATHS: Final = frozenset({"/agent/wait", "/ui/events"})
_STREAM: Final = b"text/event-stream"
HasAccess = Callable[[Scope], bool]
Refuse = Callable[..., Response]


class HeldRequests:
    """Ends a request that stays open once ``has_access`` says no: asked every few seconds, and at each revocation.

    ``is_known`` says at once of most of them, without a thread of their own, that nothing has changed.
    """

    def __init__(
        self, app: ASGIApp, has_access: HasAccess, is_known: HasAccess, signals: Signals, refuse: Refuse
    ) -> None:
        self._app = app
        self._is_known = is_known
        self._has_access = has_access
        self._signals = signals
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and end what was passed on when the access is lost."""
        if scope["type"] != "http" or not _stays_open(scope):
            await self._app(scope, receive, send)
            return
        progress = _Progress(send)
        work = asyncio.ensure_future(self._app(scope, receive, progress.send))
        lost = asyncio.ensure_future(self._until_lost(scope))
        try:
            await asyncio.wait({work, lost}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
                return
            lost.result()
            await _cancelled(work)
            if not progress.has_begun:
                answer = self._refuse(401, "the access of this request ended while it was open", "unauthorized")
                await answer(scope, receive, send)
            elif not progress.has_ended:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await _cancelled(work)
            await _cancelled(lost)

    async def _until_lost(self, scope: Scope) -> None:
        """Return when the caller has no access any more; a database that is away decides nothing.

        When the control plane stops, nobody is waited for any more: what is open ends by itself.
        """
        with self._signals.subscribe([TOKENS]) as subscription:
            while not self._signals.is_closed:
                await subscription.wait(BELIEVED_SECONDS)
                if self._is_known(scope):
                    continue
                with suppress(DatabaseUnavailable):
                    if not await run_in_threadpool(self._has_access, scope):
                        return
        await asyncio.Event().wait()


class _Progress:
    """Sends on, and knows how far the answer is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.has_begun = False
        self.has_ended = False

    async def send(self, message: Message) -> None:
        """Send one message of the answer."""
        self.has_begun = True
        self.has_ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)


async def _cancelled(task: asyncio.Future[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _stays_open(scope: Scope) -> bool:
    if scope["path"] in _HELD_PATHS:
        return True
    return any(name == b"accept" and _STREAM in value for name, value in scope["headers"])
