"""A value that everybody would recognise: it is in the store and in the cloud, and found nowhere else (A8)."""

from __future__ import annotations

import base64
import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

from fractal_cloud.cli import logs
from fractal_cloud.control.notifying.sender import Sender
from fractal_sandbox import Sandbox
from tests.agent_answers import answered_by_agent
from tests.notifications.receiver import Receiver, in_thread
from tests.notifications.subscribing import SETTINGS, Subscribed, subscribe
from tests.secret_references import canaries
from tests.secret_references.test_user_data import edit, in_the_cloud, keep, machine
from tests.world import World
from tests.world import world as make_world

FIRST, SECOND, BY_HAND, FROM_VARIABLE = map(canaries.canary, ("first", "second", "hand", "variable"))
CANARIES = (FIRST, SECOND, BY_HAND, FROM_VARIABLE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the agent finds secrets; everything else is searched."""
    made = tmp_path / "secrets"
    (made / "ls-a").mkdir(parents=True)
    return made


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The whole product with its logs as detailed as they can be, and an agent that keeps its state on disk."""
    before = structlog.get_config()
    logs.set_up(logging.DEBUG)
    more = {"secrets_dir": folder, "agent_id": "agent-1", "state_dir": tmp_path / "state"}
    with make_world(session_sandbox, tmp_path, monkeypatch, **more) as made:
        yield made
    structlog.configure(**before)


def _live_a_life(world: World, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Everything that can happen to a secret, so that it would be written down somewhere; returns what was answered."""
    monkeypatch.setenv("FRACTAL_SECRET_SPARE", FROM_VARIABLE)
    keep(folder, FIRST)
    quoted = f"bad user data: {FIRST}, as in {base64.b64encode(FIRST.encode()).decode()} and {FIRST[:20]}"
    refused = world.sandbox.aws.knobs.fail(operation="RunInstances", code="Bad", message=quoted, status=400, times=2)
    world.deploy("ls-a", machine())
    world.cycle(2)
    world.sandbox.aws.knobs.remove(refused)
    world.deploy("ls-a", machine())
    world.settle()
    assert in_the_cloud(world) == FIRST, "it is where it belongs"
    world.restart_agent()
    keep(folder, SECOND)
    world.sandbox.aws.knobs.fail(operation="ModifyInstanceAttribute", message=f"cannot set {SECOND}", status=500)
    world.settle(at_most=30)
    assert in_the_cloud(world) == SECOND
    found = world.component("ls-a", "web")["resourceId"]
    world.person.break_glass(found)
    edit(world, BY_HAND)
    world.cycle(2)
    body = {"id": "ls-a", "components": [machine({"$secret": "spare"})]}
    path = "/livesystems/ls-a/plan"
    answers = [answered_by_agent(lambda: world.api.post(path, json=body), world.agent.run_once).text]
    world.deploy("ls-a", machine({"$secret": "spare"}))
    world.deploy("ls-b", machine("echo guess", importOnly=True))
    world.deploy("ls-c", machine({"$secret": "nowhere"}, importOnly=True))
    world.settle()
    world.person.hand_back(found)
    world.settle(at_most=30)
    assert in_the_cloud(world) == FROM_VARIABLE
    answers.append(world.api.put("/livesystems/ls-a", json={"id": "ls-a", "components": [machine(7)]}).text)
    return answers


def _notified(world: World, receiver: Receiver) -> Subscribed:
    """Have somebody notified of everything, at once and without a window."""
    settings = replace(SETTINGS, group_seconds=0.0, repeat_minutes=0.0)
    sender: Sender = world.app.state.sender
    sender.__init__(world.app.state.store, settings)  # type: ignore[misc]
    return subscribe(world.app.state.store, receiver, settings)


def _await_notifications(team: Subscribed) -> None:
    for _ in range(300):
        team.run()
        if team.shown["pending"] == 0:
            return
        time.sleep(0.05)
    raise AssertionError(team.shown)


@pytest.mark.rule("A8")
@pytest.mark.timeout(120)
def test_the_canary_is_in_the_store_and_the_cloud_and_found_nowhere_else(
    world: World,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with in_thread(tmp_path / "receiver") as receiver:
        team = _notified(world, receiver)
        answers = _live_a_life(world, folder, monkeypatch)
        _await_notifications(team)
        kinds = {data["kind"] for data in receiver.data}
    assert kinds >= {"Failed", "OverrideBegun", "OverrideEnded", "DriftFound"}
    texts = canaries.pages(world.api, world.app, "web", "/livesystems/ls-b", "/livesystems/ls-c")
    logged = capfd.readouterr()
    texts |= canaries.files(tmp_path, folder)
    assert "state/secret-digests.key" in texts
    assert "event=cycle" in logged.err
    texts |= {"log": (logged.out + logged.err).encode(), "answers": "\n".join(answers).encode()}
    texts["agent"] = repr(world.agent).encode() + repr(vars(world.agent)).encode()
    canaries.assert_silent(texts, *CANARIES)
    world.assert_safe()
