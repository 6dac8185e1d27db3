"""Networks and machines, by provider. Only names: what a component is stands beside its offer.

A provider is loaded when it is first named: who declares for one cloud does not wait for the types of all others.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractal_cloud.network_and_compute import aruba, aws, azure, gcp, hetzner, kubernetes, oci, vsphere

__all__ = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "vsphere"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
