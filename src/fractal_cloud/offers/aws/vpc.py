"""VPCs: found by their tag ``Name`` in a region, of which there may be several equal ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from fractal_cloud.model.component import parameter
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.blockers import in_vpc
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, Block, Region
from fractal_cloud.offers.aws.services.ec2 import EC2
from fractal_cloud.offers.aws.tags import NAME, NAMED_RULES, from_list, interned, to_list
from fractal_cloud.offers.offer import Query, Recognition, Wanted

VPC = Resource(
    service=EC2,
    kind="vpc",
    named_by=("VpcId", "VpcIds"),
    arn="vpc/{id}",
    id_prefix="vpc-",
    creates={"CreateVpc": "Vpc.VpcId"},
    modifies=("ModifyVpcAttribute",),
    deletes=("DeleteVpc",),
    also_modifies=("AssociateDhcpOptions", "AssociateVpcCidrBlock", "ModifyVpcTenancy"),
    listings=(Listing(operation="DescribeVpcs", path="Vpcs", id="VpcId"),),
    not_found=("InvalidVpcID.NotFound", 400, "The vpc ID '{id}' does not exist"),
    phases={"creating": {"State": "pending"}},
)
# Parameter, attribute of the API: each is read and written by a call of its own.
ATTRIBUTES: Mapping[str, str] = {"enableDnsSupport": "EnableDnsSupport", "enableDnsHostnames": "EnableDnsHostnames"}


class AwsVpc(AwsComponent):
    """A virtual private network in one AWS region."""

    type = "NetworkAndCompute.IaaS.AwsVpc"

    region: Region = parameter(immutable=True, description="AWS region it lies in.")
    cidr_block: Block = parameter(
        immutable=True, compare="cidr", description="Its primary IPv4 block, between /16 and /28."
    )
    instance_tenancy: Literal["default", "dedicated"] = parameter(
        default="default", immutable=True, description="Whether its instances run on shared or on dedicated hardware."
    )
    enable_dns_support: bool | None = parameter(
        default=None, swept=True, description="Whether Amazon's DNS server answers inside it; AWS starts with true."
    )
    enable_dns_hostnames: bool | None = parameter(
        default=None,
        swept=True,
        description="Whether instances with public addresses get DNS names; AWS starts with false.",
    )


class AwsVpcOffer(AwsOffer[AwsVpc]):
    """How VPCs are read and changed."""

    component = AwsVpc
    tag_rules = NAMED_RULES
    title = "VPC"
    vendor_type = "AWS::EC2::VPC"
    resource = VPC
    place = ("region",)
    recognition = Recognition.WINDOW
    outputs: ClassVar[Mapping[str, str]] = {
        "vpcId": "id of the VPC",
        "vpcArn": "its ARN",
        "region": "region it lies in",
        "state": "pending or available",
        "isDefault": "whether it is the region's default VPC",
    }

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All VPCs of the region, a thousand a call."""
        return cloud.sightings(query, VPC, lambda answer: _sightings(cloud, answer["Vpcs"]))

    def sweep(self, cloud: Aws, sighting: Sighting, names: Collection[str]) -> Mapping[str, Any]:
        """The DNS attributes, which AWS returns one a call."""
        return {name: _attribute(cloud, sighting.resource_id, name) for name in names}

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One VPC by its id."""
        answer = cloud.find("ec2", "describe_vpcs", VpcIds=[resource_id])
        found = next(_sightings(cloud, answer["Vpcs"]), None) if answer else None
        if found is None or not sweep:
            return found
        return replace(found, actual={**found.actual, **self.sweep(cloud, found, sweep)})

    def create(self, cloud: Aws, wanted: Wanted[AwsVpc], tags: ProtocolTags) -> Sighting:
        """Create it; its DNS attributes cannot travel along and are left to ``update``."""
        vpc = wanted.component
        answer = cloud.call(
            "ec2",
            "create_vpc",
            CidrBlock=vpc.cidr_block,
            InstanceTenancy=vpc.instance_tenancy,
            TagSpecifications=[{"ResourceType": "vpc", "Tags": to_list(tags, vpc.name)}],
        )
        return next(_sightings(cloud, [answer["Vpc"]]))

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsVpc], drift: Collection[str]) -> None:
        """Set the next DNS attribute; names need the server, so the server comes first."""
        declared = wanted.component.parameters()
        for name, attribute in ATTRIBUTES.items():
            if name in drift:
                value = {attribute: {"Value": declared[name]}}
                cloud.call("ec2", "modify_vpc_attribute", VpcId=sighting.resource_id, **value)
                return

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it; what still lies in it is named."""
        try:
            cloud.find("ec2", "delete_vpc", VpcId=sighting.resource_id)
        except Conflict as refusal:
            raise in_vpc(cloud, sighting.resource_id, refusal) from refusal

    def is_provider_default(self, sighting: Sighting) -> bool:
        """Every region has a default VPC."""
        return bool(sighting.outputs["isDefault"])


def _attribute(cloud: Aws, vpc_id: str, name: str) -> bool:
    attribute = ATTRIBUTES[name]
    answer = cloud.call("ec2", "describe_vpc_attribute", VpcId=vpc_id, Attribute=name)
    return bool(answer[attribute]["Value"])


def _sightings(cloud: Aws, found: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    """One sighting per VPC. Thousands in every cycle: what is equal is shared, and nothing is built twice."""
    region = interned(cloud.region)
    prefix = cloud.arn(VPC, "")
    kind = AwsVpc.type
    for vpc in found:
        vpc_id = vpc["VpcId"]
        tags = from_list(vpc.get("Tags"))
        state = interned(vpc["State"])
        yield Sighting(
            type=kind,
            name=tags.get(NAME, ""),
            resource_id=vpc_id,
            protocol=ProtocolTags.from_mapping(tags),
            tags=tags,
            actual={
                "region": region,
                "cidrBlock": vpc["CidrBlock"],
                "instanceTenancy": interned(vpc["InstanceTenancy"]),
            },
            outputs={
                "vpcId": vpc_id,
                "vpcArn": prefix + vpc_id,
                "region": region,
                "state": state,
                "isDefault": bool(vpc.get("IsDefault")),
            },
            condition=Condition.SETTLED if state == "available" else Condition.CREATING,
        )
