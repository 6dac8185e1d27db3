"""The example of subnets: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from typing import Any

from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, Clients, Ec2Actions, Example, component
from tests.offers.aws.examples.vpc import VPC

SUBNET_A = component(AwsSubnet, "part-a", vpc="net", cidrBlock="10.0.1.0/24", availabilityZone=f"{REGION}a")
SUBNET_B = component(AwsSubnet, "part-b", vpc="net", cidrBlock="10.0.2.0/24", availabilityZone=f"{REGION}b")
SUBNET = component(
    AwsSubnet, "part", vpc="net", cidrBlock="10.0.3.0/24", availabilityZone=f"{REGION}a", mapPublicIpOnLaunch=True
)


def _edit_subnet(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    assert name == "mapPublicIpOnLaunch"
    clients("ec2").modify_subnet_attribute(SubnetId=resource_id, MapPublicIpOnLaunch={"Value": value})


class SubnetActions(Ec2Actions):
    def find(self, name: str) -> list[Found]:
        named = [{"Name": "tag:Name", "Values": [name]}]
        return self._found(self._clients("ec2").describe_subnets(Filters=named)["Subnets"], "SubnetId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").delete_subnet(SubnetId=found.resource_id)


def _interface_in_subnet(clients: Clients, found: Found) -> Obstacle:
    ec2 = clients("ec2")
    made = ec2.create_network_interface(SubnetId=found.resource_id)["NetworkInterface"]["NetworkInterfaceId"]
    return Obstacle((made,), lambda: ec2.delete_network_interface(NetworkInterfaceId=made))


EXAMPLE = Example(
    kind=AwsSubnet,
    components=[VPC, SUBNET],
    changes={"mapPublicIpOnLaunch": False},
    immutable_changes={"cidrBlock": "10.0.99.0/24", "availabilityZone": f"{REGION}b"},
    foreign_edit=_edit_subnet,
    operator=SubnetActions,
    name_tag="Name",
    hazards={"a network interface": ("Deleting", _interface_in_subnet)},
    effects=25,
    twin={"cidrBlock": "10.0.66.0/24"},
)
