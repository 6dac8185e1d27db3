"""What a twin must offer, and how it is found by its type. What each does is in the module of its service."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Protocol

__all__ = ["Refused", "Twin", "all_twins", "find_twin", "identifier_in_arn", "twins_of"]


class Refused(Exception):
    """A handler could not do it: one of Cloud Control's error codes, and the service's own message."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Twin(Protocol):
    """A type whose resources another service has too, by the identifiers that Cloud Control uses."""

    @property
    def regions(self) -> list[str]:
        """The regions in which somebody has asked its service for something."""
        ...

    @property
    def is_listed(self) -> bool:
        """Whether moto's own tagging API lists its resources."""
        ...

    @property
    def kept_there(self) -> frozenset[str]:
        """The properties that the service keeps: what it does not return of them is not there."""
        ...

    def create(self, model: Mapping[str, Any], region: str) -> dict[str, Any]:
        """Make it there; return the properties with those that the service chose. Raises `Refused`."""
        ...

    def read(self, identifier: str, region: str) -> dict[str, Any] | None:
        """Return the properties that the service knows, tags included; None where there is no such resource."""
        ...

    def update(self, identifier: str, before: Mapping[str, Any], after: Mapping[str, Any], region: str) -> None:
        """Bring what the service knows from one state to another."""
        ...

    def delete(self, identifier: str, region: str) -> None: ...

    def identifiers(self, region: str) -> list[str]: ...

    def tags(self, identifier: str, region: str) -> dict[str, str] | None: ...

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        """Add and remove single tags there."""
        ...

    def identifier_in(self, arn: str) -> str | None:
        """Return the identifier of the resource that an ARN of the service names; None for those of other types."""
        ...


# The module of each type's twin, and the types that the ARNs of a service may name.
_MODULES: Final[Mapping[str, str]] = {
    "AWS::DynamoDB::Table": "storage",
    "AWS::EC2::LaunchTemplate": "networks",
    "AWS::EC2::SecurityGroup": "networks",
    "AWS::EC2::Subnet": "networks",
    "AWS::EC2::VPC": "networks",
    "AWS::ECS::TaskDefinition": "tasks_and_databases",
    "AWS::ElasticLoadBalancingV2::Listener": "balancing",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": "balancing",
    "AWS::ElasticLoadBalancingV2::TargetGroup": "balancing",
    "AWS::IAM::InstanceProfile": "identities",
    "AWS::IAM::ManagedPolicy": "identities",
    "AWS::IAM::Role": "identities",
    "AWS::KMS::Key": "logs_and_keys",
    "AWS::Lambda::Function": "functions",
    "AWS::Logs::LogGroup": "logs_and_keys",
    "AWS::RDS::DBParameterGroup": "tasks_and_databases",
    "AWS::RDS::DBSubnetGroup": "tasks_and_databases",
    "AWS::S3::Bucket": "storage",
    "AWS::SNS::Topic": "messaging",
    "AWS::SQS::Queue": "messaging",
}
_BY_SERVICE: Final[Mapping[str, tuple[str, ...]]] = {
    "dynamodb": ("AWS::DynamoDB::Table",),
    "ec2": ("AWS::EC2::LaunchTemplate", "AWS::EC2::SecurityGroup", "AWS::EC2::Subnet", "AWS::EC2::VPC"),
    "ecs": ("AWS::ECS::TaskDefinition",),
    "elasticloadbalancing": (
        "AWS::ElasticLoadBalancingV2::Listener",
        "AWS::ElasticLoadBalancingV2::LoadBalancer",
        "AWS::ElasticLoadBalancingV2::TargetGroup",
    ),
    "iam": ("AWS::IAM::InstanceProfile", "AWS::IAM::ManagedPolicy", "AWS::IAM::Role"),
    "kms": ("AWS::KMS::Key",),
    "lambda": ("AWS::Lambda::Function",),
    "logs": ("AWS::Logs::LogGroup",),
    "rds": ("AWS::RDS::DBParameterGroup", "AWS::RDS::DBSubnetGroup"),
    "s3": ("AWS::S3::Bucket",),
    "sns": ("AWS::SNS::Topic",),
    "sqs": ("AWS::SQS::Queue",),
}


@cache
def find_twin(type_name: str) -> Twin | None:
    """Return the twin of a type; None for one that Cloud Control alone knows."""
    module = _MODULES.get(type_name)
    if module is None:
        return None
    found: dict[str, Twin] = importlib.import_module(f"{__package__}.{module}").TWINS
    return found[type_name]


def identifier_in_arn(arn: str) -> tuple[str, str] | None:
    """Return type and identifier of the resource that an ARN names; None where it is no twin's."""
    service = arn.split(":")[2] if arn.count(":") >= 5 else ""
    for type_name in _BY_SERVICE.get(service, ()):
        twin = find_twin(type_name)
        identifier = None if twin is None else twin.identifier_in(arn)
        if identifier is not None:
            return type_name, identifier
    return None


def all_twins() -> tuple[str, ...]:
    """Return every type that has a twin."""
    return tuple(_MODULES)


def twins_of(service: str) -> tuple[str, ...]:
    """Return the types with twins whose ARNs name a service."""
    return _BY_SERVICE.get(service, ())
