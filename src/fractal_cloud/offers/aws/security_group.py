"""Security groups: found by their name in their VPC, which AWS keeps unique there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_serializer, field_validator

from fractal_cloud.model.component import Reference, parameter, reference_id
from fractal_cloud.model.errors import Conflict
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.blockers import of_group
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, group_name
from fractal_cloud.offers.aws.rules import (
    AwsSecurityGroupRule,
    Difference,
    Rule,
    each_once,
    from_permissions,
    to_permissions,
)
from fractal_cloud.offers.aws.services.ec2 import EC2
from fractal_cloud.offers.aws.tags import from_list, interned, to_list
from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.offers.offer import Query, Wanted

_TEXT = r"^[a-zA-Z0-9. _:/()#,@\[\]+=&;{}!$*-]{1,255}$"
# What AWS puts into every new group.
_ALLOW_ALL = {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
_DIRECTIONS = ("ingress", "egress")


class AwsSecurityGroup(AwsComponent):
    """A set of firewall rules in a VPC."""

    type = "NetworkAndCompute.IaaS.AwsSecurityGroup"

    name: str = parameter(
        default="",
        validate_default=True,
        max_length=255,
        description="Its group name, unique in the VPC; the component's id if not given.",
    )
    vpc: Reference[AwsVpc] = parameter(
        immutable=True, reference=(AwsVpc.type, "vpcId"), description="The VPC it belongs to; it lies in its region."
    )
    description: Annotated[str, Field(pattern=_TEXT)] = parameter(
        default="Managed by Fractal Cloud", immutable=True, description="What it is for; AWS never lets it be changed."
    )
    ingress: list[AwsSecurityGroupRule] | None = parameter(
        default=None,
        compare="unordered",
        description="All rules for what comes in. Rules that links made do not count.",
    )
    egress: list[AwsSecurityGroupRule] | None = parameter(
        default=None,
        compare="unordered",
        description="All rules for what goes out. Not declared: left as it is; AWS starts with one that allows all.",
    )

    @field_validator("name")
    @classmethod
    def _is_group_name(cls, name: str) -> str:
        return group_name(name)

    @field_validator(*_DIRECTIONS)
    @classmethod
    def _has_each_rule_once(cls, rules: list[AwsSecurityGroupRule] | None) -> list[AwsSecurityGroupRule] | None:
        return each_once(rules)

    @field_serializer("ingress", "egress")
    def _in_one_spelling(self, rules: list[Any] | None) -> list[Rule] | None:
        if rules is None:
            return None
        # What holds a reference to an output is kept as it was written until the agent fills it in.
        return [rule.flat() if isinstance(rule, AwsSecurityGroupRule) else rule for rule in rules]


SECURITY_GROUP = Resource(
    service=EC2,
    kind="security-group",
    named_by=("GroupId", "GroupIds"),
    arn="security-group/{id}",
    id_prefix="sg-",
    creates={"CreateSecurityGroup": "GroupId"},
    modifies=(
        "AuthorizeSecurityGroupEgress",
        "AuthorizeSecurityGroupIngress",
        "RevokeSecurityGroupEgress",
        "RevokeSecurityGroupIngress",
        "UpdateSecurityGroupRuleDescriptionsEgress",
        "UpdateSecurityGroupRuleDescriptionsIngress",
    ),
    deletes=("DeleteSecurityGroup",),
    also_modifies=("ModifySecurityGroupRules",),
    set_by={
        "ingress": (
            "AuthorizeSecurityGroupIngress",
            "RevokeSecurityGroupIngress",
            "UpdateSecurityGroupRuleDescriptionsIngress",
        ),
        "egress": (
            "AuthorizeSecurityGroupEgress",
            "RevokeSecurityGroupEgress",
            "UpdateSecurityGroupRuleDescriptionsEgress",
        ),
    },
    touches={
        "AuthorizeSecurityGroupEgress": ("security-group-rule/*",),
        "AuthorizeSecurityGroupIngress": ("security-group-rule/*",),
        "CreateSecurityGroup": ("vpc/*",),
    },
    listings=(Listing(operation="DescribeSecurityGroups", path="SecurityGroups", id="GroupId"),),
    not_found=("InvalidGroup.NotFound", 400, "The security group '{id}' does not exist"),
    name_key="GroupName",
)


class AwsSecurityGroupOffer(AwsOffer[AwsSecurityGroup]):
    """How security groups are read and changed."""

    component = AwsSecurityGroup
    title = "Security group"
    vendor_type = "AWS::EC2::SecurityGroup"
    resource = SECURITY_GROUP
    place = ("region",)
    parent = "vpc"
    outputs: ClassVar[Mapping[str, str]] = {
        "groupId": "id of the security group",
        "securityGroupArn": "its ARN",
        "region": "region it lies in",
        "vpcId": "id of its VPC",
    }

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All security groups of the region, a thousand a call."""
        return cloud.sightings(query, SECURITY_GROUP, lambda answer: _sightings(cloud, answer["SecurityGroups"]))

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One security group by its id."""
        del sweep
        answer = cloud.find("ec2", "describe_security_groups", GroupIds=[resource_id])
        return next(_sightings(cloud, answer["SecurityGroups"]), None) if answer else None

    def create(self, cloud: Aws, wanted: Wanted[AwsSecurityGroup], tags: ProtocolTags) -> Sighting:
        """Create it as AWS makes every new one; its rules cannot travel along and are left to ``update``."""
        group = wanted.component
        vpc_id = wanted.parent_id or reference_id(group.vpc)
        pairs = to_list(tags)
        answer = cloud.call(
            "ec2",
            "create_security_group",
            GroupName=group.name,
            Description=group.description,
            VpcId=vpc_id,
            TagSpecifications=[{"ResourceType": "security-group", "Tags": pairs}],
        )
        made = {
            "GroupId": answer["GroupId"],
            "SecurityGroupArn": answer.get("SecurityGroupArn"),
            "GroupName": group.name,
            "Description": group.description,
            "VpcId": vpc_id,
            "Tags": pairs,
            "IpPermissionsEgress": [_ALLOW_ALL],
        }
        return next(_sightings(cloud, [made]))

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsSecurityGroup], drift: Collection[str]) -> None:
        """Make the next call of those that are needed. What is allowed comes first, so that nothing is cut off."""
        declared = wanted.component.parameters()
        found = {
            direction: Difference(declared[direction], sighting.actual[direction])
            for direction in _DIRECTIONS
            if direction in drift
        }
        for verb, kind in (
            ("authorize_security_group_{}", "missing"),
            ("update_security_group_rule_descriptions_{}", "misdescribed"),
            ("revoke_security_group_{}", "superfluous"),
        ):
            for direction, difference in found.items():
                rules: list[Rule] = getattr(difference, kind)
                if rules:
                    permissions = to_permissions(rules)
                    cloud.call("ec2", verb.format(direction), GroupId=sighting.resource_id, IpPermissions=permissions)
                    return

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it; what still uses it is named."""
        try:
            cloud.find("ec2", "delete_security_group", GroupId=sighting.resource_id)
        except Conflict as refusal:
            raise of_group(cloud, sighting.resource_id, refusal) from refusal

    def is_provider_default(self, sighting: Sighting) -> bool:
        """Every VPC has a default group, which AWS makes and never lets go."""
        return sighting.name == "default"


def _sightings(cloud: Aws, found: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    region = interned(cloud.region)
    prefix = cloud.arn(SECURITY_GROUP, "")
    kind = AwsSecurityGroup.type
    for group in found:
        group_id = group["GroupId"]
        vpc_id = interned(group.get("VpcId") or "")
        tags = from_list(group.get("Tags"))
        yield Sighting(
            type=kind,
            name=group["GroupName"],
            resource_id=group_id,
            parent_id=vpc_id,
            protocol=ProtocolTags.from_mapping(tags),
            tags=tags,
            actual={
                "vpc": vpc_id,
                "description": interned(group["Description"]),
                "ingress": from_permissions(group.get("IpPermissions") or ()),
                "egress": from_permissions(group.get("IpPermissionsEgress") or ()),
            },
            outputs={
                "groupId": group_id,
                "securityGroupArn": group.get("SecurityGroupArn") or prefix + group_id,
                "region": region,
                "vpcId": vpc_id,
            },
        )
