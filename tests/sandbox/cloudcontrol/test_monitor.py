"""The monitor judges every write by Cloud Control and the tagging API, and what it cannot classify is a violation."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox
from tests.sandbox.cloudcontrol.making import GATEWAY, STREAM, create, delete, pairs, patch, read
from tests.sandbox.conftest import Tools, agent_tools
from tests.sandbox.making import tags_for

OURS = tags_for()


def rules(sandbox: Sandbox) -> list[str]:
    return [finding.rule for finding in sandbox.aws.monitor.violations]


def stream(tools: Tools, tags: dict[str, str], name: str = "jobs") -> str:
    return create(tools, STREAM, {"Name": name, "ShardCount": 1, "Tags": pairs(tags)})


def seen(agent: Tools, type_name: str, identifier: str) -> dict[str, Any]:
    return read(agent, type_name, identifier)


@pytest.mark.rule("T2")
def test_a_creation_with_its_tags_in_the_call_is_no_violation(sandbox: Sandbox, agent: Tools) -> None:
    stream(agent, OURS)
    assert rules(sandbox) == []


@pytest.mark.rule("T2")
def test_a_creation_without_tags_is_a_violation(sandbox: Sandbox, agent: Tools) -> None:
    create(agent, STREAM, {"Name": "jobs", "ShardCount": 1})
    assert rules(sandbox) == ["T2"]


@pytest.mark.rule("S7", "S6", "T7")
@pytest.mark.parametrize(
    ("tags", "rule"),
    [
        ({}, "S7"),
        ({"fractal-cloud-owner": "ls-b", "managed-by": "fractal-cloud"}, "S6"),
        ({"fractal-cloud-owner": "ls-a", "managed-by": "terraform"}, "T7"),
    ],
)
def test_what_is_not_ours_is_neither_changed_nor_deleted(
    sandbox: Sandbox, person: Tools, agent: Tools, tags: dict[str, str], rule: str
) -> None:
    identifier = stream(person, tags)
    seen(agent, STREAM, identifier)
    patch(agent, STREAM, identifier, {"op": "add", "path": "/RetentionPeriodHours", "value": 48})
    delete(agent, STREAM, identifier)
    assert rules(sandbox) == [rule, rule]


def test_what_is_ours_may_be_changed_and_deleted(sandbox: Sandbox, agent: Tools) -> None:
    identifier = stream(agent, OURS)
    patch(agent, STREAM, identifier, {"op": "add", "path": "/RetentionPeriodHours", "value": 48})
    delete(agent, STREAM, identifier)
    assert rules(sandbox) == []


@pytest.mark.rule("S16")
def test_a_test_of_the_tags_lets_a_person_win(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    identifier = stream(agent, OURS)
    tags = seen(agent, STREAM, identifier)["Tags"]
    patch(person, STREAM, identifier, {"op": "replace", "path": "/Tags", "value": tags[1:]})
    test = {"op": "test", "path": "/Tags", "value": tags}
    with pytest.raises(ClientError, match="value differs"):
        patch(agent, STREAM, identifier, test, {"op": "add", "path": "/RetentionPeriodHours", "value": 48})
    assert rules(sandbox) == []
    assert sandbox.aws.monitor.lost_races == []


@pytest.mark.rule("S16")
def test_without_a_test_the_same_write_loses_a_race(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    identifier = stream(agent, OURS)
    tags = seen(agent, STREAM, identifier)["Tags"]
    patch(person, STREAM, identifier, {"op": "replace", "path": "/Tags", "value": tags[1:]})
    patch(agent, STREAM, identifier, {"op": "add", "path": "/RetentionPeriodHours", "value": 48})
    assert rules(sandbox) == []
    assert [race.rule for race in sandbox.aws.monitor.lost_races] == ["S7"]


@pytest.mark.rule("T10")
def test_all_tags_written_blindly_are_a_violation(sandbox: Sandbox, agent: Tools) -> None:
    identifier = stream(agent, OURS)
    patch(agent, STREAM, identifier, {"op": "replace", "path": "/Tags", "value": pairs({**OURS, "a": "b"})})
    assert rules(sandbox) == ["T10"]


@pytest.mark.rule("T3", "T4")
def test_tags_of_the_protocol_are_judged_one_by_one(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    identifier = stream(person, {"team": "a"})
    tags = seen(agent, STREAM, identifier)["Tags"]
    test = {"op": "test", "path": "/Tags", "value": tags}
    add = {"op": "add", "path": "/Tags/-", "value": {"Key": "managed-by", "Value": "fractal-cloud"}}
    patch(agent, STREAM, identifier, test, add)
    assert rules(sandbox) == ["T3"]


def test_the_tagging_api_is_judged_too(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    stream(person, {"managed-by": "fractal-cloud", "fractal-cloud-owner": "ls-b"})
    arn = "arn:aws:kinesis:eu-central-1:123456789012:stream/jobs"
    assert [one["ResourceARN"] for one in agent.tagging.get_resources()["ResourceTagMappingList"]] == [arn]
    agent.tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])
    assert rules(sandbox) == ["S6"]


@pytest.mark.rule("S25")
def test_a_part_is_judged_by_its_parent(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    api = "AWS::ApiGatewayV2::Api"
    ours = create(agent, api, {"Name": "a", "ProtocolType": "HTTP", "Tags": OURS})
    create(agent, "AWS::ApiGatewayV2::Route", {"ApiId": ours, "RouteKey": "GET /"})
    assert rules(sandbox) == []
    theirs = create(person, api, {"Name": "b", "ProtocolType": "HTTP"})
    seen(agent, api, theirs)
    part = create(agent, "AWS::ApiGatewayV2::Route", {"ApiId": theirs, "RouteKey": "GET /"})
    delete(agent, "AWS::ApiGatewayV2::Route", part)
    assert rules(sandbox) == ["S7", "S7"]


@pytest.mark.rule("S15")
def test_a_second_resource_of_one_name_is_a_violation(sandbox: Sandbox, agent: Tools) -> None:
    create(agent, GATEWAY, {"Tags": pairs({**OURS, "Name": "hub"})})
    agent.tagging.get_resources()
    create(agent, GATEWAY, {"Tags": pairs({**OURS, "Name": "hub"})})
    assert rules(sandbox) == ["S15"]


def test_a_write_nobody_can_classify_is_a_violation(sandbox: Sandbox, agent: Tools) -> None:
    with pytest.raises(ClientError, match="TypeNotFound"):
        create(agent, "AWS::Nobody::Knows", {})
    assert rules(sandbox) == ["unclassified"]


def test_reads_are_no_writes(sandbox: Sandbox, agent: Tools) -> None:
    agent.cloudcontrol.list_resource_requests()
    agent.cloudcontrol.list_resources(TypeName=STREAM)
    agent.cloudformation.describe_type(Type="RESOURCE", TypeName=STREAM)
    assert rules(sandbox) == []
    assert sandbox.aws.calls.count(writes_only=True) == 0


@pytest.mark.rule("S16")
def test_what_was_never_read_is_not_written(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    identifier = stream(person, OURS)
    delete(agent_tools(sandbox), STREAM, identifier)
    assert rules(sandbox) == ["S16"]


def test_what_carries_an_owner_is_listed_wherever_it_is_kept(sandbox: Sandbox, agent: Tools) -> None:
    stream(agent, OURS)
    create(agent, "AWS::SQS::Queue", {"QueueName": "jobs", "Tags": pairs(OURS)})
    create(agent, "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "Tags": pairs(OURS)})
    found = sorted(one.kind for one in sandbox.aws.owned_resources())
    assert found == ["AWS::Kinesis::Stream", "AWS::SQS::Queue", "vpc"]


@pytest.mark.rule("S7")
def test_a_network_is_one_resource_to_the_monitor_too(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    network = create(agent, "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "Tags": pairs(OURS)})
    person.ec2.delete_tags(Resources=[network], Tags=[{"Key": "managed-by"}])
    agent.ec2.describe_vpcs(VpcIds=[network])
    delete(agent, "AWS::EC2::VPC", network)
    assert rules(sandbox) == ["S7"]


POLICY = "AWS::IAM::ManagedPolicy"
READS = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}]}
STATE = {"ManagedPolicyName": "reads", "PolicyDocument": READS}


@pytest.mark.rule("S17", "T3")
def test_the_tags_that_follow_a_creation_are_its_own_components_once(sandbox: Sandbox, person: Tools) -> None:
    arn = create(agent_tools(sandbox), POLICY, STATE)
    finishing = agent_tools(sandbox, reason="tagging")
    finishing.iam.list_policy_tags(PolicyArn=arn)
    finishing.iam.tag_policy(PolicyArn=arn, Tags=pairs(OURS))
    assert rules(sandbox) == []
    person.iam.untag_policy(PolicyArn=arn, TagKeys=list(OURS))
    finishing.iam.list_policy_tags(PolicyArn=arn)
    finishing.iam.tag_policy(PolicyArn=arn, Tags=pairs(OURS))
    assert rules(sandbox) == ["T3"]


@pytest.mark.rule("S17", "T3")
@pytest.mark.parametrize("whose", ["another component's", "a person's", "one made after it"])
def test_nothing_but_what_the_component_made_is_finished(sandbox: Sandbox, person: Tools, whose: str) -> None:
    maker = person if whose == "a person's" else agent_tools(sandbox)
    arn = create(maker, POLICY, STATE)
    if whose == "one made after it":
        person.iam.delete_policy(PolicyArn=arn)
        create(person, POLICY, STATE)
    name = "other" if whose == "another component's" else "net"
    finishing = agent_tools(sandbox, component=name, reason="tagging")
    finishing.iam.list_policy_tags(PolicyArn=arn)
    finishing.iam.tag_policy(PolicyArn=arn, Tags=pairs(OURS))
    assert rules(sandbox) == ["T3"]
