"""Buckets, databases and volumes, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.storage import aws, gcp, kubernetes, postgres

__all__ = ["aws", "gcp", "kubernetes", "postgres"]
