"""AWS's reference architecture for ECS, declared whole: it comes, rests, and goes without a trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.cli.files import load
from fractal_sandbox import Sandbox
from tests import aws_rights
from tests.world import World
from tests.world import world as make_world

EXAMPLE = Path(__file__).parents[2] / "examples" / "ecs-reference.py"
RESOURCES_OF_THE_SAMPLE = 56


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with make_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=0.02) as made:
        yield made
        made.assert_safe()


@pytest.mark.timeout(120)
@pytest.mark.rule("A7", "S25", "S20", "C8", "O10")
def test_the_reference_architecture_comes_rests_and_goes(world: World) -> None:
    """Under the rights that are printed for its types and its roles, and no others."""
    [declared] = load(str(EXAMPLE))
    components: list[dict[str, Any]] = declared.document["components"]
    assert len(components) == RESOURCES_OF_THE_SAMPLE
    aws_rights.limit_to(world.sandbox, components)
    mutation = world.deploy(declared.id, *components)
    world.settle(at_most=60)
    shown = {one["id"]: world.component(declared.id, one["id"]) for one in components}
    assert {name: (one["status"], one["message"]) for name, one in shown.items() if one["status"] != "Active"} == {}
    assert world.api.get(f"/livesystems/{declared.id}/mutations/{mutation}").json()["status"] == "Completed"
    assert not any(one["outputFields"].get("drift") for one in shown.values())
    quiet = world.cycle()
    assert not any(result.writes or result.changes for result in quiet)

    world.delete(declared.id)
    world.settle(at_most=60)
    assert world.api.get(f"/livesystems/{declared.id}").status_code == 404
    assert world.sandbox.aws.owned_resources() == []
