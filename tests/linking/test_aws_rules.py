"""Links between what runs on AWS: one marked rule in the target's security group, as EC2 itself shows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.offers.aws.examples.ec2 import IMAGE
from tests.world import World, security_group, subnet, vpc

LS = "ls-shop"


def machine(component_id: str, group: str, *links: dict[str, Any]) -> dict[str, Any]:
    parameters = {"imageId": IMAGE, "instanceType": "t3.micro", "subnet": "subnet", "securityGroups": [group]}
    kind = "NetworkAndCompute.IaaS.AwsEc2Instance"
    return {"id": component_id, "type": kind, "parameters": parameters, "links": list(links)}


def link(target: str, **settings: Any) -> dict[str, Any]:
    return {"target": target, "settings": settings}


def deploy(world: World, *links: dict[str, Any]) -> str:
    front, back = machine("front", "front-group", *links), machine("back", "back-group")
    groups = (security_group("front-group"), security_group("back-group", ingress=[]))
    mutation = world.deploy(LS, vpc(), subnet(), *groups, front, back)
    world.settle()
    return mutation


def rules(world: World) -> list[dict[str, Any]]:
    group_id = world.output(LS, "back-group", "groupId")
    found = world.person.ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group_id]}])
    return [rule for rule in found["SecurityGroupRules"] if not rule["IsEgress"]]


@pytest.mark.rule("L3", "L17")
def test_a_link_opens_one_port_for_one_source(world: World) -> None:
    mutation = deploy(world, link("back", fromPort=8080))
    (rule,) = rules(world)
    address = world.output(LS, "front", "privateIp")
    assert (rule["CidrIpv4"], rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (
        f"{address}/32",
        8080,
        8080,
        "tcp",
    )
    assert rule["Description"] == "fractal-cloud-link:ls-shop/back=ls-shop/front"
    assert world.drift(LS, "back-group") is None
    fields = world.component(LS, "front")["outputFields"]
    assert fields["workloadLink.back.host"] == world.output(LS, "back", "privateIp")
    assert fields["workloadLink.back.port"] == 8080
    assert world.mutation(LS, mutation)["status"] == "Completed"
    assert world.settle() == 1
    world.assert_safe()


@pytest.mark.rule("L10")
def test_a_changed_link_changes_its_rule_and_a_removed_link_removes_it(world: World) -> None:
    deploy(world, link("back", fromPort=8080))
    deploy(world, link("back", fromPort=9000, toPort=9010, protocol="udp"))
    (rule,) = rules(world)
    assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (9000, 9010, "udp")
    deploy(world)
    assert rules(world) == []
    assert not [name for name in world.component(LS, "front")["outputFields"] if "." in name]
    assert not [name for name in world.component(LS, "back")["outputFields"] if "." in name]
    world.assert_safe()


@pytest.mark.rule("L14")
def test_a_rule_removed_by_hand_comes_back(world: World) -> None:
    deploy(world, link("back", fromPort=8080))
    (rule,) = rules(world)
    group_id = world.output(LS, "back-group", "groupId")
    world.person.ec2.revoke_security_group_ingress(GroupId=group_id, SecurityGroupRuleIds=[rule["SecurityGroupRuleId"]])
    assert rules(world) == []
    world.settle()
    assert len(rules(world)) == 1


@pytest.mark.rule("L13")
def test_a_target_in_override_keeps_its_rule_and_gets_no_new_one(world: World) -> None:
    deploy(world, link("back", fromPort=8080))
    world.person.break_glass(world.output(LS, "back", "instanceId"))
    world.settle()
    deploy(world)
    assert len(rules(world)) == 1
    assert "to be taken back" in world.component(LS, "back")["message"]
    world.person.hand_back(world.output(LS, "back", "instanceId"))
    world.settle()
    assert rules(world) == []
    world.assert_safe()


@pytest.mark.rule("S16", "L17")
def test_a_group_that_is_in_override_gets_no_rule(world: World) -> None:
    deploy(world)
    world.person.break_glass(world.output(LS, "back-group", "groupId"))
    world.settle()
    deploy(world, link("back", fromPort=8080))
    assert rules(world) == []
    assert "hand that one back" in world.component(LS, "back")["message"]
    world.person.hand_back(world.output(LS, "back-group", "groupId"))
    world.settle()
    assert len(rules(world)) == 1
    world.assert_safe()
