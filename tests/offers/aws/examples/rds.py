"""The example of PostgreSQL databases: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fractal_cloud.offers.aws.rds import AwsRdsPostgres
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, AwsActions, Clients, Example, component, pairs, tag_map
from tests.offers.aws.examples.security_group import GROUP, OTHER_GROUP
from tests.offers.aws.examples.vpc import VPC

_RDS_NAMES = {
    "dbInstanceClass": "DBInstanceClass",
    "multiAZ": "MultiAZ",
    "vpcSecurityGroups": "VpcSecurityGroupIds",
}


def _edit_database(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    change = {_RDS_NAMES.get(name, name[0].upper() + name[1:]): value}
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
    operator=DatabaseActions,
    only_up=frozenset({"allocatedStorage", "engineVersion"}),
    hazards={"deletion protection": ("Failed", _protected_database)},
    effects=23,
)
