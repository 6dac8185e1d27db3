"""Component types of the category NetworkAndCompute, by provider: only names, what each is stands beside its offer.

A provider is loaded when it is first named: a declaration for one cloud never waits for the types of others.
Written by `make docs` from the offers: change those.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fractal_cloud.network_and_compute import aruba, aws, azure, gcp, hetzner, kubernetes, oci, vsphere

__all__: list[str] = ["aruba", "aws", "azure", "gcp", "hetzner", "kubernetes", "oci", "vsphere"]
CATEGORY = "NetworkAndCompute"


if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])
