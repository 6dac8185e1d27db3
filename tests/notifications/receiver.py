"""A receiver of webhooks: it writes down every request before it answers, and answers as the test wants.

It runs as a process of its own (`python receiver.py FOLDER PORT`), or in a thread of a test. What it is to answer
stands in the file `answer` of its folder, as JSON: status, headers, body, and seconds to wait before; without it, 204.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Json = dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    folder: Path
    lock = threading.Lock()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0"))).decode()
        line = {"path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}, "body": body}
        with self.lock, (self.folder / "received").open("a") as file:
            file.write(json.dumps({**line, "at": time.time()}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        wanted = self.folder / "answer"
        answer: Json = json.loads(wanted.read_text()) if wanted.exists() else {}
        time.sleep(answer.get("seconds", 0))
        self.send_response(answer.get("status", 204))
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        sent = answer.get("body", "").encode()
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        with suppress(OSError):  # whoever sent it has read enough
            self.wfile.write(sent)

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def _server(folder: Path, port: int) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"folder": folder})
    ThreadingHTTPServer.allow_reuse_address = True
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


@dataclass
class Receiver:
    """What a test sees of a receiver."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks/of/the-team?token=path-secret"

    @property
    def received(self) -> list[Json]:
        """Every request so far, in its order."""
        file = self.folder / "received"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    @property
    def events(self) -> list[Json]:
        """The bodies of all of them."""
        return [json.loads(one["body"]) for one in self.received]

    @property
    def data(self) -> list[Json]:
        """What the CloudEvents among them hold."""
        return [one["data"] for one in self.events]

    @property
    def ids(self) -> list[str]:
        return [one["headers"]["webhook-id"] for one in self.received]

    def answers(self, **answer: Any) -> None:
        """Have it answer so from now on."""
        half = self.folder / "answer.half"
        half.write_text(json.dumps(answer))
        half.replace(self.folder / "answer")

    def start(self) -> None:
        """Run it as a process, on the same port as before."""
        self.process = subprocess.Popen([sys.executable, __file__, str(self.folder), str(self.port)])
        until = time.monotonic() + 30
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert time.monotonic() < until, "the receiver did not start"
            time.sleep(0.02)

    def kill(self) -> None:
        """End its process without a chance to finish anything."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)
        self.process = None


@contextmanager
def as_process(folder: Path) -> Iterator[Receiver]:
    """A receiver as a process."""
    from tests.ports import free_port  # the process itself knows no package of tests

    folder.mkdir(exist_ok=True)
    receiver = Receiver(folder, free_port())
    receiver.start()
    try:
        yield receiver
    finally:
        if receiver.process is not None:
            receiver.kill()


@contextmanager
def in_thread(folder: Path, tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver in a thread of the test, for what needs no process to be killed."""
    folder.mkdir(exist_ok=True)
    server = _server(folder, 0)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield Receiver(folder, int(server.server_address[1]))
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


if __name__ == "__main__":
    _server(Path(sys.argv[1]), int(sys.argv[2])).serve_forever()
