"""Component types of the category CustomWorkloads at AWS.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster as ecs_cluster
from fractal_cloud.offers.aws.ecs_service import AwsEcsService as ecs_service

__all__ = ["ecs_cluster", "ecs_service"]
