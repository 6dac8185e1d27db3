"""Which shapes there are, each with the reports that it is known from; and what they concern beyond the schemas.

Names are those of `docs/aws-shapes.md`. A type stands here only where a report names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "CONCRETE_VERSIONS",
    "DEFAULTS",
    "DOTTED",
    "FILLED_LISTS",
    "IN_ORDER",
    "LEFT_OUT_DEFAULTS",
    "LOWERED",
    "NAMES_TO_ARNS",
    "SHAPES",
    "Names",
    "Shape",
    "ShapeName",
]

_AWSCC: Final = "https://github.com/hashicorp/terraform-provider-awscc"
_NATIVE: Final = "https://github.com/pulumi/pulumi-aws-native"
_DRIFT: Final = "https://github.com/go-to-k/cdk-real-drift"
_ROADMAP: Final = "https://github.com/aws-cloudformation/cloudformation-coverage-roadmap"

ShapeName: TypeAlias = Literal[
    "reordered",
    "default-filled",
    "default-left-out",
    "empty-list",
    "json-encoding",
    "policy",
    "policy-sid",
    "number-as-text",
    "case",
    "arn-for-name",
    "log-group-arn",
    "trailing-dot",
    "concrete-version",
    "more-entries",
]
Names: TypeAlias = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Shape:
    """One way in which a read differs from what was written, though nobody changed anything."""

    name: ShapeName
    what: str
    sources: tuple[str, ...]


SHAPES: Final = (
    Shape(
        "reordered",
        "a list whose schema says `insertionOrder: false`, and every list of tags, comes back in another order",
        (
            f"{_AWSCC}/issues/3058",
            f"{_AWSCC}/issues/293",
            f"{_AWSCC}/issues/2273",
            f"{_AWSCC}/issues/3302",
            f"{_NATIVE}/issues/3066",
            f"{_NATIVE}/issues/1486",
        ),
    ),
    Shape(
        "default-filled",
        "what was left out comes back with the service's default, at any depth",
        (f"{_ROADMAP}/issues/1012", f"{_NATIVE}/issues/2390", f"{_NATIVE}/issues/2940", f"{_DRIFT}/pull/356"),
    ),
    Shape(
        "default-left-out",
        "what was written as its default does not come back",
        (f"{_AWSCC}/issues/1216", f"{_AWSCC}/issues/2288"),
    ),
    Shape(
        "empty-list",
        "an empty list comes back as nothing, and tags that nobody wrote as an empty list",
        (f"{_AWSCC}/issues/700", f"{_AWSCC}/issues/2993", f"{_AWSCC}/issues/1785"),
    ),
    Shape(
        "json-encoding",
        "a JSON document comes back with other spaces and another order of keys, as text for an object or the reverse, "
        "and without the line's end after it",
        (f"{_NATIVE}/issues/3042", f"{_NATIVE}/issues/3041", f"{_AWSCC}/issues/1318"),
    ),
    Shape(
        "policy",
        "in a policy, a list of one comes back as that one or the reverse, actions, resources and principals in "
        "another order, and an account as its root's ARN",
        (
            "https://github.com/hashicorp/terraform/pull/8350",
            "https://github.com/hashicorp/terraform/pull/4278",
            "https://github.com/pulumi/pulumi-aws/issues/856",
            f"{_ROADMAP}/issues/2557",
        ),
    ),
    Shape(
        "policy-sid",
        "a statement of a policy that was written without `Sid` comes back with an empty or a numeric one",
        ("https://github.com/hashicorp/terraform/pull/4278", f"{_DRIFT}/pull/465"),
    ),
    Shape(
        "number-as-text",
        "a number comes back as text",
        (f"{_DRIFT}/pull/797", f"{_DRIFT}/pull/1398"),
    ),
    Shape(
        "case",
        "names that a service keeps in small letters, and values whose schema ignores case, come back in other letters",
        (
            f"{_DRIFT}/pull/504",
            f"{_DRIFT}/issues/1457",
            f"{_DRIFT}/issues/1531",
            f"{_DRIFT}/issues/1539",
            f"{_DRIFT}/issues/1589",
            f"{_DRIFT}/issues/1490",
            f"{_DRIFT}/pull/1403",
            "https://github.com/aws-cloudformation/aws-cloudformation-resource-providers-rds/pull/252",
            "https://github.com/hashicorp/terraform/issues/2719",
        ),
    ),
    Shape(
        "arn-for-name",
        "what was written as a name or an id comes back as the ARN that ends with it",
        (f"{_ROADMAP}/issues/1468", f"{_ROADMAP}/issues/2156", f"{_DRIFT}/pull/511"),
    ),
    Shape(
        "log-group-arn",
        "the ARN of a log group comes back without the `:*` at its end",
        (f"{_DRIFT}/pull/136",),
    ),
    Shape(
        "trailing-dot",
        "a domain's name comes back with a dot at its end",
        ("https://github.com/hashicorp/terraform-provider-aws/issues/241", f"{_DRIFT}/pull/1403"),
    ),
    Shape(
        "concrete-version",
        "a version that was written in part comes back whole",
        (f"{_DRIFT}/pull/1403",),
    ),
    Shape(
        "more-entries",
        "a list of settings comes back with those that nobody wrote beside those that somebody did",
        (f"{_DRIFT}/pull/645", f"{_DRIFT}/pull/465"),
    ),
)

# Lists that the schema calls unordered, and whose order means something: they come back as they were written.
# https://github.com/go-to-k/cdk-real-drift/issues/880
IN_ORDER: Final[Names] = {
    "AWS::AppSync::Resolver": ("PipelineConfig.Functions",),
    "AWS::SSMContacts::Plan": ("Stages", "Contact.Stages"),
    "AWS::SSMContacts::Contact": ("Plan",),
    "AWS::Scheduler::Schedule": ("Target.EcsParameters.PlacementStrategy",),
}

# Defaults that reports name and schemas do not: the roadmap's 1012, cdk-real-drift's pull requests 76, 78, 356 and 733.
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "AWS::DynamoDB::Table": {"BillingMode": "PROVISIONED", "DeletionProtectionEnabled": False},
    "AWS::EC2::VPC": {"EnableDnsHostnames": False, "EnableDnsSupport": True, "InstanceTenancy": "default"},
    "AWS::KMS::Key": {"KeySpec": "SYMMETRIC_DEFAULT", "KeyUsage": "ENCRYPT_DECRYPT", "Origin": "AWS_KMS"},
    "AWS::Kinesis::Stream": {"RetentionPeriodHours": 24},
    "AWS::Logs::LogGroup": {"LogGroupClass": "STANDARD"},
    "AWS::SQS::Queue": {"KmsDataKeyReusePeriodSeconds": 300},
    "AWS::Scheduler::Schedule": {"State": "ENABLED"},
}
LEFT_OUT_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {"AWS::S3::Bucket": {"ObjectLockEnabled": False}}

LOWERED: Final[Names] = {
    "AWS::DMS::Endpoint": ("EndpointIdentifier",),
    "AWS::DocDB::DBCluster": ("DBClusterIdentifier",),
    "AWS::ElastiCache::SubnetGroup": ("CacheSubnetGroupName",),
    "AWS::Neptune::DBCluster": ("DBClusterIdentifier",),
    "AWS::RDS::DBCluster": ("DBClusterIdentifier", "NetworkType"),
    "AWS::RDS::DBClusterParameterGroup": ("DBClusterParameterGroupName",),
    "AWS::RDS::DBInstance": (
        "DBInstanceIdentifier",
        "NetworkType",
        "PreferredBackupWindow",
        "PreferredMaintenanceWindow",
    ),
    "AWS::RDS::DBParameterGroup": ("DBParameterGroupName",),
    "AWS::RDS::OptionGroup": ("OptionGroupName",),
    "AWS::Redshift::Cluster": ("ClusterIdentifier",),
    "AWS::Redshift::ClusterParameterGroup": ("ParameterGroupName",),
    "AWS::Route53::RecordSet": ("Name",),
    "AWS::Batch::JobDefinition": ("Type",),
    "AWS::WAFv2::LoggingConfiguration": ("RedactedFields.SingleHeader.Name",),
}

# What an ARN stands in the place of a name for, and the form of the ARN.
NAMES_TO_ARNS: Final[Mapping[str, Mapping[str, str]]] = {
    "AWS::ECS::TaskDefinition": {
        "TaskRoleArn": "arn:aws:iam::{account}:role/{name}",
        "ExecutionRoleArn": "arn:aws:iam::{account}:role/{name}",
    },
    "AWS::Lambda::EventSourceMapping": {"FunctionName": "arn:aws:lambda:{region}:{account}:function:{name}"},
    "AWS::RDS::GlobalCluster": {"SourceDBClusterIdentifier": "arn:aws:rds:{region}:{account}:cluster:{name}"},
}

DOTTED: Final[Names] = {
    "AWS::Route53::HostedZone": ("Name",),
    "AWS::Route53::RecordSet": ("Name", "AliasTarget.DNSName", "HostedZoneName"),
}

CONCRETE_VERSIONS: Final[Names] = {
    "AWS::DocDB::DBCluster": ("EngineVersion",),
    "AWS::Neptune::DBCluster": ("EngineVersion",),
    "AWS::RDS::DBCluster": ("EngineVersion",),
    "AWS::RDS::DBInstance": ("EngineVersion",),
    "AWS::RDS::GlobalCluster": ("EngineVersion",),
}

# Lists that name settings by a key: one that is always there, and what it is called.
FILLED_LISTS: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "AWS::Cognito::UserPool": {"Schema": {"Name": "birthdate", "AttributeDataType": "String", "Required": False}},
    "AWS::ElasticLoadBalancingV2::Listener": {
        "ListenerAttributes": {"Key": "routing.http.response.server.enabled", "Value": "true"}
    },
    "AWS::ElasticLoadBalancingV2::LoadBalancer": {
        "LoadBalancerAttributes": {"Key": "waf.fail_open.enabled", "Value": "false"}
    },
    "AWS::ElasticLoadBalancingV2::TargetGroup": {
        "TargetGroupAttributes": {"Key": "stickiness.enabled", "Value": "false"}
    },
}
