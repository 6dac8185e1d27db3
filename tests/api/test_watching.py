"""Who reads what, since when: agents, scopes, metrics, and what tokens that are bound to environments see of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fractal_cloud.control.store.housekeeping import keep_house
from tests.api.conftest import Api, vpc
from tests.last_seen import last_seen_json

SCOPE = "aws/123456789012/eu-west-1"
pytestmark = pytest.mark.rule("C11")


def _beat(api: Api, read_at: datetime, **cycle: Any) -> None:
    body = {"agentId": "a1", "lastSeen": last_seen_json(api.client), "readAt": {SCOPE: read_at.isoformat()}}
    api.as_agent("heartbeat", {**body, "cycles": {SCOPE: cycle}})


@pytest.fixture
def watched(api: Api) -> Api:
    """One component, in one scope that an agent has read long ago, and says so."""
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    _beat(api, datetime.now(UTC) - timedelta(days=1), seconds=1.5, calls=7, throttles=2, errors=1)
    keep_house(api.client.app.state.store.database, 60)  # type: ignore[attr-defined]
    return api


def test_everything_that_is_stale_says_so_and_nothing_changes_its_status(watched: Api) -> None:
    component = watched.get("/livesystems/ls-a/components/net")
    whole = watched.get("/livesystems/ls-a")
    (listed,) = watched.get("/livesystems")["items"]
    (agent,) = watched.get("/agents")["items"]
    (scope,) = watched.get("/scopes")["items"]
    for one in (component, whole, listed, agent, scope):
        assert one["stale"] is True
    assert component["status"] == whole["status"] == "Active"
    assert component["lastRead"] == whole["lastRead"] == scope["lastRead"] == agent["lastCycle"]
    assert whole["staleComponents"] == listed["staleComponents"] == 1
    assert (agent["alive"], agent["scopes"], agent["staleScopes"]) == (True, 1, 1)
    assert scope["lastCycle"] == {"seconds": 1.5, "calls": 7, "throttles": 2, "errors": 1}
    assert (scope["holder"], scope["lastHolder"], scope["components"]) == ("a1", "a1", 1)


def test_a_read_ends_it(watched: Api) -> None:
    _beat(watched, datetime.now(UTC))
    (agent,) = watched.get("/agents")["items"]
    (scope,) = watched.get("/scopes")["items"]
    component = watched.get("/livesystems/ls-a/components/net")
    assert [one["stale"] for one in (agent, scope, component, watched.get("/livesystems/ls-a"))] == [False] * 4


def test_metrics_say_what_is_stale_and_how_every_scope_is_read(watched: Api) -> None:
    text = watched.client.get("/metrics").text
    assert "fractal_components_stale 1.0" in text
    for line in ("cycle_seconds", "calls", "throttles", "errors"):
        assert f'fractal_scope_{line}{{scope="{SCOPE}"}}' in text
    assert f'fractal_scope_calls{{scope="{SCOPE}"}} 7.0' in text
    (scope,) = watched.get("/scopes")["items"]
    at = datetime.fromisoformat(scope["lastRead"]).timestamp()
    (said,) = [line for line in text.splitlines() if line.startswith("fractal_scope_last_read_timestamp_seconds{")]
    assert float(said.rpartition(" ")[2]) == pytest.approx(at, abs=1)


def test_scopes_are_filtered_by_staleness_and_holder_and_the_stale_come_first(watched: Api) -> None:
    watched.put("ls-b", vpc("east", parameters={"region": "eu-central-1"}))
    watched.claim()
    other = SCOPE.replace("west-1", "central-1")
    every = [one["key"] for one in watched.get("/scopes")["items"]]
    assert every == [SCOPE, other], "by key alone it would be the second"
    first = watched.client.get("/scopes", params={"limit": 1}).json()
    second = watched.client.get("/scopes", params={"limit": 1, "cursor": first["next"]}).json()
    assert [one["key"] for one in first["items"] + second["items"]] == every
    for query, keys in (({"stale": "true"}, [SCOPE]), ({"stale": "false"}, [other]), ({"holder": "nobody"}, [])):
        assert [one["key"] for one in watched.client.get("/scopes", params=query).json()["items"]] == keys


def test_dead_agents_come_first(watched: Api) -> None:
    watched.register("a0")
    watched.as_agent("release", {"agentId": "a1"})
    found = watched.get("/agents")["items"]
    assert [(one["id"], one["alive"]) for one in found] == [("a1", False), ("a0", True)]


@pytest.mark.rule("A9")
def test_a_token_that_is_bound_to_environments_sees_only_scopes_with_components_of_theirs(watched: Api) -> None:
    for environment, seen in (("elsewhere", 0), ("default", 1)):
        body = {"name": environment, "role": "reader", "environments": [environment]}
        token = watched.client.post("/tokens", json=body).json()["token"]
        answer = watched.client.get("/scopes", headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200
        assert len(answer.json()["items"]) == seen


@pytest.mark.rule("A3", "A6")
@pytest.mark.parametrize(
    "cycle",
    [
        {"seconds": -1},
        {"calls": -1},
        {"calls": 10**30},
        {"unread": {"a\nb": {"since": "2026-01-01T00:00:00Z"}}},
        {"unread": {"x" * 300: {"since": "2026-01-01T00:00:00Z"}}},
        {"unread": {"T": {"since": "2026-01-01T00:00:00"}}},
        {"unread": {f"T{n}": {"since": "2026-01-01T00:00:00Z"} for n in range(5_001)}},
    ],
)
def test_what_no_agent_could_mean_is_refused(watched: Api, cycle: dict[str, Any]) -> None:
    body = {"agentId": "a1", "lastSeen": last_seen_json(watched.client), "cycles": {SCOPE: cycle}}
    assert watched.as_agent("heartbeat", body).status_code == 422


@pytest.mark.rule("A3")
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
def test_impossible_times_of_an_agent_break_no_page(watched: Api, at: str) -> None:
    _beat(watched, datetime.fromisoformat(at), unread={"NetworkAndCompute.IaaS.AwsVpc": {"since": at, "lastRead": at}})
    keep_house(watched.client.app.state.store.database, 60)  # type: ignore[attr-defined]
    for path in ("/scopes", "/agents", "/livesystems", "/livesystems/ls-a/components"):
        assert watched.get(path)["items"]
