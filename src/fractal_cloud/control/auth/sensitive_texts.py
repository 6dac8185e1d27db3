"""What of a declaration a role may see: readers do not see texts that may hold secrets (A8).

Operators see what they may deploy themselves. Values of secrets are not stored at all, so nobody sees those; and what
agents publish, write down or raise events of is hidden when it is stored, from everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fractal_cloud.control.auth.principal import Principal, Role
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.rules.hiding import Hiding, Marks

Json = dict[str, Any]

_SEES_ALL: Final = frozenset({Role.ADMIN, Role.OPERATOR})


class SensitiveTexts:
    """Documents as one visitor may see them; ``catalog`` is asked for only where something may have to be hidden."""

    def __init__(self, who: Principal, catalog: Callable[[], Mapping[str, TypeFacts]]) -> None:
        self._sees_all = who.role in _SEES_ALL
        self._catalog = catalog
        self._known: Mapping[str, TypeFacts] | None = None
        self._hiding: dict[str, Hiding] = {}

    def live_system(self, document: Json) -> Json:
        """A LiveSystem with its declarations."""
        if self._sees_all:
            return document
        return {**document, "components": [self._declaration(one) for one in document["components"]]}

    def live_systems(self, documents: list[Json]) -> list[Json]:
        """Several of them."""
        return [self.live_system(one) for one in documents]

    def component(self, document: Json) -> Json:
        """A component with its declaration."""
        return document if self._sees_all else {**document, "declaration": self._declaration(document["declaration"])}

    def components(self, documents: list[Json]) -> list[Json]:
        """Several of them."""
        return [self.component(one) for one in documents]

    def _declaration(self, document: Json) -> Json:
        hiding = self._hiding.get(document["type"])
        if hiding is None:
            hiding = self._hiding[document["type"]] = self._of_type(document["type"])
        return {**document, "parameters": dict(hiding.declared(document.get("parameters") or {}))}

    def _of_type(self, name: str) -> Hiding:
        if self._known is None:
            self._known = self._catalog()
        facts = self._known.get(name)
        # Of a type that nobody knows any more, whatever any type hides.
        return Hiding(Marks.of_any(self._known.values() if facts is None else [facts]))
