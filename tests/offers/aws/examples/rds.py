"""The example of PostgreSQL databases: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_cloud.offers.aws.rds import AwsRdsPostgres
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, AwsActions, Clients, Example, component, pairs, tag_map
from tests.offers.aws.examples.security_group import GROUP, OTHER_GROUP
from tests.offers.aws.examples.vpc import VPC

_KEY = "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
_RDS_NAMES = {
    "dbInstanceClass": "DBInstanceClass",
    "multiAZ": "MultiAZ",
    "vpcSecurityGroups": "VpcSecurityGroupIds",
    "dbParameterGroupName": "DBParameterGroupName",
    "caCertificateIdentifier": "CACertificateIdentifier",
}


def _make_parameter_groups(clients: Clients) -> None:
    for name in ("postgres-a", "postgres-b"):
        clients("rds").create_db_parameter_group(
            DBParameterGroupName=name, DBParameterGroupFamily="postgres16", Description="of a person"
        )


def _edit_database(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    change = {_RDS_NAMES.get(name, name[0].upper() + name[1:]): value}
    if name == "enableCloudwatchLogsExports":
        [shown] = clients("rds").describe_db_instances(DBInstanceIdentifier=resource_id)["DBInstances"]
        before, after = set(shown["EnabledCloudwatchLogsExports"]), set(value)
        step = {"EnableLogTypes": sorted(after - before), "DisableLogTypes": sorted(before - after)}
        change = {"CloudwatchLogsExportConfiguration": step}
    clients("rds").modify_db_instance(DBInstanceIdentifier=resource_id, ApplyImmediately=True, **change)


class DatabaseActions(AwsActions):
    def find(self, name: str) -> list[Found]:
        rds = self._clients("rds")
        try:
            found = rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"]
        except rds.exceptions.DBInstanceNotFoundFault:
            return []
        return [Found(name, tag_map(one["TagList"]), one["DBInstanceArn"]) for one in found]

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("rds").add_tags_to_resource(ResourceName=found.handle, Tags=pairs(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("rds").remove_tags_from_resource(ResourceName=found.handle, TagKeys=list(keys))

    def delete(self, found: Found) -> None:
        self._clients("rds").delete_db_instance(DBInstanceIdentifier=found.resource_id, SkipFinalSnapshot=True)


def _protected_database(clients: Clients, found: Found) -> Obstacle:
    def protect(value: bool) -> None:
        clients("rds").modify_db_instance(
            DBInstanceIdentifier=found.resource_id, DeletionProtection=value, ApplyImmediately=True
        )

    protect(True)
    return Obstacle((found.resource_id, "deletionProtection"), lambda: protect(False))


EXAMPLE = Example(
    kind=AwsRdsPostgres,
    components=[
        VPC,
        GROUP,
        OTHER_GROUP,
        component(
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
            storageType="gp3",
            iops=3000,
            storageThroughput=125,
            preferredBackupWindow="03:00-04:00",
            preferredMaintenanceWindow="sun:04:30-sun:05:30",
            dbParameterGroupName="postgres-a",
            copyTagsToSnapshot=False,
            caCertificateIdentifier="rds-ca-rsa2048-g1",
            monitoringInterval=15,
            monitoringRoleArn="arn:aws:iam::123456789012:role/monitoring",
            maxAllocatedStorage=0,
            enablePerformanceInsights=True,
            performanceInsightsKMSKeyId=_KEY,
            performanceInsightsRetentionPeriod=7,
            enableCloudwatchLogsExports=["postgresql", "upgrade"],
            kmsKeyId=_KEY,
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
        "iops": 4000,
        "storageThroughput": 250,
        "storageType": "io1",  # the last of them: it has no throughput
        "preferredBackupWindow": "01:00-02:00",
        "preferredMaintenanceWindow": "mon:06:00-mon:07:00",
        "dbParameterGroupName": "postgres-b",
        "copyTagsToSnapshot": True,
        "caCertificateIdentifier": "rds-ca-rsa4096-g1",
        "monitoringInterval": 60,
        "monitoringRoleArn": "arn:aws:iam::123456789012:role/web",
        "performanceInsightsRetentionPeriod": 93,
        "enablePerformanceInsights": False,  # after its period, which is compared only while it is on
        "enableCloudwatchLogsExports": ["iam-db-auth-error", "postgresql"],
        "maxAllocatedStorage": 100,
    },
    immutable_changes={
        "masterUsername": "root",
        "dbName": "invoices",
        "storageEncrypted": False,
        "kmsKeyId": _KEY[:-1] + "0",
        "performanceInsightsKMSKeyId": _KEY[:-1] + "0",
    },
    foreign_edit=_edit_database,
    prepare=_make_parameter_groups,
    operator=DatabaseActions,
    only_up=frozenset({"allocatedStorage", "engineVersion"}),
    hazards={"deletion protection": ("Failed", _protected_database)},
    effects=23,
)
