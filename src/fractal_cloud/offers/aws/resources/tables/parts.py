"""Types that carry no tags and belong to one that does (S25): what they are part of, and what distinguishes them.

Sources: the types' schemas (identifier, create-only properties, ``relationshipRef``), and their pages in the
CloudFormation reference: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/ , where each stands
under its service and name. A comment says what neither does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PartOf:
    """What a type is part of.

    ``property`` names the parent, whose output or parameter ``output`` it holds; ``also`` are others that AWS accepts
    there. ``key``: the properties that distinguish one from another in the same parent, where the identifier holds
    something AWS chooses; without any there is only one. ``derived``: identifier properties that nobody declares and
    everybody knows beforehand: (property of the identifier, declared property, its constant value or empty for the
    declared one). ``blocks_parent``: AWS does not delete the parent while one is there.
    ``follows_parent``: the parent's class is observed for all regions, and so are its parts (`located`).
    """

    parent_type: str
    property: str
    output: str
    also: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    derived: tuple[tuple[str, str, str], ...] = ()
    blocks_parent: bool = False
    follows_parent: bool = False


_FUNCTION: Final = "AWS::Lambda::Function"
_TABLE: Final = "AWS::EC2::RouteTable"
_POOL: Final = "AWS::Cognito::UserPool"
_API: Final = "AWS::ApiGatewayV2::Api"
_REST: Final = "AWS::ApiGateway::RestApi"
_GROUP: Final = "AWS::Logs::LogGroup"
_SCALING: Final = "AWS::AutoScaling::AutoScalingGroup"
_TRANSIT: Final = "AWS::EC2::TransitGatewayRouteTable"
_PEERS: Final = ("CidrIp", "CidrIpv6", "IpProtocol", "FromPort", "ToPort")

_ROUTE: Final = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")

PARTS: Final[Mapping[str, PartOf]] = {
    # Networks. The identifier of a route is its destination, under a name of its own (`CidrBlock`).
    "AWS::EC2::Route": PartOf(
        _TABLE, "RouteTableId", "RouteTableId", key=_ROUTE, derived=tuple(("CidrBlock", one, "") for one in _ROUTE)
    ),
    "AWS::EC2::SubnetRouteTableAssociation": PartOf(
        _TABLE, "RouteTableId", "RouteTableId", key=("SubnetId",), blocks_parent=True
    ),
    "AWS::EC2::GatewayRouteTableAssociation": PartOf(
        _TABLE, "RouteTableId", "RouteTableId", key=("GatewayId",), blocks_parent=True
    ),
    # `AttachmentType` is IGW or VGW: the schema's description of it.
    "AWS::EC2::VPCGatewayAttachment": PartOf(
        "AWS::EC2::VPC",
        "VpcId",
        "VpcId",
        key=("InternetGatewayId", "VpnGatewayId"),
        derived=(("AttachmentType", "InternetGatewayId", "IGW"), ("AttachmentType", "VpnGatewayId", "VGW")),
        blocks_parent=True,
    ),
    "AWS::EC2::VPCCidrBlock": PartOf("AWS::EC2::VPC", "VpcId", "VpcId", key=("CidrBlock", "Ipv6CidrBlock")),
    "AWS::EC2::VPCDHCPOptionsAssociation": PartOf("AWS::EC2::VPC", "VpcId", "VpcId"),
    "AWS::EC2::SubnetCidrBlock": PartOf("AWS::EC2::Subnet", "SubnetId", "SubnetId", key=("Ipv6CidrBlock",)),
    "AWS::EC2::SubnetNetworkAclAssociation": PartOf(
        "AWS::EC2::NetworkAcl", "NetworkAclId", "Id", key=("SubnetId",), blocks_parent=True
    ),
    "AWS::EC2::SecurityGroupIngress": PartOf(
        "AWS::EC2::SecurityGroup",
        "GroupId",
        "GroupId",
        also=("Id",),
        key=(*_PEERS, "SourceSecurityGroupId", "SourcePrefixListId"),
    ),
    "AWS::EC2::SecurityGroupEgress": PartOf(
        "AWS::EC2::SecurityGroup",
        "GroupId",
        "GroupId",
        also=("Id",),
        key=(*_PEERS, "DestinationSecurityGroupId", "DestinationPrefixListId"),
    ),
    "AWS::EC2::SecurityGroupVpcAssociation": PartOf("AWS::EC2::SecurityGroup", "GroupId", "GroupId", also=("Id",)),
    "AWS::EC2::EIPAssociation": PartOf(
        "AWS::EC2::EIP", "AllocationId", "AllocationId", key=("InstanceId", "NetworkInterfaceId"), blocks_parent=True
    ),
    "AWS::EC2::VolumeAttachment": PartOf("AWS::EC2::Volume", "VolumeId", "VolumeId", blocks_parent=True),
    "AWS::EC2::NetworkInterfaceAttachment": PartOf(
        "AWS::EC2::NetworkInterface", "NetworkInterfaceId", "Id", key=("InstanceId",), blocks_parent=True
    ),
    "AWS::EC2::VPNConnectionRoute": PartOf("AWS::EC2::VPNConnection", "VpnConnectionId", "VpnConnectionId"),
    "AWS::EC2::VPCEndpointServicePermissions": PartOf("AWS::EC2::VPCEndpointService", "ServiceId", "ServiceId"),
    "AWS::EC2::TransitGatewayRoute": PartOf(_TRANSIT, "TransitGatewayRouteTableId", "TransitGatewayRouteTableId"),
    "AWS::EC2::TransitGatewayRouteTableAssociation": PartOf(
        _TRANSIT, "TransitGatewayRouteTableId", "TransitGatewayRouteTableId", blocks_parent=True
    ),
    "AWS::EC2::TransitGatewayRouteTablePropagation": PartOf(
        _TRANSIT, "TransitGatewayRouteTableId", "TransitGatewayRouteTableId"
    ),
    "AWS::EFS::MountTarget": PartOf(
        "AWS::EFS::FileSystem", "FileSystemId", "FileSystemId", key=("SubnetId",), blocks_parent=True
    ),
    # Identities.
    "AWS::IAM::RolePolicy": PartOf("AWS::IAM::Role", "RoleName", "RoleName", blocks_parent=True),
    "AWS::IAM::UserPolicy": PartOf("AWS::IAM::User", "UserName", "UserName", blocks_parent=True),
    "AWS::KMS::Alias": PartOf("AWS::KMS::Key", "TargetKeyId", "KeyId", also=("Arn",)),
    "AWS::SecretsManager::ResourcePolicy": PartOf("AWS::SecretsManager::Secret", "SecretId", "Id"),
    "AWS::SecretsManager::RotationSchedule": PartOf("AWS::SecretsManager::Secret", "SecretId", "Id"),
    "AWS::SecretsManager::SecretTargetAttachment": PartOf("AWS::SecretsManager::Secret", "SecretId", "Id"),
    # Stores and queues.
    "AWS::S3::BucketPolicy": PartOf("AWS::S3::Bucket", "Bucket", "BucketName", follows_parent=True),
    "AWS::S3Tables::TableBucketPolicy": PartOf("AWS::S3Tables::TableBucket", "TableBucketARN", "TableBucketARN"),
    "AWS::SQS::QueueInlinePolicy": PartOf("AWS::SQS::Queue", "Queue", "QueueUrl"),
    "AWS::SNS::TopicInlinePolicy": PartOf("AWS::SNS::Topic", "TopicArn", "TopicArn"),
    "AWS::SNS::Subscription": PartOf("AWS::SNS::Topic", "TopicArn", "TopicArn", key=("Protocol", "Endpoint")),
    # Names.
    "AWS::Route53::RecordSet": PartOf("AWS::Route53::HostedZone", "HostedZoneId", "Id", blocks_parent=True),
    "AWS::Route53::DNSSEC": PartOf("AWS::Route53::HostedZone", "HostedZoneId", "Id", blocks_parent=True),
    "AWS::Route53::KeySigningKey": PartOf("AWS::Route53::HostedZone", "HostedZoneId", "Id", blocks_parent=True),
    # Functions.
    "AWS::Lambda::Permission": PartOf(
        _FUNCTION, "FunctionName", "FunctionName", also=("Arn",), key=("Action", "Principal", "SourceArn")
    ),
    "AWS::Lambda::Alias": PartOf(_FUNCTION, "FunctionName", "FunctionName", also=("Arn",), key=("Name",)),
    "AWS::Lambda::Url": PartOf(_FUNCTION, "TargetFunctionArn", "Arn", also=("FunctionName",), key=("Qualifier",)),
    "AWS::Lambda::EventInvokeConfig": PartOf(_FUNCTION, "FunctionName", "FunctionName", also=("Arn",)),
    "AWS::StepFunctions::StateMachineVersion": PartOf(
        "AWS::StepFunctions::StateMachine", "StateMachineArn", "Arn", key=("StateMachineRevisionId",)
    ),
    # Logs.
    "AWS::Logs::MetricFilter": PartOf(_GROUP, "LogGroupName", "LogGroupName"),
    "AWS::Logs::SubscriptionFilter": PartOf(_GROUP, "LogGroupName", "LogGroupName"),
    "AWS::Logs::LogStream": PartOf(_GROUP, "LogGroupName", "LogGroupName"),
    "AWS::Logs::Transformer": PartOf(_GROUP, "LogGroupIdentifier", "LogGroupName", also=("Arn",)),
    # Machines and containers.
    "AWS::AutoScaling::LifecycleHook": PartOf(_SCALING, "AutoScalingGroupName", "AutoScalingGroupName"),
    "AWS::AutoScaling::WarmPool": PartOf(_SCALING, "AutoScalingGroupName", "AutoScalingGroupName"),
    "AWS::ApplicationAutoScaling::ScalingPolicy": PartOf(
        "AWS::ApplicationAutoScaling::ScalableTarget",
        "ScalingTargetId",
        "Id",
        key=("PolicyName",),
    ),
    "AWS::ECS::ClusterCapacityProviderAssociations": PartOf(
        "AWS::ECS::Cluster", "Cluster", "ClusterName", also=("Arn",)
    ),
    "AWS::Events::EventBusPolicy": PartOf("AWS::Events::EventBus", "EventBusName", "Name", also=("Arn",)),
    # Interfaces to the world.
    "AWS::ApiGateway::Resource": PartOf(_REST, "RestApiId", "RestApiId", key=("ParentId", "PathPart")),
    "AWS::ApiGateway::Method": PartOf(_REST, "RestApiId", "RestApiId"),
    "AWS::ApiGateway::Model": PartOf(_REST, "RestApiId", "RestApiId"),
    "AWS::ApiGateway::Authorizer": PartOf(_REST, "RestApiId", "RestApiId", key=("Name",)),
    "AWS::ApiGateway::RequestValidator": PartOf(_REST, "RestApiId", "RestApiId", key=("Name",)),
    "AWS::ApiGateway::GatewayResponse": PartOf(_REST, "RestApiId", "RestApiId", key=("ResponseType",)),
    "AWS::ApiGateway::Deployment": PartOf(_REST, "RestApiId", "RestApiId", key=("Description",)),
    "AWS::ApiGatewayV2::Route": PartOf(_API, "ApiId", "ApiId", key=("RouteKey",)),
    "AWS::ApiGatewayV2::Integration": PartOf(
        _API, "ApiId", "ApiId", key=("IntegrationType", "IntegrationUri", "IntegrationMethod", "IntegrationSubtype")
    ),
    "AWS::ApiGatewayV2::Authorizer": PartOf(_API, "ApiId", "ApiId", key=("Name",)),
    "AWS::ApiGatewayV2::Model": PartOf(_API, "ApiId", "ApiId", key=("Name",)),
    "AWS::CloudFront::MonitoringSubscription": PartOf("AWS::CloudFront::Distribution", "DistributionId", "Id"),
    "AWS::WAFv2::LoggingConfiguration": PartOf("AWS::WAFv2::WebACL", "ResourceArn", "Arn"),
    "AWS::WAFv2::WebACLAssociation": PartOf("AWS::WAFv2::WebACL", "WebACLArn", "Arn", blocks_parent=True),
    # Users of applications.
    "AWS::Cognito::UserPoolClient": PartOf(_POOL, "UserPoolId", "UserPoolId", key=("ClientName",)),
    "AWS::Cognito::UserPoolDomain": PartOf(_POOL, "UserPoolId", "UserPoolId", blocks_parent=True),
    "AWS::Cognito::UserPoolGroup": PartOf(_POOL, "UserPoolId", "UserPoolId"),
    "AWS::Cognito::UserPoolIdentityProvider": PartOf(_POOL, "UserPoolId", "UserPoolId"),
    "AWS::Cognito::UserPoolResourceServer": PartOf(_POOL, "UserPoolId", "UserPoolId"),
    "AWS::Cognito::IdentityPoolRoleAttachment": PartOf("AWS::Cognito::IdentityPool", "IdentityPoolId", "Id"),
    # Backups.
    "AWS::Backup::BackupSelection": PartOf(
        "AWS::Backup::BackupPlan", "BackupPlanId", "BackupPlanId", key=("BackupSelection",), blocks_parent=True
    ),
    "AWS::AppSync::DataSource": PartOf("AWS::AppSync::GraphQLApi", "ApiId", "ApiId", key=("Name",)),
    "AWS::AppSync::Resolver": PartOf("AWS::AppSync::GraphQLApi", "ApiId", "ApiId", key=("TypeName", "FieldName")),
    "AWS::AppSync::FunctionConfiguration": PartOf("AWS::AppSync::GraphQLApi", "ApiId", "ApiId", key=("Name",)),
    "AWS::AppSync::ApiKey": PartOf("AWS::AppSync::GraphQLApi", "ApiId", "ApiId", key=("Description",)),
}

INSTEAD: Final[Mapping[str, str]] = {
    # No read handler: what they made cannot be read back. Their successors say one parent each.
    "AWS::SQS::QueuePolicy": "AWS::SQS::QueueInlinePolicy",
    "AWS::SNS::TopicPolicy": "AWS::SNS::TopicInlinePolicy",
    "AWS::IAM::Policy": "AWS::IAM::RolePolicy or AWS::IAM::ManagedPolicy",
    "AWS::Route53::RecordSetGroup": "AWS::Route53::RecordSet, one for each",
    "AWS::EC2::NetworkAclEntry": "the entries' own type when AWS adds a read handler; until then importOnly",
    "AWS::DynamoDB::GlobalTable": "AWS::DynamoDB::Table",
}
