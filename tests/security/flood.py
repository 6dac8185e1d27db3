"""Floods a control plane of its own, on this machine alone, and prints what each attack costs everybody else (A9).

``python -m tests.security.flood`` starts `fractal serve`, measures it at rest, and then during each attack: how long
``/healthz`` and a deploy take, as ratios to the quiet server of the same run, how much memory the server needs, how
many connections it keeps, and what it answered. Counts and times are bounded, and every address is 127.0.0.1. The
attacks are functions that the tests use too, with small counts.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from fractal_cloud.control.store.tokens import new_secret
from tests import postgres

HOST: Final = "127.0.0.1"
ADMIN: Final = "the-admin-token-of-a-flooded-server"
HOLD_SECONDS: Final = 45.0
"""How long an attack is kept up at most."""
PROBES: Final = 15
PROBE_SECONDS: Final = 10.0
CLOSING_SECONDS: Final = 35.0
"""How long the server gets to close what should not stay open."""
STREAM: Final = b"GET /events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nAuthorization: Bearer %s\r\n%s\r\n"


# --- the attackers


@dataclass(frozen=True, slots=True)
class Target:
    """The server that is attacked, and a token that was stolen for it."""

    port: int
    token: str = ""


@dataclass(eq=False)
class Connection:
    """One connection of an attacker: ``answer`` is the first line that came back, ``closed`` whether it has ended."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    answer: str = ""
    closed: bool = False
    reading: asyncio.Task[None] | None = None

    async def send(self, data: bytes) -> bool:
        """Send as much as the server takes; whether that was all."""
        if self.closed:
            return False
        try:
            self.writer.write(data)
            await asyncio.wait_for(self.writer.drain(), HOLD_SECONDS)
        except (OSError, TimeoutError):
            return False
        return True

    async def read(self) -> None:
        """Read until the server ends it, and keep the first line."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            self.answer = (await self.reader.readline()).decode("latin-1").strip()
            while await self.reader.read(65_536):
                pass
        self.closed = True


@dataclass
class Crowd:
    """All connections of one attack."""

    target: Target
    connections: list[Connection] = field(default_factory=list)
    refused: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self, data: bytes = b"", *, reads: bool = True) -> Connection | None:
        """Connect and send; ``reads=False``: whatever comes back is never read."""
        raw = socket.socket()
        raw.setblocking(False)
        if not reads:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        try:
            await asyncio.wait_for(
                asyncio.get_running_loop().sock_connect(raw, (HOST, self.target.port)), PROBE_SECONDS
            )
        except (OSError, TimeoutError):
            raw.close()
            self.refused += 1
            return None
        reader, writer = await asyncio.open_connection(sock=raw, limit=1_024 if not reads else 65_536)
        connection = Connection(reader, writer)
        self.connections.append(connection)
        if reads:
            connection.reading = asyncio.create_task(connection.read())
        if data:
            await connection.send(data)
        return connection

    async def open_many(self, count: int, data: bytes, *, reads: bool = True) -> None:
        """Open so many connections that send the same, a few at a time."""
        for begin in range(0, count, 50):
            await asyncio.gather(*(self.open(data, reads=reads) for _ in range(min(50, count - begin))))

    async def again_and_again(self, request: Callable[[], bytes], at_once: int) -> None:
        """Send one request after the other until the attack ends, ``at_once`` of them at a time."""

        async def one() -> None:
            while not self.stopped.is_set():
                connection = await self.open()
                if connection is None:
                    await asyncio.sleep(0.05)
                    continue
                await connection.send(request())
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.shield(connection.reading or asyncio.sleep(0)), PROBE_SECONDS)
                self.answers[connection.answer or "no answer"] += 1
                self.connections.remove(connection)
                connection.writer.close()

        await asyncio.gather(*(one() for _ in range(at_once)))

    def summary(self) -> dict[str, Any]:
        """What became of the connections."""
        answers = self.answers + Counter(one.answer for one in self.connections if one.answer)
        unanswered = sum(one.closed and not one.answer for one in self.connections)
        if unanswered:
            answers["closed"] += unanswered
        return {"opened": len(self.connections), "refused": self.refused, "answers": dict(answers)}

    async def close(self) -> None:
        """Let everything go."""
        for one in self.connections:
            one.writer.transport.abort()
            if one.reading is not None:
                one.reading.cancel()
        await asyncio.sleep(0)


Attack = Callable[[Crowd, int], Awaitable[None]]


async def one_big_header(crowd: Crowd, megabytes: int) -> None:
    """One request with a header of so many megabytes."""
    await _long_request(crowd, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Big: ", b"a" * 1_000_000, megabytes)


async def many_small_headers(crowd: Crowd, thousands: int) -> None:
    """One request with so many thousand headers."""
    await _long_request(crowd, b"GET /healthz HTTP/1.1\r\nHost: x", b"\r\na: b" * 1_000, thousands)


async def one_long_path(crowd: Crowd, megabytes: int) -> None:
    """One request whose path is so many megabytes long."""
    await _long_request(crowd, b"GET /", b"a" * 1_000_000, megabytes, b" HTTP/1.1\r\nHost: x")


async def _long_request(crowd: Crowd, head: bytes, part: bytes, times: int, tail: bytes = b"") -> None:
    connection = await crowd.open(head)
    if connection is None:
        return
    for _ in range(times):
        if not await connection.send(part):
            return
    await connection.send(tail + b"\r\n\r\n")


async def half_sent_requests(crowd: Crowd, count: int) -> None:
    """Connections that begin a request and never end its headers."""
    await crowd.open_many(count, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Begun: ")


async def silent_connections(crowd: Crowd, count: int) -> None:
    """Connections that send nothing at all."""
    await crowd.open_many(count, b"")


async def dripping_headers(crowd: Crowd, count: int) -> None:
    """Connections that send a byte of a header every half second."""
    await crowd.open_many(count, b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Drip: ")
    while not crowd.stopped.is_set():
        await asyncio.sleep(0.5)
        await asyncio.gather(*(one.send(b"a") for one in crowd.connections if not one.closed))


async def half_sent_log_ins(crowd: Crowd, count: int) -> None:
    """Log-in forms of two megabytes that lack their last byte."""
    head = b"POST /ui/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    await _half_sent(crowd, count, head, 2_000_000)


async def half_sent_bodies(crowd: Crowd, count: int) -> None:
    """Bodies of two megabytes, with a valid token, that lack their last byte."""
    head = b"GET /livesystems HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n" % crowd.target.token.encode()
    await _half_sent(crowd, count, head, 2_000_000)


async def _half_sent(crowd: Crowd, count: int, head: bytes, size: int) -> None:
    head += b"Content-Length: %d\r\n\r\n" % size
    await crowd.open_many(count, head)
    for begin in range(0, len(crowd.connections), 20):
        await asyncio.gather(*(_body(one, size - 1) for one in crowd.connections[begin : begin + 20]))


async def _body(connection: Connection, size: int) -> None:
    for sent in range(0, size, 100_000):
        if not await _within(connection.send(b"a" * min(100_000, size - sent)), 2.0):
            return


async def _within(sending: Awaitable[bool], seconds: float) -> bool:
    try:
        return await asyncio.wait_for(sending, seconds)
    except TimeoutError:
        return False


async def unread_streams(crowd: Crowd, count: int) -> None:
    """Streams of events, with a valid token, of which nobody reads a byte."""
    await crowd.open_many(count, STREAM % (crowd.target.token.encode(), b""), reads=False)


async def streams_from_the_beginning(crowd: Crowd, count: int) -> None:
    """Unread streams that ask for every event there is."""
    await crowd.open_many(count, STREAM % (crowd.target.token.encode(), b"Last-Event-ID: 0\r\n"), reads=False)


async def unread_answers(crowd: Crowd, count: int) -> None:
    """Connections that ask for long pages again and again, and read none."""
    ask = (
        b"GET /livesystems?include=components&limit=1000 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n"
        % crowd.target.token.encode()
    )
    await crowd.open_many(count, ask * 50, reads=False)


async def pipelined_requests(crowd: Crowd, count: int) -> None:
    """One connection that sends so many requests at once and reads no answer."""
    await crowd.open(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * count, reads=False)


async def unknown_tokens(crowd: Crowd, at_once: int) -> None:
    """Requests with tokens that nobody has, another one each time."""
    form = b"GET /livesystems HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
    await crowd.again_and_again(lambda: form % new_secret().encode(), at_once)


async def failed_log_ins(crowd: Crowd, at_once: int) -> None:
    """Log-ins at the dashboard with tokens that nobody has."""

    def form() -> bytes:
        body = b"token=%s" % new_secret().encode()
        return (
            b"POST /ui/login HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        )

    await crowd.again_and_again(form, at_once)


async def busy_reader(crowd: Crowd, at_once: int) -> None:
    """A valid token that asks for long pages all the time, and reads them."""
    path = b"/livesystems?include=components&limit=1000"
    ask = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer %s\r\n\r\n"
    await crowd.again_and_again(lambda: ask % (path, crowd.target.token.encode()), at_once)


@dataclass(frozen=True, slots=True)
class Flood:
    """An attack in its big form, as the table shows it."""

    title: str
    attack: Attack
    count: int
    is_held: bool = True
    """Whether it only has to be kept open; else it goes on sending while it is measured."""
    stays: bool = True
    """Whether its connections would stay open for ever, if the server let them."""


FLOODS: Final = (
    Flood("one header of 64 MB", one_big_header, 64, is_held=False, stays=False),
    Flood("one path of 16 MB", one_long_path, 16, is_held=False, stays=False),
    Flood("300,000 small headers in a request", many_small_headers, 300, is_held=False, stays=False),
    Flood("1,000 connections that send nothing", silent_connections, 1_000),
    Flood("1,000 half-sent requests", half_sent_requests, 1_000),
    Flood("200 requests of a byte every half second", dripping_headers, 200, is_held=False),
    Flood("200 half-sent log-ins of 2 MB", half_sent_log_ins, 200),
    Flood("200 half-sent bodies of 2 MB with a token", half_sent_bodies, 200),
    Flood("500 unread streams of one token", unread_streams, 500),
    Flood("200 unread streams from the first event on", streams_from_the_beginning, 200),
    Flood("200 × 50 long answers, unread", unread_answers, 200),
    Flood("20,000 requests at once on a connection", pipelined_requests, 20_000),
    Flood("unknown tokens, 20 at a time", unknown_tokens, 20, is_held=False, stays=False),
    Flood("failed log-ins, 20 at a time", failed_log_ins, 20, is_held=False, stays=False),
    Flood("long answers to one token, 20 at a time", busy_reader, 20, is_held=False, stays=False),
)


async def _attack(flood: Flood, target: Target, seconds: float) -> None:
    """Run an attack as a process of its own: say when it stands, hold it until standard input ends, and report."""
    crowd = Crowd(target)
    attacking = asyncio.ensure_future(flood.attack(crowd, flood.count))
    if flood.is_held:
        await asyncio.wait([attacking], timeout=seconds)
    else:
        await asyncio.sleep(0.01)
    print("ready", flush=True)
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.wait([asyncio.ensure_future(ended)], timeout=seconds)
    crowd.stopped.set()
    await asyncio.wait([attacking], timeout=2.0)
    attacking.cancel()
    print(json.dumps(crowd.summary()), flush=True)
    await crowd.close()


# --- the server, and what its honest users notice


@dataclass(frozen=True, slots=True)
class Server:
    """A control plane in a process of its own."""

    port: int
    pid: int

    def memory_megabytes(self) -> float:
        """How much memory it has."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def connections(self) -> int:
        """How many connections others hold to it."""
        here = f"0100007F:{self.port:04X}"
        established = "01"
        lines = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
        return sum(line[1] == here and line[3] == established for line in lines)

    def ask(self, method: str, path: str, body: Any = None, token: str = ADMIN) -> tuple[int, bytes]:
        """One request on a connection of its own."""
        connection = HTTPConnection(HOST, self.port, timeout=PROBE_SECONDS)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def token(self, name: str, role: str) -> str:
        """A token of a role."""
        status, answer = self.ask("POST", "/tokens", {"name": name, "role": role})
        assert status == 201, answer
        found: str = json.loads(answer)["token"]
        return found


@contextmanager
def serving(kind: str = "sqlite", *flags: str) -> Iterator[Server]:
    """Start `fractal serve` on a database of its own."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        url = ""
        if kind != "sqlite":
            url = stack.enter_context(postgres.database(stack.enter_context(postgres.server())))
        with socket.socket() as free:
            free.bind((HOST, 0))
            port = free.getsockname()[1]
        log = stack.enter_context(Path(folder, "log").open("w+b"))
        command = [sys.executable, "-m", "fractal_cloud.cli", "serve", "--port", str(port), "--data-dir", folder]
        settings = {"FRACTAL_TOKEN": ADMIN, "FRACTAL_DATABASE_URL": url, "FRACTAL_CYCLE_SECONDS": "600"}
        process = subprocess.Popen([*command, *flags], env={**os.environ, **settings}, stdout=log, stderr=log)
        server = Server(port, process.pid)
        try:
            _await_ready(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(30)


def _await_ready(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError, HTTPException):
            if server.ask("GET", "/readyz")[0] == 200:
                return
        assert process.poll() is None, "the control plane ended at its start"
        assert time.monotonic() < deadline, "the control plane did not get ready"
        time.sleep(0.1)


@dataclass(frozen=True, slots=True)
class Latency:
    """How long probes took, in milliseconds; one that got no answer took as long as it waited."""

    health: tuple[float, ...]
    deploy: tuple[float, ...]
    failed: int

    def ratios_to(self, quiet: Latency) -> tuple[Ratio, Ratio]:
        """How many times as long as on the quiet server."""
        return Ratio.of(self.health, quiet.health), Ratio.of(self.deploy, quiet.deploy)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median and the slowest probe, as multiples of the quiet server's median."""

    median: float
    worst: float

    @classmethod
    def of(cls, taken: tuple[float, ...], quiet: tuple[float, ...]) -> Ratio:
        """Compare two series of probes."""
        usual = statistics.median(quiet)
        return cls(statistics.median(taken) / usual, max(taken) / usual)

    def __str__(self) -> str:
        return f"× {self.median:,.1f} (worst × {self.worst:,.0f})"


def _probed(server: Server) -> Latency:
    taken: dict[str, list[float]] = {"health": [], "deploy": []}
    failed = 0
    component = {
        "id": "net",
        "type": "NetworkAndCompute.IaaS.AwsVpc",
        "parameters": {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16"},
    }
    began = time.monotonic()
    for _ in range(PROBES):
        for what, times in taken.items():
            started = time.perf_counter()
            try:
                if what == "health":
                    status, _answer = server.ask("GET", "/healthz")
                else:
                    status, _answer = server.ask(
                        "PUT", "/livesystems/probe", {"id": "probe", "components": [component]}
                    )
            except (OSError, HTTPException):
                status = 0
            failed += status not in (200, 202)
            times.append((time.perf_counter() - started) * 1000)
        if time.monotonic() - began > HOLD_SECONDS / 2:
            break
    return Latency(tuple(taken["health"]), tuple(taken["deploy"]), failed)


class _Peak:
    """Samples the server's memory until the block ends."""

    def __init__(self, server: Server) -> None:
        self.megabytes = 0.0
        self._server = server
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> _Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(0.05):
            self.megabytes = max(self.megabytes, self._server.memory_megabytes())


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table."""

    title: str
    health: Ratio
    deploy: Ratio
    failed: int
    megabytes: float
    open: int
    answers: dict[str, int]

    def markdown(self) -> str:
        """The line."""
        words = "; ".join(f"{count:,} × {what}" for what, count in sorted(self.answers.items())) or "none"
        failed = f", {self.failed} failed" if self.failed else ""
        return (
            f"| {self.title} | {self.health} | {self.deploy}{failed} | {self.megabytes:+.0f} MB "
            f"| {self.open:,} | {words} |"
        )


def measure(flood: Flood, kind: str = "sqlite", *flags: str) -> Row:
    """Attack a new server, and compare it with itself before the attack."""
    with serving(kind, *flags) as server:
        target = Target(server.port, server.token("stolen", "reader"))
        for number in range(40):  # something to read
            body = {"id": f"ls-{number}", "components": [_bucket(one) for one in range(25)]}
            assert server.ask("PUT", f"/livesystems/ls-{number}", body)[0] == 202
        _probed(server)
        quiet, memory = _probed(server), server.memory_megabytes()
        command = [sys.executable, "-m", "tests.security.flood", "--attack", flood.title]
        command += ["--port", str(server.port), "--token", target.token]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as attacker:
            assert attacker.stdin is not None
            assert attacker.stdout is not None
            try:
                with _Peak(server) as peak:
                    assert attacker.stdout.readline() == "ready\n"
                    noticed = _probed(server)
                    deadline = time.monotonic() + (CLOSING_SECONDS if flood.stays else 0.0)
                    while server.connections() and time.monotonic() < deadline:
                        time.sleep(0.2)
                    left = server.connections()
                attacker.stdin.close()
                outcome = json.loads(attacker.stdout.readline())
            finally:
                attacker.kill()
    health, deploy = noticed.ratios_to(quiet)
    answers = dict(outcome["answers"])
    if outcome["refused"]:
        answers["not connected"] = outcome["refused"]
    return Row(flood.title, health, deploy, noticed.failed, max(0.0, peak.megabytes - memory), left, answers)


def _bucket(number: int) -> dict[str, Any]:
    parameters = {"region": "eu-west-1", "name": f"a-bucket-{number}-{secrets.token_hex(4)}"}
    return {"id": f"bucket-{number}", "type": "Storage.PaaS.AwsS3", "parameters": parameters}


HEADING: Final = "| attack | `/healthz` | deploy | memory | open after 35 s | answers |\n|---|---|---|---|---|---|"


def main() -> None:
    """Print the table, or be an attacker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attack", help="be the attacker of this line of the table")
    parser.add_argument("--port", type=int)
    parser.add_argument("--token", default="")
    parser.add_argument("--only", default="", help="only lines that contain this")
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    chosen = parser.parse_args()
    if chosen.attack:
        flood = next(one for one in FLOODS if one.title == chosen.attack)
        asyncio.run(_attack(flood, Target(chosen.port, chosen.token), 2 * HOLD_SECONDS))
        return
    print(HEADING)
    for flood in FLOODS:
        if chosen.only in flood.title:
            print(measure(flood, chosen.database).markdown(), flush=True)


if __name__ == "__main__":
    main()
