"""After a backup was restored, the dashboard says so, shows what would be done, and has a button for it (C9)."""

from __future__ import annotations

import re

import pytest
from httpx2 import Response

from tests.agent_answers import answered_by_agent
from tests.dashboard.conftest import Visitor
from tests.world import World, vpc


def _with_agent(world: World, visitor: Visitor, path: str) -> Response:
    """A page that waits for what the world's agent says."""
    return answered_by_agent(lambda: visitor.get(path), world.agent.run_once)


@pytest.mark.rule("C9")
def test_what_waits_is_named_shown_and_confirmed(world: World) -> None:
    world.deploy("ls-a", vpc(enableDnsHostnames=True))
    world.settle()
    vpc_id = str(world.output("ls-a", "net", "vpcId"))
    visitor = Visitor(world.app)
    assert "Restored from a backup" not in visitor.page("/ui")
    assert visitor.get("/ui/livesystems/ls-a/confirm").status_code == 303
    waiting = world.api.post("/recovery").json()["tokens"]
    confirmed = world.api.post("/recovery/tokens/confirm", json={"tokens": [token["id"] for token in waiting]})
    assert confirmed.status_code == 200, confirmed.text
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": False})
    world.agent._registered = False
    world.cycle()
    overview = visitor.page("/ui")
    assert "Restored from a backup" in overview
    assert 'href="/ui/livesystems/ls-a/confirm"' in overview
    assert 'href="/ui/livesystems/ls-a/confirm"' in visitor.page("/ui/livesystems/ls-a")
    shown = _with_agent(world, visitor, "/ui/livesystems/ls-a/confirm")
    assert shown.status_code == 200
    assert "Changed: 1" in shown.text
    assert "enableDnsHostnames: False → True" in shown.text
    found = re.search(r'name="fingerprint" value="([0-9a-f]{64})"', shown.text)
    assert found is not None
    sent = visitor.send("/ui/livesystems/ls-a/confirm", fingerprint=found[1])
    assert (sent.status_code, sent.headers["location"]) == (303, "/ui/livesystems/ls-a")
    assert "Restored from a backup" not in visitor.page("/ui")
    by = next(event["by"] for event in world.events("ls-a") if event["kind"] == "RecoveryConfirmed")
    assert by == "admin"


@pytest.mark.rule("C9")
def test_what_is_not_known_cannot_be_confirmed(world: World) -> None:
    world.deploy("ls-a", vpc())
    world.settle()
    world.api.post("/recovery")
    visitor = Visitor(world.app)
    page = visitor.page("/ui/livesystems/ls-a/confirm")
    assert "Not known: 1" in page
    assert "fingerprint" not in page
    refused = visitor.send("/ui/livesystems/ls-a/confirm", fingerprint="0" * 64)
    assert refused.status_code == 409
    assert world.api.get("/recovery").json()["inRecovery"]
