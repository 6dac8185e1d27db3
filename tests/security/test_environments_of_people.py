"""A reader or an operator whose token is bound to environments sees and changes what is in them, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from tests import library_caches
from tests.dashboard.conftest import Visitor
from tests.world import ADMIN_TOKEN, vpc

SECRET = "the-name-of-prods-network"
OURS, THEIRS = "ls-test", "ls-prod"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    """A control plane with a LiveSystem in each of two environments."""
    made = create_app(
        ControlSettings(database_url=library_caches.database(tmp_path / "bound.db"), admin_token=ADMIN_TOKEN)
    )
    with TestClient(made):
        for name, environment in ((OURS, "test"), (THEIRS, "prod")):
            deployed = _deploy(admin_of(made), name, environment)
            assert deployed.status_code == 202, deployed.text
        yield made


def admin_of(app: FastAPI) -> TestClient:
    return TestClient(app, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})


def _deploy(who: TestClient, name: str, environment: str) -> Response:
    part: dict[str, Any] = vpc()
    part["parameters"] = {**part["parameters"], "name": SECRET if environment == "prod" else "ours"}
    body = {"id": name, "environment": environment, "components": [part]}
    return who.put(f"/livesystems/{name}", json=body)


def token(app: FastAPI, role: str, *environments: str) -> str:
    body = {"name": role, "role": role, "environments": list(environments)}
    answer = admin_of(app).post("/tokens", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def bound(app: FastAPI, role: str, *environments: str) -> TestClient:
    return TestClient(app, headers={"Authorization": f"Bearer {token(app, role, *environments)}"})


@pytest.mark.rule("A9")
@pytest.mark.parametrize("role", ["reader", "operator"])
def test_only_what_is_in_ones_own_environments_is_listed_and_read(app: FastAPI, role: str) -> None:
    who = bound(app, role, "te*")
    assert [one["id"] for one in who.get("/livesystems").json()["items"]] == [OURS]
    assert {event["liveSystemId"] for event in who.get("/events").json()["items"]} == {OURS}
    assert who.get(f"/livesystems/{OURS}").status_code == 200
    for path in ("", "/components", "/components/net", "/components/net/journal", "/components/net/glass", "/events"):
        answer = who.get(f"/livesystems/{THEIRS}{path}")
        assert answer.status_code == 404, path
        assert answer.json()["detail"] == who.get(f"/livesystems/nobody{path}").json()["detail"].replace(
            "nobody", THEIRS
        )
    mutation = admin_of(app).get(f"/livesystems/{THEIRS}/mutations").json()["items"][0]["id"]
    assert who.get(f"/livesystems/{THEIRS}/mutations").status_code == 404
    assert who.get(f"/livesystems/{THEIRS}/mutations/{mutation}").status_code == 404


@pytest.mark.rule("A9")
@pytest.mark.parametrize("path", ["/resources", "/recovery", "/metrics", "/tokens"])
def test_what_is_about_all_environments_is_refused_with_the_reason(app: FastAPI, path: str) -> None:
    answer = bound(app, "operator", "test").get(path)
    assert answer.status_code == 403
    assert "bound to the environment test" in answer.json()["detail"]


@pytest.mark.rule("A9")
def test_an_operator_changes_nothing_in_another_environment(app: FastAPI) -> None:
    who, admin = bound(app, "operator", "test"), admin_of(app)
    before = admin.get(f"/livesystems/{THEIRS}").json(), admin.get("/events").json()
    attempts = [
        _deploy(who, THEIRS, "prod"),
        _deploy(who, THEIRS, "test"),
        _deploy(who, "ls-new", "prod"),
        who.post("/livesystems", json={"id": "ls-new", "environment": "prod", "components": [vpc()]}),
        who.post("/livesystems", json={"id": THEIRS, "environment": "test", "components": [vpc()]}),
        who.post(f"/livesystems/{THEIRS}/plan", params={"timeout": 0}),
        who.delete(f"/livesystems/{THEIRS}"),
        who.delete(f"/livesystems/{THEIRS}", params={"dryRun": True}),
        who.post(f"/livesystems/{THEIRS}/force-push"),
        who.post(f"/livesystems/{THEIRS}/components/net/force-push"),
        who.post(f"/livesystems/{THEIRS}/components/net/glass", json={"action": "break"}),
        who.post("/realms/accept", json={"provider": "aws", "name": "1", "reason": "mine", "environment": "prod"}),
    ]
    assert [answer.status_code for answer in attempts if answer.status_code not in (403, 404)] == []
    assert (admin.get(f"/livesystems/{THEIRS}").json(), admin.get("/events").json()) == before
    assert admin.get("/livesystems/ls-new").status_code == 404
    assert _deploy(who, OURS, "test").status_code == 202


@pytest.mark.rule("A9")
def test_what_an_id_was_in_another_environment_stays_hidden(app: FastAPI) -> None:
    admin = admin_of(app)
    assert admin.delete(f"/livesystems/{THEIRS}").status_code == 202  # nothing was made yet: it is gone at once
    who = bound(app, "operator", "test")
    assert _deploy(who, THEIRS, "test").status_code == 403
    _deploy(admin, THEIRS, "test")
    assert {event["liveSystemId"] for event in who.get("/events").json()["items"]} == {OURS}


@pytest.mark.rule("A9")
def test_the_dashboard_shows_the_same(app: FastAPI) -> None:
    visitor = Visitor(app, token(app, "operator", "test"))
    page = visitor.page("/ui")
    assert OURS in page
    assert THEIRS not in page
    for path in ("", "/components/net", "/delete"):
        answer = visitor.get(f"/ui/livesystems/{THEIRS}{path}")
        assert answer.status_code == 404, path
        assert SECRET not in answer.text
    assert visitor.send(f"/ui/livesystems/{THEIRS}/delete", name=THEIRS).status_code == 404
    assert admin_of(app).get(f"/livesystems/{THEIRS}").json()["deleting"] is False
