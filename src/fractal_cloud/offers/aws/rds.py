"""RDS instances with PostgreSQL: found by their identifier, unique in account and region.

The master password is always made and kept by AWS itself, in Secrets Manager: there is no parameter for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import field_validator, model_validator

from fractal_cloud.model.component import References, parameter
from fractal_cloud.model.errors import Invalid, Protected
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.offers.aws.aws_offer import AwsOffer
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.descriptors import Listing, Resource
from fractal_cloud.offers.aws.kinds import AwsComponent, KeyArn, Region, RoleArn, database_name
from fractal_cloud.offers.aws.rds_settings import actual, changes, creation
from fractal_cloud.offers.aws.security_group import AwsSecurityGroup
from fractal_cloud.offers.aws.services.rds import RDS
from fractal_cloud.offers.aws.tags import from_list, interned, to_list
from fractal_cloud.offers.offer import Query, Wanted

_SETTLED: Final = frozenset({"available", "stopped"})
_BROKEN: Final = ("failed", "incompatible-", "inaccessible-", "restore-error", "storage-full", "insufficient-capacity")
_LONGEST_PERIOD: Final = 23 * 31
_ENGINE: Final = {"Name": "engine", "Values": ["postgres"]}


class AwsRdsPostgres(AwsComponent):
    """A PostgreSQL database instance. Deleting it leaves a final snapshot; deletion protection is respected."""

    type = "Storage.PaaS.AwsRdsPostgres"

    name: str = parameter(
        default="", validate_default=True, description="Its DB instance identifier; the component's id if not given."
    )
    region: Region | None = parameter(
        default=None, immutable=True, description="AWS region; that of its security groups where none is given."
    )
    db_instance_class: str = parameter(
        description="Its size. Changing it interrupts the database.", pattern=r"^db\.", examples=["db.t4g.medium"]
    )
    allocated_storage: int = parameter(
        description="Storage in GiB; it can grow and never shrink.",
        ge=20,
        le=65_536,
        grows_while="maxAllocatedStorage",
    )
    engine_version: str | None = parameter(
        default=None,
        pattern=r"^\d+\.\d+(\.\d+)?$",
        description="PostgreSQL version, with its minor version, such as 16.4; it can only rise.",
    )
    auto_minor_version_upgrade: bool | None = parameter(
        default=None, description="Whether AWS raises the minor version by itself; off where engineVersion is declared."
    )
    master_username: str = parameter(default="postgres", immutable=True, description="Name of the master user.")
    db_name: str | None = parameter(default=None, immutable=True, description="Name of the first database.")
    storage_encrypted: bool = parameter(default=True, immutable=True, description="Whether its storage is encrypted.")
    multi_az: bool | None = parameter(
        default=None,
        declared_as="multiAZ",
        description="Whether a standby is kept in another zone; AWS starts with false.",
    )
    backup_retention_period: int | None = parameter(
        default=None, description="Days for which automatic backups are kept; 0 switches them off.", ge=0, le=35
    )
    publicly_accessible: bool = parameter(default=False, description="Whether it has a public address.")
    deletion_protection: bool | None = parameter(
        default=None, description="Whether AWS refuses to delete it, also to us; AWS starts with false."
    )
    vpc_security_groups: References[AwsSecurityGroup] | None = parameter(
        default=None,
        compare="unordered",
        reference=(AwsSecurityGroup.type, "groupId"),
        description="The security groups it is in; without any, its VPC's default group.",
    )
    db_subnet_group_name: str | None = parameter(
        default=None,
        immutable=True,
        description="Name of the DB subnet group it lies in; without one, the default VPC's.",
    )

    storage_type: Literal["gp2", "gp3", "io1", "io2", "standard"] | None = parameter(
        default=None, description="Kind of its storage; AWS starts with gp2."
    )
    iops: int | None = parameter(default=None, ge=1_000, description="Provisioned operations a second: io1, io2, gp3.")
    storage_throughput: int | None = parameter(
        default=None,
        ge=125,
        description="Throughput in MiB a second, of gp3 storage; not compared where there is none.",
    )
    preferred_backup_window: str | None = parameter(
        default=None,
        pattern=r"^([01]\d|2[0-3]):[0-5]\d-([01]\d|2[0-3]):[0-5]\d$",
        description="When automatic backups are made, in UTC, such as 03:00-04:00.",
    )
    preferred_maintenance_window: str | None = parameter(
        default=None,
        compare="caseless",
        pattern=r"^(?i:(mon|tue|wed|thu|fri|sat|sun):\d\d:\d\d-(mon|tue|wed|thu|fri|sat|sun):\d\d:\d\d)$",
        description="When AWS maintains it, in UTC, such as sun:04:00-sun:05:00.",
    )
    db_parameter_group_name: str | None = parameter(
        default=None, description="Name of its parameter group; a change of static parameters waits for a reboot."
    )
    copy_tags_to_snapshot: bool | None = parameter(
        default=None, description="Whether its snapshots bear its tags; AWS starts with false."
    )
    ca_certificate_identifier: str | None = parameter(
        default=None, description="The certificate authority of its server certificate, such as rds-ca-rsa2048-g1."
    )
    monitoring_interval: Literal[0, 1, 5, 10, 15, 30, 60] | None = parameter(
        default=None, description="Seconds between points of enhanced monitoring; 0 switches it off."
    )
    monitoring_role_arn: RoleArn | None = parameter(
        default=None,
        description="ARN of the role that enhanced monitoring writes with, or the output of a component; the agent "
        "must be allowed to pass it.",
    )
    max_allocated_storage: int | None = parameter(
        default=None,
        ge=0,
        le=65_536,
        description="GiB up to which AWS lets its storage grow by itself: what has grown is as declared. 0 switches it "
        "off.",
    )
    enable_performance_insights: bool | None = parameter(
        default=None, description="Whether Performance Insights records its load; AWS starts with false."
    )
    performance_insights_kms_key_id: KeyArn | None = parameter(
        default=None,
        immutable=True,
        declared_as="performanceInsightsKMSKeyId",
        description="ARN of the KMS key of Performance Insights, or the output of a component; AWS's own key if not "
        "given. Compared while it is on.",
    )
    performance_insights_retention_period: int | None = parameter(
        default=None,
        ge=7,
        le=731,
        description="Days for which Performance Insights keeps what it records: 7, a multiple of 31, or 731. Compared "
        "while it is on.",
    )
    enable_cloudwatch_logs_exports: list[Literal["postgresql", "upgrade", "iam-db-auth-error"]] | None = parameter(
        default=None, compare="unordered", description="All of its logs that go to CloudWatch Logs."
    )
    kms_key_id: KeyArn | None = parameter(
        default=None,
        immutable=True,
        description="ARN of the KMS key of its storage, or the output of a component; AWS's own key if not given.",
    )

    @field_validator("name")
    @classmethod
    def _is_identifier(cls, name: str) -> str:
        return database_name(name)

    @field_validator("performance_insights_retention_period")
    @classmethod
    def _is_period(cls, days: int | None) -> int | None:
        if days is not None and days not in (7, 731) and (days % 31 or days > _LONGEST_PERIOD):
            raise ValueError(f"{days} is no period AWS takes: 7, a multiple of 31 up to {_LONGEST_PERIOD}, or 731")
        return days

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.max_allocated_storage and self.max_allocated_storage <= self.allocated_storage:
            raise ValueError("maxAllocatedStorage must be above allocatedStorage, or 0 to switch it off")
        on = ("performance_insights_kms_key_id", "performance_insights_retention_period")
        if self.enable_performance_insights is None and any(getattr(self, name) is not None for name in on):
            raise ValueError("Performance Insights has settings: declare enablePerformanceInsights too")
        return self


DATABASE = Resource(
    service=RDS,
    kind="db",
    named_by=("DBInstanceIdentifier",),
    arn="db:{id}",
    creates={"CreateDBInstance": "DBInstance.DBInstanceIdentifier"},
    modifies=("ModifyDBInstance",),
    deletes=("DeleteDBInstance",),
    set_by={
        "vpcSecurityGroups": ("vpcSecurityGroupIds",),
        "enableCloudwatchLogsExports": ("cloudwatchLogsExportConfiguration",),
    },
    also_modifies=("RebootDBInstance", "StartDBInstance", "StopDBInstance"),
    needs=("CreateDBSnapshot",),
    shown_by={"ModifyDBInstance": "DBInstance.DBInstanceIdentifier"},
    listings=(Listing(operation="DescribeDBInstances", path="DBInstances", id="DBInstanceIdentifier"),),
    not_found=("DBInstanceNotFound", 404, "DBInstance {id} not found."),
    name_key="DBInstanceIdentifier",
    phases={
        "creating": {"DBInstanceStatus": "creating", "Endpoint": None},
        **{phase: {"DBInstanceStatus": phase} for phase in ("modifying", "starting", "stopping", "deleting")},
    },
    is_lower_case=True,
)


class AwsRdsPostgresOffer(AwsOffer[AwsRdsPostgres]):
    """How PostgreSQL instances are read and changed."""

    component = AwsRdsPostgres
    title = "RDS for PostgreSQL"
    vendor_type = "AWS::RDS::DBInstance"
    resource = DATABASE
    arn_output = "dbInstanceArn"
    place = ("region",)
    holds_data = True
    outputs: ClassVar[Mapping[str, str]] = {
        "dbInstanceIdentifier": "identifier of the instance",
        "dbInstanceArn": "its ARN",
        "dbiResourceId": "id that no other instance will ever have",
        "instanceCreateTime": "when it was created",
        "region": "region it lies in",
        "dbInstanceStatus": "creating, available, modifying, …",
        "endpointAddress": "host name of the database, once it has one",
        "endpointPort": "its port, once it has one",
        "masterUserSecretArn": "the secret in Secrets Manager that holds the master password",
    }
    rename_changes_id = True

    def sightings(self, cloud: Aws, query: Query) -> Iterator[Sighting | UnreadItem]:
        """All PostgreSQL instances of the region, a hundred a call."""
        return cloud.sightings(
            query, DATABASE, lambda answer: _sightings(cloud, answer["DBInstances"]), Filters=[_ENGINE]
        )

    def read(self, cloud: Aws, resource_id: str, sweep: Collection[str] = ()) -> Sighting | None:
        """One instance by its identifier."""
        del sweep
        answer = cloud.find("rds", "describe_db_instances", DBInstanceIdentifier=resource_id)
        return next(_sightings(cloud, answer["DBInstances"]), None) if answer else None

    def create(self, cloud: Aws, wanted: Wanted[AwsRdsPostgres], tags: ProtocolTags) -> Sighting:
        """Create it; AWS makes the master password and keeps it."""
        database = wanted.component
        asked = creation(database)
        if database.engine_version is not None:
            asked.setdefault("AutoMinorVersionUpgrade", False)  # else AWS moves it away from what is declared
        answer = cloud.call(
            "rds",
            "create_db_instance",
            DBInstanceIdentifier=database.name,
            Engine="postgres",
            ManageMasterUserPassword=True,
            Tags=to_list(tags),
            **asked,
        )
        return next(_sightings(cloud, [answer["DBInstance"]]))

    def update(self, cloud: Aws, sighting: Sighting, wanted: Wanted[AwsRdsPostgres], drift: Collection[str]) -> None:
        """Send everything that can be changed in one call; what cannot is refused once nothing else is left."""
        impossible = {name: _impossible(name, sighting, wanted.component) for name in drift}
        sent = changes(wanted.component, sighting, [name for name in drift if not impossible[name]])
        if sent:
            cloud.call(
                "rds",
                "modify_db_instance",
                DBInstanceIdentifier=sighting.resource_id,
                ApplyImmediately=True,
                **({"AllowMajorVersionUpgrade": True} if _is_major(sighting, sent) else {}),
                **sent,
            )
            return
        reasons = [reason for reason in impossible.values() if reason]
        if reasons:
            raise Invalid("; ".join(reasons))

    def delete(self, cloud: Aws, sighting: Sighting) -> None:
        """Delete it, leaving a final snapshot whose name follows from the instance; protection is respected."""
        if sighting.actual["deletionProtection"]:
            raise Protected(
                f"database {sighting.resource_id!r} has deletionProtection: switch it off, and it is tried again",
                code="DeletionProtection",
            )
        cloud.find(
            "rds",
            "delete_db_instance",
            DBInstanceIdentifier=sighting.resource_id,
            SkipFinalSnapshot=False,
            FinalDBSnapshotIdentifier=final_snapshot(sighting),
        )

    def warnings(self, drift: Collection[str]) -> list[str]:
        """What interrupts the database."""
        return [
            f"changing {name} interrupts the database while it is applied"
            for name in ("dbInstanceClass", "engineVersion")
            if name in drift
        ]


def final_snapshot(sighting: Sighting) -> str:
    """The name of the last snapshot: the same for every try, and another for every other instance of that name."""
    born = re.sub(r"\D", "", sighting.outputs.get("instanceCreateTime", ""))[:14]
    parts = (sighting.resource_id, "final", sighting.outputs["dbiResourceId"], born)
    return "-".join(part for part in parts if part).lower()


def _impossible(name: str, sighting: Sighting, database: AwsRdsPostgres) -> str:
    """Why a change can never be made, or nothing."""
    actual = sighting.actual[name]
    if name == "allocatedStorage" and database.allocated_storage < actual:
        return (
            f"allocatedStorage cannot shrink from {actual} to {database.allocated_storage} GiB: "
            f"declare at least {actual}, or a new database"
        )
    if name == "engineVersion" and _version(database.engine_version) < _version(actual):
        return (
            f"engineVersion cannot fall from {actual!r} to {database.engine_version!r}: "
            f"declare {actual!r}, or a new database"
        )
    return ""


def _version(text: Any) -> tuple[int, ...]:
    return tuple(int(part) for part in str(text or "").split(".") if part.isdigit())


def _is_major(sighting: Sighting, sent: Mapping[str, Any]) -> bool:
    wanted = sent.get("EngineVersion")
    return wanted is not None and _version(wanted)[:1] != _version(sighting.actual["engineVersion"])[:1]


def _condition(status: str) -> Condition:
    if status in _SETTLED:
        return Condition.SETTLED
    if status == "creating":
        return Condition.CREATING
    if status == "deleting":
        return Condition.DYING
    return Condition.BROKEN if status.startswith(_BROKEN) else Condition.CHANGING


def _sightings(cloud: Aws, found: Iterable[Mapping[str, Any]]) -> Iterator[Sighting]:
    for instance in found:
        if instance["Engine"] == "postgres":
            yield _sighting(cloud, instance)


def _sighting(cloud: Aws, instance: Mapping[str, Any]) -> Sighting:
    region = interned(cloud.region)
    identifier = instance["DBInstanceIdentifier"]
    tags = from_list(instance.get("TagList"))
    status = interned(instance["DBInstanceStatus"])
    endpoint = instance.get("Endpoint") or {}
    born = instance.get("InstanceCreateTime")
    optional = {
        "instanceCreateTime": born and born.isoformat(),
        "endpointAddress": endpoint.get("Address"),
        "endpointPort": endpoint.get("Port"),
        "masterUserSecretArn": (instance.get("MasterUserSecret") or {}).get("SecretArn"),
    }
    condition = _condition(status)
    return Sighting(
        type=AwsRdsPostgres.type,
        name=identifier,
        resource_id=identifier,
        incarnation=instance.get("DbiResourceId", ""),
        protocol=ProtocolTags.from_mapping(tags),
        tags=tags,
        actual={"region": region, **actual(instance)},
        outputs={
            "dbInstanceIdentifier": identifier,
            "dbInstanceArn": instance["DBInstanceArn"],
            "dbiResourceId": instance.get("DbiResourceId", ""),
            "region": region,
            "dbInstanceStatus": status,
            **{name: value for name, value in optional.items() if value},
        },
        condition=condition,
        detail="" if condition is Condition.SETTLED else status,
    )
