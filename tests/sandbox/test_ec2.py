"""The sandbox's EC2 where moto alone would differ from the real one."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fractal_sandbox import Sandbox
from tests.sandbox.conftest import Tools
from tests.sandbox.making import ec2_tags, error_of, instance_state, make_instance, make_vpc


def make_group(tools: Tools, vpc: str, name: str = "web") -> str:
    return str(tools.ec2.create_security_group(VpcId=vpc, GroupName=name, Description="d")["GroupId"])


def make_subnet(tools: Tools, vpc: str) -> str:
    return str(tools.ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/24")["Subnet"]["SubnetId"])


def test_max_results_cuts_pages_and_the_token_leads_through_all_of_them(person: Tools) -> None:
    made = {make_vpc(person, f"net-{number}") for number in range(7)}
    first = person.ec2.describe_vpcs(MaxResults=5)
    assert len(first["Vpcs"]) == 5
    second = person.ec2.describe_vpcs(MaxResults=5, NextToken=first["NextToken"])
    assert "NextToken" not in second
    assert made <= {vpc["VpcId"] for vpc in first["Vpcs"] + second["Vpcs"]}


def test_instances_come_in_pages_of_the_wanted_size(person: Tools) -> None:
    made = [make_instance(person) for _ in range(6)]
    pages = list(person.ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}))
    assert [len(page["Reservations"]) for page in pages] == [5, 1]
    assert [one["InstanceId"] for page in pages for group in page["Reservations"] for one in group["Instances"]] == made
    with pytest.raises(ClientError, match="InvalidParameterCombination"):
        person.ec2.describe_instances(InstanceIds=made, MaxResults=5)


@pytest.mark.parametrize("size", [4, 1001])
def test_a_page_size_out_of_bounds_is_refused(person: Tools, size: int) -> None:
    with pytest.raises(ClientError) as refused:
        person.client("ec2", parameter_validation=False).describe_subnets(MaxResults=size)
    assert error_of(refused) == ("InvalidParameterValue", 400)


def test_removing_no_named_tag_removes_all(person: Tools) -> None:
    vpc = make_vpc(person)
    person.ec2.delete_tags(Resources=[vpc])
    assert ec2_tags(person, vpc) == {}


def test_removing_a_tag_with_its_value_is_a_compare_and_delete(person: Tools) -> None:
    vpc = make_vpc(person)
    person.ec2.create_tags(Resources=[vpc], Tags=[{"Key": "fractal-cloud", "Value": "reconcile"}])
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "fractal-cloud", "Value": "other"}])
    assert ec2_tags(person, vpc) == {"Name": "net", "fractal-cloud": "reconcile"}
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "fractal-cloud", "Value": "reconcile"}])
    assert ec2_tags(person, vpc) == {"Name": "net"}


@pytest.mark.parametrize("key", ["aws:mine", "k" * 129])
def test_keys_that_aws_refuses_are_refused(person: Tools, key: str) -> None:
    with pytest.raises(ClientError, match="InvalidParameterValue"):
        person.ec2.create_tags(Resources=[make_vpc(person)], Tags=[{"Key": key, "Value": "v"}])


def test_the_same_client_token_gives_the_same_instance(person: Tools) -> None:
    first = make_instance(person, ClientToken="once")
    assert make_instance(person, ClientToken="once") == first
    assert make_instance(person, ClientToken="twice") != first
    assert len(person.ec2.describe_instances()["Reservations"]) == 2


def test_the_same_client_token_with_other_parameters_is_refused(person: Tools) -> None:
    make_instance(person, ClientToken="once")
    with pytest.raises(ClientError) as refused:
        make_instance(person, ClientToken="once", KeyName="other")
    assert error_of(refused) == ("IdempotentParameterMismatch", 400)


@pytest.mark.parametrize(
    ("attribute", "change"),
    [("instanceType", {"InstanceType": {"Value": "t3.large"}}), ("userData", {"UserData": {"Value": b"hello"}})],
)
def test_type_and_user_data_change_only_while_stopped(person: Tools, attribute: str, change: dict[str, Any]) -> None:
    instance = make_instance(person)
    with pytest.raises(ClientError) as refused:
        person.ec2.modify_instance_attribute(InstanceId=instance, **change)
    assert error_of(refused) == ("IncorrectInstanceState", 400)
    person.ec2.stop_instances(InstanceIds=[instance])
    person.ec2.modify_instance_attribute(InstanceId=instance, **change)
    shown = person.ec2.describe_instance_attribute(InstanceId=instance, Attribute=attribute)
    assert next(iter(shown[name]["Value"] for name in change)) in ("t3.large", "aGVsbG8=")


def test_other_attributes_change_while_it_runs(person: Tools) -> None:
    instance = make_instance(person)
    person.ec2.modify_instance_attribute(InstanceId=instance, DisableApiTermination={"Value": True})
    with pytest.raises(ClientError, match="OperationNotPermitted"):
        person.ec2.terminate_instances(InstanceIds=[instance])


def test_a_terminated_instance_cannot_be_started(person: Tools) -> None:
    instance = make_instance(person)
    person.ec2.terminate_instances(InstanceIds=[instance])
    assert instance_state(person, instance) == "terminated"
    with pytest.raises(ClientError, match="IncorrectInstanceState"):
        person.ec2.start_instances(InstanceIds=[instance])


def test_group_names_differ_by_more_than_case(person: Tools) -> None:
    vpc = make_vpc(person)
    make_group(person, vpc, "Web")
    with pytest.raises(ClientError) as refused:
        make_group(person, vpc, "web")
    assert error_of(refused) == ("InvalidGroup.Duplicate", 400)
    make_group(person, make_vpc(person), "web")


def test_creating_a_group_answers_with_its_tags(person: Tools) -> None:
    tags = [{"Key": "a", "Value": "b"}]
    specification = [{"ResourceType": "security-group", "Tags": tags}]
    made = person.ec2.create_security_group(
        VpcId=make_vpc(person), GroupName="g", Description="d", TagSpecifications=specification
    )
    assert made["Tags"] == tags


def test_a_vpc_with_a_group_or_a_subnet_stays(person: Tools) -> None:
    vpc = make_vpc(person)
    group = make_group(person, vpc)
    with pytest.raises(ClientError, match="DependencyViolation"):
        person.ec2.delete_vpc(VpcId=vpc)
    person.ec2.delete_security_group(GroupId=group)
    subnet = make_subnet(person, vpc)
    with pytest.raises(ClientError, match="DependencyViolation"):
        person.ec2.delete_vpc(VpcId=vpc)
    person.ec2.delete_subnet(SubnetId=subnet)
    person.ec2.delete_vpc(VpcId=vpc)


def test_a_subnet_stays_as_long_as_an_instance_is_in_it(sandbox: Sandbox, person: Tools) -> None:
    subnet = make_subnet(person, make_vpc(person))
    instance = make_instance(person, SubnetId=subnet)
    with pytest.raises(ClientError, match="DependencyViolation"):
        person.ec2.delete_subnet(SubnetId=subnet)
    sandbox.aws.knobs.slow_deletion(reads=1, kind="instance")
    person.ec2.terminate_instances(InstanceIds=[instance])
    with pytest.raises(ClientError, match="DependencyViolation"):
        person.ec2.delete_subnet(SubnetId=subnet)
    instance_state(person, instance)
    person.ec2.delete_subnet(SubnetId=subnet)


def test_a_group_stays_while_an_instance_or_another_group_needs_it(person: Tools) -> None:
    vpc = make_vpc(person)
    used, named, other = (make_group(person, vpc, name) for name in ("used", "named", "other"))
    instance = make_instance(person, SubnetId=make_subnet(person, vpc), SecurityGroupIds=[used])
    person.ec2.authorize_security_group_ingress(
        GroupId=other,
        IpPermissions=[
            {"IpProtocol": "tcp", "FromPort": 1, "ToPort": 1, "UserIdGroupPairs": [{"GroupId": named}]},
        ],
    )
    for group in (used, named):
        with pytest.raises(ClientError, match="DependencyViolation"):
            person.ec2.delete_security_group(GroupId=group)
    person.ec2.delete_security_group(GroupId=other)
    person.ec2.delete_security_group(GroupId=named)
    person.ec2.terminate_instances(InstanceIds=[instance])
    person.ec2.delete_security_group(GroupId=used)


def test_a_dry_run_changes_nothing(person: Tools) -> None:
    with pytest.raises(ClientError) as refused:
        person.ec2.create_vpc(CidrBlock="10.0.0.0/16", DryRun=True)
    assert error_of(refused) == ("DryRunOperation", 412)
    assert all(vpc["IsDefault"] for vpc in person.ec2.describe_vpcs()["Vpcs"])


def test_windows_is_the_only_platform_that_is_named(person: Tools) -> None:
    images = person.ec2.describe_images()["Images"]
    assert {(one.get("Platform"), one["PlatformDetails"]) for one in images} == {
        (None, "Linux/UNIX"),
        ("windows", "Windows"),
    }
