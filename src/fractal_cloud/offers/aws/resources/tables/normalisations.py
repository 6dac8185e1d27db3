"""What AWS reads back otherwise than it was declared, where the schema's types do not say so: one row a property.

Sources. «transform»: the ``propertyTransform`` of the type's own published schema, which is AWS's statement of what its
service makes of a value. «roadmap 2565» and the like: the issue of that number in
https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues ; «awscc»: in
https://github.com/hashicorp/terraform-provider-awscc/issues ; «aws-native»: in
https://github.com/pulumi/pulumi-aws-native/issues ; «aws»: in
https://github.com/hashicorp/terraform-provider-aws/issues ; «cdk»: in https://github.com/aws/aws-cdk/issues .
Paths are dotted, ``*`` is every element of a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

Paths = Mapping[str, tuple[str, ...]]

# Small and capital letters are one. Source: transform; DMS: roadmap 2560, 2561, 2565, 2566; Batch: cdk 31621.
_CASELESS: Final[Paths] = {
    "AWS::AmazonMQ::Broker": (
        "AuthenticationStrategy",
        "DataReplicationMode",
        "DeploymentMode",
        "EngineType",
        "MaintenanceWindowStartTime.DayOfWeek",
        "StorageType",
    ),
    "AWS::AmazonMQ::Configuration": (
        "AuthenticationStrategy",
        "EngineType",
    ),
    "AWS::Batch::ComputeEnvironment": ("Type",),
    "AWS::Cassandra::Table": (
        "ClusteringKeyColumns.*.Column.ColumnType",
        "PartitionKeyColumns.*.ColumnType",
        "RegularColumns.*.ColumnType",
    ),
    "AWS::CloudFront::Distribution": ("DistributionConfig.CacheTagConfig.HeaderName",),
    "AWS::DMS::Endpoint": (
        "OracleSettings.CharLengthSemantics",
        "S3Settings.DatePartitionSequence",
        "EndpointIdentifier",
        "S3Settings.CompressionType",
    ),
    "AWS::DMS::ReplicationSubnetGroup": ("ReplicationSubnetGroupIdentifier",),
    "AWS::DMS::ReplicationTask": ("ReplicationTaskIdentifier",),
    "AWS::DocDB::GlobalCluster": ("GlobalClusterIdentifier",),
    "AWS::EC2::IPAMPool": ("AddressFamily",),
    "AWS::ElastiCache::ReplicationGroup": ("ReplicationGroupId",),
    "AWS::ElasticLoadBalancingV2::ListenerRule": ("Conditions.*.HttpHeaderConfig.HttpHeaderName",),
    "AWS::Lightsail::Database": ("PreferredMaintenanceWindow",),
    "AWS::Neptune::DBCluster": (
        "DBClusterIdentifier",
        "DBClusterParameterGroupName",
        "DBSubnetGroupName",
        "SnapshotIdentifier",
        "SourceDBClusterIdentifier",
    ),
    "AWS::Neptune::DBClusterParameterGroup": ("Name",),
    "AWS::Neptune::DBInstance": (
        "DBClusterIdentifier",
        "DBInstanceIdentifier",
        "DBParameterGroupName",
        "DBSnapshotIdentifier",
        "DBSubnetGroupName",
    ),
    "AWS::Neptune::DBParameterGroup": ("Name",),
    "AWS::Neptune::DBSubnetGroup": ("DBSubnetGroupName",),
    "AWS::Neptune::EventSubscription": ("SubscriptionName",),
    "AWS::NeptuneGraph::Graph": (
        "GraphId",
        "GraphName",
    ),
    "AWS::RDS::CustomDBEngineVersion": (
        "Engine",
        "EngineVersion",
    ),
    "AWS::RDS::DBCluster": (
        "DBClusterIdentifier",
        "DBClusterParameterGroupName",
        "DBSubnetGroupName",
        "Engine",
        "NetworkType",
        "PreferredMaintenanceWindow",
        "SnapshotIdentifier",
        "SourceDBClusterIdentifier",
        "StorageType",
    ),
    "AWS::RDS::DBClusterParameterGroup": ("DBClusterParameterGroupName",),
    "AWS::RDS::DBInstance": (
        "DBClusterIdentifier",
        "DBClusterSnapshotIdentifier",
        "DBInstanceIdentifier",
        "DBName",
        "DBParameterGroupName",
        "DBSnapshotIdentifier",
        "DBSubnetGroupName",
        "DBSystemId",
        "Engine",
        "NetworkType",
        "OptionGroupName",
        "PreferredMaintenanceWindow",
        "SourceDBInstanceAutomatedBackupsArn",
        "SourceDBInstanceIdentifier",
        "StorageType",
    ),
    "AWS::RDS::DBParameterGroup": ("DBParameterGroupName",),
    "AWS::RDS::DBProxy": ("DBProxyName",),
    "AWS::RDS::DBProxyEndpoint": (
        "DBProxyEndpointName",
        "DBProxyName",
    ),
    "AWS::RDS::DBProxyTargetGroup": (
        "DBProxyName",
        "TargetGroupName",
    ),
    "AWS::RDS::DBShardGroup": (
        "DBClusterIdentifier",
        "DBShardGroupIdentifier",
    ),
    "AWS::RDS::DBSubnetGroup": ("DBSubnetGroupName",),
    "AWS::RDS::EventSubscription": ("SubscriptionName",),
    "AWS::RDS::GlobalCluster": ("GlobalClusterIdentifier",),
    "AWS::RDS::Integration": ("SourceArn",),
    "AWS::RDS::OptionGroup": ("OptionGroupName",),
    "AWS::S3::Bucket": (
        "NotificationConfiguration.LambdaConfigurations.*.Filter.S3Key.Rules.*.Name",
        "NotificationConfiguration.QueueConfigurations.*.Filter.S3Key.Rules.*.Name",
        "NotificationConfiguration.TopicConfigurations.*.Filter.S3Key.Rules.*.Name",
    ),
    "AWS::SageMaker::AppImageConfig": ("AppImageConfigName",),
    "AWS::WAFv2::LoggingConfiguration": ("RedactedFields.*.SingleHeader.Name",),
}

# A name or an id is read back as the ARN that ends with it, or the other way round. Source: transform; keys: aws 13761,
# 35285.
_ARNS: Final[Paths] = {
    "AWS::CloudTrail::EventDataStore": ("KmsKeyId",),
    "AWS::CloudTrail::Trail": ("KMSKeyId",),
    "AWS::CodeCommit::Repository": ("KmsKeyId",),
    "AWS::DirectConnect::Connection": ("LagId",),
    "AWS::DirectConnect::PrivateVirtualInterface": (
        "ConnectionId",
        "DirectConnectGatewayId",
        "VirtualGatewayId",
    ),
    "AWS::DirectConnect::PublicVirtualInterface": ("ConnectionId",),
    "AWS::DirectConnect::TransitVirtualInterface": (
        "ConnectionId",
        "DirectConnectGatewayId",
    ),
    "AWS::DynamoDB::Table": ("SSESpecification.KMSMasterKeyId",),
    "AWS::ECS::CapacityProvider": ("AutoScalingGroupProvider.AutoScalingGroupArn",),
    "AWS::ECS::Cluster": ("Configuration.ManagedStorageConfiguration.FargateEphemeralStorageKmsKeyId",),
    "AWS::ECS::DaemonTaskDefinition": (
        "ExecutionRoleArn",
        "TaskRoleArn",
    ),
    "AWS::ECS::Service": (
        "Role",
        "TaskDefinition",
    ),
    "AWS::ECS::TaskDefinition": (
        "ExecutionRoleArn",
        "TaskRoleArn",
    ),
    "AWS::EFS::FileSystem": (
        "KmsKeyId",
        "ReplicationConfiguration.Destinations.*.FileSystemId",
    ),
    "AWS::EventsV2::EventBus": ("EncryptionConfiguration.KmsKeyIdentifier",),
    "AWS::KinesisAnalyticsV2::Application": ("ApplicationConfiguration.ApplicationEncryptionConfiguration.KeyId",),
    "AWS::Lambda::Alias": ("FunctionName",),
    "AWS::Lambda::EventSourceMapping": ("FunctionName",),
    "AWS::ODB::CloudAutonomousVmCluster": (
        "CloudExadataInfrastructureId",
        "OdbNetworkId",
    ),
    "AWS::ODB::CloudVmCluster": (
        "CloudExadataInfrastructureId",
        "OdbNetworkId",
    ),
    "AWS::RDS::CustomDBEngineVersion": ("KMSKeyId",),
    "AWS::RDS::DBCluster": (
        "KmsKeyId",
        "MasterUserSecret.KmsKeyId",
        "PerformanceInsightsKmsKeyId",
    ),
    "AWS::RDS::DBInstance": (
        "KmsKeyId",
        "MasterUserSecret.KmsKeyId",
        "PerformanceInsightsKMSKeyId",
    ),
    "AWS::RDS::GlobalCluster": ("SourceDBClusterIdentifier",),  # its own pattern: a name or an ARN
    "AWS::S3Files::AccessPoint": ("FileSystemId",),
    "AWS::S3Files::FileSystem": ("KmsKeyId",),
    "AWS::SageMaker::EndpointConfig": (
        "DataCaptureConfig.KmsKeyId",
        "KmsKeyId",
        "ProductionVariants.*.CoreDumpConfig.KmsKeyId",
        "ShadowProductionVariants.*.CoreDumpConfig.KmsKeyId",
    ),
    "AWS::VpcLattice::Listener": ("DefaultAction.Forward.TargetGroups.*.TargetGroupIdentifier",),
    "AWS::VpcLattice::Rule": ("Action.Forward.TargetGroups.*.TargetGroupIdentifier",),
}

# A block of addresses in its one spelling. Source: transform.
_BLOCKS: Final[Paths] = {
    "AWS::EC2::Subnet": (
        "CidrBlock",
        "Ipv6CidrBlock",
    ),
    "AWS::EC2::SubnetCidrBlock": ("Ipv6CidrBlock",),
}

# A host name: a dot at its end and the case of letters mean nothing. Source: transform.
_HOSTS: Final[Paths] = {
    "AWS::Route53::HostedZone": ("Name",),
    "AWS::Route53::RecordSet": (
        "AliasTarget.DNSName",
        "Name",
    ),
    "AWS::Route53Resolver::ResolverRule": ("DomainName",),
}

COMPARED: Final[Mapping[str, Paths]] = {"caseless": _CASELESS, "arn": _ARNS, "cidr": _BLOCKS, "domain": _HOSTS}
"""By the name of the comparer: what is compared by it."""

# White space at the end is dropped. Source: transform.
_TRIMMED: Final[Paths] = {
    "AWS::EKS::Addon": ("ConfigurationValues",),
    "AWS::RolesAnywhere::CRL": ("CrlData",),
    "AWS::RolesAnywhere::TrustAnchor": ("Source.SourceData.X509CertificateData",),
    "AWS::Transfer::Certificate": (
        "Certificate",
        "CertificateChain",
    ),
}

# Protocols by their numbers or names. Source: transform.
_PROTOCOLS: Final[Paths] = {
    "AWS::EC2::SecurityGroup": (
        "SecurityGroupEgress.*.IpProtocol",
        "SecurityGroupIngress.*.IpProtocol",
    ),
    "AWS::EC2::SecurityGroupEgress": ("IpProtocol",),
    "AWS::EC2::SecurityGroupIngress": ("IpProtocol",),
}

# A version stands for every later one that begins with it. Source: transform.
_VERSIONS: Final[Paths] = {
    "AWS::ElastiCache::CacheCluster": ("EngineVersion",),
    "AWS::RDS::DBCluster": ("EngineVersion",),
    "AWS::RDS::DBInstance": ("EngineVersion",),
}

# Read back with `custom:` before it. Source: transform.
_CUSTOM: Final[Paths] = {
    "AWS::Cognito::UserPool": ("Schema.*.Name",),
}

# The ARN of a log group, with `:*` behind it or without. Source: the properties' descriptions; aws 14214.
_LOG_GROUPS: Final[Paths] = {
    "AWS::DataSync::Task": ("CloudWatchLogGroupArn",),
    "AWS::CloudTrail::Trail": ("CloudWatchLogsLogGroupArn",),
    "AWS::Route53::HostedZone": ("QueryLoggingConfig.CloudWatchLogsLogGroupArn",),
    "AWS::ApiGateway::Stage": ("AccessLogSetting.DestinationArn",),
    "AWS::ApiGatewayV2::Stage": ("AccessLogSettings.DestinationArn",),
    "AWS::StepFunctions::StateMachine": ("LoggingConfiguration.Destinations.*.CloudWatchLogsLogGroup.LogGroupArn",),
}

# Dashes are read back as underscores. Source: transform.
_DASHES: Final[Paths] = {
    "AWS::DMS::Endpoint": (
        "MongoDbSettings.AuthMechanism",
        "PostgreSqlSettings.PluginName",
    ),
}

SPELLED: Final[Mapping[str, Paths]] = {
    "trimmed": _TRIMMED,
    "protocol": _PROTOCOLS,
    "version": _VERSIONS,
    "custom": _CUSTOM,
    "dashes": _DASHES,
    "log group": _LOG_GROUPS,
}
"""By the name of a spelling (`spellings`): values that are the same though no comparer says so."""

SETS: Final[Paths] = {
    # Read back in another order, though the schema says nothing of it or the opposite.
    "AWS::GameLift::Fleet": ("Locations", "ScalingPolicies"),  # awscc 2235
    "AWS::Connect::SecurityProfile": ("Permissions",),  # awscc 2046
    "AWS::GroundStation::DataflowEndpointGroup": ("EndpointDetails",),  # awscc 2036
    "AWS::Lambda::Function": ("VpcConfig.SubnetIds", "VpcConfig.SecurityGroupIds"),  # awscc 3058
    "AWS::Bedrock::DataAutomationProject": (
        "CustomOutputConfiguration.Blueprints",
    ),  # https://github.com/navapbc/template-infra/issues/1027
    "AWS::CloudFront::Distribution": (  # aws 46469
        "DistributionConfig.DefaultCacheBehavior.TrustedKeyGroups",
        "DistributionConfig.DefaultCacheBehavior.TrustedSigners",
        "DistributionConfig.CacheBehaviors.*.TrustedKeyGroups",
        "DistributionConfig.CacheBehaviors.*.TrustedSigners",
    ),
}

# Settings by their names, read back all of them, those of AWS's defaults too: what nobody declared is none of ours.
# Source: the properties' descriptions («attributes that you do not modify retain their current values»); awscc 1735.
SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "AWS::ElasticLoadBalancingV2::LoadBalancer": {"LoadBalancerAttributes": "Key"},
    "AWS::ElasticLoadBalancingV2::TargetGroup": {"TargetGroupAttributes": "Key"},
    "AWS::ElasticLoadBalancingV2::Listener": {"ListenerAttributes": "Key"},
    "AWS::ECS::Cluster": {"ClusterSettings": "Name"},
    "AWS::Cognito::UserPool": {"Schema": "Name"},  # the standard attributes of every pool are in it
    "AWS::RDS::OptionGroup": {"OptionConfigurations.*.OptionSettings": "Name"},
}

# Lists of ids of one kind have no order in any service of AWS. Source: awscc 3058 (subnets), aws-native 884, 1796.
SETS_BY_NAME: Final = re.compile(
    r"(?:Subnet|SecurityGroup|VpcEndpoint|RouteTable|NetworkInterface)(?:Id|Identifier|Arn)?s$"
    r"|^(?:Subnets|SecurityGroups|AvailabilityZones|ManagedPolicyArns|AllowedPrincipals)$"
)

KEYS_BY_NAME: Final = re.compile(r"K(?:ms|MS)(?:Master)?Key(?:Id|ARN|Arn|Identifier)?$|^KeyArn$")
"""Keys of KMS: taken by id, alias or ARN, read back as the ARN. Source: aws 3014, 13761, 35285, 39146."""

# JSON in a property whose schema says no more than «string». Source: the properties' descriptions.
DOCUMENTS: Final[Paths] = {
    "AWS::Events::Rule": ("Targets.*.Input",),
    "AWS::CloudWatch::Dashboard": ("DashboardBody",),
    "AWS::StepFunctions::StateMachine": ("DefinitionString",),
    "AWS::EKS::Addon": ("ConfigurationValues",),
    "AWS::ECR::Repository": ("LifecyclePolicy.LifecyclePolicyText",),
    "AWS::SSO::PermissionSet": ("InlinePolicy",),
    "AWS::StorageGateway::NFSFileShare": ("NotificationPolicy",),  # its own pattern
}

POLICIES_BY_NAME: Final = re.compile(
    r"^(?:\w*PolicyDocument|PolicyText|RepositoryPolicyText|Policy|KeyPolicy|AccessPolicy|AccessPolicies|ResourcePolicy"
    r"|NamespaceResourcePolicy|FileSystemPolicy|RegistryPolicyText|InlinePolicy)$"
)
"""Documents that are policies of IAM: their statements, actions and principals have no order. Source: aws-native 884,
https://github.com/pulumi/pulumi-aws/issues/856 (principals come back in another order)."""

DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Left out of what is read while they hold: the read handlers answer what the service's describing call says.
    "AWS::DynamoDB::Table": {"BillingMode": "PROVISIONED", "TableClass": "STANDARD"},
    "AWS::Logs::LogGroup": {"LogGroupClass": "STANDARD"},
    "AWS::IAM::Role": {"Path": "/", "MaxSessionDuration": 3600, "Description": ""},
    "AWS::IAM::ManagedPolicy": {"Path": "/", "Description": ""},
    "AWS::IAM::InstanceProfile": {"Path": "/"},
    "AWS::EC2::VPC": {"InstanceTenancy": "default"},
    "AWS::HealthLake::FHIRDatastore": {
        "IdentityProviderConfiguration.AuthorizationStrategy": "AWS_AUTH",
        "SseConfiguration.KmsEncryptionConfig.CmkType": "AWS_OWNED_KMS_KEY",
    },
    "AWS::Lambda::Function": {"MemorySize": 128, "Timeout": 3, "PackageType": "Zip", "Description": ""},
}
"""What AWS fills in beyond the schema's own ``default``. Source: the properties' descriptions in the CloudFormation
reference («Default: …», «If you omit»)."""
