"""S3: buckets. Single tags of a bucket are written by a service of their own, ``s3control``."""

from fractal_cloud.offers.aws.descriptors import Paging, Service, Tagging

S3 = Service(
    name="s3",
    cursor=("ContinuationToken", "ContinuationToken"),
    paging=Paging(limit="MaxBuckets", largest=10_000, bad_token="InvalidArgument"),
    arn="arn:{partition}:s3:::",
    not_found=("NoSuchBucket", "NoSuchTagSet"),
    conflict=("BucketAlreadyOwnedByYou", "BucketNotEmpty", "OperationAborted", "PreconditionFailed"),
    invalid=("BucketAlreadyExists",),
    limit=("TooManyBuckets",),
    actions={
        "DeleteBucketLifecycle": "PutLifecycleConfiguration",
        "GetBucketEncryption": "GetEncryptionConfiguration",
        "GetBucketLifecycleConfiguration": "GetLifecycleConfiguration",
        "GetPublicAccessBlock": "GetBucketPublicAccessBlock",
        "HeadBucket": "ListBucket",
        "ListBuckets": "ListAllMyBuckets",
        "ListObjectVersions": "ListBucketVersions",
        "PutBucketEncryption": "PutEncryptionConfiguration",
        "PutBucketLifecycleConfiguration": "PutLifecycleConfiguration",
        "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
    },
    event_names={
        "PutBucketLifecycleConfiguration": "PutBucketLifecycle",
        "PutPublicAccessBlock": "PutBucketPublicAccessBlock",
        "DeletePublicAccessBlock": "DeleteBucketPublicAccessBlock",
    },
    noun="Bucket",
    needs_abac=True,
)

S3_CONTROL = Service(name="s3control", tagging=Tagging(), iam="s3", reads=("ListTagsForResource",))
