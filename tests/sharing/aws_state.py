"""What a person sees of the cloud and of the agent's writes, in the words of these tests."""

from __future__ import annotations

from botocore.exceptions import ClientError

from tests.world import World


def vpcs(world: World, name: str = "net") -> list[str]:
    """The ids of all VPCs of a name."""
    named = [{"Name": "tag:Name", "Values": [name]}]
    return [one["VpcId"] for one in world.person.ec2.describe_vpcs(Filters=named)["Vpcs"]]


def is_there(world: World, resource_id: str) -> bool:
    """Whether a VPC, a subnet or a security group exists."""
    ec2 = world.person.ec2
    try:
        if resource_id.startswith("vpc-"):
            ec2.describe_vpcs(VpcIds=[resource_id])
        elif resource_id.startswith("subnet-"):
            ec2.describe_subnets(SubnetIds=[resource_id])
        else:
            ec2.describe_security_groups(GroupIds=[resource_id])
    except ClientError as error:
        if not error.response["Error"]["Code"].endswith("NotFound"):
            raise
        return False
    return True


def writes(world: World, live_system: str) -> list[str]:
    """The writing calls the agent made on behalf of a LiveSystem."""
    calls = world.sandbox.aws.calls.find(actor="agent", writes_only=True)
    return [call.operation for call in calls if call.origin.live_system == live_system]


def kinds(world: World, live_system: str) -> set[str]:
    """The kinds of events of a LiveSystem."""
    return {event["kind"] for event in world.events(live_system)}


def has_dns(world: World, vpc_id: str) -> bool:
    """Whether a VPC gives DNS names."""
    answer = world.person.ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute="enableDnsHostnames")
    return bool(answer["EnableDnsHostnames"]["Value"])
