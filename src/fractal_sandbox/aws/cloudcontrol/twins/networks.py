"""VPCs, subnets, security groups and launch templates of EC2: the same resources as its own calls make and read."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from fractal_sandbox.aws.cloudcontrol.twins.registry import Refused, Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, changed, pairs

__all__ = ["TWINS"]

_DNS: Final = ("EnableDnsSupport", "EnableDnsHostnames")
_TEMPLATE: Final = ("ImageId", "InstanceType", "KeyName", "UserData", "EbsOptimized")


class _OfEc2(ServiceTwin):
    """EC2 keeps the tags of all its resources in one place, by id."""

    service = "ec2"
    noun: ClassVar[str]

    def exists(self, identifier: str, region: str) -> bool:
        return identifier in self.identifiers(region)

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        if not self.exists(identifier, region):
            return None
        return dict(self.backend(region).tags.get(identifier, {}))

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        if gone:
            self.ask(region, "DeleteTags", Resources=[identifier], Tags=[{"Key": key} for key in gone])
        if added:
            self.ask(region, "CreateTags", Resources=[identifier], Tags=pairs(added))

    def identifier_in(self, arn: str) -> str | None:
        kind, _, identifier = arn.split(":", 5)[5].partition("/")
        return identifier if kind == self.noun else None

    def specified(self, tags: dict[str, str]) -> list[Model] | None:
        return [{"ResourceType": self.noun, "Tags": pairs(tags)}] if tags else None


class _Vpcs(_OfEc2):
    type_name = "AWS::EC2::VPC"
    noun = "vpc"
    knows = frozenset({*_DNS, "VpcId", "CidrBlock", "InstanceTenancy", "DefaultSecurityGroup", "DefaultNetworkAcl"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        wanted = {"CidrBlock": model.get("CidrBlock"), "InstanceTenancy": model.get("InstanceTenancy")}
        made = self.ask(region, "CreateVpc", TagSpecifications=self.specified(tags), **wanted)["Vpc"]
        self._set_dns(made["VpcId"], {name: model[name] for name in _DNS if name in model}, region)
        return self.describe(made["VpcId"], region)

    def describe(self, identifier: str, region: str) -> Model:
        vpc = self.ask(region, "DescribeVpcs", VpcIds=[identifier])["Vpcs"][0]
        found = {name: vpc[name] for name in ("VpcId", "CidrBlock", "InstanceTenancy") if name in vpc}
        for name in _DNS:
            attribute = name[0].lower() + name[1:]
            answer = self.ask(region, "DescribeVpcAttribute", VpcId=identifier, Attribute=attribute)
            found[name] = bool(answer[name].get("Value"))
        for group in self.backend(region).groups.get(identifier, {}).values():
            if group.name == "default":
                found["DefaultSecurityGroup"] = group.id
        return found

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        self._set_dns(identifier, changed(before, after, _DNS), region)

    def remove(self, identifier: str, region: str) -> None:
        ec2 = self.backend(region)
        groups = [one for one in ec2.groups.get(identifier, {}).values() if one.name != "default"]
        if groups or any(identifier == subnet.vpc_id for zone in ec2.subnets.values() for subnet in zone.values()):
            raise Refused("ResourceConflict", f"The vpc '{identifier}' has dependencies and cannot be deleted.")
        self.ask(region, "DeleteVpc", VpcId=identifier)

    def identifiers(self, region: str) -> list[str]:
        return list(self.backend(region).vpcs)

    def _set_dns(self, identifier: str, wanted: Mapping[str, Any], region: str) -> None:
        for name, value in wanted.items():
            self.ask(region, "ModifyVpcAttribute", VpcId=identifier, **{name: {"Value": bool(value)}})


class _Subnets(_OfEc2):
    type_name = "AWS::EC2::Subnet"
    noun = "subnet"
    knows = frozenset({"SubnetId", "VpcId", "CidrBlock", "AvailabilityZone", "MapPublicIpOnLaunch"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        wanted = {name: model.get(name) for name in ("VpcId", "CidrBlock", "AvailabilityZone")}
        made = self.ask(region, "CreateSubnet", TagSpecifications=self.specified(tags), **wanted)["Subnet"]
        self.change(made["SubnetId"], {}, model, region)
        return self.describe(made["SubnetId"], region)

    def describe(self, identifier: str, region: str) -> Model:
        subnet = self.ask(region, "DescribeSubnets", SubnetIds=[identifier])["Subnets"][0]
        return {name: subnet[name] for name in self.knows if name in subnet}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        for name, value in changed(before, after, ("MapPublicIpOnLaunch",)).items():
            self.ask(region, "ModifySubnetAttribute", SubnetId=identifier, **{name: {"Value": bool(value)}})

    def remove(self, identifier: str, region: str) -> None:
        if any(eni.subnet.id == identifier for eni in self.backend(region).enis.values()):
            raise Refused("ResourceConflict", f"The subnet '{identifier}' has dependencies and cannot be deleted.")
        self.ask(region, "DeleteSubnet", SubnetId=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [one for zone in self.backend(region).subnets.values() for one in zone]


class _Groups(_OfEc2):
    type_name = "AWS::EC2::SecurityGroup"
    noun = "security-group"
    knows = frozenset({"Id", "GroupId", "GroupName", "GroupDescription", "VpcId"})
    _LISTS: ClassVar = {"SecurityGroupIngress": "Ingress", "SecurityGroupEgress": "Egress"}

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = model.get("GroupName") or f"security-group-{uuid.uuid4().hex[:12]}"
        made = self.ask(
            region,
            "CreateSecurityGroup",
            GroupName=name,
            Description=model["GroupDescription"],
            VpcId=model.get("VpcId"),
            TagSpecifications=self.specified(tags),
        )
        self.change(made["GroupId"], {}, model, region)
        return self.describe(made["GroupId"], region)

    def describe(self, identifier: str, region: str) -> Model:
        group = self.ask(region, "DescribeSecurityGroups", GroupIds=[identifier])["SecurityGroups"][0]
        return {
            "Id": identifier,
            "GroupId": identifier,
            "GroupName": group["GroupName"],
            "GroupDescription": group["Description"],
            "VpcId": group["VpcId"],
        }

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        """Rules are kept as they were written; EC2 gets those that came, and loses those that went."""
        for name, direction in self._LISTS.items():
            old, new = before.get(name) or [], after.get(name) or []
            gone = [_permission(one) for one in old if one not in new]
            come = [_permission(one) for one in new if one not in old]
            if gone:
                self.ask(region, f"RevokeSecurityGroup{direction}", GroupId=identifier, IpPermissions=gone)
            if come:
                self.ask(region, f"AuthorizeSecurityGroup{direction}", GroupId=identifier, IpPermissions=come)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteSecurityGroup", GroupId=identifier)

    def identifiers(self, region: str) -> list[str]:
        return [one for groups in self.backend(region).groups.values() for one in groups]


def _permission(rule: Mapping[str, Any]) -> Model:
    """Return a rule as EC2's calls write it."""
    found: Model = {"IpProtocol": str(rule["IpProtocol"])}
    found |= {name: rule[name] for name in ("FromPort", "ToPort") if name in rule}
    if rule.get("CidrIp"):
        found["IpRanges"] = [{"CidrIp": rule["CidrIp"]}]
    if rule.get("CidrIpv6"):
        found["Ipv6Ranges"] = [{"CidrIpv6": rule["CidrIpv6"]}]
    peer = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    if peer:
        found["UserIdGroupPairs"] = [{"GroupId": peer}]
    return found


class _Templates(_OfEc2):
    type_name = "AWS::EC2::LaunchTemplate"
    noun = "launch-template"
    knows = frozenset({"LaunchTemplateId", "LaunchTemplateName", "LatestVersionNumber", "DefaultVersionNumber"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        del tags  # they stand in the property that EC2 reads too
        name = model.get("LaunchTemplateName") or f"launch-template-{uuid.uuid4().hex[:12]}"
        made = self.ask(
            region,
            "CreateLaunchTemplate",
            LaunchTemplateName=name,
            LaunchTemplateData=_data(model),
            TagSpecifications=model.get("TagSpecifications"),
        )["LaunchTemplate"]
        return self.describe(made["LaunchTemplateId"], region)

    def describe(self, identifier: str, region: str) -> Model:
        found = self.ask(region, "DescribeLaunchTemplates", LaunchTemplateIds=[identifier])["LaunchTemplates"][0]
        return {
            "LaunchTemplateId": identifier,
            "LaunchTemplateName": found["LaunchTemplateName"],
            "LatestVersionNumber": str(found["LatestVersionNumber"]),
            "DefaultVersionNumber": str(found["DefaultVersionNumber"]),
        }

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        if changed(before, after, ("LaunchTemplateData",)):
            data = _data(after)
            self.ask(region, "CreateLaunchTemplateVersion", LaunchTemplateId=identifier, LaunchTemplateData=data)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteLaunchTemplate", LaunchTemplateId=identifier)
        self.backend(region).tags.pop(identifier, None)  # which moto keeps

    def identifiers(self, region: str) -> list[str]:
        return list(self.backend(region).launch_templates)


def _data(model: Mapping[str, Any]) -> Model:
    """What EC2 keeps of a template here; Cloud Control keeps all of it, and never returns it."""
    given = model.get("LaunchTemplateData")
    return {name: given[name] for name in _TEMPLATE if isinstance(given, dict) and name in given}


TWINS: Final[dict[str, Twin]] = {one.type_name: one for one in (_Vpcs(), _Subnets(), _Groups(), _Templates())}
