"""Access by itself: which role reaches what, how a token is known, and what stands before every route."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import delete, insert
from starlette.responses import PlainTextResponse, Response
from starlette.types import Message, Receive, Scope, Send

from fractal_cloud.control.auth import authenticator as module
from fractal_cloud.control.auth.authenticator import ADMIN, BELIEVED_SECONDS, USED_SECONDS, Authenticator
from fractal_cloud.control.auth.middleware import Authentication
from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.control.store import tokens
from fractal_cloud.control.store.driver import connect
from fractal_cloud.control.store.failures import DatabaseUnavailable, Undone
from fractal_cloud.control.store.schema import tokens as table
from fractal_cloud.rules.grants import NOTHING

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PATHS = (
    "/livesystems",
    "/livesystems/ls-a",
    "/agents",
    "/agent",
    "/tokensx",
    "/metrics",
    "/",
    "/x/tokens",
    "/x/agent/",
)
AGENTS = ("/agent/claim", "/agent/", "/agent/plans/7")
TOKENS = ("/tokens", "/tokens/", "/tokens/ann")


def may(role: Role, method: str, path: str) -> bool:
    return Principal("t1", "ann", role).may(method, path)


@pytest.mark.rule("C1")
def test_each_role_reaches_exactly_what_it_is_for() -> None:
    for method in METHODS:
        for path in (*PATHS, *AGENTS, *TOKENS):
            is_reading = method in ("GET", "HEAD")
            assert may(Role.ADMIN, method, path)
            assert may(Role.AGENT, method, path) is (path in AGENTS)
            assert may(Role.OPERATOR, method, path) is (path in PATHS)
            assert may(Role.READER, method, path) is (path in PATHS and is_reading), (method, path)


def test_a_principal_serves_nothing_unless_bound_to_it() -> None:
    assert Principal("t1", "ann", Role.AGENT).grants == NOTHING
    assert not Principal("t1", "ann", Role.AGENT).may_serve("aws", "prod", "1")
    bound = Principal("t1", "ann", Role.AGENT, frozenset({"aws"}), False, frozenset({"prod"}), frozenset({"1"}))
    assert bound.may_serve("aws", "prod", "1")
    assert bound.may_serve("aws", "prod", "7", "1")
    assert not bound.may_serve("aws", "prod", "7")
    assert Principal("admin", "admin", Role.ADMIN) == ADMIN


# --- who a token belongs to


class Shelf:
    """The table of tokens by itself, as the store asks it; a whole database takes a hundred times as long to make."""

    def __init__(self, file: Path) -> None:
        self._engine = connect(f"sqlite:///{file}")
        table.create(self._engine)

    @contextmanager
    def read(self) -> Iterator[Any]:
        with self._engine.begin() as connection:
            yield SimpleNamespace(connection=connection, now=datetime.now(UTC))

    write = read

    def add(self, row: dict[str, Any]) -> None:
        with self._engine.begin() as connection:
            connection.execute(insert(table), [row])

    def revoke(self, token_id: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(delete(table).where(table.c.id == token_id))

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    """A store that knows nothing but tokens."""
    shelf = Shelf(tmp_path / "tokens.db")
    yield shelf
    shelf.close()


_made = iter(range(1_000_000))


def new_token(
    store: Any, role: str = "reader", providers: tuple[str, ...] = (), *, waits: bool = False
) -> tuple[str, Principal]:
    """The secret of a new token, and who it belongs to."""
    name = f"token {next(_made)}"
    secret = tokens.new_secret()
    who = Principal(
        f"id of {name}",
        name,
        Role(role),
        frozenset(providers),
        waits,
        environments=frozenset({"prod"}),
        realms=frozenset({f"realm of {name}"}),
        expires_at=datetime(2100, 1, 1, tzinfo=UTC),
    )
    row = {"id": who.id, "hash": tokens.hashed(secret), "name": name, "role": role, "waits": waits}
    row |= {"providers": sorted(providers), "environments": sorted(who.environments), "realms": sorted(who.realms)}
    store.add({**row, "created_at": datetime.now(UTC), "created_by": "admin", "expires_at": who.expires_at})
    return secret, who


def revoke(store: Any, who: Principal) -> None:
    store.revoke(who.id)


@dataclass
class Clock:
    at: float = 1_000.0

    def __call__(self) -> float:
        return self.at


def test_the_admins_token_is_known_by_heart_and_no_other(store: Any) -> None:
    mine = Authenticator(store, "the-admin-token")
    assert mine.remembered("the-admin-token") is ADMIN
    for other in ("", "the-admin-toke", "the-admin-token ", "The-Admin-Token"):
        assert mine.remembered(other) is None
        assert mine.verify(other) is None


def test_a_token_is_what_the_store_says(store: Any) -> None:
    mine = Authenticator(store, "admin")
    secret, who = new_token(store, "agent", ("aws", "gcp"))
    assert mine.remembered(secret) is None, "nobody asked yet"
    assert mine.verify(secret) == who
    assert mine.remembered(secret) == who
    assert mine.verify("somebody else's") is None
    assert mine.remembered("somebody else's") is None


@pytest.mark.rule("C9")
def test_a_token_that_waits_is_known_to_wait(store: Any) -> None:
    secret, who = new_token(store, "agent", waits=True)
    assert who.waits
    assert Authenticator(store, "admin").verify(secret) == who


def test_a_token_that_was_read_is_believed_for_some_seconds_and_no_longer(store: Any) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    secret, who = new_token(store)
    assert mine.verify(secret) == who
    revoke(store, who)
    clock.at += BELIEVED_SECONDS - 0.1
    assert mine.remembered(secret) == who, "nobody forgot it here: it is believed, for a few seconds"
    clock.at += 0.1
    assert mine.remembered(secret) is None
    assert mine.verify(secret) is None
    assert BELIEVED_SECONDS <= 5.0


def test_a_revoked_token_is_forgotten_at_once_where_it_was_revoked(store: Any) -> None:
    mine = Authenticator(store, "admin", Clock())
    secret, who = new_token(store)
    kept, other = new_token(store)
    assert mine.verify(secret) == who
    assert mine.verify(kept) == other
    revoke(store, who)
    mine.forget()
    assert mine.remembered(secret) is None
    assert mine.verify(secret) is None
    assert mine.verify(kept) == other


def test_a_lookup_that_a_revocation_overtook_is_not_remembered(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Authenticator(store, "admin", Clock())
    secret, who = new_token(store)
    mine.forget()  # not for the first time
    find = tokens.find

    def find_slowly(*given: Any) -> Any:
        found = find(*given)
        mine.forget()  # while the answer is on its way
        return found

    monkeypatch.setattr(tokens, "find", find_slowly)
    assert mine.verify(secret) == who
    assert mine.remembered(secret) is None


class Counted:
    """Which tokens each question asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[set[str]] = []
        find = tokens.find

        def counting(tx: Any, wanted: Any) -> Any:
            self.asked.append(set(wanted))
            return find(tx, wanted)

        monkeypatch.setattr(tokens, "find", counting)


def test_all_tokens_in_use_are_read_in_one_batch_and_what_is_not_used_is_dropped(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    secrets = [new_token(store)[0] for _ in range(3)]
    hashes = [tokens.hashed(secret) for secret in secrets]
    counted = Counted(monkeypatch)
    for secret in secrets:
        mine.verify(secret)
    assert counted.asked == [{one} for one in hashes], "who was not known is asked for alone"
    clock.at += BELIEVED_SECONDS
    assert mine.verify(secrets[0]) is not None
    assert counted.asked[3:] == [set(hashes)]
    for secret in secrets:
        assert mine.remembered(secret) is not None
    assert mine.verify(secrets[1]) is not None
    assert len(counted.asked) == 4, "what is believed needs no question"
    clock.at += USED_SECONDS - 1
    mine.remembered(secrets[1])
    clock.at += 1
    mine.verify(secrets[0])
    assert counted.asked[4:] == [{hashes[0], hashes[1]}], "the third was not used for so long"
    assert mine.remembered(secrets[2]) is None


def test_being_read_with_others_is_no_use_of_a_token(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    busy, idle = new_token(store)[0], new_token(store)[0]
    mine.verify(busy)
    mine.verify(idle)
    clock.at += USED_SECONDS - 1
    mine.remembered(busy)
    mine.verify(busy)
    clock.at += BELIEVED_SECONDS
    counted = Counted(monkeypatch)
    mine.verify(busy)
    assert counted.asked == [{tokens.hashed(busy)}], "the other was not used for so long"


def test_who_is_revoked_is_dropped_when_all_are_read(store: Any) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    (one, _), (two, who) = new_token(store), new_token(store)
    mine.verify(one)
    mine.verify(two)
    revoke(store, who)
    clock.at += BELIEVED_SECONDS
    assert mine.verify(one) is not None
    assert tokens.hashed(two) not in mine._known
    assert mine.remembered(two) is None


def test_a_lookup_is_counted_from_before_it_was_asked(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    secret, _ = new_token(store)
    find = tokens.find

    def slowly(*given: Any) -> Any:
        clock.at += BELIEVED_SECONDS
        return find(*given)

    monkeypatch.setattr(tokens, "find", slowly)
    assert mine.verify(secret) is not None
    assert mine.remembered(secret) is None


def test_only_so_many_tokens_are_remembered(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_REMEMBERED", 2)
    mine = Authenticator(store, "admin", Clock())
    secrets = [new_token(store)[0] for _ in range(3)]
    for secret in secrets[:2]:
        mine.verify(secret)
    assert all(mine.remembered(secret) for secret in secrets[:2]), "as many as are allowed"
    mine.verify(secrets[2])
    assert [mine.remembered(secret) is not None for secret in secrets] == [False, False, True]


def test_while_somebody_asks_for_all_who_comes_meanwhile_asks_for_itself_alone(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOMENT", 0.0)
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    (one, _), (two, who) = new_token(store), new_token(store)
    mine.verify(one)
    mine.verify(two)
    clock.at += BELIEVED_SECONDS
    counted = Counted(monkeypatch)
    with mine._renewing:
        assert mine.verify(two) == who
    assert counted.asked == [{tokens.hashed(two)}]
    assert mine._renewing.acquire(blocking=False), "and it was given back by whoever took it"


def test_the_right_to_ask_for_all_is_given_back_also_where_asking_failed(
    store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    secret, _ = new_token(store)
    mine.verify(secret)
    clock.at += BELIEVED_SECONDS

    def fail(*_: Any) -> Any:
        raise RuntimeError("no database")

    monkeypatch.setattr(tokens, "find", fail)
    with pytest.raises(RuntimeError):
        mine.verify(secret)
    assert mine._renewing.acquire(blocking=False)


def test_who_waited_for_somebody_elses_query_uses_its_answer(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    mine = Authenticator(store, "admin", clock)
    secret, who = new_token(store)
    mine.verify(secret)
    clock.at += BELIEVED_SECONDS
    counted = Counted(monkeypatch)
    monkeypatch.setattr(module, "_MOMENT", 60.0)
    mine._renewing.acquire()
    found: list[Principal | None] = []
    waiting = threading.Thread(target=lambda: found.append(mine.verify(secret)))
    waiting.start()
    mine._ask(tokens.hashed(secret), ())
    mine._renewing.release()
    waiting.join(60)
    assert found == [who]
    assert len(counted.asked) == 1, "nobody asked twice"


# --- before every route


@dataclass
class Door:
    """An app behind the door, and everything the door said."""

    passed: list[Any] = field(default_factory=list)
    refused: list[tuple[Any, ...]] = field(default_factory=list)
    sent: list[Message] = field(default_factory=list)
    problem: Exception | None = None
    fails: int = 1_000

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert await receive() == {"type": "http.request", "body": b"sent"}, "what was sent comes along"
        self.passed.append((scope["type"], scope.get("state", {}).get("principal")))
        await PlainTextResponse("in")(scope, receive, send)

    def refuse(self, *given: Any, **more: Any) -> Response:
        self.refused.append((*given, more))
        return PlainTextResponse("out", given[0], headers=more.get("headers"))

    def remembered(self, secret: str) -> Principal | None:
        assert isinstance(secret, str), "nobody asks who no token belongs to"
        return READER if secret == "fresh" else None

    def was_known(self, secret: str) -> bool:
        return secret == "known"

    def verify(self, secret: str) -> Principal | None:
        if self.problem is not None and self.fails:
            self.fails -= 1
            raise self.problem
        return READER if secret == "known" else None

    def knock(self, *headers: tuple[bytes, bytes], path: str = "/livesystems", method: str = "GET", **more: Any) -> int:
        scope: Scope = {"type": "http", "path": path, "method": method, "headers": list(headers), **more}

        async def receive() -> Message:
            return {"type": "http.request", "body": b"sent"}

        async def send(message: Message) -> None:
            self.sent.append(message)

        asked: Any = self
        asyncio.run(Authentication(self.app, asked, self.refuse)(scope, receive, send))
        return int(self.sent[0]["status"]) if self.sent else 0


READER = Principal("t1", "ann", Role.READER)
SEND = "send «Authorization: Bearer <token>» with a token of this control plane"


def bearer(text: bytes) -> tuple[bytes, bytes]:
    return b"authorization", text


@pytest.mark.parametrize("secret", [b"fresh", b"known"])
def test_who_is_known_comes_in_and_the_route_learns_who_it_is(secret: bytes) -> None:
    door = Door()
    assert door.knock((b"accept", b"*/*"), bearer(b"Bearer " + secret)) == 200
    assert door.passed == [("http", READER)]
    assert not door.refused


def test_what_the_request_holds_already_is_kept() -> None:
    door = Door()
    state = {"other": 1}
    assert door.knock(bearer(b"Bearer known"), state=state) == 200
    assert state == {"other": 1, "principal": READER, "token_hash": tokens.hashed("known")}


@pytest.mark.parametrize(
    "text", [b"bearer known", b"BEARER known", b"Bearer  known", b"Bearer known ", b"Bearer \tknown"]
)
def test_the_scheme_is_read_as_http_spells_it(text: bytes) -> None:
    assert Door().knock(bearer(text)) == 200


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([], "the Authorization header is missing"),
        ([(b"x-authorization", b"Bearer known")], "the Authorization header is missing"),
        ([bearer(b"")], "the Authorization header is missing"),
        ([bearer(b"known")], "the Authorization header is missing"),
        ([bearer(b"Bearer")], "the Authorization header is missing"),
        ([bearer(b"Bearer   ")], "the Authorization header is missing"),
        ([bearer(b"Basic known")], "the Authorization header is missing"),
        ([bearer(b"Bearer wrong")], "the token is not known here"),
        ([bearer(b"Bearer kn own")], "the token is not known here"),
        ([bearer(b"Bearer \xff\xfe")], "the token is not known here"),
        ([bearer(b"Basic x"), bearer(b"Bearer known")], "the Authorization header is missing"),
    ],
)
def test_who_is_not_known_reads_how_to_be(headers: list[tuple[bytes, bytes]], why: str) -> None:
    door = Door()
    assert door.knock(*headers) == 401
    assert door.refused == [(401, f"{why}: {SEND}", "unauthorized", {"headers": {"WWW-Authenticate": "Bearer"}})]
    assert not door.passed
    assert door.sent[-1]["body"] == b"out"


@pytest.mark.rule("C9")
def test_a_token_of_a_restored_backup_waits_until_it_is_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door()
    monkeypatch.setattr(door, "verify", lambda _: Principal("t2", "edge", Role.ADMIN, waits=True))
    assert door.knock(bearer(b"Bearer any")) == 403
    assert door.refused == [(403, f"token 'edge': {tokens.WAITS}", "forbidden", {})]
    assert not door.passed
    assert door.sent[-1]["body"] == b"out"


def test_who_may_not_do_this_reads_so_by_role() -> None:
    door = Door()
    assert door.knock(bearer(b"Bearer fresh"), method="DELETE", path="/livesystems/ls-a") == 403
    detail = "a token with the role 'reader' may not do this: use one with another role"
    assert door.refused == [(403, detail, "forbidden", {})]
    assert not door.passed


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/ui", "/ui/", "/ui/livesystems/x"])
def test_some_addresses_are_open(path: str) -> None:
    door = Door()
    assert door.knock(path=path, method="DELETE") == 200
    assert door.passed == [("http", None)]


@pytest.mark.parametrize("path", ["/healthz/", "/uix", "/x/ui", "/x/ui/", "/health", "/", "/metrics", "/openapi.json"])
def test_no_other_address_is_open(path: str) -> None:
    assert Door().knock(path=path) == 401


def test_what_is_no_request_passes() -> None:
    door = Door()
    door.knock(type="lifespan", path="/livesystems")
    assert door.passed == [("lifespan", None)]


def test_a_database_that_does_not_answer_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    from fractal_cloud.control.auth import middleware

    door = Door(problem=DatabaseUnavailable("the database is away", 7))
    monkeypatch.setattr(middleware, "again", lambda work: work())
    assert door.knock(bearer(b"Bearer known")) == 503
    assert door.refused == [(503, "the database is away", "unavailable", {"headers": {"Retry-After": "7"}})]
    assert not door.passed


def test_who_is_remembered_comes_in_while_the_database_is_away() -> None:
    door = Door(problem=DatabaseUnavailable("the database is away", 7))
    assert door.knock(bearer(b"Bearer fresh")) == 200
    assert door.passed == [("http", READER)]


def test_work_that_was_undone_is_tried_again_at_once() -> None:
    door = Door(problem=Undone("somebody else was faster"), fails=1)
    assert door.knock(bearer(b"Bearer known")) == 200
    assert door.passed == [("http", READER)]
