"""Receivers and control planes are killed in the middle: every notification arrives at least once, under one id."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fractal_cloud.testing.tokens import agent_token, bearer
from tests import postgres
from tests.api.conftest import TOKEN, vpc
from tests.notifications.receiver import Receiver, as_process
from tests.notifications.subscribing import KEY
from tests.ports import free_port

pytestmark = pytest.mark.timeout(180)
MANY = 12
Json = dict[str, Any]


class ControlPlane:
    """`fractal serve` as a process that can be killed and started again."""

    def __init__(self, folder: Path, database_url: str = "") -> None:
        self.port = free_port()
        self._folder = folder
        self._env = {
            **os.environ,
            "FRACTAL_TOKEN": TOKEN,
            "FRACTAL_PORT": str(self.port),
            "FRACTAL_DATA_DIR": str(folder / "data"),
            "FRACTAL_DATABASE_URL": database_url,
            "FRACTAL_NOTIFY_KEY": KEY if database_url else "",
            "FRACTAL_NOTIFY_HTTP": "1",
            "FRACTAL_NOTIFY_NETWORKS": "127.0.0.0/8",
            "FRACTAL_NOTIFY_GROUP_SECONDS": "0.2",
            "FRACTAL_NOTIFY_TIMEOUT_SECONDS": "1",
        }
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=30)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def team(self) -> Json:
        """The subscription as people see it."""
        found: Json = self.client.get("/notifications/team").json()
        return found

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            command = [sys.executable, "-m", "fractal_cloud.cli", "serve"]
            self._process = subprocess.Popen(command, env=self._env, stdout=log, stderr=log)
        wait_until(self._is_ready)

    def _is_ready(self) -> bool:
        try:
            return self.client.get("/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        self.client.close()

    @property
    def sent(self) -> float:
        """How many notifications this process has sent, by its metrics."""
        lines = self.client.get("/metrics").text.splitlines()
        name = "fractal_notifications_sent_total{"
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@contextmanager
def control_plane(folder: Path, database_url: str = "") -> Iterator[ControlPlane]:
    folder.mkdir(exist_ok=True)
    made = ControlPlane(folder, database_url)
    try:
        made.start()
        yield made
    finally:
        made.close()


def wait_until(is_so: Callable[[], object], seconds: float = 90) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


class Player:
    """An agent that reports what the test wants, over HTTP."""

    def __init__(self, client: httpx2.Client) -> None:
        self._client = client
        self._agent = bearer(agent_token(client))
        reach = {"provider": "aws", "realm": "123456789012"}
        body = {"agentId": "a1", "environment": "default", "reaches": [reach], "cycleSeconds": 600}
        self._seen: Json = {}
        self._seen = self._call("register", body)["lastSeen"]
        [lease] = self._call("claim", {"agentId": "a1"})["leases"]
        self._scope = {"scope": lease["scope"], "token": lease["token"], "version": lease["work"]["version"]}
        self._uids = {part["liveSystemId"]: part["uid"] for part in lease["work"]["components"]}

    def _call(self, path: str, body: Json) -> Json:
        sent = {**body, "lastSeen": self._seen} if self._seen else body
        answer = self._client.post(f"/agent/{path}", json=sent, headers=self._agent)
        assert answer.status_code == 200, answer.text
        found: Json = answer.json()
        return found

    def report(self, status: str, *live_systems: str) -> None:
        """Report the one component of each LiveSystem."""
        for name in live_systems:
            change = {"uid": self._uids[name], "stance": "managed", "status": status, "owner": name}
            change |= {"resourceId": f"vpc-{name}", "established": True, "observedGeneration": 1}
            change["message"] = "quota reached" if status == "Failed" else ""
            self._call("report", {"agentId": "a1", "scopes": [{**self._scope, "changes": [change]}]})


def _set_up(control: ControlPlane, receiver: Receiver) -> Player:
    names = [f"ls-{number}" for number in range(MANY)]
    for name in names:
        body = {"id": name, "components": [vpc(parameters={"name": name})]}
        assert control.client.put(f"/livesystems/{name}", json=body).status_code == 202
    player = Player(control.client)
    player.report("Active", *names)
    wanted: Json = {"name": "team", "url": receiver.url, "kinds": ["Failed"]}
    assert control.client.post("/notifications", json=wanted).status_code == 201
    return player


def _fail(player: Player, *numbers: int) -> None:
    player.report("Failed", *(f"ls-{number}" for number in numbers))


def _ids(receiver: Receiver) -> dict[str, set[str]]:
    """The ids under which each LiveSystem's failure arrived."""
    found: dict[str, set[str]] = {}
    for event in receiver.events:
        found.setdefault(event["data"]["liveSystemId"], set()).add(event["id"])
    return found


def _assert_stable(receiver: Receiver) -> None:
    """Each arrived, whole; what arrived twice was the same, so that a receiver recognises it."""
    found = _ids(receiver)
    assert set(found) == {f"ls-{number}" for number in range(MANY)}
    assert all(len(ids) == 1 for ids in found.values()), found
    assert len({(one["headers"]["webhook-id"], one["body"]) for one in receiver.received}) == MANY


@pytest.mark.rule("C4")
def test_a_receiver_and_a_control_plane_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    with as_process(tmp_path / "receiver") as receiver, control_plane(tmp_path / "control") as control:
        player = _set_up(control, receiver)
        receiver.answers(status=204, seconds=0.2)
        _fail(player, 0, 1, 2, 3)
        wait_until(lambda: receiver.received)
        receiver.kill()  # with a request that it wrote down and did not answer, or right after one
        _fail(player, 4, 5, 6)
        wait_until(lambda: control.team["failures"] >= 1)
        control.kill()
        control.start()
        assert control.team["pending"] >= 4, "what is to be sent outlives the process"
        receiver.start()
        wait_until(lambda: len(_ids(receiver)) >= 5)
        control.kill()  # in the middle of sending, perhaps after a request whose answer nobody recorded
        control.start()
        _fail(player, 7, 8, 9, 10, 11)
        wait_until(lambda: len(_ids(receiver)) == MANY)
        wait_until(lambda: control.team["pending"] == 0)
        _assert_stable(receiver)
        shown = control.team
        assert (shown["failures"], shown["givenUp"], shown["lastError"]) == (0, 0, "")


@pytest.mark.rule("C4")
@pytest.mark.postgres
@pytest.mark.skipif(postgres.binaries() is None, reason="no PostgreSQL server: install Debian's postgresql")
def test_of_two_control_planes_one_sends_and_the_other_goes_on_where_it_dies(tmp_path: Path) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres.server())
        receiver = stack.enter_context(as_process(tmp_path / "receiver"))
        one = stack.enter_context(control_plane(tmp_path / "one", url))
        two = stack.enter_context(control_plane(tmp_path / "two", url))
        player = _set_up(one, receiver)
        _fail(player, 0, 1, 2, 3, 4, 5)
        wait_until(lambda: len(_ids(receiver)) == 6)
        wait_until(lambda: one.team["pending"] == 0)
        assert len(receiver.received) == 6, "both live, and each is sent once"
        assert one.sent + two.sent == 6
        receiver.answers(status=204, seconds=0.5)
        _fail(player, 6, 7, 8, 9, 10, 11)
        before = {control: control.sent for control in (one, two)}
        wait_until(lambda: one.sent + two.sent > 6)
        dead, left = (one, two) if one.sent > before[one] else (two, one)
        dead.kill()
        wait_until(lambda: len(_ids(receiver)) == MANY)
        wait_until(lambda: left.team["pending"] == 0)
        _assert_stable(receiver)
