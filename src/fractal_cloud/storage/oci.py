"""Buckets of Oracle Cloud under their short names."""

from fractal_cloud.offers.oci.bucket import OciBucket as bucket

__all__ = ["bucket"]
