"""What AWS chooses for a new resource: ids, ARNs and whatever else the schema says can only be read.

Values look like AWS's where a service is known for a form (`vpc-0…`, a queue's address); elsewhere they are of the
type that the schema names. Which of them identify the resource is the schema's matter.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.paths import Path, found
from fractal_sandbox.aws.cloudcontrol.schemas import TypeSchema

__all__ = ["arn_of", "completed", "identifier_of", "is_global"]

# In the home region of the account whatever region is asked.
_GLOBAL: Final = frozenset({"IAM", "Route53", "CloudFront", "Organizations", "GlobalAccelerator", "Shield", "Budgets"})
_BALANCING: Final = "arn:aws:elasticloadbalancing:{region}:{account}"
_ARNS: Final = {
    "AWS::ApiGatewayV2::Api": "arn:aws:apigateway:{region}::/apis/{id}",
    "AWS::CloudWatch::Alarm": "arn:aws:cloudwatch:{region}:{account}:alarm:{id}",
    "AWS::DynamoDB::Table": "arn:aws:dynamodb:{region}:{account}:table/{id}",
    "AWS::ECR::Repository": "arn:aws:ecr:{region}:{account}:repository/{id}",
    "AWS::ECS::TaskDefinition": "arn:aws:ecs:{region}:{account}:task-definition/{id}",
    "AWS::ElasticLoadBalancingV2::LoadBalancer": f"{_BALANCING}:loadbalancer/app/{{id}}/{{new}}",
    "AWS::ElasticLoadBalancingV2::TargetGroup": f"{_BALANCING}:targetgroup/{{id}}/{{new}}",
    "AWS::IAM::InstanceProfile": "arn:aws:iam::{account}:instance-profile/{id}",
    "AWS::IAM::ManagedPolicy": "arn:aws:iam::{account}:policy/{id}",
    "AWS::IAM::Role": "arn:aws:iam::{account}:role/{id}",
    "AWS::IAM::User": "arn:aws:iam::{account}:user/{id}",
    "AWS::Lambda::Function": "arn:aws:lambda:{region}:{account}:function:{id}",
    "AWS::Logs::LogGroup": "arn:aws:logs:{region}:{account}:log-group:{id}:*",
    "AWS::RDS::DBCluster": "arn:aws:rds:{region}:{account}:cluster:{id}",
    "AWS::RDS::DBInstance": "arn:aws:rds:{region}:{account}:db:{id}",
    "AWS::RDS::DBParameterGroup": "arn:aws:rds:{region}:{account}:pg:{id}",
    "AWS::RDS::DBSubnetGroup": "arn:aws:rds:{region}:{account}:subgrp:{id}",
    "AWS::Route53::HostedZone": "arn:aws:route53:::hostedzone/{id}",
    "AWS::S3::Bucket": "arn:aws:s3:::{id}",
    "AWS::SNS::Topic": "arn:aws:sns:{region}:{account}:{id}",
    "AWS::SQS::Queue": "arn:aws:sqs:{region}:{account}:{id}",
    "AWS::SecretsManager::Secret": "arn:aws:secretsmanager:{region}:{account}:secret:{id}-Ab12Cd",
    "AWS::StepFunctions::StateMachine": "arn:aws:states:{region}:{account}:stateMachine:{id}",
}
# ARNs that continue another one: (the property, the one that it continues, the noun there, and here).
_CONTINUED: Final = {
    "AWS::ElasticLoadBalancingV2::Listener": ("ListenerArn", "LoadBalancerArn", ":loadbalancer/", ":listener/"),
    "AWS::ElasticLoadBalancingV2::ListenerRule": ("RuleArn", "ListenerArn", ":listener/", ":listener-rule/"),
}
# What a service is called in ARNs, where that is not its name in types.
_IN_ARNS: Final = {
    "applicationautoscaling": "application-autoscaling",
    "certificatemanager": "acm",
    "elasticloadbalancingv2": "elasticloadbalancing",
    "msk": "kafka",
    "opensearchservice": "es",
    "stepfunctions": "states",
}
# How ids of EC2 begin, where the noun that they are of is not the name of the type.
_EC2_PREFIXES: Final = {
    "EIP": "eipalloc",
    "EIPAssociation": "eipassoc",
    "GatewayRouteTableAssociation": "rtbassoc",
    "SecurityGroupEgress": "sgr",
    "SecurityGroupIngress": "sgr",
    "SubnetNetworkAclAssociation": "aclassoc",
    "SubnetRouteTableAssociation": "rtbassoc",
    "VPC": "vpc",
    "VPCCidrBlock": "vpc-cidr-assoc",
    "VPCEndpoint": "vpce",
    "VPCEndpointService": "vpce-svc",
    "VPCPeeringConnection": "pcx",
    "VPNConnection": "vpn",
    "VPNGateway": "vgw",
}
# What AWS makes of what was written: (the property that is read, the one that was written, a constant in its place).
_DERIVED: Final = {
    "AWS::EC2::Route": (
        ("CidrBlock", "DestinationCidrBlock", ""),
        ("CidrBlock", "DestinationIpv6CidrBlock", ""),
        ("CidrBlock", "DestinationPrefixListId", ""),
    ),
    "AWS::EC2::VPCGatewayAttachment": (
        ("AttachmentType", "InternetGatewayId", "IGW"),
        ("AttachmentType", "VpnGatewayId", "VGW"),
    ),
}
_SETTLED: Final = ("ACTIVE", "Active", "active", "AVAILABLE", "available", "ENABLED", "READY", "CREATED")


@dataclass(frozen=True)
class _Place:
    schema: TypeSchema
    region: str

    @property
    def account(self) -> str:
        return accounts.current()


def is_global(type_name: str) -> bool:
    """Return whether a type's resources are in no region."""
    return type_name.split("::")[1] in _GLOBAL


def identifier_of(schema: TypeSchema, model: Mapping[str, Any]) -> str:
    """Return the primary identifier: its values in the schema's order, joined; empty where AWS has yet to choose one.

    Of several, one that nobody chose and nobody has to is left empty (the set of a DNS record).
    """
    values = [next(found(model, path), None) for path in schema.identifier]
    for path, value in zip(schema.identifier, values, strict=True):
        if value in (None, "") and (len(values) == 1 or path in schema.read_only or path[-1].endswith("Name")):
            return ""
    return "|".join(str(value or "") for value in values)


def arn_of(schema: TypeSchema, identifier: str, model: Mapping[str, Any], region: str) -> str:
    """Return the ARN of a resource: the schema's own property, else composed of type and identifier."""
    for path in (*schema.read_only, *schema.identifier):
        if _is_own_arn(schema, path):
            value = next(found(model, path), None)
            if isinstance(value, str) and value.startswith("arn:"):
                return value
    return _composed(_Place(schema, region), identifier)


def completed(schema: TypeSchema, wanted: Mapping[str, Any], region: str) -> dict[str, Any]:
    """Return what was wanted, with what AWS chooses beside it."""
    place, model = _Place(schema, region), dict(wanted)
    for path in schema.identifier:
        is_needed = len(schema.identifier) == 1 or path[-1].endswith("Name")
        if is_needed and path not in schema.read_only and len(path) == 1 and path[0] not in model:
            model[path[0]] = _name(schema)
    for name, written, constant in _DERIVED.get(schema.name, ()):
        if written in model:
            model.setdefault(name, constant or model[written])
    if schema.name in _CONTINUED:
        name, other, there, here = _CONTINUED[schema.name]
        if there in str(model.get(other)):
            model.setdefault(name, f"{model[other].replace(there, here)}/{uuid.uuid4().hex[:16]}")
    ordered = sorted(schema.read_only, key=lambda path: (len(path), _is_arn(path), path))
    for path in ordered:
        _fill(model, path, place, (), _own_name(schema, model))
    return model


def _own_name(schema: TypeSchema, model: Mapping[str, Any]) -> str:
    """What an ARN ends with: the name that was chosen, else the id."""
    kind = schema.name.rpartition("::")[2]
    wanted = (f"{kind}Name", "Name", f"{kind}Id", "Id", f"{kind}Identifier")
    names = [*wanted, *(path[-1] for path in schema.identifier), *(name for name in model if name.endswith("Name"))]
    chosen = [model[name] for name in names if isinstance(model.get(name), str) and not model[name].startswith("arn:")]
    return str(chosen[0]).rpartition("/")[2] if chosen else ""


def _fill(model: Any, path: Path, place: _Place, above: Path, name: str) -> None:
    """Set what is read only at a path, in every element that is there; nothing is made only to hold it."""
    head, rest = path[0], path[1:]
    if head == "*" or isinstance(model, list):
        inner = rest if head == "*" else path
        for one in model if isinstance(model, list) else model.values() if isinstance(model, dict) else ():
            if inner:
                _fill(one, inner, place, above, name)
        return
    if not isinstance(model, dict):
        return
    if rest:
        if head in model:
            _fill(model[head], rest, place, (*above, head), name)
        return
    if head not in model:
        value = _value(place, (*above, head), _schema_at(place.schema, (*above, head)), name)
        if value is not None:
            model[head] = value


def _schema_at(schema: TypeSchema, path: Path) -> Mapping[str, Any]:
    at: Mapping[str, Any] = {"properties": schema.properties}
    for name in path:
        at = schema.resolved(at)
        while "items" in at:
            at = schema.resolved(at["items"])
        at = (at.get("properties") or {}).get(name) or {}
    return schema.resolved(at)


def _value(place: _Place, path: Path, schema: Mapping[str, Any], name: str) -> Any:
    """Return a value for a property; None where nothing is known of its form, and AWS may leave it out."""
    kinds = schema.get("type")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    if schema.get("enum"):
        return next((one for one in _SETTLED if one in schema["enum"]), schema["enum"][0])
    if kind in ("integer", "number"):
        return max(int(schema.get("minimum", 1)), 1)
    if kind == "boolean":
        return False
    if kind in ("array", "object"):
        return None
    if schema.get("format") == "date-time" or re.search(r"(Time|Date|At|Timestamp)$", path[-1]):
        return "2026-01-01T00:00:00.000Z"
    return _text(place, path, name)


def _text(place: _Place, path: Path, name: str) -> str:
    last, kind = path[-1], place.schema.name.rpartition("::")[2]
    if _is_arn(path):
        return _composed(place, name or _new_id(place))
    if re.search(r"(Url|URL|Uri|Endpoint|DnsName|DNSName|DomainName)$", last):
        return _address(place, last, name)
    if path in place.schema.identifier or last in ("Id", f"{kind}Id"):
        return _new_id(place)
    if last.lower().endswith("name"):
        return name or _name(place.schema)
    return uuid.uuid4().hex[:12]


def _is_arn(path: Path) -> bool:
    return path[-1].lower().endswith("arn")


def _is_own_arn(schema: TypeSchema, path: Path) -> bool:
    """Return whether a property is the resource's own ARN, and not that of something it belongs to."""
    if len(path) != 1 or not _is_arn(path):
        return False
    kind = schema.name.rpartition("::")[2].lower()
    stem = path[0][:-3].lower()
    return stem in ("", "resource") or stem == kind or path in schema.identifier or kind.endswith(stem)


def _composed(place: _Place, identifier: str) -> str:
    region = "" if is_global(place.schema.name) else place.region
    values = {"region": region, "account": place.account, "id": identifier.rpartition("/")[2]}
    values["new"] = uuid.uuid4().hex[:16]
    form = _ARNS.get(place.schema.name)
    if form is not None:
        return form.format(**{**values, "id": identifier} if place.schema.name == "AWS::Logs::LogGroup" else values)
    _, service, kind = place.schema.name.split("::")
    noun = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind).lower()
    service = _IN_ARNS.get(service.lower(), service.lower())
    return f"arn:aws:{service}:{region}:{place.account}:{noun}/{identifier.rpartition('arn:')[2] or 'default'}"


def _address(place: _Place, last: str, name: str) -> str:
    service = place.schema.name.split("::")[1].lower()
    if place.schema.name == "AWS::SQS::Queue":
        return f"https://sqs.{place.region}.amazonaws.com/{place.account}/{name}"
    host = f"{name or uuid.uuid4().hex[:10]}.{service}.{place.region}.amazonaws.com"
    return f"https://{host}" if last.lower().endswith(("url", "uri")) else host.lower()


def _new_id(place: _Place) -> str:
    _, service, kind = place.schema.name.split("::")
    if service == "EC2":
        return f"{_prefixes().get(kind, kind.lower())}-0{uuid.uuid4().hex[:16]}"
    if place.schema.name == "AWS::Route53::HostedZone":
        return f"Z{uuid.uuid4().hex[:20].upper()}"
    if place.schema.name == "AWS::KMS::Key":
        return str(uuid.uuid4())
    if place.schema.name == "AWS::EFS::FileSystem":
        return f"fs-0{uuid.uuid4().hex[:16]}"
    return uuid.uuid4().hex[:10]


def _name(schema: TypeSchema) -> str:
    return f"{schema.name.rpartition('::')[2].lower()}-{uuid.uuid4().hex[:12]}"


@cache
def _prefixes() -> dict[str, str]:
    """How the ids of EC2's resources begin, by type."""
    from moto.ec2.utils import EC2_RESOURCE_TO_PREFIX

    found = {"".join(word.title() for word in noun.split("-")): one for noun, one in EC2_RESOURCE_TO_PREFIX.items()}
    return {**found, **_EC2_PREFIXES}
