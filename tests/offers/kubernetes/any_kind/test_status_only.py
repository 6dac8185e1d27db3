"""A controller that writes nothing but status, again and again: no drift, no write, few reads, few cycles."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fractal_cloud.offers.kubernetes import cloud as cloud_module
from fractal_cloud.offers.kubernetes.watching import SPACING
from fractal_sandbox import Sandbox
from tests.offers.kubernetes.any_kind.stages import CUSTOM, declared_definition, defined_world
from tests.offers.kubernetes.declaring import component
from tests.offers.kubernetes.test_watch import SLEEPY, wait_for, watchers
from tests.offers.kubernetes.worlds import KubernetesWorld

GAUGE = "shop.example/v1/Gauge"
PATH = "/apis/shop.example/v1/namespaces/default/gauges/pressure"
STORM = 40


@pytest.fixture
def sleepy(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[KubernetesWorld]:
    """A world with the kind, whose cycles are a minute apart: whatever happens sooner was woken."""
    definition, _ = CUSTOM[GAUGE]
    with (
        defined_world(session_sandbox, tmp_path, definition, cycle_seconds=SLEEPY) as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(cloud_module.WATCH, "1")
        yield made


def asked(world: KubernetesWorld, *operations: str) -> int:
    """How often the agent asked for gauges in these ways."""
    calls = world.cloud.calls.find(actor="agent")
    return sum(one.service.startswith("gauges.") and one.operation in operations for one in calls)


def report(world: KubernetesWorld, reading: int) -> None:
    """What the controller of a gauge does."""
    path = f"{PATH}/status?fieldManager=boiler"
    world.kube.call("PATCH", path, {"status": {"reading": reading}}, "application/merge-patch+json")


@pytest.mark.rule("S12", "S14", "S20", "S23", "O4")
def test_a_storm_of_status_is_no_drift_and_costs_a_read_for_each_of_a_few_cycles(sleepy: KubernetesWorld) -> None:
    definition, case = CUSTOM[GAUGE]
    gauge = component(GAUGE, "pressure", spec=dict(case.parameters["spec"]))
    thread = threading.Thread(target=sleepy.agent.run, daemon=True)
    thread.start()
    try:
        sleepy.deploy("ls-a", declared_definition(definition), gauge)
        wait_for(lambda: sleepy.status("ls-a", "pressure") == "Active", 60)
        wait_for(lambda: any("gauges" in one.name for one in watchers()))
        wait_for(lambda: asked(sleepy, "watch") > 0)
        before = sleepy.kube.call("GET", PATH)
        lists, reads = asked(sleepy, "list"), asked(sleepy, "get")
        writes, began = len(sleepy.writes()), time.monotonic()
        for reading in range(1, STORM + 1):
            report(sleepy, reading)
        wait_for(lambda: sleepy.output("ls-a", "pressure", "status") == {"reading": STORM}, 30)
        cycles = asked(sleepy, "list") - lists
        allowed = (time.monotonic() - began) / SPACING + 2
        assert 0 < cycles <= allowed < STORM, f"{cycles} cycles for {STORM} changes"
        assert asked(sleepy, "get") - reads <= cycles, "an object that changed is read once in a cycle"
        assert len(sleepy.writes()) == writes, sleepy.writes()[writes:]
        assert not sleepy.drift("ls-a", "pressure")
        assert sleepy.status("ls-a", "pressure") == "Active"
        after = sleepy.kube.call("GET", PATH)
        assert after["metadata"]["generation"] == before["metadata"]["generation"]
        assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        owners = {one["manager"]: one["fieldsV1"] for one in after["metadata"]["managedFields"]}
        assert list(owners["boiler"]) == ["f:status"], owners
    finally:
        sleepy.agent.stop()
        thread.join(30)
    sleepy.assert_safe()
