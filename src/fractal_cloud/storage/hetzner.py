"""Component types of the category Storage at Hetzner Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.hetzner.volume import HetznerVolume as volume

__all__ = ["volume"]
