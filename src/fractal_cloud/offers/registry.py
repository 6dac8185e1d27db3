"""Finds every offer: ours by walking this folder's provider packages, everybody else's through entry points.

There is no second place in which a type must be registered.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

import fractal_cloud.offers
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.model.link import ANY_TYPE
from fractal_cloud.offers.family import Family, FamilyOffer
from fractal_cloud.offers.link import Handler, Handlers
from fractal_cloud.offers.offer import AnyOffer, Offer, Provider

ENTRY_POINTS = "fractal_cloud.offers"


class Registry:
    """All offers and providers that are installed here, by component type and by name.

    A type that no class was written for is looked for in the families. Only what was written by hand is iterated over
    and listed in catalogs: a family has thousands of types, and makes an offer when one is used.
    """

    def __init__(self, modules: Iterable[ModuleType]) -> None:
        self._offers: dict[str, AnyOffer] = {}
        self._providers: dict[str, Provider] = {}
        self._homes: dict[str, str] = {}
        self._families: dict[str, Family] = {}
        self._of_families: dict[str, AnyOffer] = {}
        self.handlers = Handlers(self._links_as)
        for module in modules:
            self._add(module)

    def _add(self, module: ModuleType) -> None:
        for value in vars(module).values():
            if isinstance(value, Provider):
                self._add_provider(value, module)
            elif isinstance(value, Handler):
                self.handlers.add(value)
            elif isinstance(value, Family):
                self._add_family(value)
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
            places = f"by {self._homes[provider.name]} and by {module.__name__}"
            raise RegistrationError(f"provider {provider.name!r} is registered twice, {places}: remove one of them")
        self._providers[provider.name] = provider
        self._homes.setdefault(provider.name, module.__name__)

    def _add_family(self, family: Family) -> None:
        other = self._families.get(family.name)
        if other is not None and other is not family:
            places = f"by {type(other).__module__} and by {type(family).__module__}"
            raise RegistrationError(f"family {family.name!r} is registered twice, {places}: remove one of them")
        self._families[family.name] = family

    def __iter__(self) -> Iterator[AnyOffer]:
        return iter(self._offers.values())

    def __contains__(self, component_type: str) -> bool:
        return self.get(component_type) is not None

    def __getitem__(self, component_type: str) -> AnyOffer:
        offer = self.get(component_type)
        if offer is None:
            raise KeyError(component_type)
        return offer

    def get(self, component_type: str) -> AnyOffer | None:
        """The offer for a type, or None if nobody here has it. That of a family is made once, and kept."""
        offer = self._offers.get(component_type) or self._of_families.get(component_type)
        if offer is not None:
            return offer
        family = self.family_of(component_type)
        made = family.offer(component_type) if family is not None else None
        return None if made is None else self._of_families.setdefault(component_type, self._kept(made))

    def _kept(self, offer: AnyOffer) -> AnyOffer:
        """An offer of a family as this registry gives it out."""
        return offer

    def family_of(self, component_type: str) -> Family | None:
        """The family whose form a type's name has, or None; one that a class was written for is in none."""
        if component_type in self._offers:
            return None
        return next((family for family in self._families.values() if family.covers(component_type)), None)

    def _links_as(self, component_type: str) -> str:
        """The type whose halves of links serve a type of a family."""
        family = self.family_of(component_type)
        return family.links_as(component_type) if family is not None else ""

    def family(self, name: str) -> Family | None:
        """The family of that name, or None if nobody here has it."""
        return self._families.get(name)

    def families(self, *providers: str) -> list[Family]:
        """All families, by name, or those of these providers alone."""
        found = [family for _, family in sorted(self._families.items())]
        return [family for family in found if not providers or family.provider in providers]

    def provider(self, name: str) -> Provider:
        """The provider of that name."""
        if name not in self._providers:
            known = ", ".join(sorted(self._providers)) or "none"
            raise RegistrationError(f"provider {name!r} is not installed here; installed are: {known}")
        return self._providers[name]

    def has_provider(self, name: str) -> bool:
        """Whether there is a provider of that name."""
        return name in self._providers

    def providers(self) -> list[str]:
        """The names of all providers, sorted."""
        return sorted(self._providers)

    def of_provider(self, name: str) -> list[AnyOffer]:
        """All offers of one provider, by type."""
        return [offer for _, offer in sorted(self._offers.items()) if offer.provider == name]

    def rights(self, provider: str) -> list[str]:
        """Everything the agent must be allowed to do for the types of a provider, in the provider's own terms."""
        return sorted({right for offer in self.of_provider(provider) for right in offer.rights})

    def catalog(self) -> dict[str, TypeFacts]:
        """Every type as plain data, each with the halves of links that are written for it."""
        found = {component_type: offer.facts() for component_type, offer in sorted(self._offers.items())}
        for handler in self.handlers:
            home = self._home_of(handler)
            if home in found:
                found[home].links.append(handler.contract())
        return found

    def _home_of(self, handler: Handler) -> str:
        """The type with which a half is listed: the one it runs for, unless it comes with the package of the other.

        Such a half is known wherever that package is, and nowhere else: so every process lists the same type alike.
        """
        own, other = handler.target, handler.source
        if handler.half == "outbound":
            own, other = other, own
        if own == ANY_TYPE:
            return other
        package = _package(handler.function.__module__)
        is_guest = own not in self or package != _package(type(self[own]).__module__)
        is_at_home = other in self and package == _package(type(self[other]).__module__)
        return other if is_guest and is_at_home else own


def _is_offer_of(value: object, module: ModuleType) -> bool:
    return (
        inspect.isclass(value)
        and issubclass(value, Offer)
        and not issubclass(value, FamilyOffer)
        and not inspect.isabstract(value)
        and value.__module__ == module.__name__
    )


def _where(offer: AnyOffer) -> str:
    return f"{type(offer).__module__}.{type(offer).__qualname__}"


def _our_modules(providers: Collection[str]) -> Iterator[ModuleType]:
    """The modules of this folder: those of all providers, or of these alone."""
    home = fractal_cloud.offers
    folders = [found.name for found in pkgutil.iter_modules(home.__path__) if found.ispkg]
    for name in [folder for folder in folders if not providers or folder in providers]:
        package = importlib.import_module(f"{home.__name__}.{name}")
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".cloud"):
                yield importlib.import_module(found.name)


def _package(module: str) -> str:
    return module.partition(".")[0]


def _other_modules() -> Iterator[ModuleType]:
    for entry in sorted(entry_points(group=ENTRY_POINTS), key=lambda entry: (entry.name, entry.value)):
        package = _loaded(entry, entry.value)
        yield package
        for name in _modules_in(package):
            yield _loaded(entry, name)


def _modules_in(package: ModuleType) -> Iterator[str]:
    """The names of all modules below a package, at any depth; programs (``__main__``) are left alone."""
    for found in pkgutil.iter_modules(getattr(package, "__path__", []), f"{package.__name__}."):
        if found.name.endswith(".__main__"):
            continue
        yield found.name
        if found.ispkg:
            yield from _modules_in(importlib.import_module(found.name))


def _loaded(entry: EntryPoint, name: str) -> ModuleType:
    """A module of somebody else's package; whatever goes wrong in it is reported with the package's name.

    Left out, its types would look as if nobody served them: so nothing starts until it is fixed or removed.
    """
    package = f"the package {entry.dist.name!r}" if entry.dist is not None else "a package"
    said = f"{package} announces {entry.name} = {entry.value!r} in {ENTRY_POINTS}"
    if ":" in name:
        raise RegistrationError(f"{said}, which is no module: announce the package that holds the offers")
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise RegistrationError(
            f"{said}, but {name} cannot be imported ({type(error).__name__}: {error}): fix or uninstall it"
        ) from error


@cache
def installed(*providers: str) -> Registry:
    """The registry of this installation; with names, only what agents of these providers need, which loads less.

    A half of a link stands in the folder of the provider that it runs for, so that is enough for them.
    """
    return Registry([*_our_modules(providers), *_other_modules()])
