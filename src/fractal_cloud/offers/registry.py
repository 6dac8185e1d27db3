"""Finds every offer: ours by walking this folder's provider packages, everybody else's through entry points.

There is no second place in which a type must be registered.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType

import fractal_cloud.offers
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.model.link import ANY_TYPE
from fractal_cloud.offers.link import Handler, Handlers
from fractal_cloud.offers.offer import AnyOffer, Offer, Provider

ENTRY_POINTS = "fractal_cloud.offers"


class Registry:
    """All offers and providers that are installed here, by component type and by name."""

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._offers: dict[str, AnyOffer] = {}
        self._providers: dict[str, Provider] = {}
        self.handlers = Handlers()
        for module in modules:
            self._add(module)

    def _add(self, module: ModuleType) -> None:
        for value in vars(module).values():
            if isinstance(value, Provider):
                self._add_provider(value, module)
            elif isinstance(value, Handler):
                self.handlers.add(value)
            elif _is_offer_of(value, module):
                self._add_offer(value())

    def _add_offer(self, offer: AnyOffer) -> None:
        other = self._offers.get(offer.type)
        if other is not None and type(other) is not type(offer):
            raise RegistrationError(
                f"{offer.type!r} is registered twice, by {_where(other)} and by {_where(offer)}: remove one of them"
            )
        self._offers[offer.type] = offer

    def _add_provider(self, provider: Provider, module: ModuleType) -> None:
        other = self._providers.get(provider.name)
        if other is not None and other is not provider:
            raise RegistrationError(
                f"provider {provider.name!r} is registered twice, the second time by {module.__name__}: remove one"
            )
        self._providers[provider.name] = provider

    def __iter__(self) -> Iterator[AnyOffer]:
        return iter(self._offers.values())

    def __contains__(self, component_type: str) -> bool:
        return component_type in self._offers

    def __getitem__(self, component_type: str) -> AnyOffer:
        return self._offers[component_type]

    def get(self, component_type: str) -> AnyOffer | None:
        """The offer for a type, or None if nobody here has it."""
        return self._offers.get(component_type)

    def provider(self, name: str) -> Provider:
        """The provider of that name."""
        if name not in self._providers:
            known = ", ".join(sorted(self._providers)) or "none"
            raise RegistrationError(f"provider {name!r} is not installed here; installed are: {known}")
        return self._providers[name]

    def providers(self) -> list[str]:
        """The names of all providers, sorted."""
        return sorted(self._providers)

    def of_provider(self, name: str) -> list[AnyOffer]:
        """All offers of one provider, by type."""
        return [offer for _, offer in sorted(self._offers.items()) if offer.provider == name]

    def catalog(self) -> dict[str, TypeFacts]:
        """Every type as plain data, each with the halves of links that are written for it."""
        found = {component_type: offer.facts() for component_type, offer in sorted(self._offers.items())}
        for handler in self.handlers:
            own, far = handler.target, handler.source
            if (handler.half == "outbound" and far != ANY_TYPE) or own == ANY_TYPE:
                own = far
            if own in found:
                found[own].links.append(handler.contract())
        return found


def _is_offer_of(value: object, module: ModuleType) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, Offer)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    )


def _where(offer: AnyOffer) -> str:
    return f"{type(offer).__module__}.{type(offer).__qualname__}"


def _our_modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(fractal_cloud.offers.__path__, fractal_cloud.offers.__name__ + "."):
        if found.name.count(".") >= 2 and not found.name.endswith(".cloud"):
            yield importlib.import_module(found.name)


def _other_modules() -> Iterator[ModuleType]:
    for entry in entry_points(group=ENTRY_POINTS):
        package = entry.load()
        yield package
        for found in pkgutil.iter_modules(getattr(package, "__path__", [])):
            yield importlib.import_module(f"{package.__name__}.{found.name}")


@cache
def installed() -> Registry:
    """The registry of this installation."""
    return Registry([*_our_modules(), *_other_modules()])
