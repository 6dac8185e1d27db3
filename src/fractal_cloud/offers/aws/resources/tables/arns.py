"""The ARNs of types whose schemas have no property that holds one: what stands behind the account.

Source: «Resource types defined by …» of each service in the Service Authorization Reference,
https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
Names in braces are properties of the type.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

_KINDS_OF_EC2: Final[Mapping[str, tuple[str, str]]] = {
    "CarrierGateway": ("carrier-gateway", "CarrierGatewayId"),
    "CustomerGateway": ("customer-gateway", "CustomerGatewayId"),
    "DHCPOptions": ("dhcp-options", "DhcpOptionsId"),
    "EIP": ("elastic-ip", "AllocationId"),
    "EgressOnlyInternetGateway": ("egress-only-internet-gateway", "Id"),
    "FlowLog": ("vpc-flow-log", "Id"),
    "Host": ("dedicated-host", "HostId"),
    "Instance": ("instance", "InstanceId"),
    "InternetGateway": ("internet-gateway", "InternetGatewayId"),
    "LaunchTemplate": ("launch-template", "LaunchTemplateId"),
    "NatGateway": ("natgateway", "NatGatewayId"),
    "NetworkAcl": ("network-acl", "Id"),
    "NetworkInterface": ("network-interface", "Id"),
    "RouteTable": ("route-table", "RouteTableId"),
    "SecurityGroup": ("security-group", "GroupId"),
    "Subnet": ("subnet", "SubnetId"),
    "TrafficMirrorFilter": ("traffic-mirror-filter", "Id"),
    "TrafficMirrorSession": ("traffic-mirror-session", "Id"),
    "TrafficMirrorTarget": ("traffic-mirror-target", "Id"),
    "TransitGatewayAttachment": ("transit-gateway-attachment", "Id"),
    "TransitGatewayConnect": ("transit-gateway-attachment", "TransitGatewayAttachmentId"),
    "TransitGatewayConnectPeer": ("transit-gateway-connect-peer", "TransitGatewayConnectPeerId"),
    "TransitGatewayPeeringAttachment": ("transit-gateway-attachment", "TransitGatewayAttachmentId"),
    "TransitGatewayRouteTable": ("transit-gateway-route-table", "TransitGatewayRouteTableId"),
    "TransitGatewayVpcAttachment": ("transit-gateway-attachment", "Id"),
    "VPC": ("vpc", "VpcId"),
    "VPCEndpoint": ("vpc-endpoint", "Id"),
    "VPCEndpointService": ("vpc-endpoint-service", "ServiceId"),
    "VPCPeeringConnection": ("vpc-peering-connection", "Id"),
    "VPNConnection": ("vpn-connection", "VpnConnectionId"),
    "VPNGateway": ("vpn-gateway", "VPNGatewayId"),
    "VerifiedAccessInstance": ("verified-access-instance", "VerifiedAccessInstanceId"),
    "VerifiedAccessTrustProvider": ("verified-access-trust-provider", "VerifiedAccessTrustProviderId"),
    "Volume": ("volume", "VolumeId"),
}
_HERE: Final = "{region}:{account}:"

# By type: the service's word in ARNs, and everything behind it.
ARNS: Final[Mapping[str, tuple[str, str]]] = {
    **{
        f"AWS::EC2::{noun}": ("ec2", f"{_HERE}{kind}/{{{identifier}}}")
        for noun, (kind, identifier) in _KINDS_OF_EC2.items()
    },
    "AWS::ApiGateway::ApiKey": ("apigateway", "{region}::/apikeys/{APIKeyId}"),
    "AWS::ApiGateway::RestApi": ("apigateway", "{region}::/restapis/{RestApiId}"),
    "AWS::ApiGateway::Stage": ("apigateway", "{region}::/restapis/{RestApiId}/stages/{StageName}"),
    "AWS::ApiGateway::UsagePlan": ("apigateway", "{region}::/usageplans/{Id}"),
    "AWS::ApiGateway::VpcLink": ("apigateway", "{region}::/vpclinks/{VpcLinkId}"),
    "AWS::ApiGatewayV2::Stage": ("apigateway", "{region}::/apis/{ApiId}/stages/{StageName}"),
    "AWS::ApiGatewayV2::VpcLink": ("apigateway", "{region}::/vpclinks/{VpcLinkId}"),
    "AWS::ApiGatewayV2::Api": ("apigateway", "{region}::/apis/{ApiId}"),
    "AWS::AppConfig::Application": ("appconfig", f"{_HERE}application/{{ApplicationId}}"),
    "AWS::AppConfig::DeploymentStrategy": ("appconfig", f"{_HERE}deploymentstrategy/{{Id}}"),
    "AWS::AppConfig::Environment": (
        "appconfig",
        f"{_HERE}application/{{ApplicationId}}/environment/{{EnvironmentId}}",
    ),
    "AWS::AppStream::Stack": ("appstream", f"{_HERE}stack/{{Name}}"),
    "AWS::Athena::DataCatalog": ("athena", f"{_HERE}datacatalog/{{Name}}"),
    "AWS::Athena::WorkGroup": ("athena", f"{_HERE}workgroup/{{Name}}"),
    "AWS::Cassandra::Keyspace": ("cassandra", f"{_HERE}/keyspace/{{KeyspaceName}}/"),
    "AWS::Cassandra::Table": ("cassandra", f"{_HERE}/keyspace/{{KeyspaceName}}/table/{{TableName}}"),
    "AWS::CloudFront::Distribution": ("cloudfront", ":{account}:distribution/{Id}"),
    "AWS::CloudWatch::Dashboard": ("cloudwatch", ":{account}:dashboard/{DashboardName}"),
    "AWS::CodeDeploy::Application": ("codedeploy", f"{_HERE}application:{{ApplicationName}}"),
    "AWS::CodeDeploy::DeploymentGroup": (
        "codedeploy",
        f"{_HERE}deploymentgroup:{{ApplicationName}}/{{DeploymentGroupName}}",
    ),
    "AWS::Cognito::IdentityPool": ("cognito-identity", f"{_HERE}identitypool/{{Id}}"),
    "AWS::DMS::EventSubscription": ("dms", f"{_HERE}es:{{SubscriptionName}}"),
    "AWS::DMS::ReplicationSubnetGroup": ("dms", f"{_HERE}subgrp:{{ReplicationSubnetGroupIdentifier}}"),
    "AWS::DataBrew::Dataset": ("databrew", f"{_HERE}dataset/{{Name}}"),
    "AWS::DataBrew::Job": ("databrew", f"{_HERE}job/{{Name}}"),
    "AWS::DataBrew::Project": ("databrew", f"{_HERE}project/{{Name}}"),
    "AWS::DataBrew::Recipe": ("databrew", f"{_HERE}recipe/{{Name}}"),
    "AWS::DataBrew::Ruleset": ("databrew", f"{_HERE}ruleset/{{Name}}"),
    "AWS::DataBrew::Schedule": ("databrew", f"{_HERE}schedule/{{Name}}"),
    "AWS::DirectoryService::SimpleAD": ("ds", f"{_HERE}directory/{{DirectoryId}}"),
    "AWS::DocDB::DBClusterParameterGroup": ("rds", f"{_HERE}cluster-pg:{{Name}}"),
    "AWS::DocDB::DBSubnetGroup": ("rds", f"{_HERE}subgrp:{{DBSubnetGroupName}}"),
    "AWS::ECS::CapacityProvider": ("ecs", f"{_HERE}capacity-provider/{{Name}}"),
    "AWS::ElastiCache::CacheCluster": ("elasticache", f"{_HERE}cluster:{{ClusterName}}"),
    "AWS::ElastiCache::ParameterGroup": ("elasticache", f"{_HERE}parametergroup:{{CacheParameterGroupName}}"),
    "AWS::ElastiCache::ReplicationGroup": ("elasticache", f"{_HERE}replicationgroup:{{ReplicationGroupId}}"),
    "AWS::ElastiCache::SubnetGroup": ("elasticache", f"{_HERE}subnetgroup:{{CacheSubnetGroupName}}"),
    "AWS::ElasticLoadBalancing::LoadBalancer": ("elasticloadbalancing", f"{_HERE}loadbalancer/{{LoadBalancerName}}"),
    "AWS::FIS::ExperimentTemplate": ("fis", f"{_HERE}experiment-template/{{Id}}"),
    "AWS::Glue::Crawler": ("glue", f"{_HERE}crawler/{{Name}}"),
    "AWS::Glue::Job": ("glue", f"{_HERE}job/{{Name}}"),
    "AWS::Glue::MLTransform": ("glue", f"{_HERE}mlTransform/{{TransformId}}"),
    "AWS::Glue::Trigger": ("glue", f"{_HERE}trigger/{{Name}}"),
    "AWS::Glue::Workflow": ("glue", f"{_HERE}workflow/{{Name}}"),
    "AWS::Grafana::Workspace": ("grafana", f"{_HERE}/workspaces/{{Id}}"),
    "AWS::GuardDuty::Detector": ("guardduty", f"{_HERE}detector/{{Id}}"),
    "AWS::GuardDuty::Filter": ("guardduty", f"{_HERE}detector/{{DetectorId}}/filter/{{Name}}"),
    "AWS::GuardDuty::IPSet": ("guardduty", f"{_HERE}detector/{{DetectorId}}/ipset/{{Id}}"),
    "AWS::KinesisAnalyticsV2::Application": ("kinesisanalytics", f"{_HERE}application/{{ApplicationName}}"),
    "AWS::Neptune::DBCluster": ("rds", f"{_HERE}cluster:{{DBClusterIdentifier}}"),
    "AWS::Neptune::DBClusterParameterGroup": ("rds", f"{_HERE}cluster-pg:{{Name}}"),
    "AWS::Neptune::DBInstance": ("rds", f"{_HERE}db:{{DBInstanceIdentifier}}"),
    "AWS::Neptune::DBParameterGroup": ("rds", f"{_HERE}pg:{{Name}}"),
    "AWS::Neptune::DBSubnetGroup": ("rds", f"{_HERE}subgrp:{{DBSubnetGroupName}}"),
    "AWS::RDS::DBClusterParameterGroup": ("rds", f"{_HERE}cluster-pg:{{DBClusterParameterGroupName}}"),
    "AWS::RDS::EventSubscription": ("rds", f"{_HERE}es:{{SubscriptionName}}"),
    "AWS::RDS::GlobalCluster": ("rds", ":{account}:global-cluster:{GlobalClusterIdentifier}"),
    "AWS::RDS::OptionGroup": ("rds", f"{_HERE}og:{{OptionGroupName}}"),
    "AWS::RUM::AppMonitor": ("rum", f"{_HERE}appmonitor/{{Name}}"),
    "AWS::Redshift::ClusterParameterGroup": ("redshift", f"{_HERE}parametergroup:{{ParameterGroupName}}"),
    "AWS::Redshift::ClusterSubnetGroup": ("redshift", f"{_HERE}subnetgroup:{{ClusterSubnetGroupName}}"),
    "AWS::Redshift::Cluster": ("redshift", f"{_HERE}cluster:{{ClusterIdentifier}}"),
    "AWS::Route53::HealthCheck": ("route53", "::healthcheck/{HealthCheckId}"),
    "AWS::Route53::HostedZone": ("route53", "::hostedzone/{Id}"),
    "AWS::SES::ConfigurationSet": ("ses", f"{_HERE}configuration-set/{{Name}}"),
    "AWS::SES::ContactList": ("ses", f"{_HERE}contact-list/{{ContactListName}}"),
    "AWS::SES::DedicatedIpPool": ("ses", f"{_HERE}dedicated-ip-pool/{{PoolName}}"),
    "AWS::SES::EmailIdentity": ("ses", f"{_HERE}identity/{{EmailIdentity}}"),
    "AWS::SSM::Association": ("ssm", f"{_HERE}association/{{AssociationId}}"),
    "AWS::SSM::Document": ("ssm", f"{_HERE}document/{{Name}}"),
    "AWS::SSM::MaintenanceWindow": ("ssm", f"{_HERE}maintenancewindow/{{WindowId}}"),
    "AWS::SSM::Parameter": ("ssm", f"{_HERE}parameter/{{Name}}"),
    "AWS::SSM::PatchBaseline": ("ssm", f"{_HERE}patchbaseline/{{Id}}"),
    "AWS::SageMaker::FeatureGroup": ("sagemaker", f"{_HERE}feature-group/{{FeatureGroupName}}"),
    "AWS::SageMaker::Pipeline": ("sagemaker", f"{_HERE}pipeline/{{PipelineName}}"),
    "AWS::Synthetics::Canary": ("synthetics", f"{_HERE}canary:{{Name}}"),
    "AWS::Synthetics::Group": ("synthetics", f"{_HERE}group:{{Name}}"),
    "AWS::WorkSpaces::Workspace": ("workspaces", f"{_HERE}workspace/{{WorkspaceId}}"),
}

# The property that holds the ARN, where it is not called so after the type: the schemas' descriptions of these.
OWN_ARN: Final[Mapping[str, str]] = {
    "AWS::BedrockAgentCore::BrowserCustom": "BrowserArn",
    "AWS::BedrockAgentCore::CodeInterpreterCustom": "CodeInterpreterArn",
    "AWS::CloudFormation::Stack": "StackId",
    "AWS::DSQL::Cluster": "ResourceArn",
    "AWS::EntityResolution::SchemaMapping": "SchemaArn",
    "AWS::FSx::DataRepositoryAssociation": "ResourceARN",
    "AWS::FSx::Snapshot": "ResourceARN",
    "AWS::FSx::StorageVirtualMachine": "ResourceARN",
    "AWS::FSx::Volume": "ResourceARN",
    "AWS::SecretsManager::Secret": "Id",
}


def own_arn(name: str, properties: Collection[str], identifier: Sequence[str]) -> str:
    """The property, among these that AWS fills in, that holds the ARN of a resource of this type; empty where none.

    It is ``Arn`` or called after the type, or the whole identifier, or after the end of the type's name (``RuleArn`` of
    an ``AutomationRule``), or ends with the type's name (``AgentRuntimeArn`` of a ``Runtime``).
    """
    if name in OWN_ARN:
        return OWN_ARN[name]
    noun = name.rpartition("::")[2].casefold()
    stems = {one.casefold().removesuffix("arn"): one for one in properties if one.casefold().endswith("arn")}
    if found := stems.get("") or stems.get(noun):
        return found
    if len(identifier) == 1 and identifier[0] in stems.values():
        return identifier[0]
    ends = [one for stem, one in stems.items() if noun.endswith(stem) or stem.endswith(noun)]
    return ends[0] if len(ends) == 1 else ""
