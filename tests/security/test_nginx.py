"""The shipped configuration of nginx, before a real control plane: limits at the edge, nothing lost behind it (A9)."""

from __future__ import annotations

import datetime
import ipaddress
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from fractal_cloud.control.store.tokens import new_secret
from tests import postgres
from tests.ports import free_port
from tests.security.raw_http import PATIENCE, TOKEN, Answer, Plane, Wire, plane

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "nginx" / "fractal.conf"
AUTHORIZED = f"Authorization: Bearer {TOKEN}"
pytestmark = [
    pytest.mark.rule("A9"),
    pytest.mark.xdist_group("nginx"),  # they share their servers
    pytest.mark.skipif(NGINX is None, reason="no nginx: install Debian's nginx-light"),
]


@dataclass(frozen=True, slots=True)
class Edge:
    """An nginx, and the control plane behind it."""

    port: int
    trusted: ssl.SSLContext
    plane: Plane

    def wire(self, source: str = "127.0.0.1") -> Wire:
        """A connection over TLS."""
        raw = socket.create_connection(("127.0.0.1", self.port), PATIENCE, (source, 0))
        self.plane.open.append(raw)
        wrapped = self.trusted.wrap_socket(raw, server_hostname="fractal.example.org")
        self.plane.open.append(wrapped)
        return Wire(wrapped)

    def ask(
        self, path: str, *headers: str, method: str = "GET", body: bytes = b"", source: str = "127.0.0.1"
    ) -> Answer:
        """One request on a connection of its own."""
        wire = self.wire(source)
        wire.request(path, "Connection: close", *headers, method=method, body=body)
        return wire.answer()


@pytest.fixture(scope="module")
def edge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    """The shipped configuration, with shorter times, and fewer connections for each address."""
    with plane(tmp_path_factory.mktemp("behind"), failures_per_minute=5) as behind, _nginx(behind) as found:
        yield found


@contextmanager
def _nginx(behind: Plane) -> Iterator[Edge]:
    account = postgres.run_as()
    folder = Path(tempfile.mkdtemp(prefix="fractal-nginx-"))
    ports = free_port(), free_port()
    trusted = _certificate(folder)
    shipped = SHIPPED.read_text(encoding="utf-8")
    for before, after in (
        ("listen 443 ssl", f"listen 127.0.0.1:{ports[0]} ssl"),
        ("listen 80;", f"listen 127.0.0.1:{ports[1]};"),
        ("server 127.0.0.1:8600", f"server 127.0.0.1:{behind.port}"),
        ("/etc/ssl/fractal/", f"{folder}/"),
        ("client_header_timeout 10s", "client_header_timeout 1s"),
        ("limit_conn fractal_connections 256", "limit_conn fractal_connections 5"),
    ):
        assert shipped.count(before) >= 1, before
        shipped = shipped.replace(before, after)
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\nworker_processes 1;\npid {folder}/pid;\nerror_log {folder}/error.log;\n"
        f"events {{ worker_connections 256; }}\nhttp {{\naccess_log off;\n{temporary}{shipped}\n}}\n"
    )
    if account:
        for path in (folder, *folder.iterdir()):
            os.chown(path, account["user"], account["group"])
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **account)
    try:
        _await(ports[0], process, folder)
        yield Edge(ports[0], trusted, behind)
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)


def _await(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            log = folder / "error.log"
            assert process.poll() is None, log.read_text() if log.exists() else "nginx did not start"
            assert time.monotonic() < deadline, "nginx does not listen"
            time.sleep(0.05)
        else:
            return


def _certificate(folder: Path) -> ssl.SSLContext:
    """A key and a certificate that signs itself, and who trusts it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "fractal.example.org")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("fractal.example.org"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "privkey.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return ssl.create_default_context(cafile=str(folder / "fullchain.pem"))


def test_requests_pass_and_cookies_are_for_tls_alone(edge: Edge) -> None:
    assert edge.ask("/healthz").body == b"ok\n"
    assert edge.ask("/livesystems", AUTHORIZED).status == 200
    form = ("Content-Type: application/x-www-form-urlencoded", "Origin: https://x")
    answer = edge.ask("/ui/login", *form, method="POST", body=f"token={TOKEN}".encode())
    assert answer.status == 303
    assert "secure" in answer.headers["set-cookie"].lower()


def test_headers_that_do_not_come_are_cut(edge: Edge) -> None:
    wire = edge.wire()
    wire.send(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Begun: ")
    assert wire.is_closed()


def test_headers_and_bodies_that_are_too_large_are_refused(edge: Edge) -> None:
    assert edge.ask("/healthz", "X-Big: " + "a" * 40_000).status == 400
    assert edge.ask("/" + "a" * 9_000).status == 414
    assert edge.ask("/ui/login", "Content-Length: 20000", method="POST").status == 413
    assert edge.ask("/agent/report", "Content-Length: 70000000", method="POST").status == 413


def test_events_come_through_at_once(edge: Edge) -> None:
    wire = edge.wire()
    wire.request("/events", "Accept: text/event-stream", AUTHORIZED)
    wire.read_until(b": connected")
    edge.plane.happen(1)
    wire.read_until(b"event: Deployed")


def test_a_long_poll_is_woken_by_a_deploy(edge: Edge) -> None:
    reach = {"provider": "aws", "realm": "123456789012"}
    body = {"agentId": "a1", "environment": "default", "reaches": [reach], "cycleSeconds": 600}
    token = edge.plane.token("agents", "agent", providers=["aws"], environments=["*"], realms=["*"])
    registered = edge.plane.ask("/agent/register", method="POST", body=body, token=token)
    assert registered.status == 200, registered.body
    seen = json.loads(registered.body)["lastSeen"]
    claimed = edge.plane.ask("/agent/claim", method="POST", body={"agentId": "a1", "lastSeen": seen}, token=token)
    wire = edge.wire()
    wait = json.dumps({"agentId": "a1", "wake": json.loads(claimed.body)["wake"], "seconds": 60}).encode()
    agents = f"Authorization: Bearer {token}"
    wire.request("/agent/wait", agents, "Content-Type: application/json", method="POST", body=wait)
    edge.plane.deploy("ls-woken")
    assert json.loads(wire.answer().body)["woken"] is True


def test_the_address_of_the_client_is_passed_on_and_what_it_says_of_itself_is_not(edge: Edge) -> None:
    lie = "X-Forwarded-For: 192.0.2.99"
    details = [
        edge.ask("/livesystems", lie, f"Authorization: Bearer {new_secret()}", source="127.0.0.7").detail
        for _ in range(6)
    ]
    assert "too many log-ins from 127.0.0.7 failed" in details[-1]
    details = []
    for _ in range(6):
        direct = edge.plane.wire(source="127.0.0.8")
        direct.request("/livesystems", lie, f"Authorization: Bearer {new_secret()}")
        details.append(direct.answer().detail)
    assert "too many log-ins from 127.0.0.8 failed" in details[-1]


def test_log_ins_of_one_address_are_limited(edge: Edge) -> None:
    statuses = [edge.ask("/ui/login", source="127.0.0.11").status for _ in range(60)]
    assert statuses[:20] == [200] * 20
    assert 429 in statuses, "nginx let all of them through"
    form = "Content-Type: application/x-www-form-urlencoded"
    other = edge.ask("/ui/login", form, method="POST", body=f"token={TOKEN}".encode(), source="127.0.0.12")
    assert other.status == 303


def test_the_requests_of_one_address_are_limited_and_anothers_are_its_own(edge: Edge) -> None:
    for _ in range(5):
        stream = edge.wire(source="127.0.0.21")
        stream.request("/events", "Accept: text/event-stream", AUTHORIZED)
        stream.read_until(b": connected")
    assert edge.ask("/healthz", source="127.0.0.21").status == 429
    assert edge.ask("/healthz", source="127.0.0.22").status == 200
