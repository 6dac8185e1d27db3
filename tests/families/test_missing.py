"""What a write refers to and nobody declares is waited for: no reason to correct the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.errors import DependencyMissing, Invalid, NotFound
from tests.families.world import World, queue, world

MISSING = "The security group 'sg-1' does not exist"


@pytest.fixture
def toy_world(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made


@pytest.mark.rule("S21")
@pytest.mark.parametrize("error", [NotFound(MISSING), DependencyMissing(MISSING)], ids=["not found", "said so"])
def test_a_creation_waits_for_what_it_refers_to(toy_world: World, error: NotFound | DependencyMissing) -> None:
    toy_world.cloud.failing["create"] = error
    mutation = toy_world.deploy(queue())
    toy_world.cycle(4)
    assert toy_world.status("shop", "jobs") == "Instantiating"
    assert toy_world.message("jobs").startswith("waits for something that it refers to and that is not there: The sec")
    assert "correct the declaration" not in toy_world.message("jobs")
    assert toy_world.mutation("shop", mutation)["status"] == "InProgress"
    toy_world.cloud.failing.clear()
    toy_world.settle()
    assert toy_world.status("shop", "jobs") == "Active"
    assert toy_world.mutation("shop", mutation)["status"] == "Completed"


@pytest.mark.rule("S21")
def test_a_change_waits_for_what_it_refers_to(toy_world: World) -> None:
    toy_world.deploy(queue())
    toy_world.settle()
    toy_world.cloud.failing["update"] = NotFound(MISSING)
    toy_world.deploy(queue(Delay=9))
    toy_world.cycle(4)
    assert toy_world.status("shop", "jobs") == "Mutating"
    assert toy_world.message("jobs").startswith("waits for something that it refers to")
    toy_world.cloud.failing.clear()
    toy_world.settle()
    assert toy_world.cloud.named("jobs").actual["Delay"] == 9


@pytest.mark.rule("S21")
def test_what_is_invalid_still_has_to_be_corrected(toy_world: World) -> None:
    toy_world.cloud.failing["create"] = Invalid("no")
    toy_world.deploy(queue())
    toy_world.cycle(2)
    assert toy_world.status("shop", "jobs") == "Failed"
