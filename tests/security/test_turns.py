"""However much one token asks for, the others get their turn (A9)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from fractal_cloud.control.api import turns
from fractal_cloud.control.api.problems import problem
from fractal_cloud.control.api.turns import WAITING_PER_TURN, FairTurns
from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.connections.unread import EXTENSION, Answering
from fractal_cloud.control.limits import ClientLimits
from tests.security.raw_http import TOKEN, Plane, Wire, eventually, plane

pytestmark = pytest.mark.rule("A9")
STREAM = "Accept: text/event-stream"


class _Desk:
    """An app whose requests end when the test says so, and the turns before it."""

    def __init__(self, at_once: int) -> None:
        limits = ClientLimits(requests_per_token=at_once)
        self.turns = FairTurns(self._serve, limits, lambda _scope, status, detail, headers: problem(status, detail))
        self.at_work: list[tuple[str, asyncio.Event]] = []
        self.answers: list[tuple[str, int]] = []
        self.when_answered: Callable[[], object] = lambda: None

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["state"]["principal"].id
        done = asyncio.Event()
        self.at_work.append((name, done))
        await done.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    def ask(
        self, name: str, path: str = "/livesystems", method: str = "GET", connection: Answering | None = None
    ) -> asyncio.Task[None]:
        """Send a request with a token."""

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answers.append((name, message["status"]))
                self.when_answered()

        principal = Principal(name, name, Role.READER)
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "state": {"principal": principal}}
        scope["extensions"] = {EXTENSION: connection}
        return asyncio.get_running_loop().create_task(self.turns(scope, receive, send))

    async def finish_one(self) -> None:
        """Let the oldest request at work be answered."""
        self.at_work.pop(0)[1].set()
        for _ in range(5):
            await asyncio.sleep(0)


def test_a_token_that_floods_waits_for_itself_and_others_do_not() -> None:
    async def flooded() -> None:
        desk = _Desk(at_once=2)
        for _ in range(10):
            desk.ask("flood")
        await asyncio.sleep(0)
        desk.ask("honest")
        await asyncio.sleep(0)
        assert [name for name, _ in desk.at_work] == ["flood", "flood", "honest"]
        for _ in range(11):
            await desk.finish_one()
            assert len([name for name, _ in desk.at_work if name == "flood"]) <= 2
        assert sorted(desk.answers) == [("flood", 200)] * 10 + [("honest", 200)]
        assert not desk.turns._turns, "nothing is kept of those who have none under way"

    asyncio.run(flooded())


def test_the_reads_of_a_token_that_floods_are_worked_on_one_by_one() -> None:
    async def flooded() -> None:
        desk = _Desk(at_once=3)
        for _ in range(9):
            desk.ask("flood")
        await asyncio.sleep(0)
        assert len(desk.at_work) == 3, "nobody knew yet that more would come"
        at_work = []
        for _ in range(9):
            await desk.finish_one()
            at_work.append(len(desk.at_work))
        # Three threads that compute keep the loop waiting three times as long, and are done no sooner.
        assert at_work == [2, 1, 1, 1, 1, 3, 2, 1, 0]
        assert not desk.turns._turns

    asyncio.run(flooded())


def test_writes_are_worked_on_side_by_side_however_many_wait() -> None:
    async def flooded() -> None:
        desk = _Desk(at_once=2)
        for _ in range(8):
            desk.ask("many agents", "/agent/report", "POST")
        await asyncio.sleep(0)
        for _ in range(6):
            assert len(desk.at_work) == 2, "they wait for the database, not for the processor"
            await desk.finish_one()

    asyncio.run(flooded())


def test_more_than_can_wait_are_answered_429() -> None:
    async def flooded() -> None:
        desk = _Desk(at_once=1)
        for _ in range(WAITING_PER_TURN + 3):
            desk.ask("flood")
        await asyncio.sleep(0)
        assert desk.answers == [("flood", 429)] * 2
        desk.ask("honest")
        await asyncio.sleep(0)
        assert [name for name, _ in desk.at_work] == ["flood", "honest"]

    asyncio.run(flooded())


@pytest.mark.parametrize("gets_its_turn", [False, True], ids=["while it waits", "as it gets its turn"])
def test_a_request_that_is_given_up_passes_its_turn_on(gets_its_turn: bool) -> None:
    async def flooded() -> None:
        desk = _Desk(at_once=1)
        _first, second, _third = (desk.ask("one") for _ in range(3))
        await asyncio.sleep(0)
        if gets_its_turn:
            desk.when_answered = second.cancel
        else:
            second.cancel()
        await desk.finish_one()
        assert second.cancelled()
        assert len(desk.at_work) == 1, "the third is worked on, and the second was not"
        assert desk.turns._turns["token one"].running == 1
        desk.when_answered = lambda: None
        await desk.finish_one()
        assert not desk.turns._turns

    asyncio.run(flooded())


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Plane]:
    """A control plane with few streams and waits for each token."""
    with plane(tmp_path, streams_per_token=3, waits_per_token=3) as found:
        yield found


def _stream(found: Plane, token: str, path: str = "/events") -> Wire:
    wire = found.wire()
    wire.request(path, STREAM, f"Authorization: Bearer {token}")
    return wire


def test_the_streams_of_one_token_are_bounded_and_anothers_are_its_own(small: Plane) -> None:
    stolen = small.token("stolen")
    small.deploy()
    streams = [_stream(small, stolen, path) for path in ("/events", "/livesystems/ls-a/events", "/events")]
    for stream in streams:
        stream.read_until(b": connected")
    answer = _stream(small, stolen).answer()
    assert answer.status == 429
    assert answer.detail == "3 streams of this token are open: close one, or use another token"
    assert answer.headers["retry-after"] == "1"
    _stream(small, TOKEN).read_until(b": connected")
    streams[0].socket.close()

    def is_taken() -> bool:
        wire = _stream(small, stolen)
        return b" 200 " in wire.read_until(b"\r\n")

    eventually(is_taken, "a stream that was closed makes way for another")


def test_long_polls_of_one_token_are_bounded(small: Plane) -> None:
    body = {
        "agentId": "a1",
        "environment": "default",
        "reaches": [{"provider": "aws", "realm": "1"}],
        "cycleSeconds": 600,
    }
    token = small.token("agents", "agent", providers=["aws"], environments=["*"], realms=["*"])
    assert small.ask("/agent/register", method="POST", body=body, token=token).status == 200
    content = json.dumps({"agentId": "a1", "wake": 0, "seconds": 50}).encode()
    polls = []
    for _ in range(3):
        polls.append(small.wire())
        headers = (f"Authorization: Bearer {token}", "Content-Type: application/json")
        polls[-1].request("/agent/wait", *headers, method="POST", body=content)
    before = small.middleware("FairTurns")
    eventually(lambda: sum(before._open_waits.values()) == 3, "three wait")
    answer = small.ask("/agent/wait", method="POST", body=json.loads(content), token=token)
    assert answer.status == 429
    assert answer.detail.startswith("3 requests of this token wait already")
    release = {"agentId": "a1", "scopes": []}
    released = small.ask("/agent/release", method="POST", body=release, token=token)
    assert released.status == 204, "what does not wait is answered"


def test_who_does_not_read_its_answers_gets_no_more_of_them(small: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MOST_UNREAD", 2)
    stolen, other = small.token("stolen"), small.token("other")
    small.happen(1_000, size=1_000)
    under_way = small.middleware("FairTurns")._turns

    def ask() -> Wire:
        wire = small.wire(buffer=4_096)
        wire.request("/events?limit=1000", f"Authorization: Bearer {stolen}")
        return wire

    def unread() -> int:
        return sum(len(one.unread) for one in under_way.values())

    wires = []
    for number in range(2):
        wires.append(ask())
        eventually(lambda wanted=number + 1: unread() == wanted, "an answer is not read")
    refused = ask().answer()
    assert refused.status == 429
    assert refused.detail == "2 answers to this token or address are not read: read them before you ask for more"
    assert small.ask("/events?limit=1000", token=other).status == 200, "and everybody else is answered"
    assert wires[0].answer().status == 200
    eventually(lambda: unread() == 1, "it was read")
    assert ask().answer().status == 200
    wires[1].socket.close()
    eventually(lambda: not under_way, "nothing is kept of connections that have ended")


def test_those_that_wait_behind_answers_that_nobody_reads_are_refused() -> None:
    class Unread:
        is_blocked = True

        async def until_read(self) -> None: ...

        def when_read(self, then: Callable[[], None]) -> None: ...

    async def flooded() -> None:
        desk = _Desk(at_once=1)
        for _ in range(turns.MOST_UNREAD + 5):
            desk.ask("flood", connection=Unread())
        await asyncio.sleep(0)
        for _ in range(turns.MOST_UNREAD):
            await desk.finish_one()
        assert len(desk.at_work) == 1, "it had begun before the last answer showed to be unread"
        assert sorted(status for _, status in desk.answers) == [200] * turns.MOST_UNREAD + [429] * 4

    asyncio.run(flooded())


def test_a_request_behind_an_answer_that_is_not_read_is_not_worked_on(small: Plane) -> None:
    small.happen(1_000, size=1_000)
    wire = small.wire(buffer=4_096)
    ask = f"GET /events?limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {small.token('stolen')}\r\n\r\n"
    worked_on = []
    before = small.middleware("FairTurns")
    inner = before._app

    async def counted(scope: Scope, receive: Receive, send: Send) -> None:
        worked_on.append(scope["path"])
        await inner(scope, receive, send)

    before._app = counted
    wire.send(ask.encode() * 5)
    eventually(lambda: sum(len(one.unread) for one in before._turns.values()) == 1, "an answer is not read")
    assert small.ask("/types").status == 200
    assert worked_on == ["/events", "/types"]
    assert [wire.answer().status for _ in range(5)] == [200] * 5, "each is answered as soon as the one before was read"
