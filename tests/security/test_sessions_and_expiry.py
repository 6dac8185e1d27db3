"""Tokens expire, are known to scanners and audited; sessions live on the server; open streams end with their token."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from fractal_cloud.cli.errors import CommandError
from fractal_cloud.cli.programs import refuse_weak_token
from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, access, sessions, tokens
from fractal_cloud.control.store.sessions import Endings
from fractal_cloud.model.access_token import can_be_a_token, is_weak, new_token
from fractal_cloud.model.address import is_loopback
from tests import library_caches
from tests.dashboard.conftest import Server, Visitor
from tests.world import ADMIN_TOKEN

HOUR = timedelta(hours=1)
PATIENCE = 30.0


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "access.db"


@pytest.fixture
def app(database: Path) -> Iterator[FastAPI]:
    made = create_app(ControlSettings(database_url=library_caches.database(database), admin_token=ADMIN_TOKEN))
    with TestClient(made):
        yield made


@pytest.fixture
def clock(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which the control plane's transactions go."""
    made = Clock()
    monkeypatch.setattr(app.state.store.database, "_clock", made)
    return made


@pytest.fixture
def api(app: FastAPI) -> TestClient:
    return TestClient(app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})


def make(api: TestClient, name: str, role: str = "operator", **more: Any) -> str:
    answer = api.post("/tokens", json={"name": name, "role": role, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def expired(app: FastAPI, name: str, role: str = "operator") -> str:
    """A token that expired an hour ago."""
    store: Store = app.state.store
    with store.write() as tx:
        secret, _ = tokens.create(tx, tokens.NewToken(name, role, expires_at=tx.now - HOUR))
    return secret


def bearer(app: FastAPI, secret: str) -> TestClient:
    return TestClient(app, headers={"Authorization": f"Bearer {secret}"})


def kinds(api: TestClient) -> list[str]:
    return [event["kind"] for event in api.get("/events").json()["items"]]


# --- the form


@pytest.mark.rule("A9")
def test_a_token_has_a_form_that_scanners_can_know_and_a_checksum() -> None:
    made = tokens.new_secret()
    assert re.fullmatch(r"fractal_[0-9A-Za-z]{49}", made)
    assert can_be_a_token(made)
    flipped = [made[:i] + ("b" if made[i] == "a" else "a") + made[i + 1 :] for i in range(len("fractal_"), len(made))]
    assert [other for other in flipped if can_be_a_token(other)] == []


def test_no_two_tokens_are_alike() -> None:
    assert len({tokens.new_secret() for _ in range(1_000)}) == 1_000
    assert new_token(lambda alphabet: alphabet[0]).startswith("fractal_0000")


@pytest.mark.rule("A9")
@pytest.mark.parametrize("weak", ["tour", "short-but-Mixed-123", "a" * 64, "abcabcabcabcabcabcabcabcabc"])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "control.example.com", ""])
def test_a_weak_admin_token_is_refused_where_others_reach_the_control_plane(weak: str, host: str) -> None:
    with pytest.raises(CommandError, match="too weak"):
        refuse_weak_token(host, weak)
    for loopback in ("127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"):
        assert is_loopback(loopback)
        refuse_weak_token(loopback, weak)


def test_a_strong_admin_token_is_accepted_anywhere() -> None:
    assert not is_weak(tokens.new_secret())
    refuse_weak_token("0.0.0.0", tokens.new_secret())
    refuse_weak_token("0.0.0.0", "")


# --- expiry and audit


@pytest.mark.rule("A9")
def test_an_expired_token_is_refused_everywhere_and_says_so_once_in_the_events(app: FastAPI, api: TestClient) -> None:
    late = bearer(app, expired(app, "late"))
    for _ in range(3):
        answer = late.get("/livesystems")
        assert answer.status_code == 401
        assert "it expired at" in answer.json()["detail"]
        assert "fractal token rotate late" in answer.json()["detail"]
    assert kinds(api).count("TokenExpired") == 1
    assert Visitor(app, expired(app, "late too")).answer.status_code == 401


@pytest.mark.rule("A9")
def test_every_creation_revocation_and_login_is_an_event_that_names_who(app: FastAPI, api: TestClient) -> None:
    secret = make(api, "bea", expiresAt=(datetime.now(UTC) + HOUR).isoformat(), environments=["prod"])
    visitor = Visitor(app, secret)
    visitor.send("/ui/logout")
    assert api.delete("/tokens/bea").status_code == 204
    found = {event["kind"]: event for event in api.get("/events").json()["items"]}
    assert found["TokenCreated"]["by"] == "admin"
    assert "'bea', role operator, bound to prod, until" in found["TokenCreated"]["message"]
    assert found["LoggedIn"]["by"] == found["LoggedOut"]["by"] == "bea"
    assert (found["TokenRevoked"]["by"], found["TokenRevoked"]["message"]) == ("admin", "token 'bea' was revoked")
    assert not any(secret in str(event) for event in found.values())


@pytest.mark.rule("A9")
def test_the_list_says_when_a_token_was_last_used(app: FastAPI, api: TestClient) -> None:
    secret = make(api, "bea")
    (before,) = api.get("/tokens").json()["items"]
    assert before["lastUsedAt"] is None
    assert bearer(app, secret).get("/livesystems").status_code == 200
    (after,) = api.get("/tokens").json()["items"]
    assert after["lastUsedAt"] is not None


# --- sessions


@pytest.mark.rule("A9")
def test_the_cookie_holds_no_token_and_the_database_no_cookie(app: FastAPI, database: Path) -> None:
    visitor = Visitor(app)
    (name,) = visitor.client.cookies.values()
    assert ADMIN_TOKEN not in name
    assert len(name) >= 32
    with sqlite3.connect(database) as kept:
        rows = kept.execute("SELECT * FROM sessions").fetchall()
    assert len(rows) == 1
    assert name not in str(rows)
    assert ADMIN_TOKEN not in str(rows)


@pytest.mark.rule("A9")
def test_a_copied_cookie_is_worthless_after_the_logout(app: FastAPI) -> None:
    visitor = Visitor(app)
    copied = dict(visitor.client.cookies)
    visitor.send("/ui/logout")
    thief = TestClient(app, cookies=copied, follow_redirects=False)
    assert thief.get("/ui").status_code == 303


@pytest.mark.rule("A9")
def test_a_session_ends_when_nobody_uses_it_and_in_any_case_after_a_while(app: FastAPI, clock: Clock) -> None:
    ends = Endings()
    idle, busy = Visitor(app), Visitor(app)
    hours = int(ends.absolute / HOUR)
    for hour in range(1, hours):
        clock.now += HOUR
        assert busy.get("/ui").status_code == 200, hour
    assert idle.get("/ui").status_code == 303
    clock.now += HOUR
    assert busy.get("/ui").status_code == 303


@pytest.mark.rule("A9")
def test_what_an_open_page_fetches_by_itself_does_not_keep_its_session_alive(app: FastAPI, clock: Clock) -> None:
    visitor = Visitor(app)
    for _ in range(3):
        clock.now += Endings().idle / 2
        visitor.client.get("/ui", headers={"X-Fractal-Refresh": "1"})
    assert visitor.get("/ui").status_code == 303


def test_ended_sessions_are_dropped(app: FastAPI, clock: Clock) -> None:
    store: Store = app.state.store
    Visitor(app)
    clock.now += Endings().absolute
    with store.write() as tx:
        assert sessions.has_ended(tx, Endings())
        sessions.forget_ended(tx, Endings())
        assert not sessions.has_ended(tx, Endings())


# --- streams


@pytest.fixture
def server(app: FastAPI) -> Iterator[Server]:
    running = Server(app)
    running.start()
    yield running
    running.stop()


def _hold(request: Callable[[httpx2.Client], None]) -> tuple[threading.Thread, list[BaseException]]:
    """Hold a request open on a thread; the errors with which it ended."""
    errors: list[BaseException] = []

    def run() -> None:
        with httpx2.Client(timeout=PATIENCE) as client:
            try:
                request(client)
            except httpx2.HTTPError as error:
                errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, errors


@pytest.mark.rule("A9")
def test_an_open_stream_ends_when_its_token_is_revoked(api: TestClient, server: Server) -> None:
    headers = {"Authorization": f"Bearer {make(api, 'bea')}", "Accept": "text/event-stream"}
    begun = threading.Event()

    def follow(client: httpx2.Client) -> None:
        with client.stream("GET", f"{server.url}/events", headers=headers) as answer:
            for line in answer.iter_lines():
                assert line is not None
                begun.set()

    thread, errors = _hold(follow)
    assert begun.wait(PATIENCE)
    assert api.delete("/tokens/bea").status_code == 204
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert errors == []


@pytest.mark.rule("A9")
def test_an_open_stream_ends_when_its_token_expires(app: FastAPI, server: Server) -> None:
    store: Store = app.state.store
    with store.write() as tx:
        soon = tx.now + timedelta(seconds=3)
        secret, _ = tokens.create(tx, tokens.NewToken("bea", "reader", expires_at=soon))
    headers = {"Authorization": f"Bearer {secret}", "Accept": "text/event-stream"}

    def follow(client: httpx2.Client) -> None:
        with client.stream("GET", f"{server.url}/events", headers=headers) as answer:
            for _ in answer.iter_lines():
                pass

    thread, _ = _hold(follow)
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.rule("A9")
def test_the_stream_of_an_open_page_ends_with_its_session(app: FastAPI, api: TestClient, server: Server) -> None:
    secret = make(api, "bea")
    begun = threading.Event()

    def follow(client: httpx2.Client) -> None:
        client.post(f"{server.url}/ui/login", data={"token": secret})
        with client.stream("GET", f"{server.url}/ui/events") as answer:
            assert answer.status_code == 200
            for _ in answer.iter_lines():
                begun.set()

    thread, errors = _hold(follow)
    assert begun.wait(PATIENCE)
    assert api.delete("/tokens/bea").status_code == 204
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert errors == []


@pytest.mark.rule("A9")
def test_a_token_revoked_at_one_server_is_forgotten_at_the_other_at_once(app: FastAPI, api: TestClient) -> None:
    secret = make(api, "bea")
    who = bearer(app, secret)
    assert who.get("/livesystems").status_code == 200
    store: Store = app.state.store
    forgotten = threading.Event()
    forget = app.state.authenticator.forget

    def noted() -> None:
        forget()
        forgotten.set()

    app.state.authenticator.forget = noted
    with store.write() as tx:  # as another process on the same database would
        access.revoke_token(tx, "bea", "admin")
    assert forgotten.wait(PATIENCE)
    assert who.get("/livesystems").status_code == 401
