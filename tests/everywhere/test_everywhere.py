"""One LiveSystem on all clouds at once, by one agent and by the example that the documentation shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.cli.files import load
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox, agent_env
from fractal_sandbox.registry import mounts
from tests import aws_rights
from tests.world import World

EXAMPLE = Path(__file__).parents[2] / "examples" / "everywhere.py"
[DECLARED] = load(str(EXAMPLE))
COMPONENTS: list[dict[str, Any]] = DECLARED.document["components"]
SERVED = {installed()[component["type"]].provider for component in COMPONENTS}


class EverywhereWorld(World):
    """A world whose agent serves every cloud of the example."""

    providers = tuple(sorted(SERVED))


@pytest.fixture
def world(session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EverywhereWorld]:
    session_sandbox.reset()
    aws_rights.limit(session_sandbox, with_links=True)
    for name, value in agent_env(session_sandbox.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    made = EverywhereWorld(session_sandbox, tmp_path)
    yield made
    made.close()


def test_the_example_is_on_every_cloud_that_the_sandbox_has() -> None:
    missing = {mount.provider for mount in mounts()} - SERVED
    assert not missing, f"examples/everywhere.py declares nothing on {sorted(missing)}"


@pytest.mark.timeout(240)
@pytest.mark.rule("C3", "C8", "G13", "G4", "G1", "O10")
def test_one_deploy_brings_all_clouds_and_the_glass_breaks_on_each(world: EverywhereWorld) -> None:
    names = [component["id"] for component in COMPONENTS]
    live_system = DECLARED.id
    mutation = world.deploy(live_system, *COMPONENTS)
    world.settle(at_most=60)
    assert {name: world.status(live_system, name) for name in names} == dict.fromkeys(names, "Active")
    shown = world.api.get(f"/livesystems/{live_system}/mutations/{mutation}").json()
    assert shown["status"] == "Completed"
    for broken in names:
        world.glass(live_system, broken, "break", reason="it burns")
    world.settle(at_most=60)
    assert {name: world.status(live_system, name) for name in names} == dict.fromkeys(names, "ManualOverride")
    for name in names:
        world.glass(live_system, name, "readopt")
    world.settle(at_most=60)
    assert {name: world.status(live_system, name) for name in names} == dict.fromkeys(names, "Active")
    world.delete(live_system)
    world.settle(at_most=60)
    assert world.api.get(f"/livesystems/{live_system}").status_code == 404
    for name, cloud in world.sandbox.clouds.items():
        found = cloud.monitor.as_json()
        assert not found["violations"], f"{name}: {found['violations']}"
