"""Examples by hand: of the types that people use most, and of shapes for which a schema alone makes no example.

Parameters are what the services take, as their CloudFormation pages say. A reference into the text of another component
makes that one a parent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.offers.aws_resources.declarations import one
from tests.world import REGION

Declared = Mapping[str, Any]
ACCOUNT: Final = "123456789012"
ROLE: Final = f"arn:aws:iam::{ACCOUNT}:role/sample"
SUBNETS: Final = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]


def trusting(service: str) -> Declared:
    allowed = {"Effect": "Allow", "Principal": {"Service": f"{service}.amazonaws.com"}, "Action": "sts:AssumeRole"}
    return {"Version": "2012-10-17", "Statement": [allowed]}


def allowing(action: str) -> Declared:
    return {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": action, "Resource": "*"}]}


@dataclass(frozen=True)
class Written:
    """An example by hand. ``named``: the properties that hold a resource's name; none where the tag does.

    ``tags_follow``: the call that creates it takes no tags.
    """

    parameters: Declared
    named: Callable[[str], Declared]
    changes: Declared = field(default_factory=dict)
    immutable: Declared = field(default_factory=dict)
    parents: tuple[dict[str, Any], ...] = ()
    tags_follow: bool = False


def _as(parameter: str) -> Callable[[str], Declared]:
    return lambda name: {parameter: name}


def _by_tag(_: str) -> Declared:
    return {}


def _definition(**state: Any) -> str:
    return json.dumps({"StartAt": "first", "States": {"first": {"Type": "Pass", "End": True, **state}}})


_BALANCER: Final = one(
    "AWS::ElasticLoadBalancingV2::LoadBalancer", "balancer", region=REGION, Name="balancer", Subnets=SUBNETS
)
_TARGETS: Final = one(
    "AWS::ElasticLoadBalancingV2::TargetGroup",
    "targets",
    region=REGION,
    Name="targets",
    Port=80,
    Protocol="HTTP",
    VpcId="vpc-0123456789abcdef0",
)
WRITTEN: Final[Mapping[str, Written]] = {
    "AWS::SQS::Queue": Written(
        {"region": REGION, "DelaySeconds": 5, "VisibilityTimeout": 60},
        _as("QueueName"),
        {"DelaySeconds": 9, "VisibilityTimeout": 90},
        {"FifoQueue": True},
    ),
    "AWS::SNS::Topic": Written(
        {"region": REGION, "DisplayName": "news", "TracingConfig": "PassThrough"},
        _as("TopicName"),
        {"DisplayName": "more news", "TracingConfig": "Active"},
    ),
    "AWS::Lambda::Function": Written(
        {
            "region": REGION,
            "Role": ROLE,
            "Runtime": "python3.12",
            "Handler": "index.handler",
            "Code": {"ZipFile": "def handler(event, context):\n    return event\n"},
            "Timeout": 10,
            "MemorySize": 128,
        },
        _as("FunctionName"),
        {"Timeout": 20, "MemorySize": 256},
        {"PackageType": "Image"},
    ),
    "AWS::IAM::Role": Written(
        {"AssumeRolePolicyDocument": trusting("lambda"), "Description": "works", "MaxSessionDuration": 3600},
        _as("RoleName"),
        {"Description": "works harder", "MaxSessionDuration": 7200},
        {"Path": "/other/"},
    ),
    "AWS::IAM::ManagedPolicy": Written(
        {"PolicyDocument": allowing("s3:GetObject")},
        _as("ManagedPolicyName"),
        {"PolicyDocument": allowing("s3:PutObject")},
        {"Path": "/other/"},
        tags_follow=True,
    ),
    "AWS::IAM::InstanceProfile": Written(
        {"Roles": ["${worker.RoleName}"]},
        _as("InstanceProfileName"),
        {},
        {"Path": "/other/"},
        (one("AWS::IAM::Role", "worker", RoleName="worker", AssumeRolePolicyDocument=trusting("ec2")),),
        tags_follow=True,
    ),
    "AWS::Logs::LogGroup": Written(
        {"region": REGION, "RetentionInDays": 7}, _as("LogGroupName"), {"RetentionInDays": 30}
    ),
    "AWS::CloudWatch::Alarm": Written(
        {
            "region": REGION,
            "ComparisonOperator": "GreaterThanThreshold",
            "EvaluationPeriods": 1,
            "MetricName": "ApproximateAgeOfOldestMessage",
            "Namespace": "AWS/SQS",
            "Period": 300,
            "Statistic": "Maximum",
            "Threshold": 600.0,
        },
        _as("AlarmName"),
        {"Threshold": 900.0, "EvaluationPeriods": 3},
    ),
    "AWS::EC2::LaunchTemplate": Written(
        {"region": REGION, "LaunchTemplateData": {"InstanceType": "t3.micro"}}, _as("LaunchTemplateName")
    ),
    "AWS::KMS::Key": Written(
        {"region": REGION, "Description": "of the shop", "EnableKeyRotation": False},
        _by_tag,
        {"Description": "of all shops", "EnableKeyRotation": True},
    ),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": Written(
        {"region": REGION, "Subnets": SUBNETS, "Scheme": "internal", "IpAddressType": "ipv4"},
        _as("Name"),
        {"IpAddressType": "dualstack"},
        {"Scheme": "internet-facing"},
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": Written(
        {
            "region": REGION,
            "Port": 80,
            "Protocol": "HTTP",
            "TargetType": "ip",
            "VpcId": "vpc-0123456789abcdef0",
            "HealthCheckPath": "/healthz",
            "HealthyThresholdCount": 3,
        },
        _as("Name"),
        {"HealthCheckPath": "/", "HealthyThresholdCount": 5},
        {"Port": 8080},
    ),
    "AWS::ElasticLoadBalancingV2::Listener": Written(
        {
            "region": REGION,
            "LoadBalancerArn": "${balancer.LoadBalancerArn}",
            "Protocol": "HTTP",
            "DefaultActions": [{"Type": "forward", "TargetGroupArn": "${targets.TargetGroupArn}"}],
        },
        _by_tag,
        {},
        {},
        (_BALANCER, _TARGETS),
    ),
    "AWS::DynamoDB::Table": Written(
        {
            "region": REGION,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "TableClass": "STANDARD",
        },
        _as("TableName"),
        {"TableClass": "STANDARD_INFREQUENT_ACCESS"},
    ),
    "AWS::S3::Bucket": Written(
        {"region": REGION, "VersioningConfiguration": {"Status": "Suspended"}},
        _as("BucketName"),
        {"VersioningConfiguration": {"Status": "Enabled"}},
    ),
    "AWS::EC2::SecurityGroup": Written({"region": REGION, "GroupDescription": "of the shop"}, _as("GroupName")),
    "AWS::ECR::Repository": Written(
        {"region": REGION, "ImageTagMutability": "MUTABLE"},
        _as("RepositoryName"),
        {"ImageTagMutability": "IMMUTABLE"},
    ),
    "AWS::ECS::TaskDefinition": Written(
        {
            "region": REGION,
            "Cpu": "256",
            "Memory": "512",
            "NetworkMode": "awsvpc",
            "RequiresCompatibilities": ["FARGATE"],
            "ContainerDefinitions": [{"Name": "web", "Image": "nginx:1.29", "Essential": True}],
        },
        _by_tag,
        {},
        {"Memory": "1024"},
    ),
    "AWS::Route53::HostedZone": Written(
        {"HostedZoneConfig": {"Comment": "of the shop"}},
        lambda name: {"Name": f"{name}.example.org"},
        {"HostedZoneConfig": {"Comment": "of all shops"}},
    ),
    "AWS::StepFunctions::StateMachine": Written(
        {"region": REGION, "RoleArn": ROLE, "DefinitionString": _definition()},
        _as("StateMachineName"),
        {"DefinitionString": _definition(Comment="another"), "RoleArn": f"{ROLE}-2"},
        {"StateMachineType": "EXPRESS"},
    ),
    "AWS::Wisdom::AIAgent": Written(
        {
            "region": REGION,
            "AssistantId": "1234abcd-12ab-34cd-56ef-1234567890ab",
            "Type": "MANUAL_SEARCH",
            "Configuration": {
                "ManualSearchAIAgentConfiguration": {
                    "AnswerGenerationAIGuardrailId": "1234abcd-12ab-34cd-56ef-000000000000"
                }
            },
            "Description": "answers",
        },
        _as("Name"),
        {"Description": "asks"},
    ),
    "AWS::QuickSight::Topic": Written(
        {"region": REGION, "AwsAccountId": ACCOUNT, "Name": "sales", "Description": "what was sold"},
        _as("TopicId"),
        {"Description": "what was bought"},
    ),
    "AWS::Wisdom::AssistantAssociation": Written(
        {
            "region": REGION,
            "AssistantId": "1234abcd-12ab-34cd-56ef-1234567890ab",
            "AssociationType": "KNOWLEDGE_BASE",
            "Association": {"KnowledgeBaseId": "1234abcd-12ab-34cd-56ef-1234567890ab"},
        },
        _by_tag,
    ),
    "AWS::ACMPCA::CertificateAuthority": Written(
        {
            "region": REGION,
            "Type": "ROOT",
            "KeyAlgorithm": "RSA_2048",
            "SigningAlgorithm": "SHA256WITHRSA",
            "Subject": {"CommonName": "shop.example.org"},
        },
        _by_tag,
    ),
    "AWS::Connect::Rule": Written(
        {
            "region": REGION,
            "InstanceArn": f"arn:aws:connect:{REGION}:{ACCOUNT}:instance/1234abcd-12ab-34cd-56ef-1234567890ab",
            "TriggerEventSource": {"EventSourceName": "OnPostCallAnalysisAvailable"},
            "Function": "1 = 1",
            "Actions": {},
            "PublishStatus": "DRAFT",
        },
        _as("Name"),
        {"PublishStatus": "PUBLISHED", "Function": "2 = 2"},
    ),
    "AWS::QuickSight::ActionConnector": Written(
        {
            "region": REGION,
            "AwsAccountId": ACCOUNT,
            "Name": "tickets",
            "Type": "JIRA_CLOUD",
            "AuthenticationConfig": {
                "AuthenticationType": "NONE",
                "AuthenticationMetadata": {"NoneConnectionMetadata": {"BaseEndpoint": "https://example.org"}},
            },
        },
        _as("ActionConnectorId"),
        {"Name": "other tickets"},
    ),
}
