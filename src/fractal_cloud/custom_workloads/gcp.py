"""Component types of the category CustomWorkloads at Google Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.gcp.cloud_run import GcpCloudRun as cloud_run

__all__ = ["cloud_run"]
