"""Every list is read page by page: nothing is left out or listed twice, and a cursor always leads to something."""

from __future__ import annotations

from pathlib import Path

import pytest

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.offers.secret import SealingKey
from tests.api.conftest import TOKEN, VPC, Api, vpc
from tests.last_seen import last_seen_json

MANY = 4
BY = {
    "/livesystems": "id",
    "/components": "id",
    "/livesystems/{id}/components": "componentId",
    "/livesystems/{id}/components/{componentId}/journal": "id",
    "/livesystems/{id}/mutations": "id",
    "/livesystems/{id}/events": "seq",
    "/events": "seq",
    "/resources": "key",
    "/scopes": "key",
    "/agents": "id",
    "/sealing-keys": "id",
    "/realms": "id",
    "/tokens": "id",
    "/offers": "type",
    "/types": "type",
    "/approvals": "id",
    "/environments": "name",
    "/notifications": "name",
}


@pytest.fixture
def filled(api: Api) -> Api:
    """A control plane that has four of everything."""
    parts = [vpc(f"net-{n}", parameters={"region": f"eu-west-{n + 1}"}) for n in range(MANY)]
    for n in range(MANY):
        api.put("ls-a", *parts)
        api.put(f"ls-more-{n}", vpc())
        api.client.post("/tokens", json={"name": f"token-{n}", "role": "reader"})
        api.client.post("/notifications", json={"name": f"team-{n}", "url": "https://hooks.example.com/x"})
    api.register()
    api.claim()
    for n, scope in enumerate(sorted({part["scope"] for part in api.work.values()})):
        live_system, component = next(key for key, part in api.work.items() if part["scope"] == scope)
        known = [{"identity": f"{VPC}:{scope}:{component}", "resourceId": f"vpc-{n}"}]
        assert api.report(live_system, component, resources=known).status_code == 200
    for n in range(MANY):
        api.client.put(f"/environments/stage-{n}", json={"approveAgents": True})
        api.register(f"agent-{n}", environment=f"stage-{n}")
        api.client.put(f"/environments/none-{n}", json={"approveAgents": False})
        api.register(f"let-in-{n}", environment=f"none-{n}", key=SealingKey().public)
    return api


def _written(api: Api) -> None:
    api.register()
    api.claim()
    part = api.work["ls-a", "net-0"]
    lease = api.scopes[part["scope"]]
    for n in range(MANY):
        entry = {"id": f"write-{n}", "uid": part["uid"], "generation": 1, "verb": "update", "reason": "drift"}
        scope = {key: lease[key] for key in ("scope", "token")} | {"version": lease["work"]["version"]}
        body = {"agentId": "a1", "lastSeen": last_seen_json(api.client), "scopes": [{**scope, "journal": [entry]}]}
        assert api.as_agent("report", body).status_code == 200


@pytest.mark.parametrize("path", BY)
@pytest.mark.rule("C1")
def test_pages_hold_everything_once_and_a_cursor_leads_to_more(filled: Api, path: str) -> None:
    if path.endswith("/journal"):
        _written(filled)
    url = path.replace("{id}", "ls-a").replace("{componentId}", "net-0")
    every = [item[BY[path]] for item in filled.get(url, params={"limit": 1000})["items"]]
    assert len(every) >= MANY
    assert filled.get(url, params={"limit": 1000})["cursor"] is None
    for limit in (1, 2, len(every) - 1, len(every)):
        found: list[object] = []
        cursor: str | None = None
        while True:
            page = filled.get(url, params={"limit": limit} | ({"cursor": cursor} if cursor else {}))
            assert page["items"], f"{limit} at once: the cursor {cursor!r} led to nothing"
            found += [item[BY[path]] for item in page["items"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        assert found == every, f"{limit} at once"


def test_no_list_is_left_out_here(tmp_path: Path) -> None:
    app = create_app(ControlSettings(data_dir=tmp_path, admin_token=TOKEN, cycle_seconds=60.0))
    lists = {
        path
        for path, operations in app.openapi()["paths"].items()
        for name, operation in operations.items()
        if name == "get" and "Page" in str(operation["responses"].get("200", {}))
    }
    app.state.store.close()
    assert lists == set(BY)
