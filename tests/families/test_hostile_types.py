"""What an agent answers about a type: refused as a whole where it speaks of another one, or could harm (A4, A6)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.control.store import agents, learning, plan_tasks
from fractal_cloud.control.store.learning import Lacking
from fractal_cloud.offers.learned_types import MOST_OF_A_TYPE
from tests.families import toys
from tests.families.world import World, world

GOOD = toys.facts_of(toys.PRIVATE, toys.IN_THE_ACCOUNT[toys.PRIVATE]).to_json()
ESCAPE = "\x1b]0;owned\x07"


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


def _asked(made: World, component_type: str = toys.PRIVATE) -> str:
    """The id of a task that asks the agent about a type, and that the agent was handed."""
    with made.app.state.store.write() as tx:
        family = made.app.state.store.installed_types.family_of(component_type)
        asked = learning.ask(tx, "default", [Lacking(component_type, family, {"region": "north"})])
        assert list(asked.plans) == [component_type]
        (task,) = plan_tasks.hand_out(tx, agents.get(tx, made.agent.settings.agent_id))
    return str(task["id"])


def _answer(made: World, task: str, **learned: Any) -> Any:
    headers = {"Authorization": f"Bearer {made.token}"}
    return made.api.post(f"/agent/plans/{task}", json={"learned": {**GOOD, **learned}}, headers=headers)


def _known(made: World) -> dict[str, Any]:
    with made.app.state.store.read() as tx:
        return dict(made.app.state.store.catalog(tx).items())


@pytest.mark.rule("A4")
def test_what_was_asked_is_stored_for_the_token_that_answered(toy_world: World) -> None:
    assert _answer(toy_world, _asked(toy_world)).status_code == 204
    assert toys.PRIVATE in _known(toy_world)


HARM: dict[str, dict[str, Any]] = {
    "another type of the family": {"type": "Toy::Own::Other"},
    "a type that is installed": {"type": toys.QUEUE},
    "a type of another provider": {"provider": "aws"},
    "a type of another family": {"family": "kubernetes-kinds"},
    "another name of another type": {"vendorType": toys.QUEUE},
    "halves of links": {"links": [{"source": "*", "target": toys.PRIVATE, "half": "inbound", "linkType": "steals"}]},
    "a type of more than is read": {"description": "x" * (MOST_OF_A_TYPE + 1)},
    "what is no schema": {"parameterSchema": {"type": "object", "properties": {"Power": {"type": 7}}}},
    "a schema that leads elsewhere": {
        "parameterSchema": {"type": "object", "properties": {"Power": {"$ref": "http://169.254.169.254/latest"}}}
    },
    "a command that commands a terminal": {"glass": {"caveat": ESCAPE}},
}


@pytest.mark.rule("A3", "A4", "A6")
@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
def test_an_answer_that_is_more_than_the_type_is_refused(toy_world: World, harm: dict[str, Any]) -> None:
    before = _known(toy_world)
    answer = _answer(toy_world, _asked(toy_world), **harm)
    assert answer.status_code in (400, 403, 413, 422), answer.text
    assert _known(toy_world) == before
    refused = [one for one in toy_world.api.get("/events").json()["items"] if one["kind"] == "ReportRefused"]
    assert refused or answer.status_code in (400, 413, 422), "what reaches the store is refused with an event"


@pytest.mark.rule("A4")
def test_another_token_changes_nothing_of_what_was_learned(toy_world: World) -> None:
    assert _answer(toy_world, _asked(toy_world)).status_code == 204
    bound = {"providers": ["toys"], "environments": ["*"], "realms": ["*"]}
    made = toy_world.api.post("/tokens", json={"name": "thief", "role": "agent", **bound}).json()
    task = _asked(toy_world)
    answer = toy_world.api.post(
        f"/agent/plans/{task}",
        json={"learned": {**GOOD, "title": "Mine"}},
        headers={"Authorization": f"Bearer {made['token']}"},
    )
    assert answer.status_code == 404, "it was not handed that task"
    assert _known(toy_world)[toys.PRIVATE].title == GOOD["title"]
