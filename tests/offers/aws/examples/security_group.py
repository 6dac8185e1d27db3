"""The example of security groups: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from typing import Any

from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import Clients, Ec2Actions, Example, component
from tests.offers.aws.examples.vpc import VPC

HTTPS = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8", "description": "from inside"}
SSH = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.1.0.0/16"}
ANYTHING = {"ipProtocol": "-1", "cidrIp": "0.0.0.0/0"}
GROUP = component(AwsSecurityGroup, "web", vpc="net", description="web servers", ingress=[HTTPS], egress=[ANYTHING])
OTHER_GROUP = component(AwsSecurityGroup, "other", vpc="net")


def _permission(rule: dict[str, Any]) -> dict[str, Any]:
    ports = {"FromPort": rule["fromPort"], "ToPort": rule["toPort"]} if "fromPort" in rule else {}
    said = {"Description": rule["description"]} if "description" in rule else {}
    return {"IpProtocol": rule["ipProtocol"], **ports, "IpRanges": [{"CidrIp": rule["cidrIp"], **said}]}


def _edit_group(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ec2 = clients("ec2")
    group = ec2.describe_security_groups(GroupIds=[resource_id])["SecurityGroups"][0]
    present = group["IpPermissions" if name == "ingress" else "IpPermissionsEgress"]
    if present:
        getattr(ec2, f"revoke_security_group_{name}")(GroupId=resource_id, IpPermissions=present)
    wanted = [_permission(rule) for rule in value]
    if wanted:
        getattr(ec2, f"authorize_security_group_{name}")(GroupId=resource_id, IpPermissions=wanted)


class GroupActions(Ec2Actions):
    def find(self, name: str) -> list[Found]:
        named = [{"Name": "group-name", "Values": [name]}]
        return self._found(self._clients("ec2").describe_security_groups(Filters=named)["SecurityGroups"], "GroupId")

    def delete(self, found: Found) -> None:
        self._clients("ec2").delete_security_group(GroupId=found.resource_id)


def _interface_in_group(clients: Clients, found: Found) -> Obstacle:
    ec2 = clients("ec2")
    [group] = ec2.describe_security_groups(GroupIds=[found.resource_id])["SecurityGroups"]
    place = ec2.create_subnet(VpcId=group["VpcId"], CidrBlock="10.0.78.0/24")["Subnet"]["SubnetId"]
    made = ec2.create_network_interface(SubnetId=place, Groups=[found.resource_id])["NetworkInterface"]

    def clear() -> None:
        ec2.delete_network_interface(NetworkInterfaceId=made["NetworkInterfaceId"])
        ec2.delete_subnet(SubnetId=place)

    return Obstacle((made["NetworkInterfaceId"],), clear)


EXAMPLE = Example(
    kind=AwsSecurityGroup,
    components=[VPC, GROUP],
    changes={"ingress": [SSH, {**HTTPS, "description": "from everywhere inside"}], "egress": [HTTPS]},
    immutable_changes={"description": "something else"},
    foreign_edit=_edit_group,
    operator=GroupActions,
    is_slow=False,
    hazards={"a network interface": ("Deleting", _interface_in_group)},
    effects=35,
)
