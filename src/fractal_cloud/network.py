"""Another name for ``network_and_compute``."""

from types import ModuleType
from typing import TYPE_CHECKING

from fractal_cloud import network_and_compute

if TYPE_CHECKING:
    from fractal_cloud.network_and_compute import aruba, aws, azure, gcp, hetzner, kubernetes, oci, vsphere

__all__ = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "vsphere"]


def __getattr__(name: str) -> ModuleType:
    found: ModuleType = getattr(network_and_compute, name)
    return found
