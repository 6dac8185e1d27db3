"""Volumes of Hetzner Cloud under their short names."""

from fractal_cloud.offers.hetzner.volume import HetznerVolume as volume

__all__ = ["volume"]
