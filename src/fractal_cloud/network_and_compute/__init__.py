"""Networks and machines, by provider. Only names: what a component is stands beside its offer."""

from fractal_cloud.network_and_compute import aruba, aws, azure, gcp, hetzner, kubernetes, oci

__all__ = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci"]
