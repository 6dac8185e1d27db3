"""The names under which the SDK has component types: category, provider, short name, each derived from the offer.

A category is the first part of a type (`Storage.PaaS.AwsS3`) and a package of that name beside this one. `make docs`
writes the names into those packages, so that type checkers know them too; the packages themselves load nothing of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, get_args

from pydantic import BaseModel

import fractal_cloud
from fractal_cloud.model.component import Component
from fractal_cloud.offers.offer import AnyOffer

_WORD: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CATEGORY: Final = re.compile(r'^CATEGORY = "(\w+)"$', re.MULTILINE)


def snake(name: str) -> str:
    """A name of a class as Python spells functions: ``APIManagement`` is ``api_management``."""
    return _WORD.sub("_", name).lower()


def category(offer: AnyOffer) -> str:
    """The category of an offer's type, as it stands in the type."""
    return offer.type.partition(".")[0]


def categories(root: Path | None = None) -> Mapping[str, str]:
    """The packages of the SDK by the category they hold: those whose ``__init__`` says ``CATEGORY = "…"``."""
    home = root or Path(fractal_cloud.__path__[0])
    found = {path.parent.name: _CATEGORY.search(path.read_text("utf-8")) for path in home.glob("*/__init__.py")}
    return {match[1]: package for package, match in sorted(found.items()) if match}


def names(offer: AnyOffer) -> dict[str, type[BaseModel]]:
    """What an offer adds to its category: the component's class, and the classes of its parameters' entries."""
    component = offer.component
    own = offer.short_name or _short(component, offer.provider)
    return {own: component, **{_short(part, offer.provider): part for part in _parts(component, set())}}


def _short(model: type[BaseModel], provider: str) -> str:
    """``AwsSecurityGroup`` of ``aws`` is ``security_group``."""
    prefix = provider.capitalize()
    return snake(model.__name__.removeprefix(prefix) or prefix)


def _parts(model: type[BaseModel], known: set[type[BaseModel]]) -> Iterator[type[BaseModel]]:
    for field in model.model_fields.values():
        for found in _models_in(field.annotation):
            if found not in known:
                known.add(found)
                yield found
                yield from _parts(found, known)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that a type names, but for components: those are references."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel) and not issubclass(annotation, Component):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)
