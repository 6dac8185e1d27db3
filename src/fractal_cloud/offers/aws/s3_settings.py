"""The settings of a bucket: each is read and written by a call of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fractal_cloud.offers.aws.cloud import Aws

_BLOCKS: Final = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")


@dataclass(frozen=True, slots=True)
class Setting:
    """How one setting is read and written."""

    read: Callable[[Aws, str], Any]
    write: Callable[[Aws, str, Any], None]


def _read_versioning(cloud: Aws, bucket: str) -> str | None:
    """None: it never was enabled."""
    status = cloud.call("s3", "get_bucket_versioning", Bucket=bucket).get("Status")
    return str(status) if status else None


def _write_versioning(cloud: Aws, bucket: str, value: Any) -> None:
    cloud.call("s3", "put_bucket_versioning", Bucket=bucket, VersioningConfiguration={"Status": value})


def _read_encryption(cloud: Aws, bucket: str) -> str | None:
    answer = cloud.find("s3", "get_bucket_encryption", Bucket=bucket)
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"] if answer else []
    chosen = (rule.get("ApplyServerSideEncryptionByDefault", {}).get("SSEAlgorithm") for rule in rules)
    return next((str(algorithm) for algorithm in chosen if algorithm), None)


def _write_encryption(cloud: Aws, bucket: str, value: Any) -> None:
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": value}}
    cloud.call("s3", "put_bucket_encryption", Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})


def _read_public_access(cloud: Aws, bucket: str) -> bool:
    """Some of the four count as none: only all of them keep the public out."""
    answer = cloud.find("s3", "get_public_access_block", Bucket=bucket)
    blocks = answer["PublicAccessBlockConfiguration"] if answer else {}
    return all(blocks.get(block) for block in _BLOCKS)


def _write_public_access(cloud: Aws, bucket: str, value: Any) -> None:
    blocks = dict.fromkeys(_BLOCKS, bool(value))
    cloud.call("s3", "put_public_access_block", Bucket=bucket, PublicAccessBlockConfiguration=blocks)


def _read_ownership(cloud: Aws, bucket: str) -> str | None:
    answer = cloud.find("s3", "get_bucket_ownership_controls", Bucket=bucket)
    rules = answer["OwnershipControls"]["Rules"] if answer else []
    return next((str(rule["ObjectOwnership"]) for rule in rules), None)


def _write_ownership(cloud: Aws, bucket: str, value: Any) -> None:
    controls = {"Rules": [{"ObjectOwnership": value}]}
    cloud.call("s3", "put_bucket_ownership_controls", Bucket=bucket, OwnershipControls=controls)


SETTINGS: Final[Mapping[str, Setting]] = {
    "blockPublicAccess": Setting(_read_public_access, _write_public_access),
    "objectOwnership": Setting(_read_ownership, _write_ownership),
    "sseAlgorithm": Setting(_read_encryption, _write_encryption),
    "versioning": Setting(_read_versioning, _write_versioning),
}
"""By parameter, in the order in which they are corrected: what shuts the public out comes first."""
