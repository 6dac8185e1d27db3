"""The settings of a database as RDS spells them: in the call that creates it, in the one that changes it, in answers.

Which call is made, and when, is decided in ``rds``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fractal_cloud.model.component import reference_id
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.offers.aws.tags import interned

if TYPE_CHECKING:
    from fractal_cloud.offers.aws.rds import AwsRdsPostgres

_SENT: Final[Mapping[str, str]] = {
    "dbInstanceClass": "DBInstanceClass",
    "allocatedStorage": "AllocatedStorage",
    "engineVersion": "EngineVersion",
    "multiAZ": "MultiAZ",
    "backupRetentionPeriod": "BackupRetentionPeriod",
    "publiclyAccessible": "PubliclyAccessible",
    "deletionProtection": "DeletionProtection",
    "autoMinorVersionUpgrade": "AutoMinorVersionUpgrade",
    "vpcSecurityGroups": "VpcSecurityGroupIds",
    "storageType": "StorageType",
    "iops": "Iops",
    "storageThroughput": "StorageThroughput",
    "preferredBackupWindow": "PreferredBackupWindow",
    "preferredMaintenanceWindow": "PreferredMaintenanceWindow",
    "dbParameterGroupName": "DBParameterGroupName",
    "copyTagsToSnapshot": "CopyTagsToSnapshot",
    "caCertificateIdentifier": "CACertificateIdentifier",
    "monitoringInterval": "MonitoringInterval",
    "monitoringRoleArn": "MonitoringRoleArn",
    "maxAllocatedStorage": "MaxAllocatedStorage",
}
_CREATED_WITH: Final[Mapping[str, str]] = {
    "masterUsername": "MasterUsername",
    "dbName": "DBName",
    "storageEncrypted": "StorageEncrypted",
    "dbSubnetGroupName": "DBSubnetGroupName",
    "kmsKeyId": "KmsKeyId",
}
_INSIGHTS: Final = "enablePerformanceInsights"
_OF_INSIGHTS: Final[Mapping[str, str]] = {
    "performanceInsightsKMSKeyId": "PerformanceInsightsKMSKeyId",
    "performanceInsightsRetentionPeriod": "PerformanceInsightsRetentionPeriod",
}
_LOGS: Final = "enableCloudwatchLogsExports"
# What may be parked in PendingModifiedValues; compared as if it had arrived, or it would be sent for ever.
_PENDING: Final = (
    *("dbInstanceClass", "allocatedStorage", "engineVersion", "multiAZ", "backupRetentionPeriod"),
    *("storageType", "iops", "storageThroughput", "caCertificateIdentifier"),
)


def creation(database: AwsRdsPostgres) -> dict[str, Any]:
    """What is declared, as the call that creates it takes it."""
    values = _declared(database)
    asked = _renamed(values, {**_SENT, **_CREATED_WITH})
    if not asked.get("MaxAllocatedStorage"):
        asked.pop("MaxAllocatedStorage", None)
    if values[_INSIGHTS] is not None:
        asked |= _insights(values, is_on=values[_INSIGHTS], names=_OF_INSIGHTS)
    if values[_LOGS]:
        asked["EnableCloudwatchLogsExports"] = values[_LOGS]
    return asked


def changes(database: AwsRdsPostgres, sighting: Sighting, names: Collection[str]) -> dict[str, Any]:
    """These parameters as the call that changes it takes them."""
    values = _declared(database)
    asked = _renamed(values, {name: sent for name, sent in _SENT.items() if name in names})
    if asked.get("MaxAllocatedStorage") == 0:  # AWS has no other word for off than what is there already
        asked["MaxAllocatedStorage"] = asked.get("AllocatedStorage", sighting.actual["allocatedStorage"])
    if _LOGS in names:
        asked["CloudwatchLogsExportConfiguration"] = _exports(sighting.actual[_LOGS], values[_LOGS])
    if _INSIGHTS in names:
        more = [name for name in _OF_INSIGHTS if name not in database.ignore_drift]
        asked |= _insights(values, is_on=values[_INSIGHTS], names=more)
    elif chosen := [name for name in _OF_INSIGHTS if name in names]:
        asked |= _insights(values, is_on=True, names=chosen)  # they are compared only while it is on
    return asked


def _declared(database: AwsRdsPostgres) -> dict[str, Any]:
    values = database.model_dump(mode="json", by_alias=True)
    groups = database.vpc_security_groups
    return {**values, "vpcSecurityGroups": None if groups is None else [reference_id(group) for group in groups]}


def _renamed(values: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {sent: values[name] for name, sent in names.items() if values[name] is not None}


def _insights(values: Mapping[str, Any], *, is_on: bool, names: Collection[str]) -> dict[str, Any]:
    """Performance Insights: its settings are taken only together with the switch, and only while it is on."""
    chosen = _renamed(values, {name: _OF_INSIGHTS[name] for name in names}) if is_on else {}
    return {"EnablePerformanceInsights": is_on, **chosen}


def _exports(actual: Sequence[str], declared: Sequence[str]) -> dict[str, list[str]]:
    """The step from the logs that are exported to those that are declared."""
    step = {
        "EnableLogTypes": sorted(set(declared) - set(actual)),
        "DisableLogTypes": sorted(set(actual) - set(declared)),
    }
    return {way: logs for way, logs in step.items() if logs}


def actual(instance: Mapping[str, Any]) -> dict[str, Any]:
    """What an instance shows of all parameters."""
    pending = instance.get("PendingModifiedValues") or {}
    reported = {name: instance.get(key) for name, key in {**_SENT, **_CREATED_WITH}.items()}
    reported |= {name: pending[_SENT[name]] for name in _PENDING if pending.get(_SENT[name]) is not None}
    groups = instance.get("VpcSecurityGroups") or ()
    reported["vpcSecurityGroups"] = sorted(
        interned(group["VpcSecurityGroupId"]) for group in groups if group.get("Status") != "removing"
    )
    if instance.get("StorageType") != "gp3" and not instance.get("StorageThroughput"):
        del reported["storageThroughput"]  # it means nothing there
    families = instance.get("DBParameterGroups") or ()
    reported["dbParameterGroupName"] = next((one["DBParameterGroupName"] for one in families), None)
    reported["copyTagsToSnapshot"] = bool(instance.get("CopyTagsToSnapshot"))
    reported["monitoringInterval"] = instance.get("MonitoringInterval") or 0
    reported["dbSubnetGroupName"] = (instance.get("DBSubnetGroup") or {}).get("DBSubnetGroupName")
    reported["maxAllocatedStorage"] = instance.get("MaxAllocatedStorage") or 0  # only where AWS lets the storage grow
    reported["deletionProtection"] = bool(instance.get("DeletionProtection"))
    reported[_LOGS] = _exported(instance.get("EnabledCloudwatchLogsExports"), pending)
    return {**reported, **_actual_insights(instance)}


def _actual_insights(instance: Mapping[str, Any]) -> dict[str, Any]:
    is_on = bool(instance.get("PerformanceInsightsEnabled"))
    shown = {name: instance[key] for name, key in _OF_INSIGHTS.items() if instance.get(key) is not None}
    return {_INSIGHTS: is_on, **(shown if is_on else {})}


def _exported(enabled: Sequence[str] | None, pending: Mapping[str, Any]) -> list[str]:
    """The logs that are exported, and those on their way; nothing on its way is asked for twice."""
    moving = pending.get("PendingCloudwatchLogsExports") or {}
    coming, going = moving.get("LogTypesToEnable") or (), moving.get("LogTypesToDisable") or ()
    return sorted({*(enabled or ()), *coming} - set(going))
