"""The services of AWS that anything here calls: one file each, found by walking. Only values stand in them."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from fractal_cloud.offers.aws.descriptors import Service


@cache
def services() -> Mapping[str, Service]:
    """Every service by the name of its client."""
    modules = [import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    values = [value for module in modules for value in vars(module).values() if isinstance(value, Service)]
    return {service.name: service for service in values}
