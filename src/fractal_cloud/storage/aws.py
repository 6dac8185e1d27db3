"""Component types of the category Storage at AWS.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aws.rds import AwsRdsPostgres as rds_postgres
from fractal_cloud.offers.aws.s3 import AwsS3 as s3
from fractal_cloud.offers.aws.s3_lifecycle import AwsAbortIncompleteMultipartUpload as abort_incomplete_multipart_upload
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleConditions as lifecycle_conditions
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleExpiration as lifecycle_expiration
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleFilter as lifecycle_filter
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleRule as lifecycle_rule
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleTag as lifecycle_tag
from fractal_cloud.offers.aws.s3_lifecycle import AwsLifecycleTransition as lifecycle_transition
from fractal_cloud.offers.aws.s3_lifecycle import AwsNoncurrentVersionExpiration as noncurrent_version_expiration
from fractal_cloud.offers.aws.s3_lifecycle import AwsNoncurrentVersionTransition as noncurrent_version_transition
from fractal_cloud.offers.aws.s3_logging import AwsBucketLogging as bucket_logging
from fractal_cloud.offers.aws.s3_logging import AwsPartitionedPrefix as partitioned_prefix
from fractal_cloud.offers.aws.s3_logging import AwsSimplePrefix as simple_prefix
from fractal_cloud.offers.aws.s3_logging import AwsTargetObjectKeyFormat as target_object_key_format

__all__ = [
    "abort_incomplete_multipart_upload",
    "bucket_logging",
    "lifecycle_conditions",
    "lifecycle_expiration",
    "lifecycle_filter",
    "lifecycle_rule",
    "lifecycle_tag",
    "lifecycle_transition",
    "noncurrent_version_expiration",
    "noncurrent_version_transition",
    "partitioned_prefix",
    "rds_postgres",
    "s3",
    "simple_prefix",
    "target_object_key_format",
]
