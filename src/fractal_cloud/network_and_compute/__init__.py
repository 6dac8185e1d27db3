"""Networks and machines, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.network_and_compute import aws, kubernetes, oci

__all__ = ["aws", "kubernetes", "oci"]
