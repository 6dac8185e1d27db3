"""A complete valid declaration of every AWS type with its parents, other values for its parameters, and how a person
would edit each of them with plain boto3.

Plain data for suites that run over the whole registry; nothing here asserts anything.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.model.component import Component
from fractal_cloud.offers.aws.ec2 import AwsEc2Instance
from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster
from fractal_cloud.offers.aws.ecs_service import AwsEcsService
from fractal_cloud.offers.aws.eks import AwsEks
from fractal_cloud.offers.aws.rds import AwsRdsPostgres
from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.subnet import AwsSubnet
from fractal_cloud.offers.aws.vpc import AwsVpc

REGION = "eu-west-1"
IMAGE, OTHER_IMAGE = "ami-03cf127a", "ami-12c6146b"

Clients = Callable[[str], Any]
"""A person's boto3 client of a service, in the example's region."""

ForeignEdit = Callable[[Clients, str, str, Any], None]
"""Edit one parameter of a resource as a person would: clients, resource id, parameter, value (cloud ids in it)."""


def _nothing(clients: Clients) -> None:
    """Nothing has to be there before."""


@dataclass(frozen=True)
class Example:
    """``components``: declarations in dependency order, the last one is under test.

    ``changes`` and ``immutable_changes``: another valid value for each parameter, component ids where it is a
    reference. ``prepare``: makes what the declaration takes for granted.
    """

    components: list[dict[str, Any]]
    changes: dict[str, Any]
    immutable_changes: dict[str, Any]
    foreign_edit: ForeignEdit
    prepare: Callable[[Clients], None] = field(default=_nothing)


def _component(kind: type[Component], component_id: str, **parameters: Any) -> dict[str, Any]:
    return {"id": component_id, "type": kind.type, "provider": kind.provider, "parameters": parameters}


VPC = _component(AwsVpc, "net", region=REGION, cidrBlock="10.0.0.0/16", enableDnsSupport=True, enableDnsHostnames=True)
SUBNET_A = _component(AwsSubnet, "part-a", vpc="net", cidrBlock="10.0.1.0/24", availabilityZone=f"{REGION}a")
SUBNET_B = _component(AwsSubnet, "part-b", vpc="net", cidrBlock="10.0.2.0/24", availabilityZone=f"{REGION}b")
SUBNET = _component(
    AwsSubnet, "part", vpc="net", cidrBlock="10.0.3.0/24", availabilityZone=f"{REGION}a", mapPublicIpOnLaunch=True
)
HTTPS = {"ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIp": "10.0.0.0/8", "description": "from inside"}
SSH = {"ipProtocol": "tcp", "fromPort": 22, "toPort": 22, "cidrIp": "10.1.0.0/16"}
ANYTHING = {"ipProtocol": "-1", "cidrIp": "0.0.0.0/0"}
GROUP = _component(AwsSecurityGroup, "web", vpc="net", description="web servers", ingress=[HTTPS], egress=[ANYTHING])
OTHER_GROUP = _component(AwsSecurityGroup, "other", vpc="net")
ECS_CLUSTER = _component(
    AwsEcsCluster, "jobs", region=REGION, containerInsights="enabled", capacityProviders=["FARGATE"]
)


def _edit_vpc(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    attribute = {name[0].upper() + name[1:]: {"Value": value}}
    clients("ec2").modify_vpc_attribute(VpcId=resource_id, **attribute)


def _edit_subnet(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    assert name == "mapPublicIpOnLaunch"
    clients("ec2").modify_subnet_attribute(SubnetId=resource_id, MapPublicIpOnLaunch={"Value": value})


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


def _edit_instance(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ec2 = clients("ec2")
    match name:
        case "state":
            (ec2.start_instances if value == "running" else ec2.stop_instances)(InstanceIds=[resource_id])
        case "securityGroups":
            ec2.modify_instance_attribute(InstanceId=resource_id, Groups=value)
        case "disableApiTermination":
            ec2.modify_instance_attribute(InstanceId=resource_id, DisableApiTermination={"Value": value})
        case _:
            text = b64encode(value.encode()).decode() if name == "userData" else value
            ec2.stop_instances(InstanceIds=[resource_id])
            ec2.modify_instance_attribute(InstanceId=resource_id, Attribute=name, Value=text)
            ec2.start_instances(InstanceIds=[resource_id])


def _edit_bucket(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    s3 = clients("s3")
    match name:
        case "versioning":
            s3.put_bucket_versioning(Bucket=resource_id, VersioningConfiguration={"Status": value})
        case "sseAlgorithm":
            rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": value}}
            s3.put_bucket_encryption(Bucket=resource_id, ServerSideEncryptionConfiguration={"Rules": [rule]})
        case "blockPublicAccess":
            four = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
            blocks = dict.fromkeys(four, value)
            s3.put_public_access_block(Bucket=resource_id, PublicAccessBlockConfiguration=blocks)
        case _:
            controls = {"Rules": [{"ObjectOwnership": value}]}
            s3.put_bucket_ownership_controls(Bucket=resource_id, OwnershipControls=controls)


_RDS_NAMES = {
    "dbInstanceClass": "DBInstanceClass",
    "multiAZ": "MultiAZ",
    "vpcSecurityGroups": "VpcSecurityGroupIds",
}


def _edit_database(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    change = {_RDS_NAMES.get(name, name[0].upper() + name[1:]): value}
    clients("rds").modify_db_instance(DBInstanceIdentifier=resource_id, ApplyImmediately=True, **change)


def _edit_ecs_cluster(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ecs = clients("ecs")
    if name == "containerInsights":
        ecs.update_cluster(cluster=resource_id, settings=[{"name": name, "value": value}])
    else:
        ecs.put_cluster_capacity_providers(
            cluster=resource_id, capacityProviders=value, defaultCapacityProviderStrategy=[]
        )


def _edit_service(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    ecs = clients("ecs")
    cluster = resource_id.rpartition(":service/")[2].partition("/")[0]
    service = ecs.describe_services(cluster=cluster, services=[resource_id])["services"][0]
    change = {name: value}
    if name in ("subnets", "securityGroups", "assignPublicIp"):
        network = service["networkConfiguration"]["awsvpcConfiguration"]
        change = {"networkConfiguration": {"awsvpcConfiguration": {**network, name: value}}}
    ecs.update_service(cluster=cluster, service=resource_id, **change)


def _register_tasks(clients: Clients) -> None:
    for _ in range(2):
        clients("ecs").register_task_definition(
            family="web",
            networkMode="awsvpc",
            requiresCompatibilities=["FARGATE"],
            cpu="256",
            memory="512",
            containerDefinitions=[{"name": "web", "image": "nginx", "essential": True}],
        )


_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")


def _edit_eks(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    eks = clients("eks")
    if name == "version":
        eks.update_cluster_version(name=resource_id, version=value)
        return
    if name == "logging":
        off = [one for one in _LOG_TYPES if one not in value]
        change: dict[str, Any] = {
            "logging": {"clusterLogging": [{"types": value, "enabled": True}, {"types": off, "enabled": False}]}
        }
    elif name == "deletionProtection":
        change = {name: value}
    else:
        change = {"resourcesVpcConfig": {{"securityGroups": "securityGroupIds"}.get(name, name): value}}
    eks.update_cluster_config(name=resource_id, **change)


EXAMPLES: dict[type[Component], Example] = {
    AwsVpc: Example(
        components=[VPC],
        changes={"enableDnsSupport": False, "enableDnsHostnames": False},
        immutable_changes={"cidrBlock": "10.9.0.0/16", "instanceTenancy": "dedicated"},
        foreign_edit=_edit_vpc,
    ),
    AwsSubnet: Example(
        components=[VPC, SUBNET],
        changes={"mapPublicIpOnLaunch": False},
        immutable_changes={"cidrBlock": "10.0.99.0/24", "availabilityZone": f"{REGION}b"},
        foreign_edit=_edit_subnet,
    ),
    AwsSecurityGroup: Example(
        components=[VPC, GROUP],
        changes={"ingress": [SSH, {**HTTPS, "description": "from everywhere inside"}], "egress": [HTTPS]},
        immutable_changes={"description": "something else"},
        foreign_edit=_edit_group,
    ),
    AwsEc2Instance: Example(
        components=[
            VPC,
            SUBNET_A,
            GROUP,
            OTHER_GROUP,
            _component(
                AwsEc2Instance,
                "machine",
                subnet="part-a",
                imageId=IMAGE,
                instanceType="t3.medium",
                securityGroups=["web"],
                userData="#!/bin/sh\necho hello",
                disableApiTermination=False,
                state="running",
            ),
        ],
        changes={
            "instanceType": "t3.large",
            "securityGroups": ["other"],
            "userData": "#!/bin/sh\necho bye",
            "disableApiTermination": True,
            "state": "stopped",
        },
        immutable_changes={"imageId": OTHER_IMAGE, "keyName": "another"},
        foreign_edit=_edit_instance,
    ),
    AwsS3: Example(
        components=[
            _component(
                AwsS3,
                "objects-of-team-a",
                region=REGION,
                versioning="Enabled",
                sseAlgorithm="AES256",
                blockPublicAccess=True,
                objectOwnership="BucketOwnerEnforced",
            )
        ],
        changes={
            "versioning": "Suspended",
            "sseAlgorithm": "aws:kms",
            "blockPublicAccess": False,
            "objectOwnership": "BucketOwnerPreferred",
        },
        immutable_changes={"region": "eu-central-1"},
        foreign_edit=_edit_bucket,
    ),
    AwsRdsPostgres: Example(
        components=[
            VPC,
            GROUP,
            OTHER_GROUP,
            _component(
                AwsRdsPostgres,
                "orders",
                region=REGION,
                dbInstanceClass="db.t4g.medium",
                allocatedStorage=20,
                engineVersion="16.3",
                autoMinorVersionUpgrade=False,
                dbName="orders",
                multiAZ=False,
                backupRetentionPeriod=7,
                publiclyAccessible=False,
                deletionProtection=False,
                vpcSecurityGroups=["web"],
            ),
        ],
        changes={
            "dbInstanceClass": "db.t4g.large",
            "allocatedStorage": 40,
            "engineVersion": "16.4",
            "autoMinorVersionUpgrade": True,
            "multiAZ": True,
            "backupRetentionPeriod": 14,
            "publiclyAccessible": True,
            "deletionProtection": True,
            "vpcSecurityGroups": ["other"],
        },
        immutable_changes={"masterUsername": "root", "dbName": "invoices", "storageEncrypted": False},
        foreign_edit=_edit_database,
    ),
    AwsEcsCluster: Example(
        components=[ECS_CLUSTER],
        changes={"containerInsights": "disabled", "capacityProviders": ["FARGATE", "FARGATE_SPOT"]},
        immutable_changes={},
        foreign_edit=_edit_ecs_cluster,
    ),
    AwsEcsService: Example(
        components=[
            VPC,
            SUBNET_A,
            SUBNET_B,
            GROUP,
            OTHER_GROUP,
            ECS_CLUSTER,
            _component(
                AwsEcsService,
                "shop",
                cluster="jobs",
                taskDefinition="web:1",
                desiredCount=2,
                launchType="FARGATE",
                subnets=["part-a"],
                securityGroups=["web"],
                assignPublicIp="DISABLED",
                platformVersion="1.4.0",
                enableExecuteCommand=False,
            ),
        ],
        changes={
            "taskDefinition": "web:2",
            "desiredCount": 3,
            "subnets": ["part-a", "part-b"],
            "securityGroups": ["other"],
            "assignPublicIp": "ENABLED",
            "platformVersion": "LATEST",
            "enableExecuteCommand": True,
        },
        immutable_changes={"launchType": "EC2"},
        foreign_edit=_edit_service,
        prepare=_register_tasks,
    ),
    AwsEks: Example(
        components=[
            VPC,
            SUBNET_A,
            SUBNET_B,
            GROUP,
            OTHER_GROUP,
            _component(
                AwsEks,
                "platform",
                version="1.31",
                roleArn="arn:aws:iam::123456789012:role/eks",
                subnets=["part-a", "part-b"],
                securityGroups=["web"],
                endpointPublicAccess=True,
                endpointPrivateAccess=False,
                publicAccessCidrs=["0.0.0.0/0"],
                logging=["api"],
                deletionProtection=False,
            ),
        ],
        changes={
            "version": "1.33",
            "securityGroups": ["other"],
            "endpointPublicAccess": False,
            "endpointPrivateAccess": True,
            "publicAccessCidrs": ["10.0.0.0/8"],
            "logging": ["api", "audit"],
            "deletionProtection": True,
        },
        immutable_changes={"roleArn": "arn:aws:iam::123456789012:role/other", "subnets": ["part-a", "part-c"]},
        foreign_edit=_edit_eks,
    ),
}
"""By component class. A person can only raise an EKS version and RDS storage: there the declared value is the other."""
