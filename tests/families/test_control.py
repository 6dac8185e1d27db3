"""The control plane and types of families: stored, searched, served by agents that say so, and kept out of lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fractal_cloud.control.app import create_app
from fractal_cloud.control.settings import ControlSettings
from fractal_cloud.control.store import Store, offers, unserved_components
from fractal_cloud.offers.registry import Registry
from fractal_cloud.testing.tokens import agent_token, bearer
from tests.families import toys

Json = dict[str, Any]
TOKEN = "the-admin-token"
JOBS: Json = {"id": "jobs", "type": toys.QUEUE, "parameters": {"region": "north", "Delay": 3}}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    settings = ControlSettings(data_dir=tmp_path, admin_token=TOKEN, cycle_seconds=0.001)
    app = create_app(settings, registry=Registry([toys]))
    with TestClient(app, headers={"Authorization": f"Bearer {TOKEN}"}) as found:
        yield found


def _store(client: TestClient) -> Store:
    store: Store = client.app.state.store  # type: ignore[attr-defined]
    return store


def _deploy(client: TestClient, *components: Json) -> Json:
    answer = client.put("/livesystems/shop", json={"id": "shop", "components": list(components)})
    assert answer.status_code == 202, answer.text
    done: Json = answer.json()
    return done


def _register(client: TestClient, **said: Any) -> None:
    reach = {"provider": "toys", "realm": "box"}
    body = {"agentId": "a1", "environment": "default", "reaches": [reach], "cycleSeconds": 60, **said}
    answer = client.post("/agent/register", json=body, headers=bearer(agent_token(client, providers=["toys"])))
    assert answer.status_code == 200, answer.text


def test_a_declaration_of_a_family_is_stored_as_it_is_with_the_facts_of_its_types(client: TestClient) -> None:
    policy = {"deadLetterTargetArn": "${dead.Arn}", "maxReceiveCount": 3}
    dead = {"id": "dead", "type": toys.QUEUE, "parameters": {"region": "north", "Delay": 1}}
    jobs = {**JOBS, "parameters": {**JOBS["parameters"], "RedrivePolicy": policy}}
    _deploy(client, jobs, dead)
    stored = {one["id"]: one for one in client.get("/livesystems/shop").json()["components"]}
    assert stored["jobs"]["parameters"]["RedrivePolicy"] == policy
    assert (stored["jobs"]["dependencies"], stored["jobs"]["provider"]) == (["dead"], "toys")
    with _store(client).read() as tx:
        assert offers.families(tx, [toys.QUEUE, toys.ALARM]) == {toys.QUEUE: "toy-types"}
        assert toys.ALARM in _store(client).catalog(tx)
        assert list(_store(client).catalog(tx)) == []


def test_errors_are_answered_with_full_paths(client: TestClient) -> None:
    bad = {**JOBS, "parameters": {"region": "north", "Delay": 3, "RedrivePolicy": {"deadLetterTargetArn": "x"}}}
    answer = client.put("/livesystems/shop", json={"id": "shop", "components": [bad]})
    assert answer.status_code == 422
    assert [one["path"] for one in answer.json()["errors"]] == [
        "components[jobs].parameters.RedrivePolicy.deadLetterTargetArn"
    ]


@pytest.mark.rule("S21")
@pytest.mark.parametrize(("families", "is_served"), [(["toy-types"], True), (["others"], False), ([], False)])
def test_a_type_is_served_by_who_serves_its_family(client: TestClient, families: list[str], *, is_served: bool) -> None:
    _register(client, families=families)
    _deploy(client, JOBS)
    store = _store(client)
    unserved_components.report_unserved(store.database, timedelta(0))
    message = client.get("/livesystems/shop/components/jobs").json()["message"]
    assert ("no running agent knows the type" in message) is not is_served


def test_offers_lists_no_family_and_says_when_what_is_known_of_one_is_from(client: TestClient) -> None:
    page = client.get("/offers").json()
    assert page["items"] == []
    assert page["families"] == [
        {"name": "toy-types", "provider": "toys", "title": "Every type of the toy vendor", "asOf": "2026-11-01"}
    ]


def test_offers_are_searched_in_short_and_given_by_name_in_full(client: TestClient) -> None:
    found = client.get("/offers", params={"search": "queue TOYS"}).json()["items"]
    assert found == [
        {
            "type": toys.QUEUE,
            "provider": "toys",
            "title": "Box::Queue",
            "description": "A queue of toys.",
            "family": "toy-types",
        }
    ]
    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        more: Json = {"cursor": cursor} if cursor else {}
        page = client.get("/offers", params={"search": "", "limit": 2, **more}).json()
        seen += [one["type"] for one in page["items"]]
        cursor = page["next"]
    assert seen == sorted(toys.SCHEMAS)
    [full] = client.get("/offers", params={"type": [toys.QUEUE, "Toy::Box::Nothing"]}).json()["items"]
    assert {"RedrivePolicy", "Entry"} <= full["parameterSchema"]["$defs"].keys()
    assert client.get("/offers", params={"search": "", "provider": "aws"}).json()["items"] == []


def test_offers_refuse_what_they_do_not_know(client: TestClient) -> None:
    assert client.get("/offers", params={"serch": "x"}).status_code == 422
    assert client.get("/offers", params={"search": "x" * 201}).status_code == 422


@pytest.mark.rule("A4")
def test_what_an_agent_says_of_a_familys_type_does_not_count(client: TestClient) -> None:
    said = toys.facts_of(toys.QUEUE, {**toys.SCHEMAS[toys.QUEUE], "description": "Something else."})
    _register(client, types=[said.to_json()])
    [full] = client.get("/offers", params={"type": toys.QUEUE}).json()["items"]
    assert full["description"] == "A queue of toys."


@pytest.mark.rule("A8")
def test_readers_do_not_see_what_may_be_a_secret_in_a_familys_type(client: TestClient) -> None:
    _deploy(client, {**JOBS, "parameters": {**JOBS["parameters"], "Password": "hunter2-hunter2"}})
    made = client.post("/tokens", json={"name": "eve", "role": "reader"}).json()
    seen = client.get("/livesystems/shop", headers=bearer(made["token"]))
    assert seen.status_code == 200
    assert "hunter2" not in seen.text
