"""Another name for ``network_and_compute``."""

from fractal_cloud.network_and_compute import aws, azure, hetzner, kubernetes

__all__ = ["aws", "azure", "hetzner", "kubernetes"]
