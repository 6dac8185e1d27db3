"""«Deleted» is a fact about the cloud, for every offer of the registry (O17, O18, O19)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.suites import Stage, Suite, kinds
from tests.offers.test_identity import next_second
from tests.orphans import assert_nothing_is_orphaned

PLATFORM, TEAM = "ls-platform", "ls-team"


def _marks(suite: Suite, kind: str) -> list[pytest.MarkDecorator]:
    is_quick = suite.is_quick(kind) or kind == suite.machine
    return [
        pytest.mark.xdist_group(f"deletion {suite.provider}"),
        *suite.marks(),
        *([] if is_quick else [pytest.mark.soak]),
    ]


def _ids_return(name: str) -> bool:
    offer = installed().get(kinds()[name][1].type)
    assert offer is not None
    return offer.ids_return


EVERY_KIND = [pytest.param(name, id=name, marks=_marks(suite, name)) for name, (suite, _) in kinds().items()]
# A volume that is attached to another owner's server is never detached from it.
ALWAYS_DELETED = [one for one in EVERY_KIND if kinds()[str(one.id)][1].__name__ != "HetznerVolume"]
# Where ids return, nothing distinguishes a resource from its predecessor, as its reference page says.
NEVER_MISTAKEN = [one for one in EVERY_KIND if not _ids_return(str(one.id))]


@pytest.fixture
def stage(request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Stage]:
    suite, kind = kinds()[request.param]
    with suite.stage(session_sandbox, tmp_path, kind) as made:
        yield made


def _name(stage: Stage) -> str:
    declaration = stage.example.declaration
    return str(declaration["parameters"].get("name", declaration["id"]))


def _ended(stage: Stage, mutation: str) -> dict[str, Any]:
    record = stage.world.mutation(TEAM, mutation)
    assert record["status"] == "Completed", record
    components: dict[str, Any] = record["components"]
    return components


def _deletions(stage: Stage, component_id: str) -> int:
    """Writes of the agent on behalf of a component that is being deleted, which had an effect."""
    return sum(
        (write.live_system, write.component, write.reason) == (TEAM, component_id, "delete")
        for write in stage.world.writes()
    )


@pytest.mark.rule("O17", "O18", "O3")
@pytest.mark.parametrize("stage", ALWAYS_DELETED, indirect=True)
def test_what_is_in_others_resources_is_really_deleted_and_they_stay(stage: Stage) -> None:
    world, example = stage.world, stage.example
    if example.parents:
        world.deploy(PLATFORM, *example.parents)
        world.survive(60)
    world.deploy(TEAM, *example.components)
    world.survive(60)
    [found] = example.operator.find(_name(stage))
    component_id = example.declaration["id"]
    world.cloud.knobs.fail(status=500, code="InternalError", actor="agent", writes_only=True, times=2)
    mutation = str(world.delete(TEAM)["mutationId"])
    world.survive(120)
    assert example.operator.find(_name(stage)) == [], f"{found.resource_id} is called deleted, and stands"
    assert _deletions(stage, component_id) > 0, "nobody deleted it"
    ended = _ended(stage, mutation)
    assert ended[component_id]["message"] == "deleted"
    for parent in example.parents:
        assert ended[parent["id"]]["message"].startswith("reference dropped"), ended[parent["id"]]
        assert world.status(PLATFORM, parent["id"]) in ("Active", "ExternallyManaged"), parent["id"]
    assert_nothing_is_orphaned(world)
    world.assert_safe()


@pytest.mark.rule("O17")
@pytest.mark.parametrize("stage", EVERY_KIND, indirect=True)
def test_what_a_person_deleted_needs_no_call_to_be_gone(stage: Stage) -> None:
    world, example = stage.world, stage.example
    world.deploy(TEAM, *example.components)
    world.survive(60)
    [found] = example.operator.find(_name(stage))
    example.operator.delete(found)
    mutation = str(world.delete(TEAM)["mutationId"])
    world.survive(120)
    assert _ended(stage, mutation)[example.declaration["id"]]["status"] == "Deleted"
    assert example.operator.find(_name(stage)) == []
    assert_nothing_is_orphaned(world)


@pytest.mark.rule("O19")
@pytest.mark.parametrize("stage", NEVER_MISTAKEN, indirect=True)
def test_what_took_its_name_is_left_and_named(stage: Stage) -> None:
    """A person deletes it, and a second control plane makes another one for a LiveSystem of the same name."""
    world, example = stage.world, stage.example
    operator = example.operator
    world.deploy(TEAM, *example.components)
    world.survive(60)
    [found] = operator.find(_name(stage))
    mutation, first = str(world.delete(TEAM)["mutationId"]), world.agent
    next_second(time.time())
    operator.delete(found)
    world.close()
    world.open_control_plane("another.db")
    world.deploy(TEAM, *example.components)
    world.survive(60)
    world.close()
    [another] = operator.find(_name(stage))
    made = _deletions(stage, example.declaration["id"])
    world.open_control_plane()
    world.release(first)
    world.survive(120)
    assert [one.resource_id for one in operator.find(_name(stage))] == [another.resource_id]
    message = _ended(stage, mutation)[example.declaration["id"]]["message"]
    assert message.startswith("left in the cloud"), message
    assert _deletions(stage, example.declaration["id"]) == made
    assert_nothing_is_orphaned(world)
