"""`fractal events --follow` outlives its connections: nothing is lost, and nothing is printed twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import stamina

from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane
from tests.cli.test_reading import event
from tests.ports import free_port

TOKEN = "following"
Step = Callable[[], httpx2.Response]


@pytest.fixture
def at_once() -> Iterator[None]:
    """As many tries as it takes, without pauses."""
    with stamina.set_testing(True, attempts=100):
        yield


def _stream(*seqs: int) -> Step:
    stream = "".join(f"id: {seq}\nevent: StatusChanged\ndata: {json.dumps(event(seq))}\n\n" for seq in seqs)
    text = f": connected\n\n{stream}: keep-alive\n\n"
    return lambda: httpx2.Response(200, text=text, headers={"content-type": "text/event-stream"})


def _cut(*seqs: int) -> Step:
    def pieces() -> Iterator[bytes]:
        yield _stream(*seqs)().content
        yield b"id: 99\nevent: StatusChanged\ndata: {"  # cut in the middle of an event
        raise httpx2.ReadError("connection reset by peer")

    return lambda: httpx2.Response(200, content=pieces(), headers={"content-type": "text/event-stream"})


def _raise(error: BaseException) -> Step:
    def step() -> httpx2.Response:
        raise error

    return step


def _problem(status: int, detail: str) -> Step:
    return lambda: httpx2.Response(status, json={"title": "no", "status": status, "detail": detail})


def _play(control: FakeControlPlane, *steps: Step) -> list[str]:
    """Two events stand already; each time a stream is asked for, the next step is taken. The ids it was asked with."""
    left, asked = list(steps), list[str]()

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.headers.get("accept") != "text/event-stream":
            return httpx2.Response(200, json={"items": [event(2), event(1)], "cursor": None})
        asked.append(request.headers["last-event-id"])
        return left.pop(0)()

    control.on("GET", "/events", answer)
    return asked


def _seqs(out: str) -> list[int]:
    return [json.loads(line)["seq"] for line in out.splitlines()]


@pytest.mark.rule("C4")
@pytest.mark.usefixtures("at_once")
def test_followed_events_go_on_where_they_ended_whatever_ended_them(
    fractal: Fractal, control: FakeControlPlane
) -> None:
    asked = _play(
        control,
        _stream(3),
        _raise(httpx2.ConnectError("refused")),
        _problem(503, "starting"),
        _cut(4, 5),
        _stream(),
        _raise(httpx2.ReadTimeout("silence")),
        _stream(6),
        _raise(KeyboardInterrupt()),
    )
    ran = fractal("events", "--follow", "-o", "json")
    assert ran.code == 130, "until the person has seen enough"
    assert _seqs(ran.out) == [1, 2, 3, 4, 5, 6]
    assert asked == ["2", "3", "3", "3", "5", "5", "5", "6"], "nothing that happens in between is missed"
    outages = [line for line in ran.err.splitlines() if "following on as soon as it answers again" in line]
    assert len(outages) == 2, f"each outage is reported once, on standard error: {ran.err}"


@pytest.mark.rule("C4")
@pytest.mark.usefixtures("at_once")
def test_a_refusal_ends_the_following(fractal: Fractal, control: FakeControlPlane) -> None:
    _play(control, _stream(3), _problem(401, "the token was revoked"))
    ran = fractal("events", "--follow", "-o", "json")
    assert ran.code == 1
    assert _seqs(ran.out) == [1, 2, 3]
    assert "refuses the token" in ran.err


def _program(env: dict[str, str], *arguments: str, **more: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fractal_cloud.cli", *arguments]
    return subprocess.Popen(command, env=env, text=True, **more)


def _serve(env: dict[str, str], log: Path) -> subprocess.Popen[str]:
    with log.open("a") as output:
        process = _program(env, "serve", stdout=output, stderr=output)
    deadline = time.monotonic() + 60
    while True:
        try:
            if httpx2.get(f"{env['FRACTAL_URL']}/readyz").status_code == 200:
                return process
        except httpx2.TransportError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)


def _deploy(env: dict[str, str], times: int) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    for _ in range(times):
        answer = httpx2.put(
            f"{env['FRACTAL_URL']}/livesystems/ls", json={"id": "ls", "components": []}, headers=headers
        )
        assert answer.status_code == 202, answer.text


def _await_lines(printed: Path, many: int) -> None:
    deadline = time.monotonic() + 60
    while len(printed.read_text().splitlines()) < many and time.monotonic() < deadline:
        time.sleep(0.1)


@pytest.mark.rule("C4")
@pytest.mark.timeout(240)
def test_a_control_plane_that_is_killed_and_comes_back_is_followed_on(tmp_path: Path) -> None:
    port = str(free_port())
    settings = {"FRACTAL_PORT": port, "FRACTAL_URL": f"http://127.0.0.1:{port}", "FRACTAL_TOKEN": TOKEN}
    env = {**os.environ, **settings, "FRACTAL_DATA_DIR": str(tmp_path / "data")}
    log, printed = tmp_path / "serve.log", tmp_path / "printed"
    server = _serve(env, log)
    _deploy(env, 2)
    with printed.open("w") as out:
        follower = _program(env, "events", "--follow", "-o", "json", stdout=out, stderr=subprocess.PIPE)
    try:
        _await_lines(printed, 2)
        for ending in (signal.SIGKILL, signal.SIGTERM):
            _deploy(env, 2)
            server.send_signal(ending)
            server.wait(30)
            time.sleep(0.5)
            server = _serve(env, log)
            _deploy(env, 2)
        _await_lines(printed, 10)
        assert _seqs(printed.read_text()) == list(range(1, 11))
        assert follower.poll() is None
    finally:
        follower.terminate()  # not SIGINT: whoever runs the tests in the background has it ignored
        follower.communicate(timeout=30)
        server.kill()
        server.wait(30)
