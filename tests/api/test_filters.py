"""Filters, orders and summaries over HTTP; every combination of them is examined in ``tests/store/test_listing.py``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from fractal_cloud.control.store import Store, events
from fractal_cloud.control.store.database import PendingEvent
from fractal_cloud.model.event import EventKind
from tests.api.conftest import BUCKET, SUBNET, VPC, Api, subnet, vpc
from tests.store import fleets

LARGE = 150_000
NAMES = {"id": "ls-a", "componentId": "net", "mutationId": "m", "key": "k", "name": "n", "fingerprint": "f"}


@pytest.fixture
def fleet(api: Api) -> Api:
    """A LiveSystem that is well, one that failed, one held by hand, and one elsewhere that was never reconciled."""
    api.put("ls-a", vpc())
    api.put("ls-b", vpc(parameters={"name": "b"}), subnet())
    api.put("ls-c", vpc(parameters={"name": "c"}))
    bucket = {"id": "bucket", "type": BUCKET, "parameters": {"name": "bucket-of-d", "region": "eu-west-1"}}
    assert api.put("ls-d", bucket, environment="prod").status_code == 202
    api.settle(("ls-a", "net"), ("ls-c", "net"))
    assert api.report("ls-b", "net", status="Failed").status_code == 200
    assert api.client.post("/livesystems/ls-c/components/net/glass", json={"action": "break"}).status_code == 202
    api.claim()
    request = api.get("/livesystems/ls-c/components/net")["request"]
    held = {"overridden": True, "overrideBy": request["by"], "usedRequest": request["id"], "stance": "override"}
    assert api.report("ls-c", "net", status="ManualOverride", **held).status_code == 200
    return api


def _ids(api: Api, path: str, **query: Any) -> list[str]:
    return [one["id"] for one in api.get(path, params=query)["items"]]


@pytest.mark.rule("C1")
def test_a_list_of_live_systems_answers_summaries_and_components_on_request(fleet: Api) -> None:
    (one, *_) = fleet.get("/livesystems")["items"]
    assert "components" not in one
    assert (one["id"], one["status"], one["counts"], one["overrides"]) == ("ls-a", "Active", {"Active": 1}, 0)
    whole = fleet.get("/livesystems", params={"include": "components"})["items"][0]
    assert [part["id"] for part in whole["components"]] == ["net"]
    assert {name: value for name, value in whole.items() if name != "components"} == one
    assert fleet.get("/livesystems/ls-a") == whole


@pytest.mark.rule("C1")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["ls-a", "ls-b", "ls-c", "ls-d"]),
        ({"sort": "worst"}, ["ls-b", "ls-d", "ls-c", "ls-a"]),
        ({"sort": "-lastUpdated"}, ["ls-c", "ls-b", "ls-a", "ls-d"]),
        ({"status": ["Failed", "ManualOverride"]}, ["ls-b", "ls-c"]),
        ({"environment": "prod"}, ["ls-d"]),
        ({"type": "AwsSubnet"}, ["ls-b"]),
        ({"type": VPC, "status": "Active"}, ["ls-a"]),
        ({"provider": "gcp"}, []),
        ({"override": "true"}, ["ls-c"]),
        ({"override": "overdue"}, []),
        ({"owner": "ls-a"}, ["ls-a"]),
        ({"search": "123456789012"}, ["ls-a", "ls-b", "ls-c"]),
        ({"search": "s3"}, ["ls-d"]),
        ({"search": "LS-B"}, ["ls-b"]),
    ],
    ids=str,
)
def test_live_systems_are_filtered_and_ordered_on_the_server(
    fleet: Api, query: dict[str, Any], found: list[str]
) -> None:
    page = fleet.get("/livesystems", params=query)
    assert [one["id"] for one in page["items"]] == found
    assert page["total"] == len(found)
    assert _walked(fleet.client, "/livesystems", query) == found


@pytest.mark.rule("C1", "G13")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, ["ls-a/net", "ls-b/net", "ls-b/sub", "ls-c/net", "ls-d/bucket"]),
        ({"status": "Failed"}, ["ls-b/net"]),
        ({"type": SUBNET}, ["ls-b/sub"]),
        ({"environment": "prod"}, ["ls-d/bucket"]),
        ({"override": "true", "sort": "override"}, ["ls-c/net"]),
        ({"sort": "override", "by": "bea"}, []),
        ({"sort": "override", "by": ["bea", "admin"]}, ["ls-c/net"]),
        ({"search": "buck"}, ["ls-d/bucket"]),
        ({"owner": "ls-a"}, ["ls-a/net"]),
    ],
    ids=str,
)
def test_components_of_all_live_systems_are_listed(fleet: Api, query: dict[str, Any], found: list[str]) -> None:
    items = fleet.get("/components", params=query)["items"]
    assert [f"{one['liveSystemId']}/{one['componentId']}" for one in items] == found
    assert all(one == fleet.get(f"/livesystems/{one['liveSystemId']}/components/{one['componentId']}") for one in items)
    walked = _walked(fleet.client, "/components", query)
    assert walked == [one["id"] for one in items]


def _walked(client: TestClient, path: str, query: dict[str, Any]) -> list[str]:
    found: list[str] = []
    page = client.get(path, params={**query, "limit": 1}).json()
    found += [one["id"] for one in page["items"]]
    while page["next"] is not None:
        page = client.get(path, params={**query, "limit": 1, "cursor": page["next"]}).json()
        found += [one["id"] for one in page["items"]]
    return found


@pytest.mark.rule("C1", "C4")
def test_events_are_filtered_on_the_server(fleet: Api) -> None:
    def kinds(**query: Any) -> list[tuple[str, str]]:
        return [(one["liveSystemId"], one["kind"]) for one in fleet.get("/events", params=query)["items"]]

    assert kinds(kind="Deployed") == [(name, "Deployed") for name in ("ls-d", "ls-c", "ls-b", "ls-a")]
    assert kinds(kind=["Deployed", "GlassBroken"], environment="prod") == [("ls-d", "Deployed")]
    assert {name for name, _ in kinds(search="ls-c")} == {"ls-c"}
    assert kinds(by="admin", kind=["GlassBroken", "StatusChanged"]) == [("ls-c", "GlassBroken")]
    assert kinds(since=(datetime.now(UTC) + timedelta(hours=1)).isoformat()) == []
    assert kinds(kind="Deployed", since="2020-01-01T00:00:00Z") == kinds(kind="Deployed")
    own = fleet.get("/livesystems/ls-c/events", params={"kind": "Deployed"})["items"]
    assert [one["liveSystemId"] for one in own] == ["ls-c"]


@pytest.mark.rule("C4")
def test_a_rare_event_is_found_page_by_page_however_far_back_it_is(fleet: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Store = fleet.client.app.state.store  # type: ignore[attr-defined]
    monkeypatch.setattr(events, "READ_AT_MOST", 7)
    with store.write() as tx:
        tx.record(*(PendingEvent("ls-a", EventKind.DRIFT_FOUND, "a1", "net") for _ in range(40)))
    cursor, found, pages = None, [], 0
    while pages == 0 or cursor is not None:
        page = fleet.get("/events", params={"kind": "GlassBroken", **({"cursor": cursor} if cursor else {})})
        found += [one["kind"] for one in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert found == ["GlassBroken"]
    assert pages > 5


@pytest.mark.rule("C1")
def test_an_unknown_query_parameter_is_refused_on_every_route(api: Api) -> None:
    paths = api.client.app.openapi()["paths"]  # type: ignore[attr-defined]
    asked = 0
    for path, operations in paths.items():
        address = path
        for name, value in NAMES.items():
            address = address.replace(f"{{{name}}}", quote(value))
        for method in operations:
            answer = api.client.request(method.upper(), address, params={"no-such-filter": "x"})
            asked += 1
            assert answer.status_code == 422, f"{method} {path}: {answer.status_code} {answer.text}"
            assert answer.json()["errors"][0]["path"] == "no-such-filter"
    assert asked > 50


@pytest.mark.rule("C1")
@pytest.mark.parametrize(
    ("path", "query", "allowed"),
    [
        ("/livesystems", {"status": "failed"}, "Failed"),
        ("/livesystems", {"sort": "best"}, "worst"),
        ("/livesystems", {"include": "secrets"}, "components"),
        ("/livesystems", {"stale": "maybe"}, "true"),
        ("/livesystems", {"override": "1"}, "overdue"),
        ("/livesystems", {"kind": "Deployed"}, "status"),
        ("/livesystems", {"sort": "worst", "cursor": "ls-a"}, "begin without one"),
        ("/components", {"sort": "worst"}, "override"),
        ("/components", {"cursor": "ls-a"}, "begin without one"),
        ("/events", {"kind": "GlassMended"}, "GlassBroken"),
        ("/events", {"status": "Failed"}, "kind"),
        ("/events", {"since": "yesterday"}, "datetime"),
        ("/events", {"since": "2026-11-15T12:00:00"}, "zone"),
    ],
    ids=str,
)
def test_a_bad_value_is_refused_and_the_allowed_ones_are_named(
    api: Api, path: str, query: dict[str, str], allowed: str
) -> None:
    answer = api.client.get(path, params=query)
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["path"].partition("[")[0] in query
    assert allowed in error["message"]


@pytest.mark.rule("C1")
def test_a_filter_is_refused_where_a_stream_would_ignore_it(api: Api) -> None:
    answer = api.client.get("/events", params={"kind": "Deployed"}, headers={"Accept": "text/event-stream"})
    assert answer.status_code == 422
    assert "leave it out" in answer.text


@pytest.mark.rule("C1")
def test_two_hundred_live_systems_of_a_hundred_components_are_a_small_page(api: Api) -> None:
    store: Store = api.client.app.state.store  # type: ignore[attr-defined]
    fleets.write(store, fleets.large(200, 100))
    answer = api.client.get("/livesystems", params={"limit": 200})
    assert len(answer.json()["items"]) == 200
    assert sum(answer.json()["items"][7]["counts"].values()) == 100
    assert len(answer.content) < LARGE
