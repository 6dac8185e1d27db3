"""Making resources with a person's or the agent's tools, and reading them."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.sandbox.conftest import Tools


def make_vpc(tools: Tools, name: str = "net") -> str:
    tags = [{"Key": "Name", "Value": name}]
    made = tools.ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags}])
    return str(made["Vpc"]["VpcId"])


def vpc_ids(tools: Tools) -> list[str]:
    return [vpc["VpcId"] for vpc in tools.ec2.describe_vpcs()["Vpcs"] if not vpc["IsDefault"]]


def make_instance(tools: Tools, **more: Any) -> str:
    made = tools.ec2.run_instances(ImageId="ami-12c6146b", InstanceType="t3.micro", MinCount=1, MaxCount=1, **more)
    return str(made["Instances"][0]["InstanceId"])


def instance_state(tools: Tools, instance: str) -> str:
    found = tools.ec2.describe_instances(InstanceIds=[instance])["Reservations"]
    return str(found[0]["Instances"][0]["State"]["Name"])


def make_db(tools: Tools, name: str = "data") -> None:
    tools.rds.create_db_instance(
        DBInstanceIdentifier=name,
        Engine="postgres",
        DBInstanceClass="db.t3.micro",
        AllocatedStorage=20,
        MasterUsername="root",
        ManageMasterUserPassword=True,
    )


def make_eks(tools: Tools, name: str = "kube", **more: Any) -> None:
    role = "arn:aws:iam::123456789012:role/eks"
    tools.eks.create_cluster(name=name, roleArn=role, resourcesVpcConfig={}, **more)


def error_of(refused: pytest.ExceptionInfo[ClientError]) -> tuple[str, int]:
    response = refused.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def tags_for(live_system: str = "ls-a", **more: str) -> dict[str, str]:
    """Return the tags of a resource that this LiveSystem owns and the agent manages."""
    return {"managed-by": "fractal-cloud", "fractal-cloud-owner": live_system, **more}


def as_list(tags: dict[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    return [{key: name, value: content} for name, content in tags.items()]


def make_bucket(tools: Tools, name: str = "some-bucket", tags: dict[str, str] | None = None) -> str:
    wanted: dict[str, Any] = {"LocationConstraint": "eu-central-1"}
    if tags:
        wanted["Tags"] = as_list(tags)
    tools.s3.create_bucket(Bucket=name, CreateBucketConfiguration=wanted)
    return f"arn:aws:s3:::{name}"


def bucket_tags(tools: Tools, name: str = "some-bucket") -> dict[str, str]:
    try:
        return {tag["Key"]: tag["Value"] for tag in tools.s3.get_bucket_tagging(Bucket=name)["TagSet"]}
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchTagSet":
            raise
        return {}


def ec2_tags(tools: Tools, resource: str) -> dict[str, str]:
    found = tools.ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}


def make_service(tools: Tools, name: str = "web", cluster: str = "c", count: int = 2, **more: Any) -> str:
    """Make an ECS service in a cluster that is made too, and return its ARN."""
    tools.ecs.create_cluster(clusterName=cluster)
    container = {"name": "web", "image": "nginx", "memory": 128}
    tools.ecs.register_task_definition(family="web", containerDefinitions=[container])
    made = tools.ecs.create_service(cluster=cluster, serviceName=name, desiredCount=count, taskDefinition="web", **more)
    return str(made["service"]["serviceArn"])
