"""Component types of the category Storage at Oracle Cloud (OCI).

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.oci.bucket import OciBucket as bucket

__all__ = ["bucket"]
