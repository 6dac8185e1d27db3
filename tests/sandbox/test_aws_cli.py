"""The vendor's own command line against the sandbox: breaking the glass and handing back, as people do it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fractal_sandbox import Sandbox, sandbox_env
from tests.sandbox.conftest import Tools
from tests.sandbox.making import as_list, bucket_tags, ec2_tags, make_bucket, make_service, tags_for

ACCOUNT = "123456789012"
OTHERS = {"fractal-cloud-owner": "ls-a", "cost": "42"}
ALL = {**OTHERS, "managed-by": "fractal-cloud"}


@pytest.fixture
def aws(sandbox: Sandbox, tmp_path: Path) -> Callable[..., Any]:
    """Run `aws …` with nothing but the environment that `fractal sandbox env` prints."""
    program = Path(sys.executable).parent / "aws"

    def run(*words: str) -> Any:
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **sandbox_env(sandbox.url)}
        done = subprocess.run([program, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout) if done.stdout.strip() else None

    return run


def lower(tags: list[dict[str, str]]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in tags}


@pytest.mark.rule("G1", "G12")
def test_ec2_delete_tags_removes_one_tag_and_create_tags_brings_it_back(person: Tools, aws: Callable[..., Any]) -> None:
    specification = [{"ResourceType": "vpc", "Tags": as_list(ALL)}]
    vpc = person.ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=specification)["Vpc"]["VpcId"]
    aws("ec2", "delete-tags", "--resources", vpc, "--tags", "Key=managed-by")
    assert ec2_tags(person, vpc) == OTHERS
    back = ["Key=managed-by,Value=fractal-cloud", "Key=fractal-cloud,Value=reconcile"]
    aws("ec2", "create-tags", "--resources", vpc, "--tags", *back)
    assert ec2_tags(person, vpc) == {**ALL, "fractal-cloud": "reconcile"}


@pytest.mark.rule("G1", "G12")
def test_the_tagging_api_untags_a_bucket_and_keeps_its_other_tags(person: Tools, aws: Callable[..., Any]) -> None:
    arn = make_bucket(person, tags=ALL)
    words = ["--resource-arn-list", arn, "--tag-keys", "managed-by"]
    assert aws("resourcegroupstaggingapi", "untag-resources", *words) == {"FailedResourcesMap": {}}
    assert bucket_tags(person) == OTHERS
    aws("resourcegroupstaggingapi", "tag-resources", "--resource-arn-list", arn, "--tags", "managed-by=fractal-cloud")
    assert bucket_tags(person) == ALL


@pytest.mark.rule("G1", "G12")
def test_rds_remove_tags_removes_one_tag(person: Tools, aws: Callable[..., Any]) -> None:
    made = person.rds.create_db_instance(
        DBInstanceIdentifier="data", Engine="postgres", DBInstanceClass="db.t3.micro", Tags=as_list(ALL)
    )
    arn = made["DBInstance"]["DBInstanceArn"]
    aws("rds", "remove-tags-from-resource", "--resource-name", arn, "--tag-keys", "managed-by")
    shown = person.rds.list_tags_for_resource(ResourceName=arn)["TagList"]
    assert {tag["Key"]: tag["Value"] for tag in shown} == OTHERS


@pytest.mark.rule("G1", "G12")
def test_ecs_untag_resource_removes_one_tag(person: Tools, aws: Callable[..., Any]) -> None:
    arn = make_service(person, tags=as_list(ALL, "key", "value"))
    aws("ecs", "untag-resource", "--resource-arn", arn, "--tag-keys", "managed-by")
    assert lower(person.ecs.list_tags_for_resource(resourceArn=arn)["tags"]) == OTHERS


@pytest.mark.rule("G1", "G12")
def test_eks_untag_resource_removes_one_tag(person: Tools, aws: Callable[..., Any]) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/eks"
    person.eks.create_cluster(name="kube", roleArn=role, resourcesVpcConfig={}, tags=ALL)
    arn = f"arn:aws:eks:eu-central-1:{ACCOUNT}:cluster/kube"
    aws("eks", "untag-resource", "--resource-arn", arn, "--tag-keys", "managed-by")
    assert person.eks.describe_cluster(name="kube")["cluster"]["tags"] == OTHERS


def test_what_the_command_line_does_counts_as_a_persons(
    sandbox: Sandbox, person: Tools, aws: Callable[..., Any]
) -> None:
    make_bucket(person, tags=tags_for())
    assert aws("sts", "get-caller-identity")["Account"] == ACCOUNT
    assert [bucket["Name"] for bucket in aws("s3api", "list-buckets")["Buckets"]] == ["some-bucket"]
    assert {call.actor for call in sandbox.aws.calls} == {"person"}


@pytest.mark.rule("C4")
def test_cloudtrail_lookup_events_names_who_untagged_a_vpc(person: Tools, aws: Callable[..., Any]) -> None:
    specification = [{"ResourceType": "vpc", "Tags": as_list(ALL)}]
    vpc = person.ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=specification)["Vpc"]["VpcId"]
    aws("ec2", "delete-tags", "--resources", vpc, "--tags", "Key=managed-by")
    asked = f"AttributeKey=ResourceName,AttributeValue={vpc}"
    found = aws("cloudtrail", "lookup-events", "--lookup-attributes", asked, "--max-items", "1")["Events"]
    assert [(one["EventName"], one["Username"]) for one in found] == [("DeleteTags", "person")]
