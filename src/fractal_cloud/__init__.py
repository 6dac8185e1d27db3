"""The SDK's public names, and nothing else: what a declaration written in Python imports.

    from fractal_cloud import LiveSystem, network_and_compute as nc

Each name is loaded when it is first used, so that the programs, which need none of them, start quickly.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fractal_cloud.livesystem import LiveSystem
    from fractal_cloud.model.component import Component
    from fractal_cloud.model.errors import DeclarationError
    from fractal_cloud.model.reference import FindReference, OutputText, SecretReference, find, generated_secret, secret

__version__ = "0.1.0"

__all__ = [
    "Component",
    "DeclarationError",
    "FindReference",
    "LiveSystem",
    "OutputText",
    "SecretReference",
    "__version__",
    "find",
    "generated_secret",
    "secret",
]

_HOMES = {
    "Component": "fractal_cloud.model.component",
    "DeclarationError": "fractal_cloud.model.errors",
    "FindReference": "fractal_cloud.model.reference",
    "LiveSystem": "fractal_cloud.livesystem",
    "OutputText": "fractal_cloud.model.reference",
    "SecretReference": "fractal_cloud.model.reference",
    "find": "fractal_cloud.model.reference",
    "generated_secret": "fractal_cloud.model.reference",
    "secret": "fractal_cloud.model.reference",
}
# Every other folder here is a category of component types, found by walking: see offers/short_names.py.
_PARTS = ("agent", "cli", "control", "model", "offers", "rules", "testing")


def _categories() -> list[str]:
    folders = [found.name for found in iter_modules(__path__) if found.ispkg]
    return sorted(["network", *(name for name in folders if name not in _PARTS)])


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if not name.startswith("_") and name in _categories():
        return import_module(f"fractal_cloud.{name}")
    raise AttributeError(f"module 'fractal_cloud' has no attribute {name!r}: it offers {', '.join(__dir__())}")


def __dir__() -> list[str]:
    return [*__all__, "aws", "kubernetes", *_categories()]
