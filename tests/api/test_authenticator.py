"""A token is believed for a few seconds, never longer: revoked anywhere, it is worthless everywhere soon after."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.control.auth import authenticator
from fractal_cloud.control.auth.authenticator import BELIEVED_SECONDS, USED_SECONDS, Authenticator
from fractal_cloud.control.store import Store, access, open_store, tokens
from fractal_cloud.control.store.database import Tx
from fractal_cloud.control.store.tokens import NewToken
from fractal_cloud.rules.grants import EVERYTHING


class _Time:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """How late it is."""
        return self.now


@pytest.fixture
def clock() -> _Time:
    """The time that servers keep."""
    return _Time()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """The database of two servers."""
    made = open_store(f"sqlite:///{tmp_path / 'store.db'}", types_here={})
    yield made
    made.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For how many tokens the store was asked, time after time."""
    sizes: list[int] = []
    find = tokens.find

    def counted(tx: Tx, hashes: Iterable[str]) -> list[Any]:
        wanted = list(hashes)
        sizes.append(len(wanted))
        return find(tx, wanted)

    monkeypatch.setattr(tokens, "find", counted)
    return sizes


def _token(store: Store, name: str) -> str:
    with store.write() as tx:
        secret, _ = tokens.create(tx, NewToken(name, "agent", EVERYTHING))
    return secret


def _revoke(store: Store, name: str) -> None:
    with store.write() as tx:
        access.revoke_token(tx, name, "admin")


def _name(server: Authenticator, secret: str) -> str | None:
    """Who speaks, as a request finds out."""
    found = server.remembered(secret) or server.verify(secret)
    return None if found is None else found.name


def test_tokens_in_use_are_read_by_one_statement(store: Store, clock: _Time, asked: list[int]) -> None:
    server = Authenticator(store, "admin", clock)
    secrets = [_token(store, f"t{index}") for index in range(4)]
    for _ in range(2):
        assert [_name(server, secret) for secret in secrets] == ["t0", "t1", "t2", "t3"]
    assert asked == [1, 1, 1, 1]
    for _ in range(3):
        clock.now += BELIEVED_SECONDS
        assert [_name(server, secret) for secret in secrets] == ["t0", "t1", "t2", "t3"]
    assert asked[4:] == [4, 4, 4]


def test_a_token_revoked_at_another_server_is_refused_within_seconds_however_busy_the_others_are(
    store: Store, clock: _Time
) -> None:
    server = Authenticator(store, "admin", clock)
    one, two = _token(store, "one"), _token(store, "two")
    assert (_name(server, one), _name(server, two)) == ("one", "two")
    _revoke(store, "one")
    for _ in range(40):
        clock.now += BELIEVED_SECONDS / 20
        assert _name(server, two) == "two"
    assert _name(server, one) is None
    clock.now += BELIEVED_SECONDS / 2
    assert _name(server, two) == "two"
    assert _name(server, one) is None


def test_a_token_is_believed_from_before_it_was_read(
    store: Store, clock: _Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Authenticator(store, "admin", clock)
    one, find = _token(store, "one"), tokens.find

    def slowly(tx: Tx, hashes: Iterable[str]) -> list[Any]:
        found = find(tx, hashes)
        clock.now += 3
        return found

    monkeypatch.setattr(tokens, "find", slowly)
    assert _name(server, one) == "one"
    clock.now += BELIEVED_SECONDS - 3
    assert server.remembered(one) is None


def test_a_token_revoked_here_while_it_was_read_is_not_remembered(
    store: Store, clock: _Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Authenticator(store, "admin", clock)
    one, find = _token(store, "one"), tokens.find

    def meanwhile(tx: Tx, hashes: Iterable[str]) -> list[Any]:
        found = find(tx, hashes)
        server.forget()
        return found

    monkeypatch.setattr(tokens, "find", meanwhile)
    assert _name(server, one) == "one"
    assert server.remembered(one) is None
    assert clock.now == 1_000.0


def test_a_token_nobody_uses_any_more_is_not_read_again(store: Store, clock: _Time, asked: list[int]) -> None:
    server = Authenticator(store, "admin", clock)
    one, two = _token(store, "one"), _token(store, "two")
    assert (_name(server, one), _name(server, two)) == ("one", "two")
    clock.now += USED_SECONDS / 2
    assert _name(server, two) == "two"
    clock.now += USED_SECONDS / 2
    assert _name(server, two) == "two"
    assert asked == [1, 1, 2, 1]


def test_tokens_nobody_has_are_asked_for_alone_and_never_remembered(
    store: Store, clock: _Time, asked: list[int]
) -> None:
    server = Authenticator(store, "admin", clock)
    assert _name(server, _token(store, "one")) == "one"
    clock.now += BELIEVED_SECONDS
    assert [_name(server, tokens.new_secret()) for _ in range(3)] == [None] * 3
    assert asked == [1, 1, 1, 1]


@pytest.mark.rule("A9")
def test_a_text_that_is_no_token_of_ours_costs_the_database_nothing(store: Store, asked: list[int]) -> None:
    server = Authenticator(store, "admin")
    forged = tokens.new_secret()[:-1] + "."
    assert [_name(server, guess) for guess in ("guess", "", "fractal_", forged, tokens.new_secret()[:-1])] == [None] * 5
    assert asked == []


@pytest.mark.parametrize(("moment", "sizes"), [(30.0, [1, 1, 2]), (0.01, [1, 1, 1, 2])], ids=["in time", "too late"])
def test_who_comes_while_all_are_read_waits_for_that_but_not_long(
    store: Store, clock: _Time, asked: list[int], monkeypatch: pytest.MonkeyPatch, moment: float, sizes: list[int]
) -> None:
    server = Authenticator(store, "admin", clock)
    one, two = _token(store, "one"), _token(store, "two")
    assert (_name(server, one), _name(server, two)) == ("one", "two")
    clock.now += BELIEVED_SECONDS
    reading, may_go_on = threading.Event(), threading.Event()
    find = tokens.find
    names: list[str | None] = []

    def held(tx: Tx, hashes: Iterable[str]) -> list[Any]:
        wanted = list(hashes)
        if len(wanted) > 1:
            reading.set()
            assert may_go_on.wait(30)
        return find(tx, wanted)

    monkeypatch.setattr(tokens, "find", held)
    monkeypatch.setattr(authenticator, "_MOMENT", moment)
    threads = [threading.Thread(target=lambda s=secret: names.append(_name(server, s))) for secret in (one, two)]
    threads[0].start()
    assert reading.wait(30)
    threads[1].start()
    if moment < 1:
        threads[1].join(30)
        assert names == ["two"]
    may_go_on.set()
    for thread in threads:
        thread.join(30)
    assert set(names) == {"one", "two"}
    assert asked == sizes
