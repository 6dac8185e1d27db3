"""Certificates, secrets in files, full disks, damaged databases, YAML bombs: each has an answer, none a traceback."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import ssl
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from fastapi.testclient import TestClient
from sqlalchemy import event

from fractal_cloud.agent.client import ControlPlane as AgentsControlPlane
from fractal_cloud.agent.client import ControlPlaneRefuses, ControlPlaneUnreachable
from fractal_cloud.agent.trust import BadAuthority, plain_text_warning, trusted
from fractal_cloud.cli.app import run
from fractal_cloud.cli.client import ControlPlane
from fractal_cloud.cli.errors import CommandError, Unreachable
from fractal_cloud.cli.files import load
from fractal_cloud.cli.private_files import open_private, tighten_folder
from fractal_cloud.cli.secret_files import read_secret_files
from fractal_cloud.control.app import create_app
from fractal_cloud.control.serve import make_server
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import open_store
from fractal_cloud.control.store.driver import connect
from fractal_cloud.control.store.failures import NotOpened
from fractal_cloud.control.tls import BadCertificate, Reloader, Tls, make_context
from fractal_cloud.testing.tokens import agent_token, bearer

TOKEN = "fractal-test-token-of-an-admin"


# --- certificates


class Authority:
    """A private authority, with its certificate in a file."""

    def __init__(self, folder: Path, name: str = "Private CA") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.file = folder / f"{name}.pem"
        made = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), critical=True)
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        named = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        lasting = named.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(days=1))
        return lasting.serial_number(x509.random_serial_number())

    def issue(self, tls: Tls) -> int:
        """Put a new certificate for this machine in its place; returns its number."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "control plane")])
        names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))])
        made = self._builder(subject, key).add_extension(names, critical=False).sign(self._key, hashes.SHA256())
        tls.certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        tls.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
        return made.serial_number


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    return Tls(tmp_path / "server.pem", tmp_path / "server.key")


class Served:
    """A control plane that speaks https, and the reloader of its certificate."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._thread = threading.Thread(target=server.run)
        self._thread.start()
        while not server.started:
            time.sleep(0.01)
        self.port: int = server.servers[0].sockets[0].getsockname()[1]
        self.url = f"https://127.0.0.1:{self.port}"

    @property
    def reloader(self) -> Reloader:
        return self._server._reloader  # type: ignore[no-any-return]

    def number(self, authority: Authority) -> int:
        """The number of the certificate that a new connection gets."""
        context = ssl.create_default_context(cafile=authority.file)
        plain = socket.create_connection(("127.0.0.1", self.port), 5)
        with plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as secure:
            got = secure.getpeercert(binary_form=True)
        assert got is not None
        return x509.load_der_x509_certificate(got).serial_number

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)


@pytest.fixture
def served(tmp_path: Path, authority: Authority, tls: Tls) -> Iterator[Served]:
    authority.issue(tls)
    settings = ControlSettings(admin_token=TOKEN, port=0, data_dir=tmp_path / "data", tls=tls)
    running = Served(make_server(settings))
    yield running
    running.stop()


@pytest.mark.rule("A9")
def test_people_and_agents_reach_a_control_plane_with_a_certificate_of_a_private_authority(
    served: Served, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ControlPlane(served.url, TOKEN) as control, pytest.raises(Unreachable, match="is not trusted"):
        control.get("/livesystems")
    with AgentsControlPlane(served.url, TOKEN) as plane, pytest.raises(ControlPlaneUnreachable, match="CERTIFICATE"):
        plane.release("nobody")
    monkeypatch.setenv("FRACTAL_CA_FILE", str(authority.file))
    with ControlPlane(served.url, TOKEN) as control:
        assert control.get("/livesystems")["items"] == []
    with (
        AgentsControlPlane(served.url, TOKEN, ca_file=str(authority.file)) as plane,
        pytest.raises(ControlPlaneRefuses),
    ):
        plane.release("nobody")


@pytest.mark.rule("A9")
def test_a_renewed_certificate_is_loaded_without_a_restart_and_open_connections_live_on(
    served: Served, authority: Authority, tls: Tls
) -> None:
    first = served.number(authority)
    verify = ssl.create_default_context(cafile=authority.file)
    with httpx2.Client(base_url=served.url, verify=verify) as client:
        assert client.get("/healthz").status_code == 200
        second = authority.issue(tls)
        assert served.reloader.reload_if_changed()
        assert not served.reloader.reload_if_changed(), "nothing changed since"
        assert served.number(authority) == second != first
        assert client.get("/healthz").status_code == 200, "on the connection of before"


@pytest.mark.rule("A9")
def test_a_renewed_certificate_that_cannot_be_used_leaves_the_old_one(
    served: Served, authority: Authority, tls: Tls
) -> None:
    first = served.number(authority)
    good = tls.certificate.read_bytes()
    tls.certificate.write_text("half a certif")
    assert not served.reloader.reload()
    assert served.number(authority) == first
    authority.issue(tls)  # a new key, with the certificate of before: the two do not fit
    tls.certificate.write_bytes(good)
    assert not served.reloader.reload()
    assert served.number(authority) == first


@pytest.mark.rule("A9")
def test_a_certificate_or_authority_that_cannot_be_used_is_a_sentence(tmp_path: Path, tls: Tls) -> None:
    with pytest.raises(BadCertificate, match=r"cannot be read: No such file"):
        make_context(tls)
    tls.certificate.write_text("x")
    tls.key.write_text("x")
    with pytest.raises(BadCertificate, match="cannot be used"):
        make_context(tls)
    with pytest.raises(BadAuthority, match="No such file"):
        trusted(str(tmp_path / "none.pem"))
    with pytest.raises(BadAuthority, match="cannot be used"):
        trusted(str(tls.certificate))


@pytest.mark.rule("A9")
@pytest.mark.parametrize(
    ("url", "warns"),
    [
        ("http://10.0.0.7:8600", True),
        ("http://control.example", True),
        ("https://control.example", False),
        ("http://127.0.0.1:8600", False),
        ("http://[::1]:8600", False),
        ("http://localhost:8600", False),
    ],
)
def test_a_token_over_plain_http_past_this_machine_is_warned_of(url: str, warns: bool) -> None:
    assert bool(plain_text_warning(url, TOKEN)) is warns
    assert not plain_text_warning(url, "")


@pytest.mark.rule("A9")
def test_no_token_follows_a_redirect() -> None:
    asked: list[str] = []

    def elsewhere(request: httpx2.Request) -> httpx2.Response:
        asked.append(request.url.host)
        return httpx2.Response(307, headers={"location": "https://elsewhere.example/x"})

    transport = httpx2.MockTransport(elsewhere)
    control = ControlPlane("https://here.example", TOKEN, transport)
    with control, pytest.raises(CommandError, match="where the token is not sent"):
        control.get("/livesystems")
    client = httpx2.Client(base_url="https://here.example", transport=transport)
    with pytest.raises(ControlPlaneRefuses, match=r"leads to 'https://elsewhere.example/x'"):
        AgentsControlPlane("https://here.example", TOKEN, client).release("a1")
    assert set(asked) == {"here.example"}


# --- secrets from files


@pytest.mark.rule("A8")
@pytest.mark.parametrize("name", ["FRACTAL_TOKEN", "FRACTAL_SEALING_KEY", "FRACTAL_DATABASE_URL"])
def test_a_secret_is_read_from_its_file(tmp_path: Path, name: str) -> None:
    file, warnings = tmp_path / "secret", list[str]()
    file.write_text("s3cret\n")
    file.chmod(0o600)
    environment = {f"{name}_FILE": str(file)}
    read_secret_files(environment, warnings.append)
    assert environment == {name: "s3cret"}
    assert not warnings
    file.chmod(0o640)
    read_secret_files({f"{name}_FILE": str(file)}, warnings.append)
    assert "may be read by others" in warnings[0]


@pytest.mark.rule("A8")
@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (None, {}, "cannot be read: No such file"),
        ("", {}, "is empty"),
        (" \n", {}, "is empty"),
        ("a\nb\n", {}, "more than one line"),
        ("s3cret", {"FRACTAL_TOKEN": "other"}, "FRACTAL_TOKEN and FRACTAL_TOKEN_FILE are both set"),
    ],
)
def test_a_secret_file_that_makes_no_sense_is_a_sentence(
    tmp_path: Path, content: str | None, more: dict[str, str], words: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_text(content)
    with pytest.raises(CommandError, match=words):
        read_secret_files({"FRACTAL_TOKEN_FILE": str(file), **more}, lambda _: None)


# --- files of its own


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.rule("A9")
def test_the_database_with_all_its_files_is_its_owners_alone(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    before = os.umask(0)
    try:
        store = open_store(f"sqlite:///{file}", types_here={})
        with store.write() as tx:
            tx.connection.exec_driver_sql("CREATE TABLE probe (x)")
        found = {path.name: _mode(path) for path in tmp_path.iterdir()}
        assert found == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
        store.close()
        file.chmod(0o644)
        open_store(f"sqlite:///{file}", types_here={}).close()
        assert _mode(file) == 0o600, "one that is there is closed to others, too"
    finally:
        os.umask(before)


def test_opening_a_database_again_keeps_the_locks_of_those_who_have_it_open(tmp_path: Path) -> None:
    """POSIX drops all locks of a process on a file when any descriptor of it is closed: then SQLite loses its log."""
    file = tmp_path / "store.db"
    with closing(connect(f"sqlite:///{file}").raw_connection()) as connection:
        connection.cursor().execute("CREATE TABLE noted (at INTEGER)")
        connect(f"sqlite:///{file}").dispose()
        alone = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode=DELETE')"
        tried = subprocess.run([sys.executable, "-c", alone, str(file)], capture_output=True, text=True, check=False)
        assert "database is locked" in tried.stderr, "another process took it for nobody's"


@pytest.mark.rule("A9")
def test_folders_and_logs_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(0o755)
    tighten_folder(folder)
    assert _mode(folder) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    tighten_folder(shared)
    assert _mode(shared) == 0o777 | stat.S_ISVTX, "what others use too is left"
    log = folder / "agent.log"
    log.write_text("before")
    log.chmod(0o644)
    with open_private(log) as file:
        file.write(b"x")
    assert (_mode(log), log.read_text()) == (0o600, "x")


# --- databases that cannot be used


@pytest.fixture
def full(tmp_path: Path) -> Iterator[tuple[TestClient, Any]]:
    """A control plane, and a switch that lets its database have not one page more."""
    app = create_app(ControlSettings(admin_token=TOKEN, data_dir=tmp_path))
    engine = app.state.store.database._connections._engine

    def switch(is_full: bool) -> None:
        pages = 1 if is_full else 1_000_000  # SQLite never goes below what is there already
        engine.dispose()
        event.listen(engine, "connect", lambda c, _: c.execute(f"PRAGMA max_page_count={pages}"))

    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}, raise_server_exceptions=False) as client:
        yield client, switch


@pytest.mark.rule("A9", "C4")
def test_a_full_disk_is_a_503_with_a_sentence_and_reading_goes_on(full: tuple[TestClient, Any]) -> None:
    client, switch = full
    assert client.get("/readyz").status_code == 200
    switch(True)
    many = {"id": "team", "description": "x" * 60_000, "components": []}
    answer = client.put("/livesystems/team", json=many)
    assert answer.status_code == 503, answer.text
    assert "no space is left" in answer.json()["detail"]
    assert "free space" in answer.json()["detail"]
    ready = client.get("/readyz")
    assert ready.status_code == 503
    assert "no space is left" in ready.text
    assert client.get("/healthz").status_code == 200
    assert client.get("/livesystems").json()["items"] == [], "reading goes on, and nothing is half stored"
    switch(False)
    assert client.get("/readyz").status_code == 200
    assert client.put("/livesystems/team", json=many).status_code == 202


def _newer(file: Path) -> None:
    open_store(f"sqlite:///{file}", types_here={}).close()
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


def _damaged(file: Path) -> None:
    file.write_bytes(b"this is no database, and never was one" * 100)


def _torn(file: Path) -> None:
    open_store(f"sqlite:///{file}", types_here={}).close()
    with file.open("r+b") as opened:
        opened.seek(1024)
        opened.write(b"\xff" * 20_000)


def _folder_in_its_place(file: Path) -> None:
    file.mkdir()


@pytest.mark.rule("A9")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_newer, "has the schema '9999' of a newer version"),
        (_damaged, "is damaged (file is not a database)"),
        (_torn, "is damaged"),
        (_folder_in_its_place, "cannot be opened"),
    ],
)
def test_a_database_that_cannot_be_used_is_a_sentence(tmp_path: Path, spoil: Any, words: str) -> None:
    file = tmp_path / "fractal.db"
    spoil(file)
    with pytest.raises(NotOpened) as refused:
        open_store(f"sqlite:///{file}", types_here={})
    assert words in refused.value.message
    assert repr(str(file)) in refused.value.message
    assert refused.value.advice


@pytest.mark.rule("A9")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [(_damaged, "is damaged"), (_newer, "newer version"), (_folder_in_its_place, "cannot be opened")],
)
def test_serve_says_it_in_one_sentence_and_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], spoil: Any, words: str
) -> None:
    spoil(tmp_path / "fractal.db")
    monkeypatch.setattr(sys, "argv", ["fractal", "serve", "--data-dir", str(tmp_path), "--port", "1"])
    monkeypatch.setattr(os, "umask", lambda _: 0)
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


# --- bombs


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.rule("A9")
@pytest.mark.parametrize(
    ("suffix", "text", "words"),
    [
        (".yaml", LAUGHS, "aliases stand for more than"),
        (".yaml", "a: &a [*a]\n", "contains itself"),
        (".yaml", "a: " + "[" * 5_000, "nested deeper"),
        (".yaml", "".join(f"{'  ' * n}a:\n" for n in range(200)), "nested deeper"),
        (".yaml", "#" * (17 * 1024**2), "larger than 16 MiB"),
        (".json", "[" * 200_000, "nested too deeply"),
        (".json", " " * (17 * 1024**2), "larger than 16 MiB"),
    ],
    ids=["aliases", "itself", "flow", "block", "large", "deep json", "large json"],
)
def test_a_bomb_in_a_file_is_refused_at_once(tmp_path: Path, suffix: str, text: str, words: str) -> None:
    file = tmp_path / f"bomb{suffix}"
    file.write_text(text)
    with pytest.raises(CommandError) as refused:
        load(str(file))
    assert words in refused.value.cause


@pytest.mark.rule("A9")
def test_aliases_that_people_write_are_fine(tmp_path: Path) -> None:
    file = tmp_path / "team.yaml"
    file.write_text("id: team\ncomponents: &c []\nmore: *c\n")
    (declared,) = load(str(file))
    assert declared.document == {"id": "team", "components": [], "more": []}


@pytest.mark.rule("A9")
@pytest.mark.parametrize("depth", [100, 1_000, 50_000])
def test_deep_json_is_a_422_and_no_error_of_the_server(full: tuple[TestClient, Any], depth: int) -> None:
    client, _ = full
    nested = "[" * depth + "]" * depth
    body = json.dumps({"id": "team", "components": []})[:-1] + f', "description": {nested}}}'
    agents = bearer(agent_token(client))
    for method, path in (("PUT", "/livesystems/team"), ("POST", "/livesystems"), ("POST", "/agent/register")):
        headers = {"Content-Type": "application/json"} | (agents if path.startswith("/agent/") else {})
        answer = client.request(method, path, content=body, headers=headers)
        assert answer.status_code == 422, (path, answer.text[:300])
