"""The component types that an agent serves: those that classes were written for, and any of a family once it is used.

An offer of a family is made when the first component of its type arrives; until then it costs nothing. What an offer
does is the business of ``offers``; which type a cloud itself must be asked about, that of ``learning``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

import structlog

from fractal_cloud.agent.isolation import isolated
from fractal_cloud.agent.spelling import Spelling
from fractal_cloud.agent.watchdog import Watchdog
from fractal_cloud.model.errors import RegistrationError
from fractal_cloud.offers.family import Family
from fractal_cloud.offers.offer import AnyOffer
from fractal_cloud.offers.parameter_validation import SchemaCheck
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.offers.registry import Registry
from fractal_cloud.offers.type_validation import template_errors, type_errors
from fractal_cloud.rules.drift import ComparedType
from fractal_cloud.rules.situate import TypeTraits

log = structlog.get_logger()


class OfferFacts:
    """What an evaluator must know of one offer, found out once.

    ``offer``: the offer, whose verbs always end, and raise nothing but ``CloudError``.
    ``own``: the offer itself, for the session of its provider.
    """

    def __init__(self, offer: AnyOffer, watchdog: Watchdog) -> None:
        self.facts = facts = offer.facts()
        self.own = offer
        self.offer = isolated(offer, watchdog)
        self.compared = ComparedType(facts)
        self.traits = TypeTraits(
            offer.taggable,
            offer.holds_data,
            offer.tags_frozen,
            offer.owner_moves,
            offer.is_part,
            offer.blocks_parent_deletion,
        )
        self.references = facts.references()
        self.is_wired = bool(facts.linked())
        self.spelling = Spelling(offer.component)
        self.parent = offer.parent
        self.parent_output = self.references.get(offer.parent or "", ("", ""))[1]

    @cached_property
    def check(self) -> SchemaCheck:
        """By which values that were filled in are checked."""
        return SchemaCheck(self.facts.parameter_schema, "parameter of this type")


class ServedTypes(Mapping[str, OfferFacts]):
    """What is known of each type that the agents of some providers serve.

    Only the types that were written by hand are iterated over: a family has thousands. Raises ``RegistrationError``
    where one of those contradicts itself; what a family says of a type of its own is only that type's error (S24).
    """

    def __init__(self, registry: Registry, providers: Collection[str], watchdog: Watchdog) -> None:
        self._registry = registry
        self._providers = frozenset(providers)
        self._watchdog = watchdog
        found = [offer for name in providers for offer in registry.of_provider(name)]
        facts = [offer.facts() for offer in found]
        errors = [*type_errors(facts, {}), *template_errors(facts)]
        if errors:
            raise RegistrationError("; ".join(map(str, errors)))
        self._written = {offer.type: OfferFacts(offer, watchdog) for offer in found}
        self._of_families: dict[str, OfferFacts] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __getitem__(self, component_type: str) -> OfferFacts:
        """What is known of a type; raises ``KeyError`` where it is not served here, or not known yet."""
        found = self._written.get(component_type) or self._of_families.get(component_type)
        return found if found is not None else self._made(component_type)

    @property
    def families(self) -> list[Family]:
        """The families of these providers."""
        return [family for family in self._registry.families() if family.provider in self._providers]

    def family_of(self, component_type: str) -> Family | None:
        """The family that a type would belong to, of those that are served here."""
        family = self._registry.family_of(component_type)
        return family if family is not None and family.provider in self._providers else None

    def _made(self, component_type: str) -> OfferFacts:
        """The offer of a type of a family, made now; whatever is wrong with it is a type that nobody serves."""
        family = self.family_of(component_type)
        if family is None:
            raise KeyError(component_type)
        try:
            offer = self._registry.get(component_type)
            made = None if offer is None else OfferFacts(offer, self._watchdog)
            problems = [] if made is None else _problems(component_type, family.provider, made)
        except Exception as error:  # noqa: BLE001  # one type's trouble stays its own (S24)
            made, problems = None, [describe_unexpected(error)]
        if problems:
            log.error("type of a family cannot be used", type=component_type, family=family.name, errors=problems[:3])
        if made is None or problems:
            raise KeyError(component_type)
        return self._of_families.setdefault(component_type, made)


def _problems(component_type: str, provider: str, made: OfferFacts) -> list[str]:
    """What is wrong with what a family says of a type."""
    facts = made.facts
    if (facts.type, facts.provider) != (component_type, provider):
        return [f"it says that it is {facts.type!r} of {facts.provider!r}"]
    return [str(error) for error in (*type_errors([facts], {}), *template_errors([facts]))]


__all__ = ["OfferFacts", "ServedTypes"]
