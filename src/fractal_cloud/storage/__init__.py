"""Buckets, databases and volumes, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.storage import aws, kubernetes, oci

__all__ = ["aws", "kubernetes", "oci"]
