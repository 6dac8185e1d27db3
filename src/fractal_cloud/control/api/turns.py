"""Shares a server process among its callers: however much one of them asks for, the others find a thread (A9).

A caller is a token, or an address where there is none. So many of its requests are worked on at once; the next ones
wait for their turn, and hold nothing meanwhile but their bodies. What stays open by its nature (streams, long polls)
takes no turn, and is counted by itself.

Threads that compute take turns at the interpreter, and the loop that answers everybody is one of them: it waits for
each of the others. So a caller that asks for more than it may gets its reads worked on one by one, which answers them
no slower. And who does not read its answers gets no more of them.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fractal_cloud.control.api.problems import problem
from fractal_cloud.control.auth.caller import caller
from fractal_cloud.control.auth.slowing import Refuse
from fractal_cloud.control.connections.unread import Answering, answering
from fractal_cloud.control.limits import ClientLimits

STREAM: Final = "text/event-stream"
WAITING_PER_TURN: Final = 64
"""So many requests wait for each that is worked on; more are refused."""
MOST_UNREAD: Final = 32
"""So many answers to one caller may be on their way that it does not read; more requests are refused."""
_READING: Final = frozenset({"GET", "HEAD"})
_RETRY: Final = {"Retry-After": "1", "Connection": "close"}


@dataclass(eq=False, slots=True)
class _Waiting:
    """A request that waits for its turn; the result says whether it got one."""

    turn: asyncio.Future[bool]
    is_read: bool


@dataclass(slots=True)
class _Turns:
    """The requests of one caller that are worked on, those that wait, and the connections that do not read answers."""

    running: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque)
    unread: set[Answering] = field(default_factory=set)

    def may_begin(self, most: int, *, is_read: bool) -> bool:
        """Whether one more is worked on now."""
        is_crowded = is_read and len(self.waiting) >= most
        return self.running < (1 if is_crowded else most)


class FairTurns:
    """Lets each caller have a few requests worked on at once; a turn ends when the answer begins."""

    def __init__(self, app: ASGIApp, limits: ClientLimits, refuse: Refuse) -> None:
        self._app = app
        self._limits = limits
        self._most = limits.requests_per_token
        self._refuse = refuse
        self._turns: dict[str, _Turns] = {}
        self._open_waits: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on at the caller's turn, or refuse with 429."""
        if scope["type"] != "http" or scope["path"] == "/healthz":
            await self._app(scope, receive, send)
        elif _waits_for_others(scope):
            await self._wait(scope, receive, send)
        else:
            await self._work(scope, receive, send)

    async def _wait(self, scope: Scope, receive: Receive, send: Send) -> None:
        who, most = caller(scope), self._limits.waits_per_token
        if self._open_waits[who] >= most:
            detail = f"{most} requests of this token wait already: end one, or use a token of its own for each agent"
            await self._refuse(scope, 429, detail, _RETRY)(scope, receive, send)
            return
        with _counted(self._open_waits, who):
            await self._app(scope, receive, send)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = answering(scope)
        if connection is not None:
            await connection.until_read()  # a request behind an answer that is not read yet
        who = caller(scope)
        turns = self._turns.get(who)
        if turns is None:
            turns = self._turns[who] = _Turns()
        is_read = scope["method"] in _READING
        if len(turns.unread) >= MOST_UNREAD:
            await self._refuse_unread(scope, receive, send)
            return
        if turns.waiting or not turns.may_begin(self._most, is_read=is_read):
            most = self._most * WAITING_PER_TURN
            if len(turns.waiting) >= most:
                detail = f"{most} requests of this token or address wait for their turn: send fewer at once"
                await self._refuse(scope, 429, detail, _RETRY)(scope, receive, send)
                return
            if not await self._turn(who, turns, is_read=is_read):
                await self._refuse_unread(scope, receive, send)
                return
        else:
            turns.running += 1
        is_mine = True

        def end() -> None:
            nonlocal is_mine
            if is_mine:
                is_mine = False
                turns.running -= 1
                self._hand_over(who, turns)

        async def ending(message: Message) -> None:
            if is_mine and message["type"] == "http.response.start":
                end()
            await send(message)

        try:
            await self._app(scope, receive, ending)
        finally:
            if connection is not None and connection.is_blocked:
                self._note_unread(who, turns, connection)
            end()

    async def _refuse_unread(self, scope: Scope, receive: Receive, send: Send) -> None:
        detail = f"{MOST_UNREAD} answers to this token or address are not read: read them before you ask for more"
        await self._refuse(scope, 429, detail, _RETRY)(scope, receive, send)

    async def _turn(self, who: str, turns: _Turns, *, is_read: bool) -> bool:
        """Wait until it is this request's turn; returns whether it will be."""
        mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        turns.waiting.append(_Waiting(mine, is_read))
        try:
            return await mine
        except asyncio.CancelledError:
            if mine.done() and not mine.cancelled() and mine.result():
                turns.running -= 1  # it got its turn, and nobody is there any more
                self._hand_over(who, turns)
            raise

    def _hand_over(self, who: str, turns: _Turns) -> None:
        """Give turns to those that wait, as many as there are."""
        while turns.waiting:
            following = turns.waiting[0]
            if not following.turn.done() and not turns.may_begin(self._most, is_read=following.is_read):
                return
            turns.waiting.popleft()
            if not following.turn.done():
                turns.running += 1
                following.turn.set_result(True)
        if not turns.running and not turns.unread and self._turns.get(who) is turns:
            del self._turns[who]

    def _note_unread(self, who: str, turns: _Turns, connection: Answering) -> None:
        self._turns[who] = turns
        turns.unread.add(connection)
        connection.when_read(partial(self._is_read, who, turns, connection))
        while len(turns.unread) >= MOST_UNREAD and turns.waiting:
            following = turns.waiting.popleft()
            if not following.turn.done():
                following.turn.set_result(False)

    def _is_read(self, who: str, turns: _Turns, connection: Answering) -> None:
        turns.unread.discard(connection)
        self._hand_over(who, turns)


def _waits_for_others(scope: Scope) -> bool:
    """Whether a request waits for agents, or for news, before it is answered."""
    path: str = scope["path"]
    return path == "/agent/wait" or (scope["method"] == "POST" and path.endswith("/plan"))


@contextmanager
def _counted(counter: Counter[str], who: str) -> Iterator[None]:
    counter[who] += 1
    try:
        yield
    finally:
        counter[who] -= 1
        if counter[who] <= 0:
            del counter[who]


class OpenStreams:
    """Counts the streams that are open, by token."""

    def __init__(self, limits: ClientLimits) -> None:
        self._most = limits.streams_per_token
        self._open: Counter[str] = Counter()

    def answer(self, token_id: str, content: AsyncIterator[bytes], headers: Mapping[str, str]) -> StreamingResponse:
        """A stream of events as an answer; 429 where the token has as many as it may."""
        return _CountedStream(self._open, self._most, token_id, content, headers)


class _CountedStream(StreamingResponse):
    """A stream that is counted from its first byte to its last, whoever ends it."""

    def __init__(
        self, counter: Counter[str], most: int, token_id: str, content: AsyncIterator[bytes], headers: Mapping[str, str]
    ) -> None:
        super().__init__(content, media_type=STREAM, headers=headers)
        self._counter = counter
        self._most = most
        self._token_id = token_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream, unless there are too many."""
        if self._counter[self._token_id] >= self._most:
            detail = f"{self._most} streams of this token are open: close one, or use another token"
            await problem(429, detail, "too-many", headers=_RETRY)(scope, receive, send)
            return
        with _counted(self._counter, self._token_id):
            await super().__call__(scope, receive, send)
