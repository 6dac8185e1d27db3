"""`fractal realm`: what it prints and sends, and that it brings a replaced cluster back into service (S26)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fractal_cloud.cli import client
from fractal_sandbox import Sandbox
from tests.cli.conftest import Fractal
from tests.cli.fake import FakeControlPlane
from tests.offers.kubernetes.declaring import workload
from tests.offers.kubernetes.worlds import KubernetesWorld, kubernetes_world
from tests.world import ADMIN_TOKEN

pytestmark = pytest.mark.rule("S26")
ACCEPT = ("realm", "accept", "prod", "--provider", "kubernetes")
DONE = {"before": "uid-1", "after": "uid-2", "components": 3, "ended": 1}


def realm(name: str, other: str | None = None) -> dict[str, Any]:
    bound = {"environment": "default", "provider": "kubernetes", "name": name, "realm": f"uid-of-{name}"}
    return {"id": f"default/kubernetes/{name}", **bound, "firstAt": "2026-11-15T12:00:00Z", "other": other}


def test_every_page_of_realms_is_listed_with_the_other_one_that_is_reached(
    fractal: Fractal, control: FakeControlPlane
) -> None:
    control.on(
        "GET",
        "/realms",
        {"items": [realm("dev")], "cursor": "a"},
        {"items": [realm("prod", "uid-new")], "cursor": None},
    )
    ran = fractal("realm", "list", "--token", "t")
    assert ran.code == 0, ran.err
    assert "environment provider name realm other" in ran.words
    assert "default kubernetes dev uid-of-dev default kubernetes prod uid-of-prod uid-new" in ran.words
    assert [(one.query.get("cursor"), one.token) for one in control.asked] == [(None, "t"), ("a", "t")]


def test_realms_are_listed_for_programs(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("GET", "/realms", {"items": [realm("prod", "uid-new")], "cursor": None})
    assert json.loads(fractal("realm", "list", "-o", "json").out) == [realm("prod", "uid-new")]


def test_accepting_sends_the_reason_and_says_what_followed(fractal: Fractal, control: FakeControlPlane) -> None:
    control.on("POST", "/realms/accept", DONE)
    ran = fractal(*ACCEPT, "--reason", "rebuilt after the fire", "--environment", "live")
    assert ran.code == 0, ran.err
    sent = {"name": "prod", "provider": "kubernetes", "reason": "rebuilt after the fire", "environment": "live"}
    assert control.last().body == sent
    assert "kubernetes prod is uid-2 from now on, it was uid-1." in ran.words
    assert "3 components are read there anew; 1 deletions ended as absent." in ran.words
    assert "Missing until you deploy its LiveSystem again" in ran.words
    assert json.loads(fractal(*ACCEPT, "--reason", "rebuilt", "-o", "json").out) == DONE


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (ACCEPT, "Missing option '--reason'"),
        (("realm", "accept", "prod", "--reason", "rebuilt"), "Missing option '--provider'"),
        (("realm", "accept", "--provider", "kubernetes", "--reason", "rebuilt"), "Missing argument 'NAME'"),
    ],
)
def test_nothing_is_asked_of_anybody_while_something_is_missing(
    fractal: Fractal, control: FakeControlPlane, arguments: tuple[str, ...], missing: str
) -> None:
    ran = fractal(*arguments)
    assert ran.code == 2
    assert missing in ran.words
    assert control.asked == []


# --- on the real control plane


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesWorld]:
    """A cluster with an agent and a control plane, which the program reaches."""
    with kubernetes_world(session_sandbox, tmp_path, KubernetesWorld) as made:

        def forward(request: httpx2.Request) -> httpx2.Response:
            path = request.url.raw_path.decode()
            answer = made.api.request(
                request.method, path, content=request.content, headers=dict(request.headers.items())
            )
            return httpx2.Response(answer.status_code, content=answer.content, headers=dict(answer.headers))

        def connect(url: str, token: str) -> client.ControlPlane:
            return client.ControlPlane(url, token, httpx2.MockTransport(forward))

        monkeypatch.setattr(client, "connect", connect)
        yield made


def events(world: KubernetesWorld, kind: str) -> list[dict[str, Any]]:
    return [event for event in world.events("ls-a") if event["kind"] == kind]


def test_a_replaced_cluster_is_seen_in_the_list_and_served_once_it_is_accepted(
    fractal: Fractal, world: KubernetesWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    token = ("--token", ADMIN_TOKEN)

    def listed() -> list[dict[str, Any]]:
        capsys.readouterr()  # what the agent has logged meanwhile
        found: list[dict[str, Any]] = json.loads(fractal("realm", "list", "-o", "json", *token).out)
        return [one for one in found if one["name"] == "sandbox"]  # it is also the one meant where none is named

    world.deploy("ls-a", workload())
    world.settle()
    [before] = listed()
    assert (before["provider"], before["name"], before["other"]) == ("kubernetes", "sandbox", None)
    world.cloud.replace()
    world.cycle(3)
    [seen] = listed()
    assert seen["realm"] == before["realm"]
    assert seen["other"] not in (None, before["realm"])

    refused = fractal("realm", "accept", "nowhere", "--provider", "kubernetes", "--reason", "rebuilt", *token)
    assert refused.code == 1
    assert "'nowhere'" in refused.err
    assert "Traceback" not in refused.err
    empty = fractal("realm", "accept", "sandbox", "--provider", "kubernetes", "--reason", "", *token)
    assert empty.code == 1
    assert "reason" in empty.err
    assert events(world, "RealmAccepted") == []
    assert listed() == [seen], "what is refused changes nothing"

    accepted = fractal("realm", "accept", "sandbox", "--provider", "kubernetes", "--reason", "rebuilt", *token)
    assert accepted.code == 0, accepted.err
    assert f"kubernetes sandbox is {seen['other']} from now on, it was {before['realm']}." in accepted.words
    [after] = listed()
    assert (after["realm"], after["other"]) == (seen["other"], None)
    [event] = events(world, "RealmAccepted")
    assert "rebuilt" in event["message"]
    world.cycle(3)
    assert world.status("ls-a", "web") == "Missing", "nothing is made there before somebody deploys it"
    world.deploy("ls-a", workload())
    world.settle()
    assert world.status("ls-a", "web") == "Active"

    again = fractal("realm", "accept", "sandbox", "--provider", "kubernetes", "--reason", "rebuilt", *token)
    assert again.code == 1
    assert "Traceback" not in again.err
