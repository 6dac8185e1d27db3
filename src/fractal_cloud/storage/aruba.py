"""Component types of the category Storage at Aruba Cloud.

Written by `make docs` from the offers: change those.
"""

# ruff: noqa: N813  # a class under the SDK's short name

from fractal_cloud.offers.aruba.block_storage import ArubaBlockStorage as block_storage

__all__ = ["block_storage"]
