"""Whether declared links are what the handlers of their ends ask for (L7). Nothing but contracts is known here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.declaration import LiveSystemDeclaration
from fractal_cloud.model.link import ANY_TYPE, Half, LinkContract
from fractal_cloud.model.wording import Path, shown, unknown
from fractal_cloud.offers.installed_types import family_of
from fractal_cloud.offers.link_types import WITH_A_SECRET
from fractal_cloud.offers.parameter_validation import SchemaCheck

DIRECTIONS: tuple[Half, ...] = ("inbound", "outbound")


class LinkChecks:
    """The contracts of all halves that are known, and the checks that follow from them."""

    def __init__(self, catalog: Mapping[str, TypeFacts]) -> None:
        self._catalog = catalog
        self._checks: dict[tuple[Half, str, str], SchemaCheck] = {}

    def errors(
        self, source_id: str, target_id: str, types: tuple[object, object], settings: object
    ) -> Iterator[tuple[Path, str]]:
        """Everything that is wrong with the settings of one link, by path."""
        if not isinstance(settings, Mapping):
            yield ("settings",), f"is {shown(settings)}: must be a flat object"
            return
        for name, value in settings.items():
            if not isinstance(value, (str, int, float, bool)):
                yield ("settings", name), f"is {shown(value)}: must be text, a number, true or false"
        source, target = types
        if not (isinstance(source, str) and isinstance(target, str) and {source, target} <= self._catalog.keys()):
            return
        contracts = self._contracts(source, target)
        for name in dict.fromkeys(name for contract in contracts for name in contract.required):
            if name not in settings:
                yield ("settings", name), f"is missing: the link from {source_id!r} to {target_id!r} needs it"
        for path, text in self._by_contracts(contracts, settings).items():
            if path[0] in settings:
                yield ("settings", *path), text

    def warnings(self, declaration: LiveSystemDeclaration) -> Iterator[str]:
        """Links that nobody who is known here would ever carry out."""
        for (source, target), why in self.unserved(declaration).items():
            yield f"the link from {source!r} to {target!r} waits: {why}"

    def unserved(self, declaration: LiveSystemDeclaration) -> dict[tuple[str, str], str]:
        """The same by the ids of their ends, with the reason alone."""
        types = {component.id: component.type for component in declaration.components}
        found: dict[tuple[str, str], str] = {}
        for one in declaration.components:
            for link in one.links:
                why = self._why_unserved(one.type, types[link.target])
                if why:
                    found[one.id, link.target] = f"{why}{self._hint(one.type)}"
        return found

    def _why_unserved(self, source: str, target: str) -> str:
        contracts = self._contracts(source, target)
        if not contracts:
            return f"nobody here wires {source} to {target}"
        if [one.half for one in contracts] == ["inbound"] and contracts[0].link_type in WITH_A_SECRET:
            return f"nobody here takes over for {source} the secret that {target} hands out"
        return ""

    def _hint(self, source: str) -> str:
        source = self._links_as(source)
        leads = {contract.target for contract in self._links_of(source)}
        for name, facts in self._catalog.items():
            leads |= {name for found in facts.links if found.half == "inbound" and found.source == source}
        known = sorted(leads - {ANY_TYPE})
        return f"; it can lead to {', '.join(known)}" if known else ""

    def _links_of(self, component_type: str) -> list[LinkContract]:
        facts = self._catalog.get(component_type)
        return facts.links if facts is not None else []

    def _contracts(self, source: str, target: str) -> list[LinkContract]:
        return [found for half in DIRECTIONS if (found := self._contract(half, source, target)) is not None]

    def _by_contracts(self, contracts: list[LinkContract], settings: Mapping[str, Any]) -> dict[Path, str]:
        """What is wrong by any contract; a setting that only one half knows is no error to the other."""
        found: dict[Path, str] = {}
        everything: set[str] = set()
        for contract in contracts:
            names = set(contract.settings_schema.get("properties", {}))
            everything |= names
            claim = (contract.half, contract.source, contract.target)
            called = f"setting of {contract.link_type}"
            check = self._checks.get(claim) or self._checks.setdefault(
                claim, SchemaCheck(contract.settings_schema, called)
            )
            for path, text in check.schema_errors({k: v for k, v in settings.items() if k in names}).items():
                found.setdefault(path, text)
        if contracts:
            called = f"setting of {contracts[0].link_type}"
            found |= {(name,): unknown(called, name, everything) for name in settings if name not in everything}
        return found

    def _contract(self, half: Half, source: str, target: str) -> LinkContract | None:
        """The contract that serves a pair: the exact one, then the side the half runs for, then the other (L15)."""
        found = self._found(half, source, target)
        return found or self._found(half, self._links_as(source), self._links_as(target))

    def _links_as(self, component_type: str) -> str:
        family = family_of(self._catalog, component_type)
        return (family.links_as(component_type) if family is not None else "") or component_type

    def _found(self, half: Half, source: str, target: str) -> LinkContract | None:
        own, far = (ANY_TYPE, target), (source, ANY_TYPE)
        if half == "outbound":
            own, far = far, own
        known = {
            (contract.source, contract.target): contract
            for name in (source, target)
            for contract in self._links_of(name)
            if contract.half == half
        }
        return next((known[pair] for pair in ((source, target), own, far) if pair in known), None)
