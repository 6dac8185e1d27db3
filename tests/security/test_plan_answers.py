"""Only who was handed a plan answers it, once, and only what was asked (A3)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.control.store import agents
from fractal_cloud.control.store.plan_tasks import hand_out, results, store_tasks
from fractal_cloud.control.store.work import full_work
from tests.api.conftest import VPC, Api, vpc

TASK, PLAN = "b" * 32, "c" * 32


def _planned(uid: str, **more: Any) -> dict[str, Any]:
    return {"components": [{"uid": uid, "componentId": "net", "type": VPC, "action": "nothing", **more}]}


@pytest.fixture
def asked(api: Api) -> str:
    """A plan task that an agent was handed; the uid of the component in it."""
    api.put("ls-a", vpc())
    api.register()
    api.claim()
    part = api.work["ls-a", "net"]
    with api.client.app.state.store.write() as tx:  # type: ignore[attr-defined]  # create_app() made it
        work = full_work(tx, {part["scope"]: 1})[part["scope"]]
        work["components"] = [{**one, "deployedAt": tx.now.isoformat()} for one in work["components"]]
        store_tasks(tx, PLAN, [{"id": TASK, "work": work, "uids": [part["uid"]]}])
        hand_out(tx, agents.get(tx, "a1"))
    return str(part["uid"])


def _result(api: Api) -> Any:
    with api.client.app.state.store.read() as tx:  # type: ignore[attr-defined]  # create_app() made it
        (result,) = results(tx, PLAN).values()
    return result


@pytest.mark.rule("A3")
def test_only_who_was_handed_a_plan_answers_it(api: Api, asked: str) -> None:
    bound = {"providers": ["aws"], "environments": ["*"], "realms": ["*"]}
    made = api.client.post("/tokens", json={"name": "other", "role": "agent", **bound}).json()
    foreign = {"Authorization": f"Bearer {made['token']}"}
    assert api.client.post(f"/agent/plans/{TASK}", json=_planned(asked), headers=foreign).status_code == 404
    assert _result(api) is None
    assert api.as_agent(f"plans/{TASK}", _planned(asked)).status_code == 204
    assert _result(api)["components"][0]["action"] == "nothing"
    assert api.as_agent(f"plans/{TASK}", _planned(asked, action="delete")).status_code == 204
    assert _result(api)["components"][0]["action"] == "nothing", "the first answer counts"


@pytest.mark.rule("A3")
def test_an_answer_speaks_only_of_what_was_asked(api: Api, asked: str) -> None:
    for forged in (
        _planned("0" * 32),
        _planned(asked, componentId="other"),
        _planned(asked, type="Other.Type"),
        _planned(asked, message="\x1b[2J"),
    ):
        answer = api.as_agent(f"plans/{TASK}", forged)
        assert answer.status_code == 403, answer.text
    assert _result(api) is None
    kinds = [event["kind"] for event in api.get("/events")["items"]]
    assert kinds.count("ReportRefused") == 4


@pytest.mark.rule("A3")
def test_a_plan_that_asks_for_no_type_brings_none(api: Api, asked: str) -> None:
    facts = {"type": "AWS::Own::Engine", "provider": "aws", "title": "Engine", "parameterSchema": {"type": "object"}}
    answer = api.as_agent(f"plans/{TASK}", {**_planned(asked), "learned": facts})
    assert answer.status_code == 403, answer.text
    assert _result(api) is None
