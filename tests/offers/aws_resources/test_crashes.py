"""The agent dies, or loses an answer, at every effect of a queue's and a route's life: nothing is made twice (S17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.worlds import FaultyWorld, faulty_world
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one, queue

FAULTS = (Fault.KILLED_AFTER, Fault.ANSWER_LOST)
FEWEST_EFFECTS = 12
Step = Callable[[FaultyWorld], None]


class GenericWorld(FaultyWorld):
    """A world whose agent may do anything: its rights are tried where they are printed."""

    def prepare_cloud(self) -> None:
        self.sandbox.aws.lift_limits()


@pytest.fixture
def faulty(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[FaultyWorld]:
    with faulty_world(session_sandbox, tmp_path, GenericWorld) as world:
        world.prepare_cloud()
        yield world


COMPONENTS = (
    queue(),
    one("AWS::EC2::RouteTable", "ways", region=REGION, VpcId="vpc-0123456789abcdef0"),
    one(
        "AWS::EC2::Route",
        "out",
        RouteTableId="${ways.RouteTableId}",
        DestinationCidrBlock="0.0.0.0/0",
        GatewayId="igw-0123456789abcdef0",
    ),
)


def _live(world: FaultyWorld) -> None:
    """Deploy, change, break the glass, hand back, delete; after each, everything is there exactly once."""
    tagging = world.person.client("resourcegroupstaggingapi")
    world.cloud.knobs.checks_references = False
    world.deploy(LIVE_SYSTEM, *COMPONENTS)
    world.survive()
    _is_there_once(world)
    world.deploy(LIVE_SYSTEM, queue(DelaySeconds=9), *COMPONENTS[1:])
    world.survive()
    arn = world.output(LIVE_SYSTEM, "jobs", "Arn")
    tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])
    world.survive()
    tagging.tag_resources(ResourceARNList=[arn], Tags={"managed-by": "fractal-cloud", "fractal-cloud": "reconcile"})
    world.survive()
    _is_there_once(world)
    assert world.status(LIVE_SYSTEM, "jobs") == "Active"
    world.delete(LIVE_SYSTEM)
    world.survive()
    assert tagging.get_resources()["ResourceTagMappingList"] == []
    world.assert_safe()


def _is_there_once(world: FaultyWorld) -> None:
    control = world.person.client("cloudcontrol")
    for component, model in (("jobs", None), ("ways", None), ("out", "ways")):
        kind = world.component(LIVE_SYSTEM, component)["type"]
        within = {"ResourceModel": f'{{"RouteTableId": "{world.output(LIVE_SYSTEM, "ways", "RouteTableId")}"}}'}
        found = control.list_resources(TypeName=kind, **(within if model else {}))["ResourceDescriptions"]
        assert len(found) == 1, (component, found)
        assert world.status(LIVE_SYSTEM, component) == "Active", world.component(LIVE_SYSTEM, component)


def _strike(world: FaultyWorld, fault: Fault, each: int) -> None:
    _live(world)
    effects = len(world.effects.occurred)
    assert effects >= FEWEST_EFFECTS
    for at in range(0, effects, each):
        world.start_over()
        world.effects.arm(at, fault)
        _live(world)
        assert world.effects.struck


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "S25", "T2", "O10")
def test_nothing_is_made_twice_or_lost_whatever_effect_is_struck(faulty: FaultyWorld) -> None:
    _strike(faulty, Fault.ANSWER_LOST, each=4)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "S25", "T2", "O10")
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_made_twice_or_lost_at_every_effect(faulty: FaultyWorld, fault: Fault) -> None:
    _strike(faulty, fault, each=1)
