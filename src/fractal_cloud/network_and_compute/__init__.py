"""Networks and machines, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.network_and_compute import aws, gcp, kubernetes

__all__ = ["aws", "gcp", "kubernetes"]
