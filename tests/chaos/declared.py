"""The kinds of things that people declare here, each with one parameter that is either on or off."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Final

from tests.world import Declaration, security_group, subnet, vpc

HTTPS: Final = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "0.0.0.0/0"}
PERMISSION: Final = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}


def _tags(item: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}


def _named(name: str) -> list[dict[str, Any]]:
    return [{"Name": "tag:Name", "Values": [name]}]


@dataclass(frozen=True)
class Seen:
    """A resource: its tags, and whether its parameter is on."""

    tags: dict[str, str]
    value: bool


class Kind(ABC):
    """How one kind is declared, and how a person sees and changes it with boto3."""

    parameter: str

    def name(self, region: str) -> str:
        """What it is called in the cloud."""
        return f"{type(self).__name__.lower()}-{region}"

    @abstractmethod
    def component(self, id: str, region: str, value: bool) -> Declaration:
        """Its declaration."""

    @abstractmethod
    def find(self, ec2: Any, name: str) -> dict[str, Seen]:
        """The resources of that name by id."""

    @abstractmethod
    def read(self, ec2: Any, resource: str) -> bool:
        """Whether its parameter is on."""

    @abstractmethod
    def write(self, ec2: Any, resource: str, value: bool) -> None:
        """Turn its parameter on or off."""

    @abstractmethod
    def delete(self, ec2: Any, resource: str) -> None:
        """Destroy it."""


class Net(Kind):
    """A VPC: AWS lets two bear one name."""

    parameter = "enableDnsHostnames"

    def component(self, id: str, region: str, value: bool) -> Declaration:
        return vpc(id, name=self.name(region), region=region, enableDnsHostnames=value)

    def find(self, ec2: Any, name: str) -> dict[str, Seen]:
        found = ec2.describe_vpcs(Filters=_named(name))["Vpcs"]
        return {item["VpcId"]: Seen(_tags(item), self.read(ec2, item["VpcId"])) for item in found}

    def read(self, ec2: Any, resource: str) -> bool:
        answer = ec2.describe_vpc_attribute(VpcId=resource, Attribute="enableDnsHostnames")
        return bool(answer["EnableDnsHostnames"]["Value"])

    def write(self, ec2: Any, resource: str, value: bool) -> None:
        ec2.modify_vpc_attribute(VpcId=resource, EnableDnsHostnames={"Value": value})

    def delete(self, ec2: Any, resource: str) -> None:
        ec2.delete_vpc(VpcId=resource)


class Web(Kind):
    """A subnet: two may bear one name, but not one address range."""

    parameter = "mapPublicIpOnLaunch"

    def component(self, id: str, region: str, value: bool) -> Declaration:
        return subnet(id, name=self.name(region), mapPublicIpOnLaunch=value)

    def find(self, ec2: Any, name: str) -> dict[str, Seen]:
        found = ec2.describe_subnets(Filters=_named(name))["Subnets"]
        return {item["SubnetId"]: Seen(_tags(item), item["MapPublicIpOnLaunch"]) for item in found}

    def read(self, ec2: Any, resource: str) -> bool:
        return bool(ec2.describe_subnets(SubnetIds=[resource])["Subnets"][0]["MapPublicIpOnLaunch"])

    def write(self, ec2: Any, resource: str, value: bool) -> None:
        ec2.modify_subnet_attribute(SubnetId=resource, MapPublicIpOnLaunch={"Value": value})

    def delete(self, ec2: Any, resource: str) -> None:
        ec2.delete_subnet(SubnetId=resource)


class Group(Kind):
    """A security group: its name is unique in its VPC."""

    parameter = "ingress"

    def component(self, id: str, region: str, value: bool) -> Declaration:
        return security_group(id, name=self.name(region), ingress=[HTTPS] if value else [])

    def find(self, ec2: Any, name: str) -> dict[str, Seen]:
        filters = [{"Name": "group-name", "Values": [name]}]
        found = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
        return {item["GroupId"]: Seen(_tags(item), bool(item["IpPermissions"])) for item in found}

    def read(self, ec2: Any, resource: str) -> bool:
        return bool(ec2.describe_security_groups(GroupIds=[resource])["SecurityGroups"][0]["IpPermissions"])

    def write(self, ec2: Any, resource: str, value: bool) -> None:
        change = ec2.authorize_security_group_ingress if value else ec2.revoke_security_group_ingress
        change(GroupId=resource, IpPermissions=[PERMISSION])

    def delete(self, ec2: Any, resource: str) -> None:
        ec2.delete_security_group(GroupId=resource)


KINDS: Final[dict[str, Kind]] = {"net": Net(), "web": Web(), "group": Group()}
