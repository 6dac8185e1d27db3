"""Disks of Aruba Cloud under their short names."""

from fractal_cloud.offers.aruba.block_storage import ArubaBlockStorage as block_storage

__all__ = ["block_storage"]
