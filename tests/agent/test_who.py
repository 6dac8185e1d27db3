"""Who changed it, on AWS: from CloudTrail, where the agent may read it, and asked as rarely as it must be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from fractal_cloud.offers.aws.policy import policy
from fractal_cloud.offers.policy import PolicyOptions
from fractal_sandbox import Sandbox
from fractal_sandbox.aws import AGENT_ACCESS_KEY, SECRET_KEY
from tests import library_caches
from tests.manual_clock import ManualClock
from tests.world import REGION, World, security_group, vpc
from tests.world import world as made_world

pytestmark = pytest.mark.rule("C4")
MINUTE = 60.0
LOOKUP = "LookupEvents"


@pytest.fixture
def world(
    session_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> Iterator[World]:
    """A world whose agent may read CloudTrail; all of it goes by one clock."""
    with made_world(session_sandbox, tmp_path, monkeypatch, cycle_seconds=MINUTE) as made:
        clock.drive(made)
        documents = policy(PolicyOptions(with_history=True))
        session_sandbox.aws.limit_agent(documents if isinstance(documents, list) else [documents])
        session_sandbox.aws.trail.now = clock.timestamp
        yield made


def _user(world: World, name: str) -> Any:
    """Somebody with a user and a key of their own; returns their EC2."""
    iam = world.person.client("iam")
    iam.create_user(UserName=name)
    allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=json.dumps(allow))
    key = iam.create_access_key(UserName=name)["AccessKey"]
    return library_caches.client("ec2", REGION, world.person.url, key["AccessKeyId"], key["SecretAccessKey"])


def _pass(world: World, clock: ManualClock, minutes: float = 1) -> None:
    clock.advance(minutes * MINUTE)
    world.agent.run_once()


def _deployed(world: World, clock: ManualClock, **parameters: Any) -> str:
    world.deploy("ls-a", vpc(**parameters))
    for _ in range(3):
        _pass(world, clock)
    assert world.status("ls-a", "net") == "Active"
    return str(world.output("ls-a", "net", "vpcId"))


def _changed(world: World, component: str = "net") -> dict[str, dict[str, Any]]:
    return {one["parameter"]: one for one in world.component("ls-a", component)["changedBy"]}


def _asked(world: World) -> int:
    return int(world.cloud.calls.count("cloudtrail", LOOKUP, actor="agent"))


def test_the_person_the_field_and_the_time_are_named(world: World, clock: ManualClock) -> None:
    vpc_id = _deployed(world, clock, enableDnsHostnames=False, enableDnsSupport=True)
    anna, bea = _user(world, "anna"), _user(world, "bea")
    clock.advance(20)
    anna.delete_tags(Resources=[vpc_id], Tags=[{"Key": "managed-by"}])
    clock.advance(5)
    at = clock.now.replace(microsecond=0)
    anna.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    bea.modify_vpc_attribute(VpcId=vpc_id, EnableDnsSupport={"Value": False})
    _pass(world, clock)
    found = _changed(world)
    names, support = found["enableDnsHostnames"], found["enableDnsSupport"]
    assert (names["state"], names["by"], names["how"]) == ("known", "anna", "ModifyVpcAttribute")
    assert names["identity"] == "arn:aws:iam::123456789012:user/anna"
    assert datetime.fromisoformat(names["at"]) == at
    assert (support["state"], support["by"]) == ("known", "bea"), "two people, each for their own"
    taken = found["managed-by"]
    assert (taken["state"], taken["by"], taken["how"]) == ("known", "anna", "DeleteTags")
    assert world.component("ls-a", "net")["override"]["by"] is None, "memory does not change by it"
    asked = _asked(world)
    for _ in range(5):
        _pass(world, clock)
    assert _asked(world) == asked, "what is known is asked no more"
    world.assert_safe()


def test_who_changed_what_the_agent_corrected_at_once_is_named_too(world: World, clock: ManualClock) -> None:
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    clock.advance(20)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    _pass(world, clock)
    assert world.drift("ls-a", "net") is None
    one = _changed(world)["enableDnsHostnames"]
    assert (one["state"], one["by"], one["stands"]) == ("known", "person", False)


def test_nothing_is_asked_while_nothing_is_changed(world: World, clock: ManualClock) -> None:
    _deployed(world, clock, enableDnsHostnames=True)
    world.deploy("ls-a", vpc(enableDnsHostnames=False))
    for _ in range(4):
        _pass(world, clock)
    assert _asked(world) == 0
    assert world.component("ls-a", "net")["changedBy"] == []


def test_a_late_record_is_waited_for_and_nobody_else_is_named(world: World, clock: ManualClock) -> None:
    world.cloud.knobs.history_delay = 9 * MINUTE
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    world.person.break_glass(vpc_id)
    clock.advance(20)
    _user(world, "bea").modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    _pass(world, clock)
    one = _changed(world)["enableDnsHostnames"]
    assert (one["state"], one["by"]) == ("waiting", "")
    assert one["text"].endswith("; not in CloudTrail yet")
    before = _asked(world)
    for _ in range(20):
        _pass(world, clock)
    one = _changed(world)["enableDnsHostnames"]
    assert (one["state"], one["by"]) == ("known", "bea")
    assert _asked(world) - before <= 6, "asked ever more rarely"


def test_another_agent_goes_on_waiting(world: World, clock: ManualClock) -> None:
    world.cloud.knobs.history_delay = 5 * MINUTE
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    _pass(world, clock)
    assert _changed(world)["enableDnsHostnames"]["state"] == "waiting"
    world.restart_agent()
    for _ in range(10):
        _pass(world, clock)
    assert _changed(world)["enableDnsHostnames"]["by"] == "person"


def test_the_agent_is_never_named(world: World, clock: ManualClock) -> None:
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    world.person.break_glass(vpc_id)
    _pass(world, clock)
    own = library_caches.client("ec2", REGION, world.person.url, AGENT_ACCESS_KEY, SECRET_KEY)
    world.cloud.lift_limits()
    own.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    for _ in range(40):
        _pass(world, clock)
    one = _changed(world)["enableDnsHostnames"]
    assert (one["state"], one["by"], one["identity"]) == ("unknown", "", "")
    assert one["text"].startswith("seen by the agent at ")


def test_what_the_agent_may_not_read_is_said_once_and_is_no_error(world: World, clock: ManualClock) -> None:
    vpc_id = _deployed(world, clock, enableDnsHostnames=False, enableDnsSupport=True)
    documents = policy()
    world.cloud.limit_agent(documents if isinstance(documents, list) else [documents])
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    _pass(world, clock)
    one = _changed(world)["enableDnsHostnames"]
    assert (one["state"], one["by"]) == ("denied", "")
    assert "the agent may not read CloudTrail" in one["text"]
    shown = world.component("ls-a", "net")
    assert (shown["status"], "CloudTrail" in shown["message"]) == ("ManualOverride", False)
    assert not [event for event in world.events("ls-a") if "CloudTrail" in event["message"]]
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsSupport={"Value": False})
    for _ in range(5):
        _pass(world, clock)
    assert _changed(world)["enableDnsSupport"]["state"] == "denied"
    assert _asked(world) == 1, "not tried again for a while"


def test_a_record_that_asks_for_fewer_calls_is_left_alone_for_a_while(world: World, clock: ManualClock) -> None:
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    world.cloud.knobs.throttle(service="cloudtrail", next_calls=3)
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    clock.advance(1)
    world.agent.run_once()
    assert _changed(world)["enableDnsHostnames"]["state"] == "waiting"
    asked = _asked(world)
    clock.advance(10)
    world.agent.run_once()
    assert _asked(world) == asked
    _pass(world, clock, 3)
    assert _changed(world)["enableDnsHostnames"]["by"] == "person"


def test_rules_of_a_group_are_traced_to_the_call_of_their_direction(world: World, clock: ManualClock) -> None:
    rule = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8"}
    world.deploy("ls-a", vpc(), security_group(ingress=[rule], egress=[]))
    for _ in range(4):
        _pass(world, clock)
    group = world.output("ls-a", "group", "groupId")
    world.person.break_glass(group)
    clock.advance(20)
    opened = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    _user(world, "anna").authorize_security_group_ingress(GroupId=group, IpPermissions=[opened])
    _pass(world, clock)
    one = _changed(world, "group")["ingress"]
    assert (one["state"], one["by"], one["how"]) == ("known", "anna", "AuthorizeSecurityGroupIngress")


@pytest.mark.rule("S27")
def test_who_sets_a_value_back_each_time_is_named_also_where_the_record_is_late(
    world: World, clock: ManualClock
) -> None:
    world.cloud.knobs.history_delay = 4 * MINUTE
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    anna = _user(world, "anna")
    for _ in range(4):
        anna.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
        _pass(world, clock)
        _pass(world, clock)
    assert "enableDnsHostnames was set back 3 times by " in world.component("ls-a", "net")["message"]
    for _ in range(10):
        _pass(world, clock)
    assert "was set back 3 times by anna, " in world.component("ls-a", "net")["message"]


@pytest.mark.rule("O5")
def test_an_importers_drift_is_not_investigated(world: World, clock: ManualClock) -> None:
    vpc_id = _deployed(world, clock, enableDnsHostnames=False)
    world.deploy("ls-b", {**vpc(enableDnsHostnames=False), "importOnly": True})
    _pass(world, clock)
    world.person.break_glass(vpc_id)
    world.person.ec2.modify_vpc_attribute(VpcId=vpc_id, EnableDnsHostnames={"Value": True})
    _pass(world, clock)
    assert world.component("ls-b", "net")["outputFields"]["drift"]
    assert world.component("ls-b", "net")["changedBy"] == []
    assert _changed(world)["enableDnsHostnames"]["by"] == "person"
