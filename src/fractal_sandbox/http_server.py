"""A small threaded HTTP/1.1 server for WSGI applications, with connections that stay open.

It exists because werkzeug's own server closes every connection after one answer and gives an application no way to
cut a connection without any answer, which is what a lost answer looks like. Nothing here knows about clouds: an
application gets the usual WSGI environment, its body already read into memory, and may raise `ConnectionCut`, or return
a `Stream`, which is sent piece by piece as it comes. The one port answers TLS too, where a certificate is given: the
first byte of a connection decides.
"""

from __future__ import annotations

import contextlib
import io
import select
import socket
import ssl
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

__all__ = ["ConnectionCut", "Environ", "HttpServer", "StartResponse", "Stream", "WsgiApp"]

Environ: TypeAlias = dict[str, Any]
_TLS = b"\x16"  # the first byte of every handshake, and of no HTTP request
StartResponse: TypeAlias = Callable[[str, list[tuple[str, str]]], object]
WsgiApp: TypeAlias = Callable[[Environ, StartResponse], Iterable[bytes]]


class ConnectionCut(Exception):
    """Raised by an application: the client gets no answer, only a closed connection."""


class Stream:
    """Returned by an application: an answer without a known end. An empty piece asks whether anybody still listens."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def close(self) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()


class HttpServer(ThreadingMixIn, TCPServer):
    """Serves one WSGI application; every connection has its own thread."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, host: str, port: int, app: WsgiApp, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        self.app = app
        self.tls = tls
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        self.is_stopped = False
        super().__init__((host, port), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def remember(self, connection: socket.socket) -> None:
        with self._connections_lock:
            self._connections.add(connection)

    def forget(self, connection: socket.socket) -> None:
        with self._connections_lock:
            self._connections.discard(connection)

    def stop(self) -> None:
        """Stop serving, and close the connections that clients kept open, so that none waits for ever."""
        self.shutdown()
        self.server_close()
        with self._connections_lock:
            connections = list(self._connections)
        self.is_stopped = True
        for connection in connections:
            _close(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        # A client that hangs up is no news; anything else is a fault of ours and must be seen.
        if not isinstance(sys.exc_info()[1], ConnectionError | ssl.SSLError):
            traceback.print_exc()


def _origin_form(target: str) -> str:
    """The path and query of a request target: a client that takes this server for its proxy sends a whole address."""
    if not target.startswith(("http://", "https://")):
        return target
    parts = urlsplit(target)
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the client may have been faster
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet per answer
    server: HttpServer

    def setup(self) -> None:
        self.server.remember(self.request)
        self._plain = self.request
        if self.server.tls is not None and self.request.recv(1, socket.MSG_PEEK) == _TLS:
            self.request = self.server.tls().wrap_socket(self.request, server_side=True)
            self.server.remember(self.request)
        super().setup()

    def finish(self) -> None:
        self.server.forget(self._plain)
        self.server.forget(self.connection)
        super().finish()
        if self._is_encrypted:
            self.connection.close()

    @property
    def _is_encrypted(self) -> bool:
        return isinstance(self.connection, ssl.SSLSocket)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: calls are recorded by the cloud that answers them."""

    def answer(self) -> None:
        try:
            status, headers, body = self._run(self._environ(self._read_body()))
        except ConnectionCut:
            self.close_connection = True
            return
        except Exception:  # noqa: BLE001
            # Whatever went wrong in an application, its client must get an answer that shows it.
            traceback.print_exc()
            status, headers, body = "500 Internal Server Error", [], traceback.format_exc().encode()
        if isinstance(body, Stream):
            self._stream(status, headers, body)
        else:
            self._write(status, headers, body)

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._read_chunks()
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b"\n", b""):
            pass  # trailers
        return bytes(body)

    def _environ(self, body: bytes) -> Environ:
        target = _origin_form(self.path)
        path, _, query = target.partition("?")
        environ: Environ = {
            "REQUEST_METHOD": self.command,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(path, "latin-1"),
            "RAW_URI": target,
            "REQUEST_URI": target,
            "QUERY_STRING": query,
            "SERVER_NAME": str(self.server.server_address[0]),
            "SERVER_PORT": str(self.server.port),
            "SERVER_PROTOCOL": self.request_version,
            "REMOTE_ADDR": str(self.client_address[0]),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "https" if self._is_encrypted else "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in self.headers.items():
            key = name.upper().replace("-", "_")
            environ[key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"] = value
        environ["CONTENT_LENGTH"] = str(len(body))
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        return environ

    def _run(self, environ: Environ) -> tuple[str, list[tuple[str, str]], bytes | Stream]:
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _: object = None) -> None:
            started.append((status, headers))

        chunks = self.server.app(environ, start_response)
        if isinstance(chunks, Stream):
            return *started[-1], chunks
        body = b"".join(chunks)
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
        status, headers = started[-1]
        return status, headers, body

    def _stream(self, status: str, headers: list[tuple[str, str]], stream: Stream) -> None:
        """Send an answer in chunks until it ends, the client goes away, or the server stops."""
        code, _, phrase = status.partition(" ")
        self.send_response(int(code), phrase)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        try:
            for piece in stream:
                if self.server.is_stopped or (not piece and self._is_abandoned()):
                    self.close_connection = True
                    return
                if piece:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except OSError:
            self.close_connection = True  # whoever stops watching just hangs up
        finally:
            stream.close()

    def _is_abandoned(self) -> bool:
        """Return whether the client has hung up: it sends nothing while it waits for an answer."""
        if self._is_encrypted:
            return False  # what comes is not for us to peek at: the next piece will show
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)

    def _write(self, status: str, headers: list[tuple[str, str]], body: bytes) -> None:
        code, _, phrase = status.partition(" ")
        self.send_response(int(code), phrase)
        length = str(len(body))
        for name, value in headers:
            lowered = name.lower()
            if lowered == "content-length" and self.command == "HEAD":
                length = value  # what a GET would carry; the body itself stays away
            elif lowered not in ("content-length", "connection", "server", "date"):
                self.send_header(name, value)
        if code not in ("204", "304"):
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD" and code not in ("204", "304"):
            self.wfile.write(body)
        self.wfile.flush()


for _method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
    setattr(_Handler, f"do_{_method}", _Handler.answer)
