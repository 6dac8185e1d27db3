"""A person's hands on every AWS type: plain boto3, no line shared with the offers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from fractal_cloud.testing import Found
from tests.offers.aws.examples import Clients, ForeignEdit


def _tags(pairs: list[dict[str, str]] | None, key: str = "Key", value: str = "Value") -> dict[str, str]:
    return {pair[key]: pair[value] for pair in pairs or []}


def _pairs(tags: Mapping[str, str], key: str = "Key", value: str = "Value") -> list[dict[str, str]]:
    return [{key: one, value: text} for one, text in tags.items()]


class AwsActions:
    """What is the same for all types; each subclass knows one service."""

    def __init__(self, clients: Clients, edit: ForeignEdit) -> None:
        self._clients = clients
        self._edit = edit

    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        self._edit(self._clients, resource_id, parameter, value)


class Ec2Hands(AwsActions):
    """Everything EC2 holds is tagged by its id."""

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("ec2").create_tags(Resources=[found.handle], Tags=_pairs(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("ec2").delete_tags(Resources=[found.handle], Tags=[{"Key": key} for key in keys])

    def _found(self, items: list[dict[str, Any]], id_key: str) -> list[Found]:
        return [Found(item[id_key], _tags(item.get("Tags")), item[id_key]) for item in items]


class VpcActions(Ec2Hands):
    def find(self, name: str) -> list[Found]:
        named = [{"Name": "tag:Name", "Values": [name]}]
        return self._found(self._clients("ec2").describe_vpcs(Filters=named)["Vpcs"], "VpcId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").delete_vpc(VpcId=found.resource_id)


class SubnetActions(Ec2Hands):
    def find(self, name: str) -> list[Found]:
        named = [{"Name": "tag:Name", "Values": [name]}]
        return self._found(self._clients("ec2").describe_subnets(Filters=named)["Subnets"], "SubnetId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").delete_subnet(SubnetId=found.resource_id)


class GroupActions(Ec2Hands):
    def find(self, name: str) -> list[Found]:
        named = [{"Name": "group-name", "Values": [name]}]
        return self._found(self._clients("ec2").describe_security_groups(Filters=named)["SecurityGroups"], "GroupId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").delete_security_group(GroupId=found.resource_id)


class InstanceActions(Ec2Hands):
    def find(self, name: str) -> list[Found]:
        living = ["pending", "running", "stopping", "stopped"]
        where = [{"Name": "tag:Name", "Values": [name]}, {"Name": "instance-state-name", "Values": living}]
        reservations = self._clients("ec2").describe_instances(Filters=where)["Reservations"]
        return self._found([one for some in reservations for one in some["Instances"]], "InstanceId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").terminate_instances(InstanceIds=[found.resource_id])


class BucketActions(AwsActions):
    """Buckets are tagged as the glass commands say: through the tagging API, which keeps the other tags."""

    def find(self, name: str) -> list[Found]:
        s3 = self._clients("s3")
        try:
            tags = _tags(s3.get_bucket_tagging(Bucket=name)["TagSet"])
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchTagSet":
                return []
            tags = {}
        return [Found(name, tags, f"arn:aws:s3:::{name}")]

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("resourcegroupstaggingapi").tag_resources(ResourceARNList=[found.handle], Tags=dict(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("resourcegroupstaggingapi").untag_resources(ResourceARNList=[found.handle], TagKeys=list(keys))

    def delete(self, found: Found) -> None:
        self._clients("s3").delete_bucket(Bucket=found.resource_id)


class DatabaseActions(AwsActions):
    def find(self, name: str) -> list[Found]:
        rds = self._clients("rds")
        try:
            found = rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"]
        except rds.exceptions.DBInstanceNotFoundFault:
            return []
        return [Found(name, _tags(one["TagList"]), one["DBInstanceArn"]) for one in found]

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("rds").add_tags_to_resource(ResourceName=found.handle, Tags=_pairs(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("rds").remove_tags_from_resource(ResourceName=found.handle, TagKeys=list(keys))

    def delete(self, found: Found) -> None:
        self._clients("rds").delete_db_instance(DBInstanceIdentifier=found.resource_id, SkipFinalSnapshot=True)


class EcsActions(AwsActions):
    """ECS tags by ARN, with its own spelling of the pairs."""

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("ecs").tag_resource(resourceArn=found.handle, tags=_pairs(tags, "key", "value"))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("ecs").untag_resource(resourceArn=found.handle, tagKeys=list(keys))


class EcsClusterActions(EcsActions):
    def find(self, name: str) -> list[Found]:
        items = self._clients("ecs").describe_clusters(clusters=[name], include=["TAGS"])["clusters"]
        living = [one for one in items if one["status"] != "INACTIVE"]
        return [Found(one["clusterArn"], _tags(one["tags"], "key", "value"), one["clusterArn"]) for one in living]

    def delete(self, found: Found) -> None:
        self._clients("ecs").delete_cluster(cluster=found.resource_id)


class EcsServiceActions(EcsActions):
    def find(self, name: str) -> list[Found]:
        ecs = self._clients("ecs")
        pages = ecs.get_paginator("list_clusters").paginate()
        items = [
            one
            for cluster in [arn for page in pages for arn in page["clusterArns"]]
            for one in ecs.describe_services(cluster=cluster, services=[name], include=["TAGS"])["services"]
            if one["status"] == "ACTIVE"
        ]
        return [Found(one["serviceArn"], _tags(one["tags"], "key", "value"), one["serviceArn"]) for one in items]

    def delete(self, found: Found) -> None:
        cluster = found.resource_id.rpartition(":service/")[2].partition("/")[0]
        self._clients("ecs").delete_service(cluster=cluster, service=found.resource_id, force=True)


class EksActions(AwsActions):
    def edit(self, resource_id: str, parameter: str, value: Any) -> None:
        """AWS raises a version only by one at a time."""
        if parameter != "version":
            super().edit(resource_id, parameter, value)
            return
        here = self._clients("eks").describe_cluster(name=resource_id)["cluster"]["version"]
        for minor in range(int(here.partition(".")[2]) + 1, int(value.partition(".")[2]) + 1):
            super().edit(resource_id, parameter, f"1.{minor}")

    def find(self, name: str) -> list[Found]:
        eks = self._clients("eks")
        try:
            cluster = eks.describe_cluster(name=name)["cluster"]
        except eks.exceptions.ResourceNotFoundException:
            return []
        return [Found(name, cluster["tags"], cluster["arn"])]

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("eks").tag_resource(resourceArn=found.handle, tags=dict(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("eks").untag_resource(resourceArn=found.handle, tagKeys=list(keys))

    def delete(self, found: Found) -> None:
        self._clients("eks").delete_cluster(name=found.resource_id)
