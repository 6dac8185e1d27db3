"""Somebody edits a label after the agent's last read: Google refuses the write, or a lost race is reported (S16)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.model.component import Component
from fractal_cloud.offers.gcp.bucket import GcpGcsBucket
from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun
from fractal_cloud.offers.gcp.gke import GcpGke
from fractal_cloud.offers.gcp.postgres import GcpPostgresDbms
from fractal_cloud.offers.gcp.vm import GcpVm
from fractal_sandbox import Sandbox
from tests.offers.gcp.suite import SUITE
from tests.offers.suites import Stage

# The operation that changes a parameter, and the one that deletes.
CHANGES: dict[type[Component], tuple[str, str]] = {
    GcpGcsBucket: ("versioning", "patchBucket"),
    GcpCloudRun: ("image", "updateService"),
    GcpGke: ("releaseChannel", "updateCluster"),
    GcpPostgresDbms: ("tier", "patchInstance"),
}
DELETIONS: dict[type[Component], str] = {
    GcpGcsBucket: "deleteBucket",
    GcpCloudRun: "deleteService",
    GcpGke: "deleteCluster",
    GcpPostgresDbms: "deleteInstance",
    GcpVm: "deleteInstance",
}
ATOMIC = (GcpGcsBucket, GcpCloudRun)


@pytest.fixture
def stage(request: pytest.FixtureRequest, session_sandbox: Sandbox, tmp_path: Path) -> Iterator[Stage]:
    with SUITE.stage(session_sandbox, tmp_path, request.param) as made:
        made.world.deploy("ls-a", *made.example.components)
        made.world.settle()
        yield made


def untag_before(stage: Stage, operation: str) -> None:
    """Take managed-by off in the very moment in which the agent's call arrives."""
    name = str(stage.example.declaration["id"])
    operator = stage.example.operator

    def untag(*_: object) -> None:
        operator.untag(operator.find(name)[0], "managed-by")

    stage.world.cloud.knobs.before_call(untag, times=1, operation=operation, actor="agent")


@pytest.mark.rule("S16")
@pytest.mark.parametrize("stage", CHANGES, indirect=True, ids=lambda kind: kind.__name__)
def test_a_person_wins_over_every_change_that_carries_a_precondition(stage: Stage) -> None:
    kind = next(kind for kind in CHANGES if kind.type == stage.example.declaration["type"])
    parameter, operation = CHANGES[kind]
    world, name = stage.world, str(stage.example.declaration["id"])
    [found] = stage.example.operator.find(name)
    stage.example.operator.edit(found.resource_id, parameter, stage.example.changes[parameter])
    untag_before(stage, operation)
    world.cycle(2)
    assert world.status("ls-a", name) == "ManualOverride"
    assert parameter in world.component("ls-a", name)["outputFields"]["drift"]
    assert world.cloud.monitor.lost_races == []
    world.assert_safe()


@pytest.mark.rule("S16", "O10")
@pytest.mark.parametrize("stage", DELETIONS, indirect=True, ids=lambda kind: kind.__name__)
def test_a_person_wins_over_a_deletion_where_google_has_a_precondition_for_it(stage: Stage) -> None:
    kind = next(kind for kind in DELETIONS if kind.type == stage.example.declaration["type"])
    world, name = stage.world, str(stage.example.declaration["id"])
    untag_before(stage, DELETIONS[kind])
    world.deploy("ls-a", *stage.example.parents)
    world.survive()
    is_there = bool(stage.example.operator.find(name))
    races = len(world.cloud.monitor.lost_races)
    assert (is_there, races) == ((True, 0) if kind in ATOMIC else (False, 1))
    assert not world.cloud.monitor.violations


@pytest.mark.rule("T10", "T1")
@pytest.mark.parametrize("stage", DELETIONS, indirect=True, ids=lambda kind: kind.__name__)
def test_a_label_that_comes_between_reading_and_writing_them_all_survives(stage: Stage) -> None:
    world, name, operator = stage.world, str(stage.example.declaration["id"]), stage.example.operator
    operator.untag(operator.find(name)[0], "managed-by")
    world.cycle()
    writes = ("setLabels", "setResourceLabels", "updateService", "patchBucket", "patchInstance")

    def tag(*_: object) -> None:
        operator.tag(operator.find(name)[0], {"note": "mine"})

    for operation in writes:
        world.cloud.knobs.before_call(tag, times=1, operation=operation, actor="agent")
    world.force_push("ls-a", name)
    world.survive()
    assert operator.find(name)[0].tags["note"] == "mine"
    world.assert_safe()
