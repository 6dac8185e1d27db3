"""One world: what Cloud Control makes and what a service's own calls make is the same, with its tags and properties."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox, sandbox_env
from fractal_sandbox.aws.resources import backend
from tests.sandbox.cloudcontrol.making import QUEUE, create, delete, event, pairs, patch, read
from tests.sandbox.conftest import Tools

TOPIC = "AWS::SNS::Topic"
GROUP = "AWS::Logs::LogGroup"
KEY = "AWS::KMS::Key"
TAGS = {"team": "a", "managed-by": "fractal-cloud"}


def tags_of(properties: dict[str, Any]) -> dict[str, str]:
    return {one["Key"]: one["Value"] for one in properties.get("Tags", [])}


def test_a_queue_made_by_cloud_control_is_one_of_sqs(person: Tools) -> None:
    url = create(person, QUEUE, {"QueueName": "jobs", "DelaySeconds": 5, "Tags": pairs(TAGS)})
    assert person.sqs.list_queue_tags(QueueUrl=url)["Tags"] == TAGS
    person.sqs.untag_queue(QueueUrl=url, TagKeys=["managed-by"])
    person.sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "9"})
    shown = read(person, QUEUE, url)
    assert (tags_of(shown), shown["DelaySeconds"]) == ({"team": "a"}, 9)
    person.sqs.delete_queue(QueueUrl=url)
    assert delete(person, QUEUE, url)["ErrorCode"] == "NotFound"


def test_a_queue_made_by_sqs_is_one_of_cloud_control(person: Tools) -> None:
    person.sqs.create_queue(QueueName="jobs", tags={"a": "b"})
    listed = person.cloudcontrol.list_resources(TypeName=QUEUE)["ResourceDescriptions"]
    url = listed[0]["Identifier"]
    assert tags_of(read(person, QUEUE, url)) == {"a": "b"}
    done = patch(person, QUEUE, url, {"op": "replace", "path": "/VisibilityTimeout", "value": 60})
    assert done["OperationStatus"] == "SUCCESS"
    found = person.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert found["Attributes"]["VisibilityTimeout"] == "60"


def test_a_second_queue_of_one_name_already_exists(person: Tools) -> None:
    person.sqs.create_queue(QueueName="jobs")
    made = person.cloudcontrol.create_resource(TypeName=QUEUE, DesiredState=json.dumps({"QueueName": "jobs"}))
    assert event(person, made)["ErrorCode"] == "AlreadyExists"


def test_a_topic_and_a_log_group_are_of_both_worlds_too(person: Tools) -> None:
    arn = create(person, TOPIC, {"TopicName": "news", "DisplayName": "News", "Tags": pairs(TAGS)})
    person.sns.untag_resource(ResourceArn=arn, TagKeys=["managed-by"])
    person.sns.set_topic_attributes(TopicArn=arn, AttributeName="DisplayName", AttributeValue="Old")
    shown = read(person, TOPIC, arn)
    assert (tags_of(shown), shown["DisplayName"]) == ({"team": "a"}, "Old")
    name = create(person, GROUP, {"LogGroupName": "/app", "RetentionInDays": 30, "Tags": pairs(TAGS)})
    group = read(person, GROUP, name)["Arn"]
    person.logs.untag_resource(resourceArn=group.removesuffix(":*"), tagKeys=["managed-by"])
    person.logs.delete_retention_policy(logGroupName=name)
    shown = read(person, GROUP, name)
    assert tags_of(shown) == {"team": "a"}
    assert "RetentionInDays" not in shown


def test_a_key_goes_when_its_deletion_is_scheduled(person: Tools) -> None:
    key = create(person, KEY, {"Description": "d", "Tags": pairs(TAGS)})
    person.kms.untag_resource(KeyId=key, TagKeys=["managed-by"])
    assert tags_of(read(person, KEY, key)) == {"team": "a"}
    assert delete(person, KEY, key)["OperationStatus"] == "SUCCESS"
    assert person.kms.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    assert delete(person, KEY, key)["ErrorCode"] == "NotFound"


@pytest.mark.parametrize("verb", ["untag", "tag"])
def test_the_tagging_api_writes_tags_of_both(person: Tools, verb: str) -> None:
    url = create(person, QUEUE, {"QueueName": "jobs", "Tags": pairs(TAGS)})
    listed = person.tagging.get_resources(ResourceTypeFilters=["sqs"])["ResourceTagMappingList"]
    arn = listed[0]["ResourceARN"]
    if verb == "untag":
        answer = person.tagging.untag_resources(ResourceARNList=[arn], TagKeys=["managed-by"])
    else:
        answer = person.tagging.tag_resources(ResourceARNList=[arn], Tags={"managed-by": "me"})
    assert answer["FailedResourcesMap"] == {}
    expected = {"team": "a"} if verb == "untag" else {"team": "a", "managed-by": "me"}
    assert person.sqs.list_queue_tags(QueueUrl=url)["Tags"] == expected


def test_people_type_the_commands_they_know(sandbox: Sandbox, person: Tools, tmp_path: Path) -> None:
    url = create(person, QUEUE, {"QueueName": "jobs", "Tags": pairs(TAGS)})
    # This version of `aws` has an address of its own for SQS, which no variable of the environment replaces.
    command = [str(Path(sys.executable).parent / "aws"), "sqs", "untag-queue", "--endpoint-url", sandbox.url]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **sandbox_env(sandbox.url)}
    words = [*command, "--queue-url", url, "--tag-keys", "managed-by"]
    done = subprocess.run(words, env=environment, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert tags_of(read(person, QUEUE, url)) == {"team": "a"}


def test_a_network_is_one_of_ec2(person: Tools) -> None:
    vpc = create(person, "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True, "Tags": pairs(TAGS)})
    assert {one["Key"]: one["Value"] for one in person.ec2.describe_vpcs(VpcIds=[vpc])["Vpcs"][0]["Tags"]} == TAGS
    subnet = create(person, "AWS::EC2::Subnet", {"VpcId": vpc, "CidrBlock": "10.0.1.0/24"})
    assert person.ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"] == vpc
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/8"}
    wanted = {"GroupDescription": "web", "VpcId": vpc, "SecurityGroupIngress": [rule]}
    group = create(person, "AWS::EC2::SecurityGroup", wanted)
    found = person.ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    assert found["IpPermissions"][0]["IpRanges"] == [{"CidrIp": "10.0.0.0/8"}]
    person.ec2.delete_tags(Resources=[vpc], Tags=[{"Key": "managed-by"}])
    shown = read(person, "AWS::EC2::VPC", vpc)
    assert (tags_of(shown), shown["EnableDnsHostnames"]) == ({"team": "a"}, True)
    assert delete(person, "AWS::EC2::VPC", vpc)["ErrorCode"] == "ResourceConflict"


def test_identities_carry_the_tags_that_iam_writes(person: Tools) -> None:
    trust = {"Version": "2012-10-17", "Statement": []}
    create(person, "AWS::IAM::Role", {"RoleName": "jobs", "AssumeRolePolicyDocument": trust, "Tags": pairs(TAGS)})
    assert {one["Key"]: one["Value"] for one in person.iam.list_role_tags(RoleName="jobs")["Tags"]} == TAGS
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    arn = create(person, "AWS::IAM::ManagedPolicy", {"ManagedPolicyName": "send", "PolicyDocument": document})
    person.iam.tag_policy(PolicyArn=arn, Tags=pairs(TAGS))
    assert {one["Key"]: one["Value"] for one in person.iam.list_policy_tags(PolicyArn=arn)["Tags"]} == TAGS
    name = create(person, "AWS::IAM::InstanceProfile", {"InstanceProfileName": "jobs", "Roles": ["jobs"]})
    person.iam.tag_instance_profile(InstanceProfileName=name, Tags=pairs(TAGS))
    listed = person.iam.list_instance_profile_tags(InstanceProfileName=name)["Tags"]
    assert {one["Key"]: one["Value"] for one in listed} == TAGS
    person.iam.untag_instance_profile(InstanceProfileName=name, TagKeys=["team"])
    assert len(person.iam.list_instance_profile_tags(InstanceProfileName=name)["Tags"]) == 1
    assert read(person, "AWS::IAM::InstanceProfile", name)["Roles"] == ["jobs"]
    for type_name, one in (("InstanceProfile", name), ("ManagedPolicy", arn), ("Role", "jobs")):
        assert delete(person, f"AWS::IAM::{type_name}", one)["OperationStatus"] == "SUCCESS"


@pytest.mark.rule("S7", "S17")
def test_the_monitor_reads_tags_that_only_a_service_writes(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    data = {"LaunchTemplateName": "web", "LaunchTemplateData": {"InstanceType": "t3.micro"}}
    template = create(person, "AWS::EC2::LaunchTemplate", data)
    read(agent, "AWS::EC2::LaunchTemplate", template)
    agent.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [template]}])
    agent.ec2.create_tags(Resources=[template], Tags=[{"Key": "managed-by", "Value": "fractal-cloud"}])
    assert [finding.rule for finding in sandbox.aws.monitor.violations] == ["T3"]
    statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}
    arn = create(person, "AWS::IAM::ManagedPolicy", {"ManagedPolicyName": "send", "PolicyDocument": document})
    agent.iam.list_policy_tags(PolicyArn=arn)
    agent.iam.untag_policy(PolicyArn=arn, TagKeys=["managed-by"])
    assert [finding.rule for finding in sandbox.aws.monitor.violations] == ["T3", "O11"]


def test_a_bucket_and_a_table_are_of_both_worlds(person: Tools) -> None:
    versioning = {"VersioningConfiguration": {"Status": "Enabled"}}
    bucket = create(person, "AWS::S3::Bucket", {"BucketName": "team-a-logs", "Tags": pairs(TAGS), **versioning})
    assert {one["Key"]: one["Value"] for one in person.s3.get_bucket_tagging(Bucket=bucket)["TagSet"]} == TAGS
    person.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    assert read(person, "AWS::S3::Bucket", bucket)["VersioningConfiguration"] == {"Status": "Suspended"}
    person.s3.put_object(Bucket=bucket, Key="a", Body=b"b")
    assert delete(person, "AWS::S3::Bucket", bucket)["ErrorCode"] == "ResourceConflict"
    keys = {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    }
    wanted = {"TableName": "users", "BillingMode": "PAY_PER_REQUEST", "Tags": pairs(TAGS), **keys}
    table = create(person, "AWS::DynamoDB::Table", wanted)
    arn = read(person, "AWS::DynamoDB::Table", table)["Arn"]
    person.dynamodb.untag_resource(ResourceArn=arn, TagKeys=["managed-by"])
    assert tags_of(read(person, "AWS::DynamoDB::Table", table)) == {"team": "a"}
    assert delete(person, "AWS::DynamoDB::Table", table)["OperationStatus"] == "SUCCESS"
    with pytest.raises(person.dynamodb.exceptions.ResourceNotFoundException):
        person.dynamodb.describe_table(TableName="users")


def test_what_aws_makes_of_what_was_written_identifies_it(person: Tools) -> None:
    vpc = create(person, "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"})
    gateway = create(person, "AWS::EC2::InternetGateway", {})
    joined = {"VpcId": vpc, "InternetGatewayId": gateway}
    assert create(person, "AWS::EC2::VPCGatewayAttachment", joined) == f"IGW|{vpc}"
    table = create(person, "AWS::EC2::RouteTable", {"VpcId": vpc})
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
    assert create(person, "AWS::EC2::Route", route) == f"{table}|0.0.0.0/0"


def test_a_thousand_queues_are_listed_in_ten_pages(sandbox: Sandbox, person: Tools, agent: Tools) -> None:
    person.sqs.create_queue(QueueName="first", tags=TAGS)  # which makes the service known to the account
    queues = backend("sqs", "eu-central-1")
    for number in range(999):
        queues.create_queue(f"jobs-{number}", {"managed-by": "fractal-cloud"})
    paginator = agent.tagging.get_paginator("get_resources")
    pages = list(paginator.paginate(ResourcesPerPage=100, ResourceTypeFilters=["sqs"]))
    assert [len(page["ResourceTagMappingList"]) for page in pages] == [100] * 10


def test_what_services_and_databases_refer_to_is_there(person: Tools) -> None:
    container = {"Name": "web", "Image": "nginx", "Memory": 128, "Essential": True}
    wanted = {"Family": "web", "ContainerDefinitions": [container], "Tags": pairs(TAGS)}
    arn = create(person, "AWS::ECS::TaskDefinition", wanted)
    found = person.ecs.describe_task_definition(taskDefinition="web:1", include=["TAGS"])
    assert found["taskDefinition"]["taskDefinitionArn"] == arn
    assert {one["key"]: one["value"] for one in found["tags"]} == TAGS
    assert read(person, "AWS::ECS::TaskDefinition", arn)["ContainerDefinitions"] == [container]
    vpc = create(person, "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"})
    subnet = create(person, "AWS::EC2::Subnet", {"VpcId": vpc, "CidrBlock": "10.0.1.0/24"})
    group = {"DBSubnetGroupName": "data", "DBSubnetGroupDescription": "d", "SubnetIds": [subnet]}
    name = create(person, "AWS::RDS::DBSubnetGroup", {**group, "Tags": pairs(TAGS)})
    assert person.rds.describe_db_subnet_groups(DBSubnetGroupName=name)["DBSubnetGroups"][0]["VpcId"] == vpc
    family = {"DBParameterGroupName": "tuned", "Family": "postgres16", "Description": "d", "Tags": pairs(TAGS)}
    tuned = create(person, "AWS::RDS::DBParameterGroup", family)
    assert tags_of(read(person, "AWS::RDS::DBParameterGroup", tuned)) == TAGS
    for type_name, one in (
        ("RDS::DBSubnetGroup", name),
        ("RDS::DBParameterGroup", tuned),
        ("ECS::TaskDefinition", arn),
    ):
        assert delete(person, f"AWS::{type_name}", one)["OperationStatus"] == "SUCCESS"


def test_the_policies_of_aws_are_there_for_roles_and_others_are_not(person: Tools) -> None:
    trusted = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = {"RoleName": "host", "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trusted]}}
    known = "arn:aws:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy"
    create(person, "AWS::IAM::Role", {**role, "ManagedPolicyArns": [known]})
    assert read(person, "AWS::IAM::Role", "host")["ManagedPolicyArns"] == [known]
    person.iam.attach_role_policy(RoleName="host", PolicyArn="arn:aws:iam::aws:policy/ReadOnlyAccess")
    with pytest.raises(person.iam.exceptions.NoSuchEntityException):
        person.iam.attach_role_policy(RoleName="host", PolicyArn="arn:aws:iam::aws:policy/NoSuchPolicy")


def test_load_balancers_are_seen_and_tagged_by_their_own_service(person: Tools) -> None:
    vpc = create(person, "AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"})
    subnets = [
        create(person, "AWS::EC2::Subnet", {"VpcId": vpc, "CidrBlock": f"10.0.{number}.0/24"}) for number in range(2)
    ]
    kind = "AWS::ElasticLoadBalancingV2"
    balancer = create(person, f"{kind}::LoadBalancer", {"Name": "shop", "Subnets": subnets, "Tags": pairs(TAGS)})
    group = create(
        person,
        f"{kind}::TargetGroup",
        {"Name": "shop", "VpcId": vpc, "Port": 80, "Protocol": "HTTP", "Tags": pairs(TAGS)},
    )
    forward = {"Type": "forward", "TargetGroupArn": group}
    wanted = {"LoadBalancerArn": balancer, "Port": 80, "Protocol": "HTTP", "DefaultActions": [forward]}
    listener = create(person, f"{kind}::Listener", {**wanted, "Tags": pairs(TAGS)})
    [shown] = person.elbv2.describe_load_balancers()["LoadBalancers"]
    assert (shown["LoadBalancerArn"], shown["LoadBalancerName"], shown["VpcId"]) == (balancer, "shop", vpc)
    assert [one["TargetGroupArn"] for one in person.elbv2.describe_target_groups()["TargetGroups"]] == [group]
    listed = person.elbv2.describe_listeners(LoadBalancerArn=balancer)["Listeners"]
    assert [one["ListenerArn"] for one in listed] == [listener]
    for name, arn in (("LoadBalancer", balancer), ("TargetGroup", group), ("Listener", listener)):
        person.elbv2.remove_tags(ResourceArns=[arn], TagKeys=["managed-by"])
        assert tags_of(read(person, f"{kind}::{name}", arn)) == {"team": "a"}
        patch(
            person,
            f"{kind}::{name}",
            arn,
            {"op": "add", "path": "/Tags/-", "value": {"Key": "managed-by", "Value": "x"}},
        )
        [found] = person.elbv2.describe_tags(ResourceArns=[arn])["TagDescriptions"]
        assert {one["Key"]: one["Value"] for one in found["Tags"]} == {"team": "a", "managed-by": "x"}
        listed = person.tagging.get_resources(ResourceARNList=[arn])["ResourceTagMappingList"]
        assert [one["ResourceARN"] for one in listed] == [arn]
    assert delete(person, f"{kind}::TargetGroup", group)["OperationStatus"] == "FAILED"  # the listener uses it
    person.elbv2.delete_listener(ListenerArn=listener)
    assert delete(person, f"{kind}::Listener", listener)["ErrorCode"] == "NotFound"
    assert delete(person, f"{kind}::TargetGroup", group)["OperationStatus"] == "SUCCESS"
    assert delete(person, f"{kind}::LoadBalancer", balancer)["OperationStatus"] == "SUCCESS"
    assert person.elbv2.describe_load_balancers()["LoadBalancers"] == []


def test_functions_are_seen_and_tagged_by_their_own_service(person: Tools) -> None:
    trust = {"Version": "2012-10-17", "Statement": []}
    create(person, "AWS::IAM::Role", {"RoleName": "works", "AssumeRolePolicyDocument": trust})
    role = "arn:aws:iam::123456789012:role/works"
    code = {"ZipFile": "def handler(event, context):\n    return 1\n"}
    wanted = {"FunctionName": "works", "Role": role, "Runtime": "python3.12", "Handler": "index.handler", "Code": code}
    kind = "AWS::Lambda::Function"
    name = create(person, kind, {**wanted, "Tags": pairs(TAGS)})
    client = person.client("lambda")
    arn = read(person, kind, name)["Arn"]
    assert [one["FunctionArn"] for one in client.list_functions()["Functions"]] == [arn]
    client.untag_resource(Resource=arn, TagKeys=["managed-by"])
    assert tags_of(read(person, kind, name)) == {"team": "a"}
    person.tagging.tag_resources(ResourceARNList=[arn], Tags={"managed-by": "x"})
    assert client.list_tags(Resource=arn)["Tags"] == {"team": "a", "managed-by": "x"}
    listed = person.tagging.get_resources(ResourceARNList=[arn])["ResourceTagMappingList"]
    assert [one["ResourceARN"] for one in listed] == [arn]
    client.delete_function(FunctionName=name)
    assert delete(person, kind, name)["ErrorCode"] == "NotFound"
