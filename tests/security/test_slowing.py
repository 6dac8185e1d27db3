"""Failed log-ins are slowed by address and by token, and a valid token never is (A9)."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from fractal_cloud.control.api.problems import problem
from fractal_cloud.control.auth import slowing
from fractal_cloud.control.auth.caller import address
from fractal_cloud.control.auth.slowing import FailureCounts, SlowedFailures
from fractal_cloud.control.store import tokens
from tests.security.raw_http import TOKEN, Answer, Plane, plane

pytestmark = pytest.mark.rule("A9")
FORM = "Content-Type: application/x-www-form-urlencoded"


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plane]:
    """A control plane that forgives five failures a minute, and whose late answers tests need not wait for."""
    monkeypatch.setattr(slowing, "HELD_SECONDS", 0.01)
    with plane(tmp_path, failures_per_minute=5) as found:
        yield found


def _unknown(found: Plane, token: str = "", source: str = "127.0.0.1") -> Answer:
    wire = found.wire(source=source)
    wire.request("/livesystems", f"Authorization: Bearer {token or tokens.new_secret()}")
    return wire.answer()


def test_too_many_unknown_tokens_from_an_address_are_answered_429_and_valid_ones_as_ever(strict: Plane) -> None:
    fresh = strict.token("never used before")
    assert [_unknown(strict).status for _ in range(8)] == [401] * 5 + [429] * 3
    answer = _unknown(strict)
    assert answer.status == 429
    assert answer.detail.startswith("too many log-ins from 127.0.0.1 failed: try again in ")
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers["connection"] == "close"
    assert strict.ask("/livesystems").status == 200
    assert strict.ask("/livesystems", token=fresh).status == 200
    assert _unknown(strict, source="127.0.0.2").status == 401, "another address has failures of its own"


def test_failed_log_ins_at_the_dashboard_are_slowed_with_a_page_and_a_valid_one_gets_in(strict: Plane) -> None:
    def log_in(token: str) -> Answer:
        wire = strict.wire()
        wire.request("/ui/login", FORM, method="POST", body=f"token={token}".encode())
        return wire.answer()

    assert [log_in("wrong").status for _ in range(7)] == [401] * 5 + [429] * 2
    answer = log_in("wrong")
    assert answer.headers["content-type"].startswith("text/html")
    assert b"too many log-ins from 127.0.0.1 failed" in answer.body
    assert log_in(TOKEN).status == 303


def test_a_token_that_fails_again_and_again_is_not_searched_for_any_more(
    strict: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    find = tokens.find

    def counted(tx: object, hashes: object) -> object:
        asked.append(hashes)
        return find(tx, hashes)  # type: ignore[arg-type]  # as it was called

    monkeypatch.setattr(tokens, "find", counted)
    revoked = tokens.new_secret()
    sources = [f"127.0.0.{number}" for number in range(2, 12)]
    answers = [_unknown(strict, revoked, source) for source in sources]
    assert [answer.status for answer in answers] == [401] * 5 + [429] * 5
    assert answers[-1].detail.startswith("this token is not known here, and was tried too often: try again in ")
    assert len(asked) == 6


def test_only_so_many_answers_are_held_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slowing, "HELD_SECONDS", 600.0)
    monkeypatch.setattr(slowing, "MOST_HELD", 5)
    monkeypatch.setattr(slowing, "MOST_HELD_OF_ONE", 3)

    async def refused(scope: Scope, receive: Receive, send: Send) -> None:
        await problem(401, "no")(scope, receive, send)

    async def many() -> None:
        slowed = SlowedFailures(refused, 1, lambda _scope, status, detail, headers: problem(status, detail))
        answers: Counter[tuple[str, int]] = Counter()

        async def ask(host: str) -> None:
            async def receive() -> Message:
                return {"type": "http.disconnect"}

            async def send(message: Message) -> None:
                if message["type"] == "http.response.start":
                    answers[host, message["status"]] += 1

            await slowed({"type": "http", "path": "/", "headers": [], "client": (host, 1)}, receive, send)

        asking = [asyncio.create_task(ask(host)) for host in ["192.0.2.1"] * 11 + ["192.0.2.2"] * 11]
        for _ in range(5):
            await asyncio.sleep(0)
        assert answers == {
            ("192.0.2.1", 401): 1,
            ("192.0.2.1", 429): 7,
            ("192.0.2.2", 401): 1,
            ("192.0.2.2", 429): 8,
        }
        for task in asking:
            task.cancel()
        await asyncio.wait(asking)
        assert slowed._held == 0
        assert not slowed._held_of_address

    asyncio.run(many())


def test_failures_are_forgiven_with_time_and_forgotten_by_number() -> None:
    counts = FailureCounts(per_minute=6, most=3)
    assert [counts.add("a", 0.0) for _ in range(6)] == [0.0] * 6
    assert counts.add("a", 0.0) == pytest.approx(10.0)
    assert counts.seconds_left("a", 5.0) == pytest.approx(5.0)
    assert counts.seconds_left("a", 10.0) == 0.0
    for _ in range(1_000):
        counts.add("a", 10.0)
    assert counts.seconds_left("a", 10.0) <= 60.0, "nobody is shut out for longer than a minute"
    for key in ("b", "c", "d"):
        counts.add(key, 11.0)
    assert len(counts) == 3
    assert counts.seconds_left("a", 11.0) == 0.0


def test_an_address_is_a_network_where_one_client_has_a_network() -> None:
    def of(host: str) -> str:
        return address({"type": "http", "client": (host, 1)})

    assert of("192.0.2.7") == "192.0.2.7"
    assert of("::ffff:192.0.2.7") == "192.0.2.7"
    assert of("2001:db8:1:2:3::4") == of("2001:db8:1:2:ffff::1") == "2001:db8:1:2::/64"
    assert of("2001:db8:1:3::4") != of("2001:db8:1:2::4")


def test_the_address_is_a_proxys_word_only_where_the_proxy_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slowing, "HELD_SECONDS", 0.01)
    with plane(tmp_path, failures_per_minute=1, trusted_proxies="127.0.0.9") as found:

        def failed(source: str, said: str) -> str:
            wire = found.wire(source=source)
            wire.request("/livesystems", f"X-Forwarded-For: {said}", "Authorization: Bearer " + secrets.token_hex(20))
            answer = wire.answer()
            return "" if answer.status == 401 else json.loads(answer.body)["detail"]

        assert failed("127.0.0.9", "198.51.100.1, 192.0.2.1") == ""
        assert "from 192.0.2.1 failed" in failed("127.0.0.9", "192.0.2.1")
        assert failed("127.0.0.9", "192.0.2.2") == ""
        assert failed("127.0.0.1", "192.0.2.3") == ""
        assert "from 127.0.0.1 failed" in failed("127.0.0.1", "192.0.2.4")
