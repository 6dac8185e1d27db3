"""Buckets, databases and volumes, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.storage import aruba, aws, azure, gcp, hetzner, kubernetes, oci, postgres

__all__ = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "postgres"]
