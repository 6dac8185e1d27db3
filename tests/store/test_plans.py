"""A plan's tasks against the work that the deploy itself leads to: agents must judge both alike (C6, S20)."""

from __future__ import annotations

from typing import Any

import pytest

from fractal_cloud.control.store import agents, plan_tasks, plans
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.status import Status
from fractal_cloud.model.wire import JournalEntry, PlanTask, WorkComponent
from fractal_cloud.rules.identify import identities
from tests.store.playing import CATALOG, Json, World, box, net, sub

# Drawn anew by every deploy.
STAMPED = {"deployed_at"}
LEFT = [net("other", region="south")]
DEPLOYED = [net(), sub(), box(dependencies=["net"]), *LEFT]


def _planned(world: World, *parts: Json) -> dict[str, WorkComponent]:
    declaration = LiveSystemDeclaration.model_validate({"id": "ls-a", "components": list(parts)})
    with world.store.write() as tx:
        plans.ask(tx, declaration, identities(declaration, CATALOG))
    with world.store.write() as tx:
        tasks = [PlanTask.model_validate(task) for task in plan_tasks.hand_out(tx, agents.get(tx, "a1"))]
    return {part.declaration.id: part for task in tasks for part in task.work.components}


def _compared(part: WorkComponent) -> Json:
    return part.model_dump(exclude=STAMPED)


@pytest.mark.rule("C6", "S20", "O10")
@pytest.mark.parametrize(
    "parts",
    [LEFT, [], DEPLOYED, [net(), *LEFT]],
    ids=["dependents and what they need go", "all of it goes", "nothing changes", "only the dependents go"],
)
def test_a_plan_sends_out_what_the_deploy_would(world: World, parts: list[Any]) -> None:
    agent = world.agent()
    world.deploy("ls-a", *DEPLOYED)
    agent.settle()
    uid = agent.uid("ls-a", "net")
    entry = JournalEntry(id="j1", uid=uid, generation=1, verb="update", reason="drift")
    agent.report(agent.says("ls-a", "net", status=Status.MUTATING), journal=[entry])
    planned = _planned(world, *parts)
    world.deploy("ls-a", *parts)
    agent.versions.clear()
    agent.claim()
    deployed = {part.declaration.id: part for part in agent.work.values()}
    assert {name: _compared(part) for name, part in planned.items()} == {
        name: _compared(part) for name, part in deployed.items()
    }
    assert [write.id for write in planned["net"].open_writes] == ["j1"]


@pytest.mark.rule("C6", "O10")
def test_a_plan_knows_who_in_another_scope_holds_a_deletion_back(world: World) -> None:
    agent = world.agent()
    world.deploy("ls-a", *DEPLOYED)
    agent.settle()
    assert _planned(world, *LEFT)["net"].held_by == ["box"]
    assert _planned(world, net(), *LEFT)["net"].held_by == []
