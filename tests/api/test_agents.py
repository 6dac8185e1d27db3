"""The agents' protocol over HTTP: leases, long polls, plans."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fractal_cloud.model.wire import Claimed
from tests.api.conftest import Api, subnet, vpc
from tests.last_seen import last_seen_json

SCOPE = "aws/123456789012/eu-west-1"


def test_what_a_claim_answers_is_what_the_model_describes(api: Api) -> None:
    api.put("ls-a", vpc(), subnet())
    api.register()
    claimed = api.claim()
    parsed = Claimed.model_validate(claimed)
    assert parsed.to_json() == claimed


def test_a_report_under_a_lost_lease_is_a_conflict(api: Api) -> None:
    api.put("ls-a", vpc())
    api.register()
    api.claim()
    api.scopes[SCOPE]["token"] += 1
    answer = api.report("ls-a", "net")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("lease-lost")


def test_an_unknown_agent_is_not_found(api: Api) -> None:
    for route in ("claim", "heartbeat", "wait", "release"):
        more = {"wait": {"wake": 0}, "release": {}}.get(route, {"lastSeen": last_seen_json(api.client)})
        body: dict[str, Any] = {"agentId": "nobody", **more}
        answer = api.as_agent(route, body)
        assert answer.status_code == 404, route
        assert "register" in answer.json()["detail"]


def test_a_body_that_is_not_the_model_lists_its_faults(api: Api) -> None:
    body = {"agentId": "a", "scopes": [{"scope": 1, "changes": [{}]}], "more": 1}
    answer = api.as_agent("report", body)
    assert answer.status_code == 422
    paths = {error["path"] for error in answer.json()["errors"]}
    assert {"scopes[0].scope", "scopes[0].token", "scopes[0].changes[0].uid", "more"} <= paths


def _wait(api: Api, seconds: float) -> dict[str, Any]:
    answer = api.as_agent("wait", {"agentId": "a1", "wake": api.wake, "seconds": seconds})
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.rule("C5")
def test_a_long_poll_ends_at_once_when_something_is_deployed(api: Api) -> None:
    api.put("ls-a", vpc())
    api.register()
    api.claim()
    assert _wait(api, 0.05) == {"wake": api.wake, "woken": False}
    found: dict[str, Any] = {}
    waiting = threading.Thread(target=lambda: found.update(_wait(api, 30)))
    waiting.start()
    time.sleep(0.3)
    started = time.monotonic()
    api.put("ls-a", vpc())
    waiting.join(20)
    assert time.monotonic() - started < 15
    assert found["woken"]
    assert found["wake"] != api.wake


def test_a_long_poll_returns_at_once_where_there_is_news_already(api: Api) -> None:
    api.put("ls-a", vpc())
    api.register()
    api.claim()
    api.put("ls-a", vpc())
    started = time.monotonic()
    assert _wait(api, 30)["woken"]
    assert time.monotonic() - started < 15


def test_a_long_poll_ends_when_the_server_stops(api: Api) -> None:
    api.register()
    api.claim()
    found: dict[str, Any] = {}
    waiting = threading.Thread(target=lambda: found.update(_wait(api, 30)))
    waiting.start()
    time.sleep(0.3)
    app: Any = api.client.app
    app.state.store.signals.close()
    waiting.join(20)
    assert found == {"wake": api.wake, "woken": False}


@pytest.mark.rule("C6")
def test_a_plan_is_answered_by_the_scopes_agent(api: Api) -> None:
    api.put("ls-b", vpc("theirs"))
    api.put("ls-a", vpc("stays"), vpc("goes"))
    api.settle(("ls-a", "stays"), ("ls-a", "goes"))
    found: dict[str, Any] = {}
    body = {"id": "ls-a", "components": [vpc("stays"), vpc("comes")]}
    asking = threading.Thread(
        target=lambda: found.update(api.client.post("/livesystems/ls-a/plan?timeout=30", json=body).json())
    )
    asking.start()
    task = _plan_task(api)
    parts = {part["declaration"]["id"]: part for part in task["work"]["components"]}
    assert set(parts) == {"theirs", "stays", "goes", "comes"}
    assert (parts["goes"]["deleting"], parts["comes"]["deleting"]) == (True, False)
    assert parts["theirs"]["uid"] not in task["uids"]
    actions = {"stays": "nothing", "goes": "delete", "comes": "create"}
    result = [
        {"uid": parts[name]["uid"], "componentId": name, "type": parts[name]["declaration"]["type"], "action": action}
        for name, action in actions.items()
    ]
    assert api.as_agent(f"plans/{task['id']}", {"components": result}).status_code == 204
    asking.join(20)
    assert {part["componentId"]: part["action"] for part in found["components"]} == actions
    assert found["hasChanges"]
    assert (found["summary"]["create"], found["summary"]["delete"]) == (1, 1)
    assert api.get("/livesystems/ls-a")["generation"] == 1
    assert api.client.get("/livesystems/ls-a/components/comes").status_code == 404


def _plan_task(api: Api) -> dict[str, Any]:
    for _ in range(100):
        plans = api.as_agent("claim", {"agentId": "a1", "lastSeen": last_seen_json(api.client)}).json()["plans"]
        if plans:
            task: dict[str, Any] = plans[0]
            return task
        time.sleep(0.05)
    raise AssertionError("no plan was handed out")


@pytest.mark.rule("C6", "S21")
def test_a_plan_nobody_can_answer_says_which_provider_nobody_serves(api: Api) -> None:
    body = {"id": "ls-a", "components": [vpc()]}
    found = api.client.post("/livesystems/ls-a/plan", json=body).json()
    (part,) = found["components"]
    assert part["action"] == "unknown"
    assert "no running agent serves 'aws'" in part["message"]
    assert not found["hasChanges"]


@pytest.mark.rule("C6")
def test_a_plan_without_an_answer_in_time_is_unknown(api: Api) -> None:
    api.put("ls-a", vpc())
    api.register()
    found = api.client.post("/livesystems/ls-a/plan?timeout=0.2").json()
    assert [part["action"] for part in found["components"]] == ["unknown"]
    assert "did not answer" in found["components"][0]["message"]


def test_a_plan_of_a_bad_declaration_lists_its_faults(api: Api) -> None:
    answer = api.client.post("/livesystems/ls-a/plan", json={"id": "ls-b", "components": [{"id": "x"}]})
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) >= 2
    assert api.client.post("/livesystems/ls-a/plan").status_code == 404
    assert api.as_agent("plans/00", {"components": []}).status_code == 404


def test_a_report_beyond_the_limit_is_refused_as_too_large(api: Api) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(65):
            yield b" " * 1024 * 1024

    answer = api.client.post("/agent/report", content=pieces(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("change", "status", "why"),
    [
        ({"observedGeneration": 2**70}, 403, "was never deployed"),
        ({"overrideUntil": "0001-01-01T00:00:00+23:00", "overridden": True}, 422, "out of range"),
    ],
    ids=["a number", "a date"],
)
def test_what_the_database_cannot_hold_is_refused(api: Api, change: dict[str, Any], status: int, why: str) -> None:
    api.put("ls-a", vpc())
    api.register()
    api.claim()
    answer = api.report("ls-a", "net", **change)
    assert answer.status_code == status
    assert why in answer.json()["detail"]


def test_the_character_nul_is_refused_everywhere(api: Api) -> None:
    answer = api.as_agent("claim", {"agentId": "a\0", "lastSeen": last_seen_json(api.client)})
    assert answer.status_code == 422
    assert "NUL" in answer.text
    spelled = api.as_agent("claim", {"agentId": "a\\u0000", "lastSeen": last_seen_json(api.client)})
    assert spelled.status_code == 404


@pytest.mark.rule("L16")
def test_a_registration_with_a_type_that_makes_no_sense_is_refused_and_leaves_no_trace(api: Api) -> None:
    schema = {"type": "object", "properties": {"size": {"type": "big"}}}
    facts = {"type": "Test.Net", "provider": "aws", "title": "Net", "parameterSchema": schema, "parent": "vpc"}
    reach = {"provider": "aws", "realm": "123456789012"}
    body = {"agentId": "a1", "environment": "default", "reaches": [reach], "types": [facts], "cycleSeconds": 5}
    answer = api.as_agent("register", body)
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["path"] == "types[Test.Net].parameterSchema.properties.size.type"
    assert "'big'" in error["message"]
    assert api.get("/agents")["items"] == []
    assert "Test.Net" not in {item["type"] for item in api.get("/offers")["items"]}


@pytest.mark.rule("A6", "L16")
def test_a_type_whose_command_could_not_be_pasted_is_refused(api: Api) -> None:
    schema = {"type": "object", "properties": {}}
    facts: dict[str, Any] = {"type": "Test.Net", "provider": "aws", "title": "Net", "parameterSchema": schema}
    reach = {"provider": "aws", "realm": "123456789012"}
    body = {"agentId": "a1", "environment": "default", "reaches": [reach], "cycleSeconds": 5}
    for command in ('curl "https://there/{resourceId}"', "untag {resourceId}; touch owned", "untag {resourceId}\n"):
        types = [{**facts, "glass": {"breakGlass": [command]}}]
        answer = api.as_agent("register", {**body, "types": types})
        assert answer.status_code == 422
        (error,) = answer.json()["errors"]
        assert error["path"] == "types[Test.Net].glass.breakGlass[0]"
        assert "which a shell may interpret" in error["message"]
    assert "Test.Net" not in {item["type"] for item in api.get("/offers")["items"]}
    good = [
        {**facts, "glass": {"breakGlass": ["untag {resourceId}", [{"run": [["untag", "$x", {"value": "netId"}]]}]]}}
    ]
    assert api.as_agent("register", {**body, "types": good}).status_code == 200
