"""Subnets: found by their tag ``Name`` in their VPC."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.blockers import in_subnet
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, Block
from fractal_cloud.offers.aws.services.ec2 import EC2
from fractal_cloud.offers.aws.tags import NAME, NAMED_RULES, from_list, interned, to_list
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.offers.offer import Query, Recognition, Wanted

SUBNET = Resource(
    service=EC2,
    kind="subnet",
    named_by=("SubnetId", "SubnetIds"),
    arn="subnet/{id}",
    id_prefix="subnet-",
    creates={"CreateSubnet": "Subnet.SubnetId"},
    modifies=("ModifySubnetAttribute",),
    deletes=("DeleteSubnet",),
    also_modifies=("AssociateSubnetCidrBlock",),
    touches={"CreateSubnet": ("vpc/*",)},
    listings=(Listing(operation="DescribeSubnets", path="Subnets", id="SubnetId"),),
    not_found=("InvalidSubnetID.NotFound", 400, "The subnet ID '{id}' does not exist"),
    phases={"creating": {"State": "pending"}},
)
_CONDITIONS: Mapping[str, Condition] = {
    "available": Condition.SETTLED,
    "pending": Condition.CREATING,
    "failed": Condition.BROKEN,
    "failed-insufficient-capacity": Condition.BROKEN,
    "unavailable": Condition.BROKEN,
}


class AwsSubnet(AwsComponent):
    """A part of a VPC in one availability zone."""

    type = "NetworkAndCompute.IaaS.AwsSubnet"

    vpc: Reference[AwsVpc] = parameter(
        immutable=True, reference=(AwsVpc.type, "vpcId"), description="The VPC it is a part of; it lies in its region."
    )
    cidr_block: Block = parameter(
        immutable=True, compare="cidr", description="Its IPv4 block: a part of the VPC's, between /16 and /28."
    )
    availability_zone: str | None = parameter(
        default=None,
        immutable=True,
        description="Zone it lies in, such as eu-west-1a; AWS chooses where none is given.",
    )
    map_public_ip_on_launch: bool | None = parameter(
        default=None, description="Whether instances started in it get a public address; AWS starts with false."
    )


class AwsSubnetOffer(AwsOffer[AwsSubnet]):
    """How subnets are read and changed."""

    component = AwsSubnet
    tag_rules = NAMED_RULES
    title = "Subnet"
    vendor_type = "AWS::EC2::Subnet"
    resource = SUBNET
    place = ("region",)
    parent = "vpc"
    recognition = Recognition.WINDOW
    outputs: ClassVar[Mapping[str, str]] = {
        "subnetId": "id of the subnet",
        "subnetArn": "its ARN",
        "region": "region it lies in",
        "vpcId": "id of its VPC",
        "state": "pending, available, unavailable or failed",
    }

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All subnets of the region, a thousand a call."""
        return cloud.sightings(query, SUBNET, lambda answer: _sightings(cloud, answer["Subnets"]))

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One subnet by its id."""
        del sweep
        answer = cloud.find("ec2", "describe_subnets", SubnetIds=[resource_id])
        return next(_sightings(cloud, answer["Subnets"]), None) if answer else None

    def create(self, cloud: Aws, wanted: Wanted[AwsSubnet], tags: ProtocolTags) -> Sighting:
        """Create it; whether it gives public addresses cannot travel along and is left to ``update``."""
        subnet = wanted.component
        zone = {"AvailabilityZone": subnet.availability_zone} if subnet.availability_zone else {}
        answer = cloud.call(
            "ec2",
            "create_subnet",
            VpcId=wanted.parent_id or reference_id(subnet.vpc),
            CidrBlock=subnet.cidr_block,
            TagSpecifications=[{"ResourceType": "subnet", "Tags": to_list(tags, subnet.name)}],
            **zone,
        )
        return next(_sightings(cloud, [answer["Subnet"]]))

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsSubnet], drift: Collection[str]) -> None:
        """Set whether it gives public addresses."""
        if "mapPublicIpOnLaunch" in drift:
            wish = {"Value": bool(wanted.component.map_public_ip_on_launch)}
            cloud.call("ec2", "modify_subnet_attribute", SubnetId=sighting.resource_id, MapPublicIpOnLaunch=wish)

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it; the network interfaces in it are named."""
        try:
            cloud.find("ec2", "delete_subnet", SubnetId=sighting.resource_id)
        except Conflict as refusal:
            raise in_subnet(cloud, sighting.resource_id, refusal) from refusal


def _sightings(cloud: Aws, found: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    region = interned(cloud.region)
    prefix = cloud.arn(SUBNET, "")
    kind = AwsSubnet.type
    for subnet in found:
        subnet_id = subnet["SubnetId"]
        vpc_id = interned(subnet["VpcId"])
        tags = from_list(subnet.get("Tags"))
        state = interned(subnet["State"])
        yield Sighting(
            type=kind,
            name=tags.get(NAME, ""),
            resource_id=subnet_id,
            parent_id=vpc_id,
            protocol=ProtocolTags.from_mapping(tags),
            tags=tags,
            actual={
                "vpc": vpc_id,
                "cidrBlock": subnet.get("CidrBlock", ""),
                "availabilityZone": interned(subnet["AvailabilityZone"]),
                "mapPublicIpOnLaunch": bool(subnet.get("MapPublicIpOnLaunch")),
            },
            outputs={
                "subnetId": subnet_id,
                "subnetArn": subnet.get("SubnetArn") or prefix + subnet_id,
                "region": region,
                "vpcId": vpc_id,
                "state": state,
            },
            condition=_CONDITIONS.get(state, Condition.CHANGING),
            detail="" if state in ("available", "pending") else state,
        )
