"""Component types of the category CustomWorkloads at AWS.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster as ecs_cluster
from fractal_cloud.offers.aws.ecs_service import AwsCapacityProviderItem as capacity_provider_item
from fractal_cloud.offers.aws.ecs_service import AwsEcsService as ecs_service
from fractal_cloud.offers.aws.ecs_service import AwsPlacementConstraint as placement_constraint
from fractal_cloud.offers.aws.ecs_service import AwsPlacementStrategy as placement_strategy
from fractal_cloud.offers.aws.ecs_service import AwsServiceLoadBalancer as service_load_balancer
from fractal_cloud.offers.aws.ecs_service import AwsServiceRegistry as service_registry

__all__ = [
    "capacity_provider_item",
    "ecs_cluster",
    "ecs_service",
    "placement_constraint",
    "placement_strategy",
    "service_load_balancer",
    "service_registry",
]
