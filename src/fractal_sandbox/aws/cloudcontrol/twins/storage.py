"""Buckets of S3 and tables of DynamoDB: existence, tags and what moto keeps of them are of one world."""

from __future__ import annotations

import uuid
from typing import Any, Final

from fractal_sandbox.aws import accounts
from fractal_sandbox.aws.cloudcontrol.twins.registry import Refused, Twin
from fractal_sandbox.aws.cloudcontrol.twins.service import Model, ServiceTwin, changed, pairs
from fractal_sandbox.aws.resources import backend

__all__ = ["TWINS"]

_TABLE: Final = (
    "AttributeDefinitions",
    "BillingMode",
    "DeletionProtectionEnabled",
    "GlobalSecondaryIndexes",
    "KeySchema",
    "LocalSecondaryIndexes",
    "ProvisionedThroughput",
)


class _Buckets(ServiceTwin):
    """A bucket is in one region, and its name unique in all of them."""

    type_name = "AWS::S3::Bucket"
    service = "s3"
    knows = frozenset({"BucketName", "Arn", "VersioningConfiguration"})

    def backend(self, region: str) -> Any:
        del region
        return backend("s3", "aws")

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        from moto.s3.exceptions import S3ClientError
        from moto.s3.models import s3_backends

        name = str(model.get("BucketName") or f"bucket-{uuid.uuid4().hex[:12]}")
        if name in s3_backends.bucket_accounts:
            raise Refused("AlreadyExists", f"{name} already exists")
        try:
            self.backend(region).create_bucket(name, region)
        except S3ClientError as error:
            raise Refused("InvalidRequest", str(error)) from None
        self.write_tags(name, tags, [], region)
        self.change(name, {}, model, region)
        return self.describe(name, region)

    def describe(self, identifier: str, region: str) -> Model:
        del region
        bucket = self.backend("").buckets[identifier]
        found: Model = {"BucketName": identifier, "Arn": bucket.arn}
        if bucket.versioning_status:
            found["VersioningConfiguration"] = {"Status": bucket.versioning_status}
        return found

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        wanted = changed(before, after, ("VersioningConfiguration",))
        if wanted:
            status = (wanted["VersioningConfiguration"] or {}).get("Status", "Suspended")
            self.backend(region).put_bucket_versioning(identifier, status)

    def remove(self, identifier: str, region: str) -> None:
        if self.backend(region).delete_bucket(identifier) is None:
            raise Refused("ResourceConflict", "The bucket you tried to delete is not empty")

    def identifiers(self, region: str) -> list[str]:
        return [name for name, one in list(self.backend(region).buckets.items()) if one.region_name == region]

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        bucket = self.backend(region).buckets.get(identifier)
        if bucket is None or (region and bucket.region_name != region):
            return None
        return dict(self.backend(region).tagger.get_tag_dict_for_resource(bucket.arn))

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        tagger, arn = self.backend(region).tagger, self.backend(region).buckets[identifier].arn
        tagger.untag_resource_using_names(arn, gone)
        tagger.tag_resource(arn, pairs(added))

    def identifier_in(self, arn: str) -> str | None:
        return arn.rpartition(":")[2]


class _Tables(ServiceTwin):
    type_name = "AWS::DynamoDB::Table"
    service = "dynamodb"
    knows = frozenset({"TableName", "Arn"})

    def make(self, model: Model, tags: dict[str, str], region: str) -> Model:
        name = model.get("TableName") or f"table-{uuid.uuid4().hex[:12]}"
        given = {key: model.get(key) for key in _TABLE}
        if given["BillingMode"] is None and given["ProvisionedThroughput"] is None:
            raise Refused("InvalidRequest", "Property ProvisionedThroughput is required for provisioned billing mode")
        self.ask(region, "CreateTable", TableName=name, Tags=pairs(tags) or None, **given)
        return self.describe(name, region)

    def describe(self, identifier: str, region: str) -> Model:
        return {"TableName": identifier, "Arn": self._arn(identifier, region)}

    def change(self, identifier: str, before: Model, after: Model, region: str) -> None:
        names = ("BillingMode", "DeletionProtectionEnabled", "ProvisionedThroughput")
        wanted = changed(before, after, names)
        if wanted:
            self.ask(region, "UpdateTable", TableName=identifier, **wanted)

    def remove(self, identifier: str, region: str) -> None:
        self.ask(region, "DeleteTable", TableName=identifier)

    def identifiers(self, region: str) -> list[str]:
        return list(self.backend(region).tables)

    def tags(self, identifier: str, region: str) -> dict[str, str] | None:
        table = self.backend(region).tables.get(identifier)
        return None if table is None else {one["Key"]: one["Value"] for one in table.tags}

    def write_tags(self, identifier: str, added: dict[str, str], gone: list[str], region: str) -> None:
        arn = self._arn(identifier, region)
        if gone:
            self.ask(region, "UntagResource", ResourceArn=arn, TagKeys=gone)
        if added:
            self.ask(region, "TagResource", ResourceArn=arn, Tags=pairs(added))

    def identifier_in(self, arn: str) -> str | None:
        return arn.partition(":table/")[2] or None

    def _arn(self, name: str, region: str) -> str:
        return f"arn:aws:dynamodb:{region}:{accounts.current()}:table/{name}"


TWINS: Final[dict[str, Twin]] = {one.type_name: one for one in (_Buckets(), _Tables())}
