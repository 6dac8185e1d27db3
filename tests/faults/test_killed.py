"""SIGKILL, from outside, to a real agent process, at exactly one of its effects; another process takes over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.lives import Life, live
from tests.faults.processes import killed_world
from tests.offers.aws.cases import example_of, prepare
from tests.offers.aws.examples import EXAMPLES
from tests.world import vpc

KINDS = {kind.__name__: kind for kind in EXAMPLES}


@pytest.mark.rule("S17", "C7")
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("AwsVpc", Fault.KILLED_AFTER),
        ("AwsS3", Fault.KILLED_AFTER),
        # Whoever dies right after one effect dies right before the next.
        pytest.param("AwsVpc", Fault.KILLED_BEFORE, marks=pytest.mark.soak),
    ],
)
def test_a_life_is_lived_by_processes_that_are_killed(
    kind: str,
    fault: Fault,
    session_sandbox: Sandbox,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    with killed_world(session_sandbox, tmp_path) as world:
        example = example_of(KINDS[kind], world.person.client)
        offer = installed()[KINDS[kind].type]
        prepare(KINDS[kind], world.person.client)
        for number, at in enumerate((1, 2)):
            live(Life(offer, example, world, number), world, at, fault)
        record_property("processes killed", world.kills)
        assert world.kills == 10, f"{world.kills} agents were killed, not one in every phase"


@pytest.mark.rule("S17")
def test_a_dead_agents_lease_runs_out_and_another_one_goes_on(session_sandbox: Sandbox, tmp_path: Path) -> None:
    with killed_world(session_sandbox, tmp_path) as world:
        world.releases_leases = False
        world.gun.arm(1, Fault.KILLED_AFTER)
        world.deploy("ls-a", vpc())
        world.survive()
        assert world.kills == 1
        assert world.status("ls-a", "net") == "Active"
        assert len(world.person.ec2.describe_vpcs(Filters=[{"Name": "tag:Name", "Values": ["net"]}])["Vpcs"]) == 1
        world.assert_safe()
