"""The types that are installed here, as plain data: what was written by hand in full, families' types as they are used.

A family has thousands of types, each with a schema of its own: one is found by its name, and none of them is listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Self

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.offers.family import Declared, Family
from fractal_cloud.offers.registry import Registry, installed


class InstalledTypes(Mapping[str, TypeFacts]):
    """Types by name. Iterating and counting leave out those of families; ``in`` and ``get`` find them."""

    def __init__(self, written: Mapping[str, TypeFacts], registry: Registry) -> None:
        self._written = written
        self._registry = registry
        self._used: dict[str, TypeFacts] = {}

    @classmethod
    def of(cls, registry: Registry) -> Self:
        """All types of a registry."""
        return cls(registry.catalog(), registry)

    def __getitem__(self, component_type: str) -> TypeFacts:
        facts = self._written.get(component_type) or self._used.get(component_type) or self._made(component_type)
        if facts is None:
            raise KeyError(component_type)
        return facts

    def _made(self, component_type: object) -> TypeFacts | None:
        family = self.family_of(component_type)
        offer = self._registry.get(component_type) if family is not None and isinstance(component_type, str) else None
        return None if offer is None else self._used.setdefault(offer.type, offer.facts())

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def family_of(self, component_type: object) -> Family | None:
        """The family whose form a type's name has; none of what was written by hand has one."""
        if not isinstance(component_type, str) or component_type in self._written:
            return None
        return self._registry.family_of(component_type)

    def families(self) -> list[Family]:
        """All families that are installed here, by name."""
        return self._registry.families()


def declared_in(document: object) -> Iterator[Declared]:
    """The components of a declaration as it was sent, as far as they make sense."""
    components = document.get("components") if isinstance(document, Mapping) else None
    for one in components if isinstance(components, list) else ():
        said = (one.get("id"), one.get("type")) if isinstance(one, Mapping) else (None, None)
        if isinstance(said[0], str) and isinstance(said[1], str):
            parameters = one.get("parameters")
            yield Declared(said[0], said[1], parameters if isinstance(parameters, Mapping) else {})


class Catalog(Mapping[str, TypeFacts]):
    """Every type that can be declared: what is installed here, and before it nothing; after it what agents brought.

    ``brought``: without those that are installed here.
    """

    def __init__(self, brought: Mapping[str, TypeFacts], installed: InstalledTypes) -> None:
        self._brought = brought
        self.installed = installed

    def __getitem__(self, component_type: str) -> TypeFacts:
        facts = self.installed.get(component_type) or self._brought.get(component_type)
        if facts is None:
            raise KeyError(component_type)
        return facts

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self._brought if name not in self.installed)
        yield from self.installed

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def with_declared(self, document: object) -> Self:
        """The same with the types that components of a declaration bring along, as it was sent, for its others."""
        given = list(declared_in(document))
        missing = {one.type for one in given if one.type not in self}
        found = {
            name: facts
            for name in sorted(missing)
            if (family := self.family_of(name)) is not None and (facts := family.declared(name, given)) is not None
        }
        return type(self)({**self._brought, **found}, self.installed)

    def family_of(self, component_type: object) -> Family | None:
        """The family whose form a type's name has, where neither a class nor an agent's package says what it is."""
        return self.installed.family_of(component_type)


def family_warnings(declaration: LiveSystemDeclaration, catalog: Catalog) -> list[str]:
    """What families say of a declaration as a whole (C10)."""
    declared = [Declared(one.id, one.type, one.parameters) for one in declaration.components]
    return [text for family in catalog.installed.families() for text in family.warnings(declared)]


def family_of(catalog: Mapping[str, TypeFacts], component_type: str) -> Family | None:
    """The family whose form a type's name has."""
    return catalog.family_of(component_type) if isinstance(catalog, Catalog) else installed().family_of(component_type)
