"""How AWS spells the things of the benchmarks in its answers: rendered once, in the vendor's own formats.

Answers hold what AWS returns for a thing that was just made and left alone, without the line breaks it puts in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from benchmarks.stock import (
    ACCOUNT,
    BUCKET,
    CLUSTER,
    DATABASE,
    GROUP,
    INSTANCE,
    REGION,
    SERVICE,
    SUBNET,
    VPC,
    Lot,
    cidr_of,
)

_WHEN: Final = "2026-01-01T00:00:00.000Z"
_EPOCH: Final = 1767225600


def id_of(prefix: str, number: int) -> str:
    """The id EC2 gives one of its things."""
    return f"{prefix}-{number + 0x10000000000000000 // 16:017x}"


def tags_of(lot: Lot, number: int) -> dict[str, str]:
    """The tags of one thing: its name, the two of the protocol, and one of somebody else's."""
    named = {"Name": lot.name(number)} if lot.kind in (VPC, SUBNET, INSTANCE) else {}
    return {**named, "managed-by": "fractal-cloud", "fractal-cloud-owner": lot.owner(number), "cost-center": "4711"}


def _tag_set(tags: Mapping[str, str]) -> str:
    items = "".join(f"<item><key>{key}</key><value>{value}</value></item>" for key, value in tags.items())
    return f"<tagSet>{items}</tagSet>"


def vpc(vpc_id: str, cidr: str, tags: Mapping[str, str]) -> str:
    """One VPC, as a list and the answer to its creation show it."""
    return (
        f"<vpcId>{vpc_id}</vpcId><ownerId>{ACCOUNT}</ownerId><state>available</state><cidrBlock>{cidr}</cidrBlock>"
        f"<cidrBlockAssociationSet><item><cidrBlock>{cidr}</cidrBlock><associationId>vpc-cidr-assoc-{vpc_id[4:]}"
        "</associationId><cidrBlockState><state>associated</state></cidrBlockState></item></cidrBlockAssociationSet>"
        f"<dhcpOptionsId>dopt-0123456789abcdef0</dhcpOptionsId>{_tag_set(tags)}"
        "<instanceTenancy>default</instanceTenancy><isDefault>false</isDefault>"
    )


def names_of(item: str) -> tuple[str, str]:
    """The id and the name of a rendered VPC."""
    name = item.partition("<key>Name</key><value>")[2].partition("</value>")[0]
    return item.partition("<vpcId>")[2].partition("</vpcId>")[0], name


def tag_items(items: Iterable[str]) -> list[str]:
    """The tags of rendered VPCs, as a list of tags shows them."""
    found: list[str] = []
    for item in items:
        head = f"<resourceId>{names_of(item)[0]}</resourceId><resourceType>vpc</resourceType>"
        tags = item.partition("<tagSet>")[2].partition("</tagSet>")[0]
        found.extend(head + tag.removeprefix("<item>") for tag in tags.split("</item>") if tag)
    return found


def _subnet(lot: Lot, number: int) -> str:
    subnet_id = id_of("subnet", number)
    return (
        f"<subnetId>{subnet_id}</subnetId><subnetArn>arn:aws:ec2:{REGION}:{ACCOUNT}:subnet/{subnet_id}</subnetArn>"
        f"<state>available</state><ownerId>{ACCOUNT}</ownerId><vpcId>{id_of('vpc', lot.parent(number))}</vpcId>"
        f"<cidrBlock>{cidr_of(number)}</cidrBlock><availableIpAddressCount>251</availableIpAddressCount>"
        f"<availabilityZone>{REGION}a</availabilityZone><availabilityZoneId>euw1-az1</availabilityZoneId>"
        "<defaultForAz>false</defaultForAz><mapPublicIpOnLaunch>false</mapPublicIpOnLaunch>"
        f"<assignIpv6AddressOnCreation>false</assignIpv6AddressOnCreation>{_tag_set(tags_of(lot, number))}"
    )


def _group(lot: Lot, number: int) -> str:
    everywhere = "<item><cidrIp>0.0.0.0/0</cidrIp></item>"
    return (
        f"<ownerId>{ACCOUNT}</ownerId><groupId>{id_of('sg', number)}</groupId><groupName>{lot.name(number)}</groupName>"
        "<groupDescription>Managed by Fractal Cloud</groupDescription>"
        f"<vpcId>{id_of('vpc', lot.parent(number))}</vpcId>"
        "<ipPermissions><item><ipProtocol>tcp</ipProtocol><fromPort>443</fromPort><toPort>443</toPort><groups/>"
        "<ipRanges><item><cidrIp>10.0.0.0/8</cidrIp></item></ipRanges><ipv6Ranges/><prefixListIds/></item></ipPermissions>"
        f"<ipPermissionsEgress><item><ipProtocol>-1</ipProtocol><groups/><ipRanges>{everywhere}</ipRanges><ipv6Ranges/>"
        f"<prefixListIds/></item></ipPermissionsEgress>{_tag_set(tags_of(lot, number))}"
    )


def _instance(lot: Lot, number: int) -> str:
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return (
        f"<reservationId>{id_of('r', number)}</reservationId><ownerId>{ACCOUNT}</ownerId><groupSet/><instancesSet>"
        f"<item><instanceId>{id_of('i', number)}</instanceId><imageId>ami-0abcdef1234567890</imageId>"
        "<instanceState><code>16</code><name>running</name></instanceState>"
        f"<privateDnsName>ip-{address.replace('.', '-')}.{REGION}.compute.internal</privateDnsName><dnsName/>"
        f"<instanceType>t3.medium</instanceType><launchTime>{_WHEN}</launchTime>"
        f"<placement><availabilityZone>{REGION}a</availabilityZone><tenancy>default</tenancy></placement>"
        "<monitoring><state>disabled</state></monitoring><subnetId>subnet-0123456789abcdef0</subnetId>"
        f"<vpcId>vpc-0123456789abcdef0</vpcId><privateIpAddress>{address}</privateIpAddress>"
        "<groupSet><item><groupId>sg-0123456789abcdef0</groupId><groupName>default</groupName></item></groupSet>"
        "<architecture>x86_64</architecture><rootDeviceType>ebs</rootDeviceType>"
        f"<rootDeviceName>/dev/xvda</rootDeviceName>{_tag_set(tags_of(lot, number))}</item></instancesSet>"
    )


def _database(lot: Lot, number: int) -> str:
    name = lot.name(number)
    tags = "".join(f"<Tag><Key>{key}</Key><Value>{value}</Value></Tag>" for key, value in tags_of(lot, number).items())
    return (
        f"<DBInstance><DBInstanceIdentifier>{name}</DBInstanceIdentifier><DBInstanceClass>db.t4g.medium</DBInstanceClass>"
        "<Engine>postgres</Engine><DBInstanceStatus>available</DBInstanceStatus><MasterUsername>postgres</MasterUsername>"
        f"<Endpoint><Address>{name}.abcdefghijkl.{REGION}.rds.amazonaws.com</Address><Port>5432</Port></Endpoint>"
        f"<AllocatedStorage>20</AllocatedStorage><InstanceCreateTime>{_WHEN}</InstanceCreateTime>"
        "<BackupRetentionPeriod>1</BackupRetentionPeriod><VpcSecurityGroups/><PendingModifiedValues/>"
        "<MultiAZ>false</MultiAZ><EngineVersion>16.4</EngineVersion>"
        "<AutoMinorVersionUpgrade>true</AutoMinorVersionUpgrade><PubliclyAccessible>false</PubliclyAccessible>"
        f"<StorageEncrypted>true</StorageEncrypted><DbiResourceId>db-{number:026}</DbiResourceId>"
        f"<DBInstanceArn>arn:aws:rds:{REGION}:{ACCOUNT}:db:{name}</DBInstanceArn>"
        f"<DeletionProtection>false</DeletionProtection><TagList>{tags}</TagList></DBInstance>"
    )


def _pairs(lot: Lot, number: int, key: str, value: str) -> list[dict[str, str]]:
    return [{key: one, value: text} for one, text in tags_of(lot, number).items()]


def cluster_arn(lot: Lot, number: int) -> str:
    """The ARN of an ECS cluster."""
    return f"arn:aws:ecs:{REGION}:{ACCOUNT}:cluster/{lot.name(number)}"


def _cluster(lot: Lot, number: int) -> str:
    return json.dumps(
        {
            "clusterArn": cluster_arn(lot, number),
            "clusterName": lot.name(number),
            "status": "ACTIVE",
            "registeredContainerInstancesCount": 0,
            "runningTasksCount": 0,
            "pendingTasksCount": 0,
            "activeServicesCount": 0,
            "settings": [{"name": "containerInsights", "value": "disabled"}],
            "capacityProviders": [],
            "defaultCapacityProviderStrategy": [],
            "tags": _pairs(lot, number, "key", "value"),
        }
    )


def service_arn(lot: Lot, number: int, cluster: str) -> str:
    """The ARN of an ECS service; ``cluster`` is the name of its cluster."""
    return f"arn:aws:ecs:{REGION}:{ACCOUNT}:service/{cluster}/{lot.name(number)}"


def _service(lot: Lot, number: int) -> str:
    clusters = Lot(CLUSTER, 0, 1)
    task = f"arn:aws:ecs:{REGION}:{ACCOUNT}:task-definition/web:3"
    rollout = {"id": "ecs-svc/1", "status": "PRIMARY", "rolloutState": "COMPLETED", "taskDefinition": task}
    return json.dumps(
        {
            "serviceArn": service_arn(lot, number, clusters.name(lot.parent(number))),
            "serviceName": lot.name(number),
            "clusterArn": cluster_arn(clusters, lot.parent(number)),
            "status": "ACTIVE",
            "desiredCount": 2,
            "runningCount": 2,
            "pendingCount": 0,
            "launchType": "FARGATE",
            "platformVersion": "LATEST",
            "taskDefinition": task,
            "deployments": [rollout],
            "createdAt": _EPOCH,
            "enableExecuteCommand": False,
            "tags": _pairs(lot, number, "key", "value"),
        }
    )


def _bucket(lot: Lot, number: int) -> str:
    name = lot.name(number)
    return (
        f"<Bucket><Name>{name}</Name><CreationDate>{_WHEN}</CreationDate><BucketRegion>{REGION}</BucketRegion>"
        f"<BucketArn>arn:aws:s3:::{name}</BucketArn></Bucket>"
    )


def bucket_tags(lot: Lot, number: int) -> str:
    """A bucket as the tagging API returns it."""
    arn = f"arn:aws:s3:::{lot.name(number)}"
    return json.dumps({"ResourceARN": arn, "Tags": _pairs(lot, number, "Key", "Value")})


def _vpc(lot: Lot, number: int) -> str:
    return vpc(id_of("vpc", number), cidr_of(number), tags_of(lot, number))


RENDER: Final = {
    VPC: _vpc,
    SUBNET: _subnet,
    GROUP: _group,
    INSTANCE: _instance,
    DATABASE: _database,
    BUCKET: _bucket,
    CLUSTER: _cluster,
    SERVICE: _service,
}


def ec2_page(operation: str, listed: str, items: Iterable[str], following: str) -> str:
    """A page of one of EC2's lists."""
    body = "".join(f"<item>{item}</item>" for item in items)
    token = f"<nextToken>{following}</nextToken>" if following else ""
    return ec2_answer(operation, f"<{listed}>{body}</{listed}>{token}")


def ec2_answer(operation: str, body: str) -> str:
    """Any answer of EC2."""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{operation}Response '
        f'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>59dbff89-35bd-4eac-99ed-be587EXAMPLE</requestId>'
        f"{body}</{operation}Response>"
    )


def query_answer(operation: str, space: str, body: str) -> str:
    """An answer of a service that speaks the query protocol (RDS, STS)."""
    return (
        f'<{operation}Response xmlns="{space}"><{operation}Result>{body}</{operation}Result>'
        f"<ResponseMetadata><RequestId>59dbff89-35bd-4eac-99ed-be587EXAMPLE</RequestId></ResponseMetadata>"
        f"</{operation}Response>"
    )


def json_page(listed: str, items: Iterable[str], cursor: str, following: str) -> str:
    """A page of a JSON service; items are JSON texts already."""
    token = f', "{cursor}": {json.dumps(following)}' if following else ""
    return f'{{"{listed}": [{", ".join(items)}]{token}}}'


def as_json(values: Iterable[Any]) -> list[str]:
    """Each value as a JSON text."""
    return [json.dumps(value) for value in values]
