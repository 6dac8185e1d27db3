"""The settings of a bucket: some parameters together are read by one call, and written by one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.model.errors import NotFound
from fractal_cloud.offers.aws.cloud import Aws
from fractal_cloud.offers.aws.s3_lifecycle import from_answer, to_request

_BLOCKS: Final = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
_NONE_BLOCKED: Final = "NONE"

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Setting:
    """How some parameters are read and written together. ``write`` is given those that change, and no others."""

    names: tuple[str, ...]
    read: Callable[[Aws, str], Values]
    write: Callable[[Aws, str, Values], None]


def read_settings(cloud: Aws, bucket: str, names: Collection[str]) -> dict[str, Any]:
    """These parameters of a bucket, by as few calls as they take."""
    found: dict[str, Any] = {}
    for setting in SETTINGS:
        if not set(names).isdisjoint(setting.names):
            found |= setting.read(cloud, bucket)
    return {name: found[name] for name in names}


def calls_for(names: Collection[str]) -> int:
    """How many calls reading these parameters takes."""
    return sum(not set(names).isdisjoint(setting.names) for setting in SETTINGS)


def _unless(code: str, cloud: Aws, operation: str, bucket: str) -> Mapping[str, Any] | None:
    """What S3 answers; None where it says by this code that nothing is set. A bucket that is gone is no such answer."""
    try:
        return cloud.call("s3", operation, Bucket=bucket)
    except NotFound as absent:
        if absent.code != code:
            raise
        return None


def _read_versioning(cloud: Aws, bucket: str) -> Values:
    """None: it never was enabled."""
    status = cloud.call("s3", "get_bucket_versioning", Bucket=bucket).get("Status")
    return {"versioning": str(status) if status else None}


def _write_versioning(cloud: Aws, bucket: str, values: Values) -> None:
    cloud.call("s3", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": values["versioning"]})


def _encryption(cloud: Aws, bucket: str) -> Mapping[str, Any]:
    answer = _unless("ServerSideEncryptionConfigurationNotFoundError", cloud, "get_bucket_encryption", bucket)
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"] if answer else []
    return next(iter(rules), {})


def _read_encryption(cloud: Aws, bucket: str) -> Values:
    rule = _encryption(cloud, bucket)
    chosen = rule.get("ApplyServerSideEncryptionByDefault") or {}
    blocked = (rule.get("BlockedEncryptionTypes") or {}).get("EncryptionType") or ()
    return {
        "sseAlgorithm": chosen.get("SSEAlgorithm"),
        "kmsMasterKeyID": chosen.get("KMSMasterKeyID"),
        "bucketKeyEnabled": bool(rule.get("BucketKeyEnabled")),
        "blockedEncryptionTypes": sorted(one for one in blocked if one != _NONE_BLOCKED),
    }


def _write_encryption(cloud: Aws, bucket: str, values: Values) -> None:
    """S3 takes all of it at once: what does not change is sent as it is."""
    rule = dict(_encryption(cloud, bucket))
    chosen = {"SSEAlgorithm": "AES256", **(rule.get("ApplyServerSideEncryptionByDefault") or {})}
    if "sseAlgorithm" in values:
        chosen["SSEAlgorithm"] = values["sseAlgorithm"]
    if "kmsMasterKeyID" in values:
        chosen["KMSMasterKeyID"] = values["kmsMasterKeyID"]
    if chosen["SSEAlgorithm"] == "AES256":
        chosen.pop("KMSMasterKeyID", None)
    if "bucketKeyEnabled" in values:
        rule["BucketKeyEnabled"] = values["bucketKeyEnabled"]
    if "blockedEncryptionTypes" in values:
        rule["BlockedEncryptionTypes"] = {"EncryptionType": values["blockedEncryptionTypes"] or [_NONE_BLOCKED]}
    whole = {"Rules": [{**rule, "ApplyServerSideEncryptionByDefault": chosen}]}
    cloud.call("s3", "put_bucket_encryption", Bucket=bucket, ServerSideEncryptionConfiguration=whole)


def _read_public_access(cloud: Aws, bucket: str) -> Values:
    """Some of the four count as none: only all of them keep the public out."""
    answer = _unless("NoSuchPublicAccessBlockConfiguration", cloud, "get_public_access_block", bucket)
    blocks = answer["PublicAccessBlockConfiguration"] if answer else {}
    return {"blockPublicAccess": all(blocks.get(block) for block in _BLOCKS)}


def _write_public_access(cloud: Aws, bucket: str, values: Values) -> None:
    blocks = dict.fromkeys(_BLOCKS, bool(values["blockPublicAccess"]))
    cloud.call("s3", "put_public_access_block", Bucket=bucket, PublicAccessBlockConfiguration=blocks)


def _read_ownership(cloud: Aws, bucket: str) -> Values:
    answer = _unless("OwnershipControlsNotFoundError", cloud, "get_bucket_ownership_controls", bucket)
    rules = answer["OwnershipControls"]["Rules"] if answer else []
    return {"objectOwnership": next((str(rule["ObjectOwnership"]) for rule in rules), None)}


def _write_ownership(cloud: Aws, bucket: str, values: Values) -> None:
    controls = {"Rules": [{"ObjectOwnership": values["objectOwnership"]}]}
    cloud.call("s3", "put_bucket_ownership_controls", Bucket=bucket, OwnershipControls=controls)


def _lifecycle(cloud: Aws, bucket: str) -> Mapping[str, Any]:
    return _unless("NoSuchLifecycleConfiguration", cloud, "get_bucket_lifecycle_configuration", bucket) or {}


def _read_lifecycle(cloud: Aws, bucket: str) -> Values:
    return {"lifecycleRules": [from_answer(rule) for rule in _lifecycle(cloud, bucket).get("Rules") or ()]}


def _write_lifecycle(cloud: Aws, bucket: str, values: Values) -> None:
    """All rules at once. The least size of what is moved is a setting beside them, and is sent as it is."""
    rules = values["lifecycleRules"]
    if not rules:
        cloud.call("s3", "delete_bucket_lifecycle", Bucket=bucket)
        return
    smallest = _lifecycle(cloud, bucket).get("TransitionDefaultMinimumObjectSize")
    cloud.call(
        "s3",
        "put_bucket_lifecycle_configuration",
        Bucket=bucket,
        LifecycleConfiguration={"Rules": [to_request(rule) for rule in rules]},
        **({"TransitionDefaultMinimumObjectSize": smallest} if smallest else {}),
    )


def _read_logging(cloud: Aws, bucket: str) -> Values:
    shown = cloud.call("s3", "get_bucket_logging", Bucket=bucket).get("LoggingEnabled") or {}
    if not shown:
        return {"logging": {}}
    target = {"targetBucket": shown["TargetBucket"], "targetPrefix": shown.get("TargetPrefix") or ""}
    dated = (shown.get("TargetObjectKeyFormat") or {}).get("PartitionedPrefix")
    if dated is None:
        return {"logging": target}
    by_day = {"partitionDateSource": dated.get("PartitionDateSource") or "EventTime"}
    return {"logging": {**target, "targetObjectKeyFormat": {"partitionedPrefix": by_day}}}


def _write_logging(cloud: Aws, bucket: str, values: Values) -> None:
    """Grants on the logs are no parameter, and are sent as they are; the logs of another bucket have none."""
    wanted, status = values["logging"], {}
    if wanted.get("targetBucket"):
        before = cloud.call("s3", "get_bucket_logging", Bucket=bucket).get("LoggingEnabled") or {}
        is_same = before.get("TargetBucket") == wanted["targetBucket"]
        grants = before.get("TargetGrants") if is_same else None
        dated = (wanted.get("targetObjectKeyFormat") or {}).get("partitionedPrefix")
        form = {"PartitionedPrefix": {"PartitionDateSource": dated["partitionDateSource"]}} if dated else None
        status = {
            "TargetBucket": wanted["targetBucket"],
            "TargetPrefix": wanted.get("targetPrefix") or "",
            **({"TargetGrants": grants} if grants else {}),
            **({"TargetObjectKeyFormat": form} if form else {}),
        }
    cloud.call(
        "s3", "put_bucket_logging", Bucket=bucket, BucketLoggingStatus={"LoggingEnabled": status} if status else {}
    )


SETTINGS: Final = (
    Setting(("blockPublicAccess",), _read_public_access, _write_public_access),
    Setting(("objectOwnership",), _read_ownership, _write_ownership),
    Setting(
        ("sseAlgorithm", "kmsMasterKeyID", "bucketKeyEnabled", "blockedEncryptionTypes"),
        _read_encryption,
        _write_encryption,
    ),
    Setting(("versioning",), _read_versioning, _write_versioning),
    Setting(("logging",), _read_logging, _write_logging),
    Setting(("lifecycleRules",), _read_lifecycle, _write_lifecycle),
)
"""In the order in which they are corrected: what shuts the public out comes first, what deletes objects last."""
