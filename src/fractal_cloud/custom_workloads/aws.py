"""What runs people's own programs on AWS, under short names."""

from fractal_cloud.offers.aws.ecs_cluster import AwsEcsCluster as ecs_cluster
from fractal_cloud.offers.aws.ecs_service import AwsEcsService as ecs_service

__all__ = ["ecs_cluster", "ecs_service"]
