"""Naming what keeps a network or a cluster from being deleted: AWS itself only says that there is something (O6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from fractal_cloud.model.errors import CloudError, Conflict
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.tags import NAME, from_list

NAMED = 10


def in_vpc(cloud: Aws, vpc_id: str, refusal: Conflict) -> Conflict:
    """The refusal to delete a VPC, with what lies in it."""
    here = {"Name": "vpc-id", "Values": [vpc_id]}
    attached = {"Name": "attachment.vpc-id", "Values": [vpc_id]}
    return _explained(
        refusal,
        chain(
            _found(cloud, "describe_subnets", "Subnets", "SubnetId", here),
            (
                found
                for found in _found(cloud, "describe_security_groups", "SecurityGroups", "GroupId", here)
                if not found.endswith("'default'")
            ),
            _found(cloud, "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", here),
            _found(cloud, "describe_internet_gateways", "InternetGateways", "InternetGatewayId", attached),
            _found(cloud, "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId", here),
        ),
    )


def in_subnet(cloud: Aws, subnet_id: str, refusal: Conflict) -> Conflict:
    """The refusal to delete a subnet, with the network interfaces in it."""
    here = {"Name": "subnet-id", "Values": [subnet_id]}
    return _explained(
        refusal, _found(cloud, "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", here)
    )


def of_group(cloud: Aws, group_id: str, refusal: Conflict) -> Conflict:
    """The refusal to delete a security group, with the interfaces that use it and the groups whose rules name it."""
    uses = {"Name": "group-id", "Values": [group_id]}
    allows = {"Name": "ip-permission.group-id", "Values": [group_id]}
    return _explained(
        refusal,
        chain(
            _found(cloud, "describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId", uses),
            (
                found
                for found in _found(cloud, "describe_security_groups", "SecurityGroups", "GroupId", allows)
                if group_id not in found
            ),
        ),
    )


def in_cluster(cloud: Aws, cluster_arn: str, refusal: Conflict) -> Conflict:
    """The refusal to delete an ECS cluster, with the services and tasks in it."""

    def found(operation: str, key: str) -> Iterator[str]:
        for arns in cloud.pages("ecs", operation, key, cluster=cluster_arn, maxResults=100):
            yield from (f"{arn.split(':')[5].partition('/')[0]} {arn.rpartition('/')[2]!r}" for arn in arns)

    return _explained(refusal, chain(found("list_services", "serviceArns"), found("list_tasks", "taskArns")))


def _explained(refusal: Conflict, blockers: Iterator[str]) -> Conflict:
    try:
        named = list(islice(blockers, NAMED + 1))
    except CloudError:
        return refusal  # it stays a refusal, only without names
    if not named:
        return refusal
    more = " and more" if len(named) > NAMED else ""
    gone = "that is gone" if len(named) == 1 else "they are gone"
    text = f"{', '.join(named[:NAMED])}{more} still in it or using it: it goes when {gone} ({refusal.code})"
    return Conflict(text, code=refusal.code, request_id=refusal.request_id)


def _found(cloud: Aws, operation: str, key: str, id_key: str, condition: Mapping[str, Any]) -> Iterator[str]:
    for page in cloud.pages("ec2", operation, key, Filters=[condition], MaxResults=100):
        for one in page:
            name = one.get("GroupName") or from_list(one.get("Tags") or one.get("TagSet")).get(NAME)
            yield f"{one[id_key]} {name!r}" if name else str(one[id_key])
