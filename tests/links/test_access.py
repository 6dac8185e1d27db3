"""What the token of an agent reaches: its own components, and the fields of the other ends of their links."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.last_seen import last_seen_json
from tests.links.world import World, database, link, workload

COMPONENTS = (
    database(),
    database("private", parameters={"size": 77}),
    workload("app", link("db", database="orders")),
    workload("web", link("db", database="orders"), at="east", parameters={"image": "only-for-the-east"}),
)
READABLE = (
    "/livesystems",
    "/livesystems/ls-a",
    "/livesystems/ls-a/components",
    "/livesystems/ls-a/components/db",
    "/livesystems/ls-a/components/db/journal",
    "/livesystems/ls-a/events",
    "/events",
    "/resources",
    "/offers",
    "/tokens",
    "/metrics",
)


def _claimed(links: World, provider: str) -> dict[str, Any]:
    """Everything a claim returns to an agent, as JSON."""
    agent = links.agents[provider]
    body = {"agentId": agent.settings.agent_id, "lastSeen": last_seen_json(links.api)}
    response = links.as_agent(provider, "/agent/claim", body)
    assert response.status_code == 200, response.text
    claimed: dict[str, Any] = response.json()
    return claimed


@pytest.mark.rule("L4", "L9")
def test_an_agent_receives_its_own_components_and_the_fields_of_its_link_ends(links: World) -> None:
    links.deploy("ls-a", *COMPONENTS)
    links.settle()
    claimed = _claimed(links, "west")
    (lease,) = claimed["leases"]
    (app,) = lease["work"]["components"]
    assert app["declaration"]["id"] == "app"
    (outbound,) = app["linksOut"]
    assert set(outbound["published"]) == {"endpoint", "user", "access", "version"}
    assert set(outbound["outputs"]) == {"endpoint"}
    text = json.dumps(claimed)
    assert "only-for-the-east" not in text
    assert "private" not in text
    assert "web" not in text, "what the target published for another source is not for this one"
    assert lease["work"]["outside"] == []


@pytest.mark.rule("L4")
@pytest.mark.parametrize("path", READABLE)
def test_a_token_of_an_agent_reads_nothing_that_people_read(links: World, path: str) -> None:
    headers = {"Authorization": f"Bearer {links.tokens['west']}"}
    assert links.api.get(path, headers=headers).status_code == 403


@pytest.mark.rule("L4")
def test_a_token_of_an_agent_speaks_for_no_other_provider_and_no_other_agent(links: World) -> None:
    links.deploy("ls-a", *COMPONENTS)
    links.settle()
    east = links.agents["east"].settings.agent_id
    for path, more in (
        ("claim", {"lastSeen": last_seen_json(links.api)}),
        ("wait", {"wake": 0, "seconds": 0.1}),
        ("heartbeat", {"lastSeen": last_seen_json(links.api)}),
        ("report", {"lastSeen": last_seen_json(links.api), "scopes": []}),
    ):
        assert links.as_agent("west", f"/agent/{path}", {"agentId": east, **more}).status_code == 403
    body = {
        "agentId": "imposter",
        "environment": "default",
        "reaches": [{"provider": "east", "realm": "account-east"}],
        "cycleSeconds": 1,
        "publicKey": "imposter's",
    }
    assert links.as_agent("west", "/agent/register", body).status_code == 403


@pytest.mark.rule("L9")
def test_an_agent_cannot_report_on_what_is_not_in_its_scopes(links: World) -> None:
    links.deploy("ls-a", *COMPONENTS)
    links.settle()
    (lease,) = _claimed(links, "west")["leases"]
    (foreign, *_) = _claimed(links, "east")["leases"][0]["work"]["components"]
    change = {"uid": foreign["uid"], "stance": "managed", "status": "Active", "outputFields": {"endpoint": "mine"}}
    scope = {"scope": lease["scope"], "token": lease["token"], "version": 10**6, "changes": [change]}
    agent = links.agents["west"].settings.agent_id
    links.as_agent(
        "west", "/agent/report", {"agentId": agent, "lastSeen": last_seen_json(links.api), "scopes": [scope]}
    )
    component = foreign["declaration"]["id"]
    assert links.component("ls-a", component)["outputFields"].get("endpoint") != "mine"
