"""What runs people's programs on Google Cloud, under its short name."""

from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun as cloud_run

__all__ = ["cloud_run"]
