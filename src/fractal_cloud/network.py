"""Another name for ``network_and_compute``."""

from fractal_cloud.network_and_compute import aruba, aws, azure, gcp, hetzner, kubernetes, oci

__all__ = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci"]
