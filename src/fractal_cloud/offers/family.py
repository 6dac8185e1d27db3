"""Families of types: the vendor's own types by their own names, without a class for each of them.

A family is found by the registry like a provider: it is an instance in a module of a provider's package. It makes an
offer when its type is first used; until then, nothing but the form of the type's name need be known.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import new_class
from typing import Any, ClassVar, Self, TypeVar

from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.generic_component import GenericComponent, component_class
from fractal_cloud.offers.offer import AnyOffer, Cloud, Offer

K = TypeVar("K", bound=Cloud)


@dataclass(frozen=True, slots=True)
class TypeSummary:
    """One type in a list: what it is called, and what it is."""

    type: str
    provider: str
    title: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """One component as it is declared in a LiveSystem: nothing is checked, nothing is resolved."""

    id: str
    type: str
    parameters: Mapping[str, Any]


class Family(ABC):
    """Component types of one provider that have no class each. ``name`` is for machines, ``title`` for people."""

    name: ClassVar[str]
    provider: ClassVar[str]
    title: ClassVar[str]

    @abstractmethod
    def covers(self, component_type: str) -> bool:
        """Whether a type's name is of this family's form; whether there is such a type is another question."""

    @abstractmethod
    def offer(self, component_type: str) -> AnyOffer | None:
        """The offer of a type, or None where this family does not know it or cannot keep the protocol for it.

        Called once for each type that is used, and whenever one is asked for that there is none of.
        """

    @abstractmethod
    def refusal(self, component_type: str) -> str:
        """Why a type of this family's form has no offer, and what to do: words that follow the type's name."""

    @abstractmethod
    def types(self) -> Iterable[TypeSummary]:
        """Every type it knows, for lists and searches; sorted by type."""

    @abstractmethod
    def as_of(self) -> str:
        """The date of what it knows of its types, as ``YYYY-MM-DD``; empty where it asks somebody each time."""

    def learn(self, cloud: Cloud, component_type: str) -> TypeFacts | None:
        """What a cloud itself says of a type that this family lacks; None where it has no such type.

        Afterwards ``offer`` knows the type. Raises an error of the closed set where the cloud does not say.
        """
        del cloud, component_type
        return None

    def declared(self, component_type: str, others: Sequence[Declared]) -> TypeFacts | None:
        """A type that other components of the same LiveSystem bring along; asked where ``offer`` knows none."""
        del component_type, others
        return None

    def dependencies(self, component: Declared, others: Sequence[Declared]) -> list[str]:
        """The ids of the components that must exist before this one, beside those that it refers to itself."""
        del component, others
        return []

    def links_as(self, component_type: str) -> str:
        """The type whose halves of links serve this one too, where there are none for itself; empty: no other's."""
        del component_type
        return ""

    def warnings(self, components: Sequence[Declared]) -> Iterable[str]:
        """What a deploy of these components says, because it is allowed and hardly meant (C10)."""
        del components
        return ()

    def source_errors(self, component: Declared, others: Sequence[Declared]) -> Iterable[tuple[str, str]]:
        """What keeps a component from being the source of links, by parameter."""
        del component, others
        return ()


class FamilyOffer(Offer[GenericComponent, K]):
    """The offer of one type of a family: its class has the verbs, its facts say the rest.

    Subclasses are abstract in nothing but never registered by themselves: ``of`` makes the offer of a type.
    """

    said: ClassVar[TypeFacts]

    @classmethod
    def of(cls, facts: TypeFacts, **attributes: Any) -> Self:
        """The offer of the type with these facts; ``attributes``: what offers have and facts do not say.

        It has a class of its own, because what a type is stands on its offer's class.
        """
        component = component_class(facts)
        known: dict[str, Any] = {
            "__module__": cls.__module__,
            "__doc__": cls.__doc__,
            "said": facts,
            "component": component,
            "title": facts.title,
            "place": tuple(facts.place),
            "parent": facts.parent,
            "realm": facts.realm,
            "taggable": facts.taggable,
            "tags_frozen": facts.tags_frozen,
            "owner_moves": facts.owner_moves,
            "wired_by_declarer": facts.wired_by_declarer,
            "holds_data": facts.holds_data,
            "vendor_type": facts.vendor_type,
            "is_part": facts.is_part,
            "in_scope_of_parent": facts.in_scope_of_parent,
            "key": tuple(facts.key),
            "creates_once": facts.creates_once,
            "tag_rules": facts.tag_rules,
            "outputs": facts.outputs,
            "guard": facts.guard,
            "glass": facts.glass,
            "entry": facts.entry,
            **attributes,
        }
        made: type[Self] = new_class(f"{component.__name__}Offer", (cls,), exec_body=lambda body: body.update(known))
        return made()

    def facts(self) -> TypeFacts:
        """This type as plain data."""
        return self.said.model_copy()
