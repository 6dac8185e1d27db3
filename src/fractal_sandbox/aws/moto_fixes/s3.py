"""Fixes for moto's S3 and S3's control API, which holds the single-tag calls for buckets."""

from __future__ import annotations

import uuid
from typing import Any

from fractal_sandbox.aws.answer import Answer, AwsError, written
from fractal_sandbox.aws.moto_fixes.registry import FixContext, fix
from fractal_sandbox.aws.request import AwsRequest
from fractal_sandbox.aws.resources import backend, exists, not_found, ref_from_arn
from fractal_sandbox.calls import Call

__all__: list[str] = []


@fix("s3", "CreateBucket")
def keep_tags_of_the_create_call(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto drops `CreateBucketConfiguration.Tags`; AWS sets them."""
    answer = context.dispatch(request)
    tags = (call.parameters.get("CreateBucketConfiguration") or {}).get("Tags")
    if answer.is_success and tags:
        named = {tag["Key"]: tag.get("Value") or "" for tag in tags}
        backend("s3", "aws").put_bucket_tagging(call.parameters["Bucket"], named)
    return answer


@fix("s3control", "TagResource", "UntagResource", "ListTagsForResource")
def refuse_unknown_buckets(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto tags buckets that do not exist; AWS refuses."""
    ref = ref_from_arn(call.parameters.get("ResourceArn", ""))
    if ref is not None and not exists(ref):
        code, status, message = not_found(ref)
        raise AwsError(code, message, status)
    return context.dispatch(request)


_KEPT = {
    "PutBucketEncryption": ("ServerSideEncryptionConfiguration", "kept_encryption"),
    "PutBucketLifecycleConfiguration": ("LifecycleConfiguration", "kept_lifecycle"),
    "PutBucketLogging": ("BucketLoggingStatus", "kept_logging"),
}
"""By the call that sets it: the member that holds a setting, and what it is called on moto's bucket."""


@fix("s3", *_KEPT)
def keep_what_moto_forgets(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto keeps of these settings only a part (no sizes, no key formats, no blocked kinds of encryption)."""
    member, name = _KEPT[call.operation]
    given = call.parameters.get(member) or {}
    if name == "kept_encryption":
        _refuse_a_key_without_kms(given)
    answer = context.dispatch(request)
    if answer.is_success:
        smallest = call.parameters.get("TransitionDefaultMinimumObjectSize", "all_storage_classes_128K")
        if name == "kept_lifecycle":
            rules = sorted(map(_rule_as_returned, given["Rules"]), key=lambda rule: str(rule["ID"]))
            given = {"Rules": rules, "TransitionDefaultMinimumObjectSize": smallest}
        setattr(_bucket(call), name, given)
    return answer


def _rule_as_returned(rule: dict[str, Any]) -> dict[str, Any]:
    """S3 makes up the ids that are absent, and shows an empty filter as an empty prefix."""
    made = {"ID": uuid.uuid4().hex, **rule}
    return made if made.get("Filter") or "Filter" not in made else {**made, "Filter": {"Prefix": ""}}


def _refuse_a_key_without_kms(given: dict[str, Any]) -> None:
    for rule in given.get("Rules") or ():
        chosen = rule.get("ApplyServerSideEncryptionByDefault") or {}
        if chosen.get("SSEAlgorithm") == "AES256" and chosen.get("KMSMasterKeyID"):
            raise AwsError(
                "InvalidArgument",
                "a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms or aws:kms:dsse",
            )


@fix("s3", "GetBucketEncryption")
def return_the_encryption_that_was_set(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto returns it without the kinds that are blocked."""
    answer = context.dispatch(request)
    kept = getattr(_bucket(call), "kept_encryption", None)
    return written(request, {"ServerSideEncryptionConfiguration": kept}, answer) if kept else answer


@fix("s3", "GetBucketLifecycleConfiguration")
def return_the_rules_that_were_set(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto returns them without sizes, and without how many old versions stay."""
    answer = context.dispatch(request)
    kept = getattr(_bucket(call), "kept_lifecycle", None)
    return written(request, kept, answer) if kept and answer.is_success else answer


@fix("s3", "GetBucketLogging")
def return_the_log_that_was_set(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """moto returns it without how its objects are named."""
    answer = context.dispatch(request)
    kept = getattr(_bucket(call), "kept_logging", None)
    return written(request, kept, answer) if kept and answer.is_success else answer


@fix("s3", "DeleteBucketLifecycle", "DeleteBucketEncryption")
def forget_what_was_set(context: FixContext, request: AwsRequest, call: Call) -> Answer:
    """What was kept beside moto goes with it."""
    answer = context.dispatch(request)
    name = "kept_lifecycle" if call.operation == "DeleteBucketLifecycle" else "kept_encryption"
    if answer.is_success and (bucket := _bucket(call)) is not None:
        setattr(bucket, name, None)
    return answer


def _bucket(call: Call) -> Any:
    return backend("s3", "aws").buckets.get(call.parameters.get("Bucket"))
