"""What clients may send before a route sees it, how slowly, and who stays when it is full (A9)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.control.connections.registry import Connections, Waits
from fractal_cloud.control.limits import ClientLimits
from tests.security.raw_http import Plane, eventually, plane

pytestmark = [pytest.mark.rule("A9"), pytest.mark.xdist_group("floods of connections")]  # they share their servers
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane with the usual times: nothing is given up while a test runs."""
    with plane(tmp_path_factory.mktemp("patient")) as found:
        yield found


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane that gives up soon."""
    with plane(tmp_path_factory.mktemp("hasty"), header_seconds=0.3, stall_seconds=0.4, idle_seconds=1.0) as found:
        yield found


# --- heads


def test_a_header_without_end_is_answered_431_and_closed(patient: Plane) -> None:
    wire = patient.wire()
    wire.send(HEAD + b"X-Big: ")
    for _ in range(100):
        wire.send(b"a" * 16_384)
    answer = wire.answer()
    assert answer.status == 431
    assert answer.detail == "the headers of the request are larger than 32768 bytes: send less"
    assert answer.headers["connection"] == "close"
    assert wire.is_closed()


def test_headers_just_below_the_limit_are_taken_and_just_above_are_not(patient: Plane) -> None:
    for size, status in ((32_000, 200), (33_000, 431)):
        for pieces in (1, 4):
            wire = patient.wire()
            data = HEAD + b"X-Big: " + b"a" * (size - 60) + b"\r\n\r\n"
            for begin in range(0, len(data), len(data) // pieces + 1):
                wire.send(data[begin : begin + len(data) // pieces + 1])
            assert wire.answer().status == status, (size, pieces)


def test_too_many_headers_are_answered_431(patient: Plane) -> None:
    wire = patient.wire()
    wire.send(HEAD + b"a: b\r\n" * 101 + b"\r\n")
    answer = wire.answer()
    assert answer.status == 431
    assert answer.detail == "the request has 102 headers: send at most 100"


def test_a_long_path_is_answered_414(patient: Plane) -> None:
    for size in (9_000, 40_000):
        wire = patient.wire()
        wire.send(b"GET /" + b"a" * size + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = wire.answer()
        assert answer.status == 414
        assert "longer than 8192 bytes" in answer.detail


def test_headers_that_do_not_come_are_answered_408_and_closed(hasty: Plane) -> None:
    wires = [hasty.wire() for _ in range(30)]
    for wire in wires:
        wire.send(HEAD + b"X-Begun: ")
    for wire in wires:
        answer = wire.answer()
        assert answer.status == 408
        assert answer.detail.startswith("the headers of the request did not come: they took longer than 0.3 s")
        assert wire.is_closed()


def test_headers_that_drip_do_not_get_more_time(hasty: Plane) -> None:
    wire = hasty.wire()
    wire.send(HEAD + b"X-Drip: ")
    wire.socket.settimeout(0.05)
    answered = False
    for _ in range(400):
        wire.send(b"a")
        try:
            answered = wire.socket.recv(20, socket.MSG_PEEK) != b""
            break
        except TimeoutError:
            continue
    assert answered
    wire.socket.settimeout(10)
    assert wire.answer().status == 408


def test_a_connection_that_sends_nothing_is_closed_without_a_word(hasty: Plane) -> None:
    wires = [hasty.wire() for _ in range(30)]
    for wire in wires:
        assert wire.is_closed()
        assert wire.buffer == b""


def test_a_connection_without_another_request_is_closed(hasty: Plane) -> None:
    wire = hasty.wire()
    wire.request("/healthz")
    assert wire.answer().status == 200
    wire.send(b"\r\n")  # no request either
    assert wire.is_closed()


def test_many_half_sent_requests_give_way_to_those_that_come(tmp_path: Path) -> None:
    with plane(tmp_path, connections=64) as small:
        wires = []
        for _ in range(200):
            wires.append(small.wire())
            wires[-1].send(HEAD + b"X-Begun: ")
        assert small.ask("/healthz").status == 200
        answer = wires[0].answer()
        assert answer.status == 408
        assert "others need its place" in answer.detail
        assert wires[0].is_closed()


def test_a_full_server_says_so_and_keeps_those_at_work(tmp_path: Path) -> None:
    with plane(tmp_path, connections=20, streams_per_token=100) as small:
        streams = []
        for _ in range(20):
            stream = small.wire()
            streams.append(stream)
            stream.request("/events", "Accept: text/event-stream", "Authorization: Bearer the-admin-token")
            stream.read_until(b": connected")
        late = small.wire()
        answer = late.answer()
        assert answer.status == 503
        assert answer.detail == "this server holds 20 connections, and all are in use: try again in a moment"
        assert late.is_closed()
        streams.pop().socket.close()

        def is_answered() -> bool:
            wire = small.wire()
            wire.request("/healthz")
            return wire.answer().status == 200

        eventually(is_answered, "a place that got free is given")


def test_one_address_gets_half_of_the_connections_unless_it_is_a_proxy(tmp_path: Path) -> None:
    for proxies, expected in (("", 503), ("127.0.0.0/8", 200)):
        with plane(tmp_path, connections=20, trusted_proxies=proxies) as small:
            for _ in range(10):
                stream = small.wire()
                stream.request("/events", "Accept: text/event-stream", "Authorization: Bearer the-admin-token")
                stream.read_until(b": connected")
            late = small.wire()
            if expected == 200:
                late.request("/healthz")
            answer = late.answer()
            assert answer.status == expected, answer.body
            other = small.wire(source="127.0.0.2")
            other.request("/healthz")
            assert other.answer().status == 200


# --- bodies


def test_a_body_that_does_not_come_is_answered_408_and_closed(hasty: Plane) -> None:
    for path, token in (("/ui/login", ""), ("/livesystems/ls-a/plan", "Authorization: Bearer the-admin-token\r\n")):
        wire = hasty.wire()
        wire.send(f"POST {path} HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 1000\r\n\r\nhalf".encode())
        answer = wire.answer()
        assert answer.status == 408
        assert answer.detail.startswith("the body of the request did not come: hardly anything in 0.4 s")
        assert wire.is_closed()


class _Waiting:
    """A connection of which a test says what came and what was taken."""

    def __init__(self) -> None:
        self.address = "192.0.2.1"
        self.received = 0
        self.unsent = 0
        self.is_held_back = False
        self.is_closing = False
        self.given_up: list[str] = []

    def give_up_headers(self, reason: str) -> None:
        self.given_up.append(reason)

    def give_up_body(self) -> None:
        self.given_up.append("body")

    def give_up_answer(self) -> None:
        self.given_up.append("answer")

    def close_idle(self) -> None:
        self.given_up.append("idle")

    def abort(self) -> None:
        self.given_up.append("aborted")


def test_bodies_and_answers_are_given_up_for_their_pace_not_for_how_long_they_last() -> None:
    async def at_a_fair_pace_and_then_not() -> None:
        began = asyncio.get_running_loop().time()
        registry = Connections(ClientLimits(stall_seconds=20.0))
        uploading, downloading, held_back = _Waiting(), _Waiting(), _Waiting()
        downloading.unsent, held_back.is_held_back = 2_000_000, True
        for one in (uploading, downloading, held_back):
            assert registry.admit(one) == ""
        registry.waits(uploading, Waits.NOTHING, Waits.BODY)
        registry.waits(held_back, Waits.NOTHING, Waits.BODY)
        registry.answer_is_blocked(downloading)
        for minute in range(1, 61):
            uploading.received += 20_000
            downloading.unsent -= 20_000
            registry.sweep(began + 60 * minute)
        assert not uploading.given_up + downloading.given_up + held_back.given_up
        uploading.received += 10_000
        downloading.unsent -= 10_000
        registry.sweep(began + 60 * 61)
        assert (uploading.given_up, downloading.given_up, held_back.given_up) == (["body"], ["answer"], [])

    asyncio.run(at_a_fair_pace_and_then_not())


def test_what_is_sent_behind_an_early_answer_is_not_read_for_ever(patient: Plane) -> None:
    wire = patient.wire()
    wire.send(b"PUT /livesystems/x HTTP/1.1\r\nHost: x\r\nContent-Length: 60000000\r\n\r\n")
    assert wire.answer().status == 401
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        wire.socket.sendall(b"a" * 60_000_000)


def test_half_of_a_body_behind_an_early_answer_is_closed(hasty: Plane) -> None:
    wire = hasty.wire()
    wire.send(b"PUT /livesystems/x HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\nhalf")
    assert wire.answer().status == 401
    assert wire.is_closed()
    assert wire.buffer == b"", "an answered request got a second answer"


def test_chunks_of_nothing_but_lines_are_refused(patient: Plane) -> None:
    wire = patient.wire()
    head = b"POST /ui/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire.send(head + b"1;" + b"x" * 200_000)
    assert wire.answer().status == 400
    assert wire.is_closed()


def test_headers_behind_a_body_are_refused(patient: Plane) -> None:
    wire = patient.wire()
    wire.send(
        b"POST /ui/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Late: 1\r\n\r\n"
    )
    answer = wire.answer()
    assert answer.status == 400
    assert answer.detail == "a header comes after the body: send all of them before it"


def test_a_body_in_chunks_is_taken(patient: Plane) -> None:
    wire = patient.wire()
    head = b"POST /livesystems/x/plan HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer the-admin-token\r\n"
    wire.send(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
    assert wire.answer().status == 422
    wire.request("/healthz")
    assert wire.answer().status == 200, "the connection lives on"


def test_a_body_is_asked_for_only_where_it_will_be_read(patient: Plane) -> None:
    head = b"POST /livesystems/x/plan HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
    wire = patient.wire()
    wire.send(head + b"Authorization: Bearer the-admin-token\r\n\r\n")
    assert wire.answer().status == 100
    wire.send(b"{}")
    assert wire.answer().status == 422
    refused = patient.wire()
    refused.send(head + b"\r\n")
    assert refused.answer().status == 401
    other = patient.wire()
    other.send(head.replace(b"100-continue", b"miracles") + b"\r\n")
    assert other.answer().status == 417


# --- requests that two servers would read differently

SMUGGLED = {
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n",
    "a length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "chunks that are not the last coding": b"Transfer-Encoding: chunked, identity\r\n",
    "a coding that is only like chunks": b"Transfer-Encoding: xchunked\r\n",
    "a length with a sign": b"Content-Length: +5\r\n",
    "a blank before the colon": b"Content-Length : 5\r\n",
    "a folded header": b"X-One: a\r\n b\r\n",
    "a bare line feed": b"X-One: a\nX-Two: b\r\n",
    "a NUL": b"X-One: a\0b\r\n",
}


@pytest.mark.parametrize("headers", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_a_request_that_can_be_read_in_two_ways_is_refused_and_closed(patient: Plane, headers: bytes) -> None:
    wire = patient.wire()
    wire.send(
        b"POST /ui/login HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    answer = wire.answer()
    assert answer.status == 400
    assert answer.detail.startswith("this is no request of HTTP/1.1: ")
    assert wire.is_closed()
    assert wire.buffer == b"", "what was hidden behind it was answered"


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 50, b"GET\r\n"]
)
def test_what_is_not_http_is_answered_400_and_closed(patient: Plane, data: bytes) -> None:
    wire = patient.wire()
    wire.send(data)
    assert wire.answer().status == 400
    assert wire.is_closed()


def test_a_tunnel_is_refused(patient: Plane) -> None:
    wire = patient.wire()
    wire.send(b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n")
    assert wire.answer().status == 400
    assert wire.is_closed()


def test_a_websocket_is_refused_with_what_to_do(patient: Plane) -> None:
    wire = patient.wire()
    wire.request("/events", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13")
    answer = wire.answer()
    assert answer.status == 400
    assert answer.detail == "there is no WebSocket here: follow events with Accept: text/event-stream"


def test_an_offer_to_speak_another_protocol_is_left_unanswered(patient: Plane) -> None:
    wire = patient.wire()
    wire.request("/healthz", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    assert wire.answer().status == 200
    wire.request("/healthz")
    assert wire.answer().status == 200


# --- several requests on one connection


def test_requests_sent_at_once_are_answered_in_order(patient: Plane) -> None:
    wire = patient.wire()
    wire.send((HEAD + b"\r\n") + b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n" + (HEAD + b"\r\n"))
    assert [wire.answer().status for _ in range(3)] == [200, 401, 200]


def test_more_requests_than_can_wait_end_the_connection(patient: Plane) -> None:
    wire = patient.wire()
    wire.send((HEAD + b"\r\n") * 1_000)
    answers = [wire.answer() for _ in range(17)]
    assert [answer.headers.get("connection", "") for answer in answers] == [""] * 16 + ["close"]
    assert wire.is_closed()
    assert wire.buffer == b""


def test_what_cannot_be_read_behind_a_request_does_not_replace_its_answer(patient: Plane) -> None:
    wire = patient.wire()
    wire.send(HEAD + b"\r\n" + b"no request of any kind\r\n\r\n")
    answer = wire.answer()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closed()
    assert wire.buffer == b""


def test_a_stream_ends_with_its_connection_also_when_a_request_waits_behind_it(patient: Plane) -> None:
    signals = patient.app.state.store.signals
    before = len(signals._everybody)
    wire = patient.wire()
    wire.request("/events", "Accept: text/event-stream", "Authorization: Bearer the-admin-token")
    wire.read_until(b": connected")
    wire.request("/healthz")
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    wire.socket.close()
    patient.deploy()
    eventually(lambda: len(signals._everybody) <= before, "the stream goes on without anybody")
