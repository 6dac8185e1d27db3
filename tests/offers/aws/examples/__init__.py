"""The examples of all AWS types: a file each, found by walking, with an ``EXAMPLE`` in it. Nothing asserts here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from fractal_cloud.model.component import Component
from tests.offers.aws.example import Example


def _found() -> list[Example]:
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    return [module.EXAMPLE for module in modules]


EXAMPLES: dict[type[Component], Example] = {
    one.kind: one for one in sorted(_found(), key=lambda one: (len(one.components), one.kind.__name__))
}
"""By component class, those that need least around them first."""
