"""Another name for ``network_and_compute``. Written by `make docs` from the offers: change those."""

from types import ModuleType
from typing import TYPE_CHECKING

from fractal_cloud import network_and_compute

if TYPE_CHECKING:
    from fractal_cloud.network_and_compute import aruba, aws, azure, gcp, hetzner, kubernetes, oci, vsphere

__all__ = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "vsphere"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        return getattr(network_and_compute, name)
