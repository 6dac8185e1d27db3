"""HTTP as attackers speak it: bytes over a socket, and what came back."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from fractal_cloud.control.app import create_app
from fractal_cloud.control.limits import ClientLimits
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store.database import PendingEvent
from fractal_cloud.model.event import EventKind
from tests.http_server import served

TOKEN = "the-admin-token"
PATIENCE = 20.0
"""How long a test waits for what must happen; nothing is concluded from how long it took."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def detail(self) -> str:
        """The sentence of a problem document."""
        found: str = json.loads(self.body)["detail"]
        return found


@dataclass
class Wire:
    """One connection, byte by byte."""

    socket: socket.socket
    buffer: bytes = b""

    def send(self, data: bytes) -> None:
        """Send all of it, or as much as the server takes before it closes."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def request(self, path: str, *headers: str, method: str = "GET", body: bytes = b"") -> None:
        """Send a request with its usual headers."""
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers, *length, "", ""]
        self.send("\r\n".join(lines).encode() + body)

    def _more(self) -> bool:
        try:
            data = self.socket.recv(65_536)
        except ConnectionResetError:
            return False
        self.buffer += data
        return bool(data)

    def answer(self) -> Answer:
        """The next answer, read whole."""
        while b"\r\n\r\n" not in self.buffer:
            assert self._more(), f"closed without an answer: {self.buffer!r}"
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(headers.get("content-length", 0))
        while len(self.buffer) < size:
            assert self._more(), "the answer is cut"
        body, self.buffer = self.buffer[:size], self.buffer[size:]
        return Answer(int(first.split()[1]), headers, body)

    def is_closed(self) -> bool:
        """Whether the server ends it; waits for that, and fails where it does not."""
        while self._more():
            pass
        return True

    def read_until(self, mark: bytes) -> bytes:
        """Read until something came; returns all up to it."""
        while mark not in self.buffer:
            assert self._more(), f"closed before {mark!r} came: {self.buffer[-200:]!r}"
        head, _, self.buffer = self.buffer.partition(mark)
        return head


@dataclass
class Plane:
    """A control plane that listens, and its connections."""

    app: FastAPI
    url: str
    open: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    def wire(self, *, source: str = "127.0.0.1", buffer: int = 0) -> Wire:
        """A new connection; with a small buffer, little can be on its way to whoever does not read."""
        raw = socket.socket()
        if buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        raw.settimeout(PATIENCE)
        raw.bind((source, 0))
        raw.connect(("127.0.0.1", self.port))
        self.open.append(raw)
        return Wire(raw)

    def ask(self, path: str, *headers: str, method: str = "GET", body: Any = None, token: str = TOKEN) -> Answer:
        """One request on a connection of its own, with a token."""
        wire = self.wire()
        content = b"" if body is None else json.dumps(body).encode()
        more = ["Connection: close", *(["Content-Type: application/json"] if content else [])]
        wire.request(path, f"Authorization: Bearer {token}", *more, *headers, method=method, body=content)
        answer = wire.answer()
        wire.socket.close()
        return answer

    def token(self, name: str, role: str = "reader", **more: Any) -> str:
        """A token of a role."""
        answer = self.ask("/tokens", method="POST", body={"name": name, "role": role, **more})
        assert answer.status == 201, answer.body
        found: str = json.loads(answer.body)["token"]
        return found

    def deploy(self, live_system_id: str = "ls-a", count: int = 1, environment: str = "default") -> None:
        """Deploy something, so that something happens."""
        component = {
            "id": "net",
            "type": "NetworkAndCompute.IaaS.AwsVpc",
            "parameters": {"region": "eu-west-1", "cidrBlock": "10.0.0.0/16"},
        }
        for _ in range(count):
            body = {"id": live_system_id, "environment": environment, "components": [component]}
            answer = self.ask(f"/livesystems/{live_system_id}", method="PUT", body=body)
            assert answer.status == 202, answer.body

    def happen(self, count: int, size: int = 10) -> None:
        """Let events happen, with messages so long."""
        with self.app.state.store.write() as tx:
            tx.record(*(PendingEvent("ls-a", EventKind.DEPLOYED, "test", message="m" * size) for _ in range(count)))

    def middleware(self, name: str) -> Any:
        """The part of the app that has this name."""
        app: Any = self.app.middleware_stack
        while type(app).__name__ != name:
            app = app.__dict__.get("app") or app.__dict__["_app"]
        return app


@contextmanager
def plane(folder: Path, *, database_url: str = "", **limits: Any) -> Iterator[Plane]:
    """A control plane with these limits."""
    settings = ControlSettings(
        database_url=database_url,
        data_dir=folder,
        admin_token=TOKEN,
        cycle_seconds=600.0,
        clients=ClientLimits(**limits),
    )
    app = create_app(settings)
    with served(app) as url:
        found = Plane(app, url)
        try:
            yield found
        finally:
            for one in found.open:
                one.close()


def eventually(happens: Any, what: str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
