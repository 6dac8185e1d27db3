"""The Resource Groups Tagging API: the tags of all services in bulk."""

from fractal_cloud.offers.aws.descriptors import Service

TAGGING_API = Service(
    name="resourcegroupstaggingapi",
    cursor=("PaginationToken", "PaginationToken"),
    iam="tag",
    reads=("GetResources",),
)
