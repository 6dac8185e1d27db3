"""Two control planes on one PostgreSQL are one: what is done at one is seen, heard and followed at the other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import text

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store
from fractal_cloud.control.store.driver.notifications import PostgresSignals
from fractal_cloud.control.store.failures import OutcomeUnknown, Undone
from fractal_cloud.control.store.limits import Limits
from fractal_cloud.testing.tokens import agent_token, bearer
from tests import postgres
from tests.api.conftest import TOKEN, vpc
from tests.http_server import served

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL server: install Debian's postgresql"),
]
Json = dict[str, Any]
REACH = {"provider": "aws", "realm": "123456789012"}


class Plane:
    """One control plane, and a client of it."""

    def __init__(self, store: Store, client: httpx.Client, agent: dict[str, str]) -> None:
        self.store = store
        self.client = client
        self.agent = agent

    def deploy(self, live_system_id: str) -> httpx.Response:
        return self.client.put(f"/livesystems/{live_system_id}", json={"id": live_system_id, "components": [vpc()]})

    def post(self, path: str, **body: Any) -> Json:
        """Call a route of the agents, with their token."""
        answer = self.client.post(path, json=body, headers=self.agent)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def follow(self, count: int, after: int | None = None) -> list[Json]:
        """The next events of the live stream."""
        headers = {"Accept": "text/event-stream"} | ({} if after is None else {"Last-Event-ID": str(after)})
        found: list[Json] = []
        with self.client.stream("GET", "/events", headers=headers) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    found.append(json.loads(line[6:]))
                if len(found) == count:
                    break
        return found


@pytest.fixture(scope="module")
def planes() -> Iterator[tuple[Plane, Plane]]:
    """Two control planes on one database."""
    with ExitStack() as stack:
        url = stack.enter_context(postgres.database(stack.enter_context(postgres.server())))
        made: list[Plane] = []
        for _ in range(2):
            limits = Limits(connections=4, wait_seconds=0.5, lock_seconds=2.0)
            settings = ControlSettings(database_url=url, admin_token=TOKEN, cycle_seconds=60.0, limits=limits)
            app = create_app(settings)
            address = stack.enter_context(served(app))
            headers = {"Authorization": f"Bearer {TOKEN}"}
            client = stack.enter_context(httpx.Client(base_url=address, headers=headers, timeout=30))
            signals = app.state.store.signals
            assert isinstance(signals, PostgresSignals)
            assert signals.is_listening(10)
            agent = made[0].agent if made else bearer(agent_token(client))
            made.append(Plane(app.state.store, client, agent))
        yield made[0], made[1]


def _beside(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


@pytest.mark.rule("C5")
def test_a_deploy_at_one_wakes_an_agent_that_waits_at_the_other(planes: tuple[Plane, Plane]) -> None:
    here, there = planes
    seen = there.post("/agent/register", agentId="a1", environment="default", reaches=[REACH], cycleSeconds=60)[
        "lastSeen"
    ]
    wake = there.post("/agent/claim", agentId="a1", lastSeen=seen)["wake"]
    woken: list[tuple[float, Json]] = []

    def wait() -> None:
        answer = there.post("/agent/wait", agentId="a1", wake=wake, seconds=20)
        woken.append((time.monotonic(), answer))

    waiting = _beside(wait)
    time.sleep(0.5)
    assert here.deploy("ls-woken").status_code == 202
    deployed = time.monotonic()
    waiting.join(20)
    at, answer = woken[0]
    assert answer["woken"]
    assert at - deployed < 3, "woken only when its wait was over"
    assert here.post("/agent/claim", agentId="a1", lastSeen=seen)["leases"], "an agent may talk to any of them"


@pytest.mark.rule("C4")
def test_a_stream_shows_what_happens_at_the_other_and_resumes_anywhere(planes: tuple[Plane, Plane]) -> None:
    here, there = planes
    newest = here.client.get("/events?limit=1").json()["items"]
    before = newest[0]["seq"] if newest else 0
    seen: list[Json] = []
    following = _beside(lambda: seen.extend(there.follow(2, before)))
    time.sleep(0.3)
    for name in ("ls-s1", "ls-s2"):
        assert here.deploy(name).status_code == 202
    following.join(20)
    assert [event["seq"] for event in seen] == [before + 1, before + 2]
    for name in ("ls-s3", "ls-s4"):
        assert there.deploy(name).status_code == 202
    total = here.client.get("/events?limit=1").json()["items"][0]["seq"]
    rest = here.follow(total - seen[-1]["seq"], seen[-1]["seq"])
    assert [event["seq"] for event in rest] == list(range(before + 3, total + 1)), "nothing lost, nothing sent twice"


def test_what_the_database_undid_runs_again_as_a_whole(
    planes: tuple[Plane, Plane], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = planes
    _fail_commits(here.store, monkeypatch, [Undone("deadlock"), Undone("cut")])
    assert here.deploy("ls-again").status_code == 202
    found = here.client.get("/livesystems/ls-again").json()
    assert found["generation"] == 1


def test_a_commit_nobody_knows_of_is_answered_503_and_not_tried_again(
    planes: tuple[Plane, Plane], monkeypatch: pytest.MonkeyPatch
) -> None:
    here, _ = planes
    _fail_commits(here.store, monkeypatch, [OutcomeUnknown("it may be done, or not; look before you ask again", 2)])
    answer = here.deploy("ls-unsure")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:fractal-cloud:problem:unsure"
    assert "look before you ask again" in answer.json()["detail"]
    assert here.client.get("/livesystems/ls-unsure").status_code == 404


def _fail_commits(store: Store, monkeypatch: pytest.MonkeyPatch, failures: list[Exception]) -> None:
    """Let the next writing transactions of whoever appends events fail."""
    announce = type(store.signals).announce

    def fail(self: Any, connection: Any, topics: Any) -> None:
        if failures and topics:
            raise failures.pop(0)
        announce(self, connection, topics)

    monkeypatch.setattr(type(store.signals), "announce", fail)


def test_without_a_free_connection_the_answer_is_503_and_soon(planes: tuple[Plane, Plane]) -> None:
    here, there = planes
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(here.store.read())
        started = time.monotonic()
        answer = here.client.get("/livesystems")
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert time.monotonic() - started < 5
        assert here.client.get("/healthz").status_code == 200, "it lives"
        assert here.client.get("/readyz").status_code == 503, "and is not ready"
        assert there.client.get("/livesystems").status_code == 200
    assert here.client.get("/livesystems").status_code == 200


def test_after_all_connections_were_cut_everything_goes_on(planes: tuple[Plane, Plane]) -> None:
    here, there = planes
    with there.store.read() as tx:
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        tx.connection.execute(text(f"{others} AND pid <> pg_backend_pid()"))
    assert here.client.get("/livesystems").status_code == 200
    assert here.deploy("ls-after").status_code == 202
    assert there.client.get("/livesystems/ls-after").status_code == 200
