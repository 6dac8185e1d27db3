"""Texts that may hold secrets are hidden from readers, on every page and in every answer (A8)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fractal_cloud.agent.secrets import CycleSecrets
from tests.offers.aws.examples.ec2 import IMAGE
from tests.world import REGION, World

SCRIPT = "#!/bin/sh\necho script-that-readers-must-not-see"
EC2 = "NetworkAndCompute.IaaS.AwsEc2Instance"


def _deployed(world: World) -> None:
    parameters = {"region": REGION, "imageId": IMAGE, "instanceType": "t3.micro", "userData": SCRIPT}
    world.deploy("ls-a", {"id": "web", "type": EC2, "parameters": parameters})
    world.settle()
    world.person.break_glass(world.component("ls-a", "web")["resourceId"])
    world.deploy("ls-a", {"id": "web", "type": EC2, "parameters": {**parameters, "userData": f"{SCRIPT} again"}})
    world.settle()


def _as(world: World, role: str) -> Any:
    """Somebody else's way in."""
    made = world.api.post("/tokens", json={"name": f"a {role}", "role": role}).json()["token"]
    return lambda path: world.api.get(path, headers={"Authorization": f"Bearer {made}"})


@pytest.mark.rule("A8")
def test_a_reader_sees_that_there_is_a_text_and_an_operator_sees_what_is_declared(world: World) -> None:
    _deployed(world)
    base = "/livesystems/ls-a"
    read, operate = _as(world, "reader"), _as(world, "operator")
    shown = read(f"{base}/components/web").json()
    assert shown["declaration"]["parameters"]["userData"] == "(sensitive)"
    assert shown["outputFields"]["userData"] == "(sensitive: differs)"
    assert shown["outputFields"]["drift"]["userData"] == {"declared": "(sensitive)", "actual": "(sensitive: differs)"}
    assert read(base).json()["components"][0]["parameters"]["userData"] == "(sensitive)"
    assert (
        read("/livesystems?include=components").json()["items"][0]["components"][0]["parameters"]["userData"]
        == "(sensitive)"
    )
    assert operate(base).json()["components"][0]["parameters"]["userData"] == f"{SCRIPT} again"
    assert operate(f"{base}/components").json()["items"][0]["declaration"]["parameters"]["userData"].startswith(SCRIPT)


@pytest.mark.rule("A8")
def test_no_answer_to_a_reader_holds_the_text(world: World) -> None:
    _deployed(world)
    read = _as(world, "reader")
    mutation = world.api.get("/livesystems/ls-a").json()["mutationId"]
    filled = {"{id}": "ls-a", "{componentId}": "web", "{mutationId}": mutation, "{key}": "x", "{name}": "x"}
    answered = 0
    for path, methods in world.app.openapi()["paths"].items():
        if "get" not in methods or path.startswith("/agent"):
            continue
        address = re.sub(r"\{\w+\}", lambda found: filled[found[0]], path)
        answer = read(address)
        answered += answer.status_code == 200
        assert "script-that-readers" not in answer.text, address
    assert answered > 10


@pytest.mark.rule("A8")
def test_history_holds_it_for_nobody(world: World) -> None:
    _deployed(world)
    base = "/livesystems/ls-a"
    for path in (f"{base}/components/web/journal", f"{base}/events?limit=200", "/events?limit=200"):
        assert "script-that-readers" not in world.api.get(path).text, path


@pytest.mark.rule("A8")
def test_the_dashboard_hides_it_from_a_reader_and_shows_it_to_an_operator(world: World) -> None:
    _deployed(world)
    seen = {}
    for role in ("reader", "operator"):
        made = world.api.post("/tokens", json={"name": role, "role": role}).json()["token"]
        world.api.cookies.clear()
        assert world.api.post("/ui/login", data={"token": made}).status_code == 200
        pages = ("/ui", "/ui/livesystems/ls-a", "/ui/livesystems/ls-a/components/web")
        answers = [world.api.get(page) for page in pages]
        assert all(answer.status_code == 200 for answer in answers)
        seen[role] = "\n".join(answer.text for answer in answers)
    assert "(sensitive)" in seen["reader"]
    assert "script-that-readers" not in seen["reader"]
    assert "script-that-readers" in seen["operator"]


@pytest.mark.rule("A8", "A3")
def test_what_an_agent_of_an_earlier_version_reports_in_clear_is_stored_hidden(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CycleSecrets, "hidden", lambda _, tracked, compared, sighting, declared: sighting)
    with monkeypatch.context() as patch:
        patch.setattr("fractal_cloud.agent.journal.Hiding", lambda _: _Nothing())
        patch.setattr(CycleSecrets, "hiding", lambda *_, **__: _Nothing())
        _deployed(world)
    base = "/livesystems/ls-a"
    assert world.output("ls-a", "web", "userData") == "(sensitive)"
    for path in (f"{base}/components/web/journal", f"{base}/events?limit=200"):
        text = world.api.get(path).text
        assert "userData" in text
        assert "script-that-readers" not in text, path


class _Nothing:
    """Hides nothing, as agents did once."""

    is_needed = True

    def declared(self, parameters: Any) -> Any:
        """As they are."""
        return parameters
