"""One reader of events serves all streams, and none of them can make it wait or keep more than a little (A9, C4)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from fractal_cloud.control.api import event_feed
from fractal_cloud.control.store import events
from tests import postgres
from tests.security.raw_http import TOKEN, Plane, Wire, eventually, plane

pytestmark = pytest.mark.xdist_group("floods of streams")  # they share their servers
DATABASES = [
    "sqlite",
    pytest.param(
        "postgresql",
        marks=[
            pytest.mark.postgres,
            pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL server: install Debian's postgresql"),
        ],
    ),
]


@pytest.fixture(scope="module", params=DATABASES)
def plane_on_either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """A control plane on either database."""
    with ExitStack() as stack:
        url = ""
        if request.param == "postgresql":
            url = stack.enter_context(postgres.database(stack.enter_context(postgres.server())))
        folder = tmp_path_factory.mktemp("streams")
        yield stack.enter_context(plane(folder, database_url=url, stall_seconds=0.5))


@pytest.fixture
def server(plane_on_either: Plane) -> Iterator[Plane]:
    """A control plane that nobody follows, before and after."""
    yield plane_on_either
    for wire in plane_on_either.open:
        wire.close()
    eventually(lambda: plane_on_either.app.state.event_feed._reading is None, "nobody follows, and it reads on")


def _stream(found: Plane, path: str = "/events", after: int | None = None, buffer: int = 0, token: str = TOKEN) -> Wire:
    wire = found.wire(buffer=buffer)
    more = [] if after is None else [f"Last-Event-ID: {after}"]
    wire.request(path, "Accept: text/event-stream", f"Authorization: Bearer {token}", *more)
    return wire


def _numbers(wire: Wire, up_to: int) -> list[int]:
    """The numbers of the events that a stream brings, up to one."""
    text = wire.read_until(b"id: %d\n" % up_to)
    return [*(int(number) for number in re.findall(rb"^id: (\d+)$", text, re.MULTILINE)), up_to]


def _newest(found: Plane) -> int:
    items = json.loads(found.ask("/events?limit=1").body)["items"]
    return int(items[0]["seq"]) if items else 0


@pytest.mark.rule("A9", "C4")
def test_each_event_is_read_once_however_many_follow(server: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    streams = [_stream(server) for _ in range(20)]
    for stream in streams:
        stream.read_until(b": connected")
    before = _newest(server)
    reads: list[int] = []
    since = events.since

    def counted(*arguments: object) -> object:
        found = since(*arguments)  # type: ignore[arg-type]  # whatever the feed asks for
        reads.extend(event["seq"] for event in found)
        return found

    monkeypatch.setattr(events, "since", counted)
    server.happen(5)
    server.deploy()
    last = _newest(server)
    for stream in streams:
        assert _numbers(stream, last) == list(range(before + 1, last + 1))
    assert sorted(reads) == list(range(before + 1, last + 1))


@pytest.mark.rule("A9", "C4")
def test_a_stream_of_one_livesystem_brings_its_own_events_alone(server: Plane) -> None:
    server.deploy("ls-own")
    stream = _stream(server, "/livesystems/ls-own/events")
    stream.read_until(b": connected")
    server.deploy("ls-other", 3)
    before = _newest(server)
    server.deploy("ls-own")
    last = _newest(server)
    assert _numbers(stream, last) == list(range(before + 1, last + 1))


@pytest.mark.rule("A9", "C4")
def test_a_stream_of_a_token_bound_to_environments_brings_what_it_may_see(server: Plane) -> None:
    token = server.token("reader-of-prod", environments=["prod"])
    streams = [_stream(server, token=token), _stream(server, token=token)]
    for stream in streams:
        stream.read_until(b": connected")
    server.deploy("ls-default", 3)
    server.deploy("ls-prod", environment="prod")
    last = _newest(server)
    for stream in [*streams, _stream(server, after=last - 4, token=token)]:
        assert _numbers(stream, last) == [last]


@pytest.mark.rule("A9", "C4")
def test_a_stream_that_resumes_gets_what_it_missed_and_then_what_happens(server: Plane) -> None:
    server.happen(3 * event_feed.AT_ONCE_BEHIND)
    middle = _newest(server)
    other = _stream(server)  # the reader runs, and knows nothing of what happened before
    other.read_until(b": connected")
    stream = _stream(server, after=0)
    assert _numbers(stream, middle) == list(range(1, middle + 1))
    server.deploy()
    last = _newest(server)
    assert _numbers(stream, last) == list(range(middle + 1, last + 1))


@pytest.mark.rule("A9", "C4")
def test_who_does_not_read_is_disconnected_and_who_reads_gets_every_event(
    server: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "KEPT_BYTES", 500_000)
    honest, lazy = _stream(server), _stream(server, buffer=4_096)
    for stream in (honest, lazy):
        stream.read_until(b": connected")
    before = _newest(server)
    feed = server.app.state.event_feed
    eventually(lambda: len(feed._followers) >= 2, "both follow")
    for _ in range(100):
        if len(feed._followers) == 1:
            break
        server.happen(30, size=10_000)
        last = _newest(server)
        assert _numbers(honest, last) == list(range(before + 1, last + 1))
        before = last
        assert feed._kept_bytes <= 500_000
    eventually(lambda: len(feed._followers) == 1, "whoever does not read stays connected")
    assert lazy.is_closed()


@pytest.mark.rule("A9")
def test_the_reader_ends_with_the_last_stream_and_begins_with_the_next(server: Plane) -> None:
    for _ in range(2):
        stream = _stream(server)
        stream.read_until(b": connected")
        before = _newest(server)
        server.deploy()
        assert _numbers(stream, before + 1)[-1] == before + 1
        stream.socket.close()
        eventually(lambda: server.app.state.event_feed._reading is None, "nobody follows, and it reads on")


@pytest.mark.rule("A9")
def test_what_a_stream_is_sent_at_once_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "SENT_BYTES", 2_000)
    with plane(tmp_path) as found:
        stream = _stream(found, after=0)
        stream.read_until(b": connected")
        found.happen(20)
        last = _newest(found)
        assert _numbers(stream, last) == list(range(1, last + 1))
        resumed = _stream(found, after=0)
        assert _numbers(resumed, last) == list(range(1, last + 1))
        everything = event_feed._Chosen(None, None)
        reached, chunk = asyncio.run(found.app.state.event_feed._since(0, everything))
        assert reached < last
        assert len(chunk) <= 2_000
