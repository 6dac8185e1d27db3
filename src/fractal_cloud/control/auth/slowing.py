"""Slows failed log-ins, by the address they come from and by the token they bring, and never a valid token (A9).

A token is always checked first: whether it is valid must not depend on who else fails from the same address. So this
does not prevent guessing (tokens are too long to guess). It makes refusals cost the refused and not the others: their
answers come late, and a token that was refused again and again is not looked up in the database any more.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fractal_cloud.control.auth.caller import address
from fractal_cloud.control.store import tokens

MOST_REMEMBERED: Final = 10_000
"""Addresses, and tokens, whose failures are remembered; of more, those that failed longest ago are forgotten."""
HELD_SECONDS: Final = 1.0
"""How long the answer to a failure too many is held back."""
MOST_HELD: Final = 512
MOST_HELD_OF_ONE: Final = 32
"""Answers that are held back, of all addresses and of one; others are answered at once, and their connection closed."""
Refuse = Callable[[Scope, int, str, Mapping[str, str]], Response]


@dataclass(slots=True)
class _Failures:
    """Failures that have not been forgiven yet, as of a time."""

    count: float
    at: float


class FailureCounts:
    """Counts failures by key; each is forgiven after a while, as many in a minute as are allowed in one."""

    def __init__(self, per_minute: int, most: int = MOST_REMEMBERED) -> None:
        self._allowed = per_minute
        self._most = most
        self._of_key: OrderedDict[str, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._of_key)

    def seconds_left(self, key: str, now: float) -> float:
        """How long until the next failure of a key is answered as usual; 0 if it is."""
        found = self._of_key.get(key)
        return 0.0 if found is None else self._excess(self._forgiven(found, now))

    def add(self, key: str, now: float) -> float:
        """Count a failure; returns how long until the next one is answered as usual."""
        before = self._of_key.pop(key, None)
        count = 1.0 + (0.0 if before is None else self._forgiven(before, now))
        # Not more than a minute is ever to be waited for: who was wrong for an hour is not shut out for an hour.
        self._of_key[key] = _Failures(min(count, 2.0 * self._allowed), now)
        if len(self._of_key) > self._most:
            self._of_key.popitem(last=False)
        return self._excess(count)

    def _forgiven(self, failures: _Failures, now: float) -> float:
        return max(0.0, failures.count - (now - failures.at) * self._allowed / 60.0)

    def _excess(self, count: float) -> float:
        return max(0.0, (count - self._allowed) * 60.0 / self._allowed)


class SlowedFailures:
    """Answers 429 instead of 401, and late, where an address or a token failed too often."""

    def __init__(
        self, app: ASGIApp, per_minute: int, refuse: Refuse, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._refuse = refuse
        self._now = now
        self._of_address = FailureCounts(per_minute)
        self._of_token = FailureCounts(per_minute)
        self._held = 0
        self._held_of_address: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and see what it is answered; a token that failed too often is not passed on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if len(self._of_token):
            token = _token_key(scope)
            seconds = 0.0 if token is None else self._of_token.seconds_left(token, self._now())
            if seconds:
                await self._answer_late(_token_detail(seconds), seconds, scope, receive, send)
                return
        refusal = ""
        seconds = 0.0

        async def watched(message: Message) -> None:
            nonlocal refusal, seconds
            if message["type"] == "http.response.start" and message["status"] == 401:
                refusal, seconds = self._count(scope)
            if not refusal:
                await send(message)

        await self._app(scope, receive, watched)
        if refusal:
            await self._answer_late(refusal, seconds, scope, receive, send)

    def _count(self, scope: Scope) -> tuple[str, float]:
        """Count a failure; returns what to say instead of the app's answer, and for how long, if it was too many."""
        now, token, where = self._now(), _token_key(scope), address(scope)
        of_token = 0.0 if token is None else self._of_token.add(token, now)
        of_address = self._of_address.add(where, now)
        if of_token:
            return _token_detail(of_token), of_token
        if of_address:
            left = math.ceil(of_address)
            return (
                f"too many log-ins from {where} failed: try again in {left} s, or at once with a valid token",
                of_address,
            )
        return "", 0.0

    async def _answer_late(self, detail: str, seconds: float, scope: Scope, receive: Receive, send: Send) -> None:
        where = address(scope)
        if self._held < MOST_HELD and self._held_of_address[where] < MOST_HELD_OF_ONE:
            self._held += 1
            self._held_of_address[where] += 1
            try:
                await asyncio.sleep(min(seconds, HELD_SECONDS))
            finally:
                self._held -= 1
                self._held_of_address[where] -= 1
                if not self._held_of_address[where]:
                    del self._held_of_address[where]
        headers = {"Retry-After": str(math.ceil(seconds)), "Connection": "close"}
        await self._refuse(scope, 429, detail, headers)(scope, receive, send)


def _token_detail(seconds: float) -> str:
    return f"this token is not known here, and was tried too often: try again in {math.ceil(seconds)} s, with another"


def _token_key(scope: Scope) -> str | None:
    """A bearer's token, unreadable and short."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            secret = value.decode("latin-1").partition(" ")[2].strip()
            return tokens.hashed(secret)[:32] if secret else None
    return None
