"""CloudTrail in the sandbox: who called what, asked for as of the real one, in the form of the vendor's own model."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from fractal_sandbox import Sandbox
from fractal_sandbox.aws.principals import AGENT
from tests.sandbox.conftest import Tools

pytestmark = pytest.mark.rule("C4")


def _events(person: Tools, key: str = "", value: str = "", **more: Any) -> list[dict[str, Any]]:
    where = {"LookupAttributes": [{"AttributeKey": key, "AttributeValue": value}]} if key else {}
    found: list[dict[str, Any]] = person.client("cloudtrail").lookup_events(**where, **more)["Events"]
    return found


def _vpc(tools: Tools) -> str:
    return str(tools.ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"])


def test_a_write_is_recorded_with_its_caller_and_its_request(person: Tools, agent: Tools) -> None:
    vpc = _vpc(person)
    person.ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    agent.ec2.create_tags(Resources=[vpc], Tags=[{"Key": "a", "Value": "b"}])
    person.ec2.describe_vpcs()
    tagged, modified, made = _events(person, "ResourceName", vpc)
    assert [one["EventName"] for one in (made, modified, tagged)] == ["CreateVpc", "ModifyVpcAttribute", "CreateTags"]
    assert (modified["Username"], tagged["Username"]) == ("person", AGENT)
    assert modified["Resources"] == [{"ResourceType": "AWS::EC2::VPC", "ResourceName": vpc}]
    whole = json.loads(modified["CloudTrailEvent"])
    assert whole["requestParameters"] == {"vpcId": vpc, "enableDnsHostnames": {"value": True}}
    assert whole["userIdentity"]["arn"] == person.client("sts").get_caller_identity()["Arn"]
    items = json.loads(tagged["CloudTrailEvent"])["requestParameters"]
    assert items["resourcesSet"] == {"items": [{"resourceId": vpc}]}
    assert items["tagSet"] == {"items": [{"key": "a", "value": "b"}]}


def test_the_answer_keeps_to_the_vendors_model(person: Tools) -> None:
    _vpc(person)
    client = person.client("cloudtrail")
    answer = client.lookup_events()
    del answer["ResponseMetadata"]
    shape = client.meta.service_model.operation_model("LookupEvents").output_shape
    assert not ParamValidator().validate(answer, shape).has_errors()
    assert set(answer["Events"][0]) == set(shape.members["Events"].member.members)
    assert isinstance(answer["Events"][0]["EventTime"], datetime)


def test_a_refused_write_says_so(person: Tools) -> None:
    with pytest.raises(ClientError):
        person.ec2.modify_vpc_attribute(VpcId="vpc-00000000", EnableDnsHostnames={"Value": True})
    [event] = _events(person, "EventName", "ModifyVpcAttribute")
    assert json.loads(event["CloudTrailEvent"])["errorCode"] == "InvalidVpcID.NotFound"


def test_pages_hold_fifty_and_the_newest_come_first(person: Tools) -> None:
    vpc = _vpc(person)
    for number in range(60):
        person.ec2.create_tags(Resources=[vpc], Tags=[{"Key": "n", "Value": str(number)}])
    client = person.client("cloudtrail")
    asked = {"LookupAttributes": [{"AttributeKey": "ResourceName", "AttributeValue": vpc}]}
    first = client.lookup_events(**asked)
    second = client.lookup_events(**asked, NextToken=first["NextToken"])
    assert (len(first["Events"]), len(second["Events"])) == (50, 11)
    assert "NextToken" not in second
    assert second["Events"][-1]["EventName"] == "CreateVpc"
    with pytest.raises(ClientError, match="InvalidNextTokenException"):
        client.lookup_events(NextToken=first["NextToken"])


def test_one_attribute_at_a_time_and_no_more_than_fifty(person: Tools) -> None:
    client = person.client("cloudtrail")
    two = [{"AttributeKey": key, "AttributeValue": "x"} for key in ("EventName", "Username")]
    with pytest.raises(ClientError, match="InvalidLookupAttributesException"):
        client.lookup_events(LookupAttributes=two)
    now = datetime.now(UTC)
    with pytest.raises(ClientError, match="InvalidTimeRangeException"):
        client.lookup_events(StartTime=now, EndTime=now - timedelta(hours=1))


def test_events_show_late_and_only_in_their_time(sandbox: Sandbox, person: Tools) -> None:
    vpc = _vpc(person)
    now = datetime.now(UTC)
    assert _events(person, "ResourceName", vpc, StartTime=now - timedelta(minutes=1))
    assert not _events(person, "ResourceName", vpc, StartTime=now + timedelta(minutes=1))
    assert not _events(person, "ResourceName", vpc, EndTime=now - timedelta(minutes=1))
    sandbox.aws.knobs.history_delay = 600
    assert not _events(person, "ResourceName", vpc)


def test_too_many_calls_are_throttled_as_on_aws(sandbox: Sandbox, person: Tools) -> None:
    sandbox.aws.knobs.throttle(service="cloudtrail", next_calls=10)
    with pytest.raises(ClientError, match="ThrottlingException"):
        person.client("cloudtrail").lookup_events()
