"""The agent dies, or loses an answer, at every effect of a life of types and parts: nothing is made twice (S17)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.faults.effects import Fault
from tests.faults.lives import Life, live, strike_all
from tests.faults.worlds import FaultyWorld
from tests.offers.aws_resources.declarations import LIVE_SYSTEM, REGION, one, queue
from tests.offers.aws_resources.sampling import SAMPLE, described, example_of
from tests.offers.aws_resources.worlds import GenericWorld, generic_world

FAULTS = (Fault.KILLED_AFTER, Fault.ANSWER_LOST)
FEWEST_EFFECTS = 12
Step = Callable[[FaultyWorld], None]


@pytest.fixture
def faulty(session_sandbox: Sandbox, tmp_path: Path) -> Iterator[GenericWorld]:
    with generic_world(session_sandbox, tmp_path) as world:
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
    _strike(faulty, Fault.ANSWER_LOST, each=8)


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "S25", "T2", "O10")
@pytest.mark.parametrize("fault", FAULTS)
def test_nothing_is_made_twice_or_lost_at_every_effect(faulty: FaultyWorld, fault: Fault) -> None:
    _strike(faulty, fault, each=1)


# --- every type of the sample

FEWEST = 10
"""So many effects has the shortest life."""


def _life(world: GenericWorld, name: str, number: int) -> Life:
    adapter = described(name).type.adapter
    world.tags_follow = adapter is not None and not adapter.at_creation
    return Life(installed()[name], example_of(name, world.person), world, number)


TURNS = ("AWS::EC2::InternetGateway", "AWS::ApiGatewayV2::Stage", "AWS::IAM::ManagedPolicy")
"""Whose lives are struck in turn: identifiers that AWS chooses, joined ones, and tags by the type's own service."""


@pytest.mark.timeout(300)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10", "S16")
@pytest.mark.parametrize("turn", range(len(TURNS)), ids=TURNS)
def test_the_life_of_a_type_goes_on_at_the_effects_whose_turn_it_is(faulty: GenericWorld, turn: int) -> None:
    known = live(_life(faulty, TURNS[turn], 0), faulty)
    assert sum(map(len, known.values())) >= FEWEST, known
    for number, at in enumerate(range(turn, max(map(len, known.values())), len(TURNS))):
        live(_life(faulty, TURNS[turn], number + 1), faulty, at, FAULTS[number % len(FAULTS)], known)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.rule("S17", "C7", "T1", "T2", "O10", "G10", "S16")
@pytest.mark.parametrize("faults", [FAULTS, *([one] for one in Fault)], ids=["in turn", *Fault])
@pytest.mark.parametrize("name", SAMPLE)
def test_the_life_of_a_type_goes_on_whatever_effect_is_struck(
    faulty: GenericWorld, name: str, faults: Sequence[Fault], record_property: Callable[[str, object], None]
) -> None:
    effects = strike_all(lambda number: _life(faulty, name, number), faulty, faults)
    print(f"{name}: {sum(map(len, effects.values()))} effects struck")
    record_property("crash points", sum(map(len, effects.values())))
    assert sum(map(len, effects.values())) >= FEWEST, effects
