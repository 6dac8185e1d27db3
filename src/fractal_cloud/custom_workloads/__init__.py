"""What runs people's own programs, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.custom_workloads import aws, gcp, kubernetes

__all__ = ["aws", "gcp", "kubernetes"]
