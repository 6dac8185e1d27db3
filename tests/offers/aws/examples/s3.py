"""The example of buckets: the declaration, a person\'s actions in plain boto3, what blocks a deletion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from fractal_cloud.offers.aws.s3 import AwsS3
from fractal_cloud.testing import Found, Obstacle
from tests.offers.aws.example import REGION, AwsActions, Clients, Example, component, tag_map


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
    operator=BucketActions,
    is_slow=False,
    hazards={"an object": ("Failed", _object_in_bucket)},
    effects=31,
    also_listed_by=("resourcegroupstaggingapi:GetResources",),
)
