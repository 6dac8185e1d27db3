"""HTTP/1.1 as uvicorn speaks it with httptools, bounded: heads, bodies and answers have a size, a time and an end (A9).

uvicorn limits heads only with h11, which costs several times as much per request, and waits for ever for what a client
does not send. What is refused here never reaches the app; it is answered with a problem document and a closed
connection, and not logged: a flood must not fill the log either.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar, Final

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from fractal_cloud.control.api.problems import MEDIA_TYPE, problem
from fractal_cloud.control.connections.registry import Connections, Waits
from fractal_cloud.control.connections.unread import EXTENSION

MOST_HEADERS: Final = 100
MOST_URL_BYTES: Final = 8 * 1024
MOST_PIPELINED: Final = 16
"""Requests that one connection may send before the first of them is answered."""
LINGER_BYTES: Final = 1024 * 1024
LINGER_SECONDS: Final = 2.0
"""So much is read and thrown away after a refusal: a connection closed under a sender loses the answer on its way."""
_UNSENT_BYTES: Final = 128 * 1024
_CHUNK_OVERHEAD: Final = 64 * 1024
"""What the lines between the chunks of a body may take, beside as much as the body itself."""


class _Refusal(Exception):
    """Ends the parser's work: what was sent is answered with a status and a sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class BoundedProtocol(HttpToolsProtocol):
    """One connection; ``registry`` is set by ``bounded``, one for all connections of a server."""

    registry: ClassVar[Connections]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.address = ""
        self.received = 0
        self._waits = Waits.NOTHING
        self._in_head = True
        self._in_body = False
        self._begun = 0
        self._head_bytes = 0
        self._body_bytes = 0
        self._chunk_bytes = 0
        self._left_to_discard: int | None = None
        self._unanswered: deque[RequestResponseCycle] = deque()
        self._when_read: list[Callable[[], None]] = []

    # --- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn declares it
        """Take the connection, if there is a place for it."""
        super().connection_made(transport)
        _bound_unsent(transport)
        self.address = self.client[0] if self.client else "a local socket"
        refusal = self.registry.admit(self)
        if refusal:
            self._refuse(503, f"{refusal}: try again in a moment", lingers=False)
        else:
            self._note(Waits.HEADERS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go; every request that is still worked on hears of it."""
        self.registry.forget(self)
        self._disconnect()
        super().connection_lost(exc)
        self._is_read()

    def _disconnect(self) -> None:
        # uvicorn notifies only the newest request: one that was sent behind a stream would let the stream run for ever.
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._unanswered.clear()
        self.pipeline.clear()

    def pause_writing(self) -> None:
        """Stop answering for now: the client does not read as fast."""
        super().pause_writing()
        self.registry.answer_is_blocked(self)

    def resume_writing(self) -> None:
        """Go on answering."""
        super().resume_writing()
        self.registry.answer_goes_on(self)
        self._is_read()

    @property
    def is_blocked(self) -> bool:
        """Whether its client does not read its answer as fast as it is written."""
        return self.flow.write_paused

    async def until_read(self) -> None:
        """Wait while it is blocked."""
        await self.flow.drain()

    def when_read(self, then: Callable[[], None]) -> None:
        """Call this once it is blocked no longer, or has ended."""
        self._when_read.append(then)

    def _is_read(self) -> None:
        waiting, self._when_read = self._when_read, []
        for then in waiting:
            then()

    # --- what is watched

    def _note(self, waits: Waits) -> None:
        if waits is not self._waits:
            self.registry.waits(self, self._waits, waits)
            self._waits = waits

    @property
    def unsent(self) -> int:
        """How many bytes of answers wait to be taken."""
        return self.transport.get_write_buffer_size()

    @property
    def is_held_back(self) -> bool:
        """Whether it is we who do not read just now."""
        return self.flow.read_paused

    @property
    def is_closing(self) -> bool:
        """Whether it was closed, and only waits for its client to take what was said last."""
        return self.transport.is_closing()

    def give_up_headers(self, reason: str) -> None:
        """End a connection whose request has not even begun, or stays without the end of its headers."""
        if self._begun:
            detail = f"the headers of the request did not come: {reason}; send it again at once"
            self._refuse(408, detail, lingers=False)
        else:
            self.close_idle()

    def give_up_body(self) -> None:
        """End a request whose body does not come."""
        seconds = self.registry.limits.stall_seconds
        self._refuse(408, f"the body of the request did not come: hardly anything in {seconds:g} s; send it again")

    def give_up_answer(self) -> None:
        """End a connection whose client does not read; there is no way to say anything to it."""
        self.abort()

    def close_idle(self) -> None:
        """End a connection that is not in the middle of anything."""
        self._note(Waits.NOTHING)
        self.transport.close()

    def abort(self) -> None:
        """End it without waiting for its client."""
        self._note(Waits.NOTHING)
        self.transport.abort()

    # --- what is received

    def data_received(self, data: bytes) -> None:
        """Parse what came, in parts no larger than a head may be, so that nothing larger is ever kept."""
        size = self.registry.limits.header_bytes
        if len(data) <= size:
            self._accept(data)
        else:
            whole = memoryview(data)
            for begin in range(0, len(data), size):
                self._accept(bytes(whole[begin : begin + size]))
        if not self._is_over:
            self._note(self._what_it_waits_for())

    @property
    def _is_over(self) -> bool:
        return self._left_to_discard is not None or self.transport.is_closing()

    def _what_it_waits_for(self) -> Waits:
        if self._in_head:
            return Waits.HEADERS
        if self._in_body:
            return Waits.BODY
        return Waits.NOTHING if self._unanswered else Waits.NEXT_REQUEST

    def _accept(self, data: bytes) -> None:
        """Parse a part, and count what of it is kept until more comes."""
        if self._is_over:
            self._discard(len(data))
            return
        was_between = not self._in_body and not self._head_bytes
        begun, body = self._begun, self.received
        try:
            self._parse(data)
        except _Refusal as refusal:
            self._refuse(refusal.status, refusal.detail)
            return
        # Of a part in which several requests begin, it is not known how much belongs to the last: less is counted.
        is_one = self._begun == begun or (was_between and self._begun == begun + 1)
        if self._in_head and is_one:
            self._count_head(len(data))
        elif self._in_body and self._begun == begun:
            self._count_chunks(len(data) - (self.received - body))

    def _parse(self, data: bytes) -> None:
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    return
                except httptools.HttpParserUpgrade as upgrade:
                    # An offer to speak something else, which a server may leave unanswered (RFC 9110, 7.8).
                    data = data[upgrade.args[0] :]
        except httptools.HttpParserCallbackError as error:
            if isinstance(error.__context__, _Refusal):
                raise error.__context__ from None
            raise _Refusal(400, "the address of the request is no path of this server") from error
        except httptools.HttpParserError as error:
            raise _Refusal(400, f"this is no request of HTTP/1.1: {error}") from error

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes >= self.registry.limits.header_bytes:
            refusal = self._head_is_too_large()
            self._refuse(refusal.status, refusal.detail)

    def _head_is_too_large(self) -> _Refusal:
        most = self.registry.limits.header_bytes
        if not self.headers and len(self.url) > MOST_URL_BYTES:
            return _Refusal(
                414, f"the address of the request is longer than {MOST_URL_BYTES} bytes: send a shorter one"
            )
        return _Refusal(431, f"the headers of the request are larger than {most} bytes: send less")

    def _count_chunks(self, size: int) -> None:
        """What is sent with a body and is none: the lines between chunks, and headers after them."""
        self._chunk_bytes += size
        if self._chunk_bytes > _CHUNK_OVERHEAD + self.received:
            self._refuse(400, "the body is sent in too small chunks: send it in larger ones, or with Content-Length")

    # --- what the parser finds

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._unset_keepalive_if_required()
        self._in_head = True
        self._begun += 1
        self._head_bytes = self._chunk_bytes = self.received = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; behind a body it is none."""
        if not self._in_head:
            raise _Refusal(400, "a header comes after the body: send all of them before it")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the head alone says no."""
        self._check_head()
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[dict-item]  # what is ours no standard describes
        super().on_headers_complete()
        self._in_head, self._in_body = False, True
        self._unanswered.append(self.cycle)

    def _check_head(self) -> None:
        if self._head_bytes and _size(self.url, self.headers) > self.registry.limits.header_bytes:
            raise self._head_is_too_large()
        if len(self.headers) > MOST_HEADERS:
            raise _Refusal(431, f"the request has {len(self.headers)} headers: send at most {MOST_HEADERS}")
        if len(self.url) > MOST_URL_BYTES:
            raise _Refusal(414, f"the address of the request is longer than {MOST_URL_BYTES} bytes: send a shorter one")
        if len(self.pipeline) >= MOST_PIPELINED:
            raise _Refusal(
                400, f"more than {MOST_PIPELINED} requests wait on this connection: read their answers first"
            )
        if self.parser.should_upgrade() and self._get_upgrade() == b"websocket":
            raise _Refusal(400, "there is no WebSocket here: follow events with Accept: text/event-stream")
        for name, value in self.headers:
            if name == b"expect" and value.lower() != b"100-continue":
                raise _Refusal(417, "the Expect header is not understood: send 100-continue, or none")

    def on_body(self, body: bytes) -> None:
        """Take a part of a body; of one whose request was answered already, only so much."""
        self.received += len(body)
        super().on_body(body)
        if self.cycle.response_complete and self.received > LINGER_BYTES:
            self.transport.close()

    def on_message_complete(self) -> None:
        """End a request."""
        self._in_body = False
        self._head_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of this one."""
        if self._unanswered:
            self._unanswered.popleft().body = bytearray()
        super().on_response_complete()
        if not self._is_over:
            self._note(self._what_it_waits_for())

    # --- refusing

    def send_400_response(self, msg: str) -> None:
        """Refuse what cannot be understood."""
        self._refuse(400, msg)

    def _refuse(self, status: int, detail: str, *, lingers: bool = True) -> None:
        """Answer, unless an answer is on its way or sent already, and end the connection.

        ``lingers``: what still comes is read for a moment, and thrown away.
        """
        if self._is_over:
            return
        self._note(Waits.NOTHING)
        self._unset_keepalive_if_required()
        if self._unanswered and not self._in_body:
            self._unanswered[-1].keep_alive = False  # what came before is answered first, and is the last
            self._left_to_discard = LINGER_BYTES
            return
        is_answered = self._in_body and not self._unanswered
        is_answerable = not is_answered and not (self.pipeline or any(one.response_started for one in self._unanswered))
        self._disconnect()  # the app hears that the client is gone, and what it may still say is not sent
        if is_answerable:
            self.transport.write(_answer(status, detail, self.server_state.default_headers))
        if not is_answerable or not lingers:
            self.transport.close()
            return
        if self.transport.can_write_eof():  # not over TLS
            self.transport.write_eof()
        self._left_to_discard = LINGER_BYTES
        self.flow.resume_reading()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)

    def _discard(self, size: int) -> None:
        if self._left_to_discard is not None:
            self._left_to_discard -= size
            if self._left_to_discard < 0:
                self.transport.close()


def _bound_unsent(transport: asyncio.Transport) -> None:
    """Let the kernel keep little of what a client does not take; by itself it keeps megabytes."""
    raw = transport.get_extra_info("socket")
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if raw is not None and option is not None and raw.family != socket.AF_UNIX:
        with contextlib.suppress(OSError):  # it has ended already
            raw.setsockopt(socket.IPPROTO_TCP, option, _UNSENT_BYTES)


def _size(url: bytes, headers: list[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)


def _answer(status: int, detail: str, default: list[tuple[bytes, bytes]]) -> bytes:
    body = bytes(problem(status, detail).body)
    lines = [
        *default,
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    return STATUS_LINE[status] + b"".join(b"%s: %s\r\n" % line for line in lines) + b"\r\n" + body


def bounded(registry: Connections) -> type[BoundedProtocol]:
    """The protocol of a server whose connections are all in one registry."""
    return type("BoundedProtocol", (BoundedProtocol,), {"registry": registry})
