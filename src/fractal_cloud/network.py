"""Another name for ``network_and_compute``."""

from fractal_cloud.network_and_compute import aws, azure, gcp, hetzner, kubernetes

__all__ = ["aws", "azure", "gcp", "hetzner", "kubernetes"]
