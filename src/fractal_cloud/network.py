"""Another name for ``network_and_compute``."""

from fractal_cloud.network_and_compute import aws, gcp, kubernetes

__all__ = ["aws", "gcp", "kubernetes"]
