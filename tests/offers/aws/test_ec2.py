"""Instances: what is peculiar to them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fractal_cloud.model.errors import Conflict, Denied, Invalid, Transient, Unreadable
from fractal_cloud.model.sighting import Condition
from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.offers.aws.ec2_settings import ROOT_VOLUME
from fractal_cloud.offers.offer import Query
from fractal_cloud.offers.registry import installed
from fractal_sandbox import Sandbox
from tests.offers.aws.conftest import World
from tests.offers.aws.examples import EXAMPLES

EXAMPLE = EXAMPLES[AwsEc2Instance]
MACHINE = EXAMPLE.components[-1]
OFFER = installed()[AwsEc2Instance.type]


def _writes(sandbox: Sandbox) -> list[str]:
    return [call.operation for call in sandbox.aws.calls.find(actor="agent", writes_only=True)]


def test_another_type_stops_changes_and_starts_it_again(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.calls.clear()
    world.correct(MACHINE, instanceType="t3.large")
    assert _writes(sandbox) == ["StopInstances", "ModifyInstanceAttribute", "StartInstances"]


def test_type_and_user_data_share_one_stop(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.calls.clear()
    world.correct(MACHINE, instanceType="t3.large", userData="new")
    assert _writes(sandbox) == ["StopInstances", *["ModifyInstanceAttribute"] * 2, "StartInstances"]


def test_a_crash_between_stop_and_start_is_repaired_without_being_declared(world: World) -> None:
    world.bring(EXAMPLE)
    undeclared = {**MACHINE, "parameters": {k: v for k, v in MACHINE["parameters"].items() if k != "state"}}
    world.person("ec2").stop_instances(InstanceIds=[world.seen["machine"].resource_id])
    assert set(world.drift(undeclared)[1]) == {"state"}
    assert world.correct(undeclared) == 1


def test_a_machine_that_is_stopping_is_left_to_it(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    sandbox.aws.knobs.slow_modification(reads=3, kind="instance")
    seen, drift = world.drift(MACHINE, instanceType="t3.large")
    wanted = world.wanted(MACHINE, instanceType="t3.large")
    OFFER.update(world.cloud(), seen, wanted, drift)
    seen, drift = world.drift(MACHINE, instanceType="t3.large")
    assert (seen.condition, seen.detail) == (Condition.CHANGING, "stopping")
    with pytest.raises(Conflict):
        OFFER.update(world.cloud(), seen, wanted, drift)


def test_a_plan_says_that_the_machine_is_stopped() -> None:
    assert OFFER.warnings({"instanceType": 1, "state": 1}) == [
        "changing instanceType stops the machine and starts it again"
    ]
    assert OFFER.warnings({"securityGroups"}) == []


@pytest.mark.rule("S17")
def test_the_same_token_never_makes_a_second_machine(world: World, sandbox: Sandbox) -> None:
    EXAMPLE.prepare(world.person)
    for declaration in EXAMPLE.components[:-1]:
        world.create(declaration)
    sandbox.aws.knobs.fail(when="after", cut=True, operation="RunInstances")
    with pytest.raises(Transient):
        world.create(MACHINE)
    made = world.create(MACHINE)
    assert [one.resource_id for one in world.listed(OFFER, MACHINE)] == [made.resource_id]


@pytest.mark.rule("S13")
def test_a_terminated_machine_is_absent_and_one_shutting_down_is_dying(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    sandbox.aws.knobs.slow_deletion(reads=2, kind="instance")
    OFFER.delete(world.cloud(), seen)
    dying = OFFER.read(world.cloud(), seen.resource_id)
    assert dying is not None
    assert dying.condition is Condition.DYING
    for _ in range(3):
        OFFER.read(world.cloud(), seen.resource_id)
    assert OFFER.read(world.cloud(), seen.resource_id) is None
    assert world.listed(OFFER, MACHINE) == []


def test_a_new_machine_is_being_created(world: World, sandbox: Sandbox) -> None:
    sandbox.aws.knobs.slow_creation(reads=3, kind="instance")
    EXAMPLE.prepare(world.person)
    for declaration in EXAMPLE.components:
        world.create(declaration)
    [seen] = world.listed(OFFER, MACHINE)
    assert (seen.condition, seen.actual["state"]) == (Condition.CREATING, "running")


@pytest.mark.rule("O15")
def test_termination_protection_is_respected_and_named(world: World) -> None:
    world.bring(EXAMPLE)
    world.correct(MACHINE, disableApiTermination=True)
    with pytest.raises(Conflict, match="disableApiTermination"):
        OFFER.delete(world.cloud(), world.seen["machine"])


@pytest.mark.rule("T1")
def test_its_volumes_and_interfaces_bear_its_name_and_no_protocol(world: World, sandbox: Sandbox) -> None:
    world.bring(EXAMPLE)
    [call] = sandbox.aws.calls.find(operation="RunInstances")
    specifications = call.call.parameters["TagSpecifications"]
    tags = {one["ResourceType"]: {tag["Key"] for tag in one["Tags"]} for one in specifications}
    assert tags["instance"] == {"Name", "managed-by", "fractal-cloud-owner"}
    assert tags["volume"] == tags["network-interface"] == {"Name"}


def test_an_unknown_image_is_a_fault_of_the_declaration(world: World, sandbox: Sandbox) -> None:
    sandbox.aws.knobs.fail(operation="RunInstances", code="InvalidAMIID.NotFound", status=400)
    EXAMPLE.prepare(world.person)
    for declaration in EXAMPLE.components[:-1]:
        world.create(declaration)
    with pytest.raises(Invalid, match=r"InvalidAMIID\.NotFound"):
        world.create(MACHINE)


def test_a_thousand_machines_are_asked_for_in_one_call(world: World, sandbox: Sandbox) -> None:
    list(OFFER.sightings(world.cloud(), Query()))
    [call] = sandbox.aws.calls.find(operation="DescribeInstances")
    assert call.call.parameters["MaxResults"] == 1000


@pytest.mark.rule("S23")
def test_root_volumes_are_read_two_hundred_a_call(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    sandbox.aws.calls.clear()
    asked = [(replace(seen, resource_id=f"i-{number}"), list(ROOT_VOLUME)) for number in range(201)]
    found = dict(OFFER.sweep_in_bulk(world.cloud(), asked))
    assert sandbox.aws.calls.count(operation="DescribeVolumes") == 2
    assert len(found) == 201
    assert found["i-0"] == found["i-200"] == {name: MACHINE["parameters"][name] for name in ROOT_VOLUME}


@pytest.mark.rule("S0", "S24")
def test_a_root_volume_that_is_not_shown_is_unreadable_for_its_instance_alone(world: World, sandbox: Sandbox) -> None:
    seen = world.bring(EXAMPLE)
    gone = replace(seen, resource_id="i-gone", outputs={**seen.outputs, "rootVolumeId": "vol-0123456789abcdef0"})
    without = {name: value for name, value in seen.outputs.items() if name != "rootVolumeId"}
    bare = replace(seen, resource_id="i-bare", outputs=without)
    asked = [(one, ["rootVolumeSize"]) for one in (gone, seen, bare)]
    found = dict(OFFER.sweep_in_bulk(world.cloud(), asked))
    assert found[seen.resource_id] == {"rootVolumeSize": 20}
    assert isinstance(found["i-gone"], Unreadable)
    assert isinstance(found["i-bare"], Unreadable)
    sandbox.aws.knobs.fail(operation="DescribeVolumes", code="UnauthorizedOperation", status=403)
    found = dict(OFFER.sweep_in_bulk(world.cloud(), asked[:2]))
    assert all(isinstance(one, Denied) for one in found.values())
    assert len(found) == 2
