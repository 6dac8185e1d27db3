"""The example of buckets: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, AwsActions, Clients, Example, component, tag_map

_KEY = "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"
_NAMES = {"id": "ID"}
RULES: list[dict[str, Any]] = [
    {
        "id": "tidy",
        "status": "Enabled",
        "filter": {"prefix": "tmp/"},
        "expiration": {"days": 7},
        "abortIncompleteMultipartUpload": {"daysAfterInitiation": 3},
    },
    {
        "status": "Enabled",
        "transitions": [
            {"days": 30, "storageClass": "STANDARD_IA"},
            {"days": 90, "storageClass": "GLACIER"},
        ],
        "noncurrentVersionExpiration": {"noncurrentDays": 30, "newerNoncurrentVersions": 3},
    },
]
"""One has an id; the other gets one from S3, and is about all objects."""


def _in_their_spelling(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_NAMES.get(key, key[0].upper() + key[1:]): _in_their_spelling(one) for key, one in value.items()}
    return [_in_their_spelling(one) for one in value] if isinstance(value, list) else value


def _edit_encryption(s3: Any, bucket: str, name: str, value: Any) -> None:
    [rule] = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"]
    chosen = rule["ApplyServerSideEncryptionByDefault"]
    match name:
        case "sseAlgorithm":
            chosen["SSEAlgorithm"] = value
        case "kmsMasterKeyID":
            chosen["KMSMasterKeyID"] = value
        case "bucketKeyEnabled":
            rule["BucketKeyEnabled"] = value
        case _:
            rule["BlockedEncryptionTypes"] = {"EncryptionType": value or ["NONE"]}
    s3.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})


def _make_log_buckets(clients: Clients) -> None:
    s3 = clients("s3")
    for name in ("logs-a", "logs-b"):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        allowed = {
            "Effect": "Allow",
            "Principal": {"Service": "logging.s3.amazonaws.com"},
            "Action": ["s3:PutObject"],
            "Resource": f"arn:aws:s3:::{name}/*",
        }
        s3.put_bucket_policy(Bucket=name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [allowed]}))


def _edit_bucket(clients: Clients, resource_id: str, name: str, value: Any) -> None:
    s3 = clients("s3")
    match name:
        case "versioning":
            s3.put_bucket_versioning(Bucket=resource_id, VersioningConfiguration={"Status": value})
        case "sseAlgorithm" | "kmsMasterKeyID" | "bucketKeyEnabled" | "blockedEncryptionTypes":
            _edit_encryption(s3, resource_id, name, value)
        case "lifecycleRules":
            rules = [_in_their_spelling(rule) for rule in value]
            s3.put_bucket_lifecycle_configuration(Bucket=resource_id, LifecycleConfiguration={"Rules": rules})
        case "logging":
            s3.put_bucket_logging(Bucket=resource_id, BucketLoggingStatus={"LoggingEnabled": _in_their_spelling(value)})
        case "blockPublicAccess":
            four = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")
            blocks = dict.fromkeys(four, value)
            s3.put_public_access_block(Bucket=resource_id, PublicAccessBlockConfiguration=blocks)
        case _:
            controls = {"Rules": [{"ObjectOwnership": value}]}
            s3.put_bucket_ownership_controls(Bucket=resource_id, OwnershipControls=controls)


class BucketActions(AwsActions):
    """Buckets are tagged as the glass commands say: through the tagging API, which keeps the other tags."""

    def find(self, name: str) -> list[Found]:
        s3 = self._clients("s3")
        try:
            tags = tag_map(s3.get_bucket_tagging(Bucket=name)["TagSet"])
        except ClientError as error:
            if error.response["Error"]["Code"] != "NoSuchTagSet":
                return []
            tags = {}
        return [Found(name, tags, f"arn:aws:s3:::{name}")]

    def tag(self, found: Found, tags: Mapping[str, str]) -> None:
        self._clients("resourcegroupstaggingapi").tag_resources(ResourceARNList=[found.handle], Tags=dict(tags))

    def untag(self, found: Found, *keys: str) -> None:
        self._clients("resourcegroupstaggingapi").untag_resources(ResourceARNList=[found.handle], TagKeys=list(keys))

    def delete(self, found: Found) -> None:
        self._clients("s3").delete_bucket(Bucket=found.resource_id)


def _object_in_bucket(clients: Clients, found: Found) -> Obstacle:
    s3 = clients("s3")
    version = s3.put_object(Bucket=found.resource_id, Key="letter", Body=b"dear")["VersionId"]
    return Obstacle(
        (found.resource_id, "never emptied"),
        lambda: s3.delete_object(Bucket=found.resource_id, Key="letter", VersionId=version),
    )


EXAMPLE = Example(
    kind=AwsS3,
    components=[
        component(
            AwsS3,
            "objects-of-team-a",
            region=REGION,
            versioning="Enabled",
            sseAlgorithm="aws:kms",
            kmsMasterKeyID=_KEY,
            bucketKeyEnabled=True,
            blockedEncryptionTypes=["SSE-C"],
            lifecycleRules=RULES,
            logging={"targetBucket": "logs-a", "targetPrefix": "a/"},
            blockPublicAccess=True,
            objectOwnership="BucketOwnerEnforced",
        )
    ],
    changes={
        "versioning": "Suspended",
        "sseAlgorithm": "aws:kms:dsse",
        "kmsMasterKeyID": _KEY[:-1] + "0",
        "bucketKeyEnabled": False,
        "blockedEncryptionTypes": [],
        "lifecycleRules": [{**RULES[0], "status": "Disabled"}],
        "logging": {"targetBucket": "logs-b", "targetPrefix": ""},
        "blockPublicAccess": False,
        "objectOwnership": "BucketOwnerPreferred",
    },
    immutable_changes={"region": "eu-central-1"},
    foreign_edit=_edit_bucket,
    prepare=_make_log_buckets,
    operator=BucketActions,
    is_slow=False,
    hazards={"an object": ("Failed", _object_in_bucket)},
    effects=31,
    also_listed_by=("resourcegroupstaggingapi:GetResources",),
)
