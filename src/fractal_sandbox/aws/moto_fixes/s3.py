"""Fixes for moto's S3 and S3's control API, which holds the single-tag calls for buckets."""

from __future__ import annotations

from fractal_sandbox.aws.answer import Answer, AwsError
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
