"""Buckets, databases and volumes, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.storage import aws, azure, gcp, hetzner, kubernetes, oci, postgres

__all__ = ["aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "postgres"]
