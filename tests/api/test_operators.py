"""What operators ask for and read: requests, glass, resources, journal, events, access, metrics."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import insert
from starlette.testclient import TestClient

from fractal_cloud.control.store.retention import FORGOTTEN
from fractal_cloud.control.store.schema import counters
from tests.api.conftest import TOKEN, Api, make_client, subnet, vpc
from tests.last_seen import last_seen_json

OVERRIDE = {"stance": "override", "status": "ManualOverride", "overridden": True, "message": "managed-by is absent"}


@pytest.mark.rule("G10")
def test_a_force_push_reaches_the_agent_with_who_asked_for_what(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    api.report("ls-a", "net", **OVERRIDE)
    answer = api.client.post("/livesystems/ls-a/components/net/force-push")
    assert (answer.status_code, answer.json()["requested"]) == (202, ["net"])
    api.claim()
    request = api.work["ls-a", "net"]["request"]
    assert (request["kind"], request["by"], request["resourceId"]) == ("force-push", "admin", "id-net")
    assert (request["generation"], request["stance"]) == (1, "override")
    assert api.get("/livesystems/ls-a/events")["items"][0]["kind"] == "ForcePushRequested"
    assert api.client.post("/livesystems/ls-a/force-push").status_code == 202


@pytest.mark.rule("G10")
def test_a_force_push_is_refused_with_its_reason(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    api.report("ls-a", "net", owner="ls-b", status="ExternallyManaged", stance="imported")
    answer = api.client.post("/livesystems/ls-a/components/net/force-push")
    assert answer.status_code == 409
    assert "'ls-b' owns it" in answer.json()["detail"]
    assert api.client.post("/livesystems/ls-a/force-push").status_code == 409
    assert api.client.post("/livesystems/ls-x/force-push").status_code == 404
    assert api.client.post("/livesystems/ls-a/components/x/force-push").status_code == 404


@pytest.mark.rule("G13")
def test_the_glass_is_broken_through_the_product_with_reason_and_date(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    until = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    body = {"action": "break", "reason": "incident 7", "until": until}
    assert api.client.post("/livesystems/ls-a/components/net/glass", json=body).status_code == 202
    api.claim()
    request = api.work["ls-a", "net"]["request"]
    assert (request["kind"], request["by"], request["reason"]) == ("break", "admin", "incident 7")
    assert datetime.fromisoformat(request["until"]) == datetime.fromisoformat(until)
    kinds = [event["kind"] for event in api.get("/livesystems/ls-a/events")["items"]]
    assert kinds[0] == "GlassRequested"


@pytest.mark.rule("G13")
def test_readopt_asks_for_a_force_push_of_what_is_in_override(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    path = "/livesystems/ls-a/components/net/glass"
    assert api.client.post(path, json={"action": "readopt"}).status_code == 409
    api.report("ls-a", "net", **OVERRIDE)
    assert api.client.post(path, json={"action": "readopt"}).status_code == 202
    assert api.get("/livesystems/ls-a/components/net")["request"]["kind"] == "force-push"


@pytest.mark.rule("G13", "C4")
def test_an_override_is_extended_and_handed_over_at_once_and_without_an_agent(api: Api) -> None:
    api.put("ls-a", vpc())
    api.settle(("ls-a", "net"))
    path = "/livesystems/ls-a/components/net/glass"
    until = (datetime.now(UTC) + timedelta(hours=4)).isoformat()
    assert api.client.post(path, json={"action": "extend", "until": until}).status_code == 409
    api.report("ls-a", "net", **OVERRIDE)
    extended = api.client.post(path, json={"action": "extend", "until": until})
    assert (extended.status_code, extended.json()["changed"]) == (200, True)
    answer = api.client.post(path, json={"action": "handOver", "to": "bea", "reason": "her shift"})
    assert (answer.status_code, answer.json()["before"]["by"], answer.json()["override"]["by"]) == (200, None, "bea")
    component = api.get("/livesystems/ls-a/components/net")
    assert (component["override"]["by"], component["override"]["reason"]) == ("bea", "her shift")
    assert datetime.fromisoformat(component["override"]["until"]) == datetime.fromisoformat(until)
    assert component["request"] is None, "nothing is left for an agent to do"
    events = api.get("/livesystems/ls-a/events")["items"]
    assert [event["kind"] for event in events[:2]] == ["OverrideHandedOver", "OverrideExtended"]
    again = api.client.post(path, json={"action": "break", "reason": "again"}).json()
    assert (again["alreadyInOverride"], again["override"]["by"]) == (["net"], "bea")


@pytest.mark.parametrize(
    "body",
    [
        {"action": "smash"},
        {"action": "break", "until": "2020-01-01T00:00:00Z"},
        {"action": "break", "until": "2120-01-01T00:00:00"},
        {"action": "break", "reason": "two\nlines"},
        {"action": "break", "why": "?"},
        {"action": "break", "to": "bea"},
        {"action": "extend"},
        {"action": "extend", "until": "2020-01-01T00:00:00Z"},
        {"action": "extend", "until": "2120-01-01T00:00:00Z", "to": "bea"},
        {"action": "handOver"},
        {"action": "handOver", "to": ""},
        {"action": "handOver", "to": "two\nlines"},
        {"action": "handOver", "to": "b" * 101},
        {},
    ],
)
def test_a_glass_request_that_makes_no_sense_is_refused(api: Api, body: dict[str, str]) -> None:
    api.put("ls-a", vpc())
    answer = api.client.post("/livesystems/ls-a/components/net/glass", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"]


@pytest.mark.rule("G12")
def test_the_commands_carry_the_real_resource_id_and_region(api: Api) -> None:
    api.put("ls-a", vpc())
    before = api.get("/livesystems/ls-a/components/net/glass")
    assert before["missing"] == ["resourceId"]
    assert "resourceId" in before["message"]
    api.settle(("ls-a", "net"))
    after = api.get("/livesystems/ls-a/components/net/glass")
    assert after["missing"] == []
    (command,) = after["break"]
    assert "--region=eu-west-1" in command
    assert "id-net" in command
    assert after["readopt"]


@pytest.mark.rule("O13")
def test_resources_are_listed_with_owner_and_importers(api: Api) -> None:
    api.put("ls-a", vpc())
    api.put("ls-b", vpc())
    api.register()
    api.claim()
    identity = "NetworkAndCompute.IaaS.AwsVpc:aws/123456789012/eu-west-1:net"
    known = {"identity": identity, "owner": "ls-a", "resourceId": "vpc-1"}
    api.report("ls-a", "net", resources=[known])
    (found,) = api.get("/resources")["items"]
    assert (found["owner"], found["importers"], found["resourceId"]) == ("ls-a", ["ls-b"], "vpc-1")
    assert api.get(f"/resources/{found['key']}") == found
    assert api.get("/livesystems/ls-a/components/net")["resourceKey"] == found["key"]
    assert api.client.get("/resources/nonsense").status_code == 404


@pytest.mark.rule("C4")
def test_events_are_newest_first_and_paged(api: Api) -> None:
    api.put("ls-a", vpc())
    api.put("ls-a", vpc())
    api.put("ls-b", vpc())
    first = api.get("/events", params={"limit": 2})
    assert [(event["seq"], event["liveSystemId"]) for event in first["items"]] == [(3, "ls-b"), (2, "ls-a")]
    second = api.get("/events", params={"limit": 2, "cursor": first["cursor"]})
    assert [event["seq"] for event in second["items"]] == [1]
    assert len(api.get("/livesystems/ls-a/events")["items"]) == 2


@pytest.mark.rule("C4")
def test_the_stream_goes_on_after_the_last_event_that_was_seen(api: Api) -> None:
    for _ in range(3):
        api.put("ls-a", vpc())
    received = _streamed(api, {"Last-Event-ID": "1"}, "ls-a")
    ids = [line.removeprefix("id: ") for line in received if line.startswith("id: ")]
    assert ids == ["2", "3"]
    data = [json.loads(line.removeprefix("data: ")) for line in received if line.startswith("data: ")]
    assert [event["kind"] for event in data] == ["Deployed", "Deployed"]


@pytest.mark.rule("C4", "C2")
def test_to_whom_a_lost_database_sent_more_everything_is_news(api: Api) -> None:
    api.put("ls-a", vpc())
    api.put("ls-a", vpc())
    received = _streamed(api, {"Last-Event-ID": "77"}, "ls-a")
    assert [line for line in received if line.startswith("id: ")] == ["id: 1", "id: 2"]


@pytest.mark.rule("C4")
def test_to_whom_forgotten_events_were_never_sent_it_is_said_so(api: Api) -> None:
    for _ in range(4):
        api.put("ls-a", vpc())
    app: Any = api.client.app
    with app.state.store.write() as tx:
        tx.connection.execute(insert(counters).values(name=FORGOTTEN, value=3))
    stream = {"Accept": "text/event-stream"}
    for path in ("/events", "/livesystems/ls-a/events"):
        answer = api.client.get(path, headers={**stream, "Last-Event-ID": "2"})
        assert answer.status_code == 410
        assert "up to number 3 are kept no longer" in answer.json()["detail"]
        assert "Last-Event-ID: 0" in answer.json()["detail"]
    received = _streamed(api, {"Last-Event-ID": "3"}, "ls-a")
    assert [line for line in received if line.startswith("id: ")] == ["id: 4"]


def _streamed(api: Api, headers: dict[str, str], live_system_id: str) -> list[str]:
    """The lines of a stream that the server ends after a moment."""
    app: Any = api.client.app
    threading.Timer(1.5, app.state.store.signals.close).start()
    path = f"/livesystems/{live_system_id}/events"
    with api.client.stream("GET", path, headers={"Accept": "text/event-stream", **headers}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(answer.iter_lines())


@pytest.mark.rule("C4")
def test_the_stream_brings_what_happens_while_it_is_open(api: Api) -> None:
    api.put("ls-a", vpc())
    threading.Timer(0.5, lambda: api.put("ls-a", vpc())).start()
    received = _streamed(api, {}, "ls-a")
    assert [line for line in received if line.startswith("id: ")] == ["id: 2"]


def test_no_token_no_entry(tmp_path: Path) -> None:
    with make_client(tmp_path) as client:
        client.headers.pop("authorization")
        for path in ("/livesystems", "/openapi.json", "/metrics", "/no/such/path"):
            answer = client.get(path)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["content-type"] == "application/problem+json"
        assert client.get("/livesystems", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/livesystems", headers={"Authorization": "Basic x"}).status_code == 401
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200


def _with(api: Api, token: str) -> TestClient:
    app = api.client.app
    assert isinstance(app, FastAPI)
    return TestClient(app, headers={"Authorization": f"Bearer {token}"})


BOUND = {"providers": ["*"], "environments": ["*"], "realms": ["*"]}


def _token(api: Api, name: str, role: str, **more: Any) -> str:
    answer = api.client.post("/tokens", json={"name": name, "role": role, **more})
    assert answer.status_code == 201, answer.text
    token: str = answer.json()["token"]
    return token


def test_each_role_reaches_its_own_routes_and_no_other(api: Api) -> None:
    api.put("ls-a", vpc())
    wait = {"agentId": "a", "wake": 0}
    cases = {
        "admin": (200, 202, 403, 200),
        "operator": (200, 202, 403, 403),
        "reader": (200, 403, 403, 403),
        "agent": (403, 403, 404, 403),
    }
    for role, expected in cases.items():
        client = _with(api, _token(api, f"a {role}", role, **(BOUND if role == "agent" else {})))
        found = (
            client.get("/livesystems").status_code,
            client.put("/livesystems/ls-a", json={"id": "ls-a", "components": [vpc()]}).status_code,
            client.post("/agent/wait", json=wait).status_code,
            client.get("/tokens").status_code,
        )
        assert found == expected, role


def test_events_name_the_token_that_asked(api: Api) -> None:
    client = _with(api, _token(api, "ann", "operator"))
    client.put("/livesystems/ls-a", json={"id": "ls-a", "components": [vpc()]})
    assert api.get("/events")["items"][0]["by"] == "ann"


def test_a_revoked_token_is_worthless_at_once_and_no_secret_is_kept(api: Api, tmp_path: Path) -> None:
    token = _token(api, "ann", "reader")
    client = _with(api, token)
    assert client.get("/livesystems").status_code == 200
    assert api.client.post("/tokens", json={"name": "ann", "role": "reader"}).status_code == 409
    assert token not in api.client.get("/tokens").text
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.encode() not in kept
    assert TOKEN.encode() not in kept
    assert api.client.delete("/tokens/ann").status_code == 204
    assert client.get("/livesystems").status_code == 401
    assert api.client.delete("/tokens/ann").status_code == 404


def test_an_agents_token_speaks_only_for_its_own_providers_and_its_own_agent(api: Api) -> None:
    narrow = _with(api, _token(api, "narrow", "agent", providers=["gcp"], environments=["*"], realms=["*"]))
    reach = {"provider": "aws", "realm": "1"}
    body = {"agentId": "a9", "environment": "default", "reaches": [reach], "cycleSeconds": 60}
    refused = narrow.post("/agent/register", json=body)
    assert refused.status_code == 403
    assert "'aws'" in refused.json()["detail"]
    api.register("a1")
    assert (
        narrow.post("/agent/claim", json={"agentId": "a1", "lastSeen": last_seen_json(api.client)}).status_code == 403
    )


def test_agents_and_scopes_show_who_works_where(api: Api) -> None:
    api.put("ls-a", vpc())
    api.register()
    api.claim()
    at = datetime.now(UTC).isoformat()
    scope = "aws/123456789012/eu-west-1"
    api.as_agent("heartbeat", {"agentId": "a1", "lastSeen": last_seen_json(api.client), "readAt": {scope: at}})
    (agent,) = api.get("/agents")["items"]
    assert (agent["id"], agent["alive"]) == ("a1", True)
    (found,) = api.get("/scopes")["items"]
    assert (found["key"], found["holder"], found["components"]) == (scope, "a1", 1)
    assert found["lastRead"] == api.get("/livesystems/ls-a/components/net")["lastRead"]
    assert found["lastRead"] is not None


def test_offers_list_every_type_with_its_schema(api: Api) -> None:
    offers = {offer["type"]: offer for offer in api.get("/offers")["items"]}
    found = offers["NetworkAndCompute.IaaS.AwsVpc"]
    assert "cidrBlock" in found["parameterSchema"]["properties"]
    assert "links" in found


def test_metrics_count_components_agents_leases_and_requests(api: Api) -> None:
    api.put("ls-a", vpc(), subnet())
    api.settle(("ls-a", "net"))
    text = api.client.get("/metrics").text
    assert 'fractal_components{status="Active"} 1.0' in text
    assert 'fractal_components{status="Instantiating"} 1.0' in text
    assert "fractal_agents_alive 1.0" in text
    assert "fractal_leases 1.0" in text
    assert 'fractal_reports_total{outcome="taken"} 1.0' in text
    assert 'route="/livesystems/{id}"' in text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/no/such/path", 404),
        ("PATCH", "/livesystems", 405),
        ("GET", "/livesystems/Not_An_Id", 404),
        ("GET", "/livesystems/nul%00", 404),
        ("GET", "/livesystems/ls-a/components/%00", 404),
        ("GET", "/livesystems/ls-a/mutations/%00", 422),
        ("GET", "/resources/%00", 404),
        ("GET", "/resources/%ff", 404),
        ("GET", "/livesystems?limit=0", 422),
        ("GET", "/livesystems?limit=99999", 422),
        ("GET", "/livesystems?limit=x", 422),
        ("GET", "/events?cursor=x", 422),
        ("GET", "/events?cursor=99999999999999999999", 422),
        ("GET", "/livesystems?cursor=%00", 422),
        ("DELETE", "/tokens/%00", 422),
        ("PUT", "/livesystems/%ed%a0%80", 422),
        ("PUT", "/livesystems/%00", 422),
    ],
)
def test_every_refusal_is_a_problem_document(api: Api, method: str, path: str, status: int) -> None:
    answer = api.client.request(method, path)
    assert answer.status_code == status, answer.text
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert (problem["status"], set(problem)) == (status, {"type", "title", "status", "detail", "errors"})


@pytest.mark.rule("G13")
def test_overrides_are_found_by_who_holds_them_and_a_token_says_its_name(api: Api) -> None:
    api.put("ls-a", vpc())
    api.put("ls-b", vpc(parameters={"name": "other"}))
    api.settle(("ls-a", "net"), ("ls-b", "net"))
    for name in ("ls-a", "ls-b"):
        api.report(name, "net", **OVERRIDE)
    assert api.get("/whoami") == {"name": "admin", "role": "admin", "environments": []}
    glass = "/livesystems/ls-b/components/net/glass"
    assert api.client.post(glass, json={"action": "handOver", "to": "admin"}).status_code == 200
    held = api.get("/components?sort=override&override=true")["items"]
    assert [one["liveSystemId"] for one in held] == ["ls-a", "ls-b"]
    mine = api.get("/components?sort=override&override=true&by=admin")["items"]
    assert [one["liveSystemId"] for one in mine] == ["ls-b"]
