"""Gateways of a cluster under their short names."""

from fractal_cloud.offers.kubernetes.ambassador import Ambassador as ambassador

__all__ = ["ambassador"]
