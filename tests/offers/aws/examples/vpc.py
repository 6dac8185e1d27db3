"""The example of VPCs: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from typing import Any

from fractal_cloud.offers.aws.vpc import AwsVpc
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, Clients, Ec2Actions, Example, component

VPC = component(AwsVpc, "net", region=REGION, cidrBlock="10.0.0.0/16", enableDnsSupport=True, enableDnsHostnames=True)


def _edit_vpc(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    attribute = {name[0].upper() + name[1:]: {"Value": value}}
    clients("ec2").modify_vpc_attribute(VpcId=resource_id, **attribute)


class VpcActions(Ec2Actions):
    def find(self, name: str) -> list[Found]:
        named = [{"Name": "tag:Name", "Values": [name]}]
        return self._found(self._clients("ec2").describe_vpcs(Filters=named)["Vpcs"], "VpcId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").delete_vpc(VpcId=found.resource_id)


def _subnet_of_somebody_else(clients: Clients, found: Found) -> Obstacle:
    ec2 = clients("ec2")
    made = ec2.create_subnet(VpcId=found.resource_id, CidrBlock="10.0.77.0/24")["Subnet"]["SubnetId"]
    return Obstacle((made,), lambda: ec2.delete_subnet(SubnetId=made))


EXAMPLE = Example(
    kind=AwsVpc,
    components=[VPC],
    changes={"enableDnsSupport": False, "enableDnsHostnames": False},
    immutable_changes={"cidrBlock": "10.9.0.0/16", "instanceTenancy": "dedicated"},
    foreign_edit=_edit_vpc,
    operator=VpcActions,
    name_tag="Name",
    hazards={"somebody else's subnet": ("Deleting", _subnet_of_somebody_else)},
    effects=27,
)
