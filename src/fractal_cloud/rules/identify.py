"""Which resource a declared component speaks of: its place, its name, and the parent its name is unique in.

The account really reached (the realm) is not known here; the agent that reaches it adds it. Whether parameters are
of the right type is not checked here: what is neither text nor a number counts as not declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from fractal_cloud.model.catalog import GLOBAL_PLACE, TypeFacts, as_word, part_name
from fractal_cloud.model.declaration import ComponentDeclaration, LiveSystemDeclaration
from fractal_cloud.model.errors import DeclarationError, InputError
from fractal_cloud.model.host import HostName
from fractal_cloud.model.reference import output_reference, output_references
from fractal_cloud.rules.order import arrange


@dataclass(frozen=True, slots=True)
class DeclaredIdentity:
    """Where a component's resource is found, but for the account: equal ones of one type speak of one resource.

    ``parent`` is the path of names from the outermost parent inwards, joined with ``/``; empty without a parent.
    ``realm`` is what the declaration calls the account (or the like) it is in; empty where it names none.
    """

    place: str
    name: str
    parent: str = ""
    realm: str = ""


def identities(declaration: LiveSystemDeclaration, catalog: Mapping[str, TypeFacts]) -> dict[str, DeclaredIdentity]:
    """The identity of every component, by its id. Raises ``DeclarationError`` where one cannot be derived."""
    found, errors = find_identities(declaration, catalog)
    if errors:
        raise DeclarationError(errors)
    return found


def find_identities(
    declaration: LiveSystemDeclaration, catalog: Mapping[str, TypeFacts]
) -> tuple[dict[str, DeclaredIdentity], list[InputError]]:
    """The identities that can be derived, and an error for every place that cannot.

    Components whose type is unknown, and those in their scope, have no identity; that is no error of their place.
    """
    places = _Places({component.id: component for component in declaration.components}, catalog)
    found: dict[str, DeclaredIdentity] = {}
    errors: list[InputError] = []
    for component in declaration.components:
        facts = catalog.get(component.type)
        if facts is None:
            continue
        words, above = places.words(component.id), places.followed(component, facts)
        wanted = above.place if above is not None else facts.place
        there = words if above is None else places.words(named_by(component, facts, facts.parent or "")[0])
        missing = [word for word in wanted if word not in there]
        if above is None:  # else it is the parent's error
            errors.extend(_unplaced(component, word, facts) for word in missing)
        errors.extend(places.contradictions(component, facts))
        if not missing:
            place = "/".join(there[word] for word in wanted) or GLOBAL_PLACE
            name, parent = name_of(component, facts), places.parent_path(component.id)
            found[component.id] = DeclaredIdentity(place, name, parent, words.get(facts.realm or "", ""))
    return _in_their_hosts(declaration, catalog, found), errors


def _in_their_hosts(
    declaration: LiveSystemDeclaration, catalog: Mapping[str, TypeFacts], found: Mapping[str, DeclaredIdentity]
) -> dict[str, DeclaredIdentity]:
    """The identities, with realms that are components of the same LiveSystem named as such: a component goes first."""
    types = {component.id: component.type for component in declaration.components}
    named = dict(found)
    for component in declaration.components:
        facts, identity = catalog.get(component.type), found.get(component.id)
        host = found.get(identity.realm) if identity is not None else None
        if facts is None or identity is None or host is None or types[identity.realm] not in facts.hosts():
            continue
        realm = HostName(declaration.id, identity.realm, types[identity.realm], host.place, host.parent, host.name)
        named[component.id] = replace(identity, realm=str(realm))
    return named


def name_of(component: ComponentDeclaration, facts: TypeFacts | None) -> str:
    """The name of a component's resource: as declared, else the one that all of its type have, else its id.

    What is distinguished by a key is named by that, with references as text (S25).
    """
    if facts is not None and facts.is_keyed:
        return part_name(component.parameters.get(name) for name in facts.key)
    word = facts.named_by if facts is not None else "name"
    of_all = facts.default_word(word) if facts is not None else ""
    return as_word(component.parameters.get(word)) or of_all or component.id


class _Places:
    """Where each component is: a word of its place that is not declared is inherited along the references."""

    def __init__(self, components: Mapping[str, ComponentDeclaration], catalog: Mapping[str, TypeFacts]) -> None:
        self._components = components
        self._catalog = catalog
        self._known: dict[str, Mapping[str, str]] = {}
        waves, _ = arrange({name: self._before(component) for name, component in components.items()})
        for name in chain(*waves, components):  # what stands on a cycle comes last, with what is known by then
            self._known.setdefault(name, self._words_of(components[name]))

    def words(self, component_id: str) -> Mapping[str, str]:
        """The words of a component's place that are declared or inherited, by parameter."""
        return self._known[component_id]

    def _words_of(self, component: ComponentDeclaration) -> Mapping[str, str]:
        facts = self._catalog.get(component.type)
        if facts is None:
            return {}
        inherited = [self._known.get(source, {}) for source in self._sources(component)]
        words = {}
        for word in facts.words:
            value = as_word(component.parameters.get(word))
            value = value or next((there[word] for there in inherited if word in there), "")
            value = value or self._agreed(component, facts, word) or facts.default_word(word)
            if value:
                words[word] = value
        return words

    def _agreed(self, component: ComponentDeclaration, facts: TypeFacts, word: str) -> str:
        """A word that all say which a component of nested parameters refers to anywhere; empty where they differ."""
        if not facts.nested:
            return ""
        found = {self._known.get(one.component, {}).get(word, "") for _, one in output_references(component.parameters)}
        found.discard("")
        return found.pop() if len(found) == 1 else ""

    def _sources(self, component: ComponentDeclaration) -> list[str]:
        """The components a place may be inherited from: the parent first, then in the order of the schema."""
        facts = self._catalog.get(component.type)
        if facts is None:
            return []
        names = sorted(facts.references(), key=lambda name: name != facts.parent)
        return [other for name in names for other in named_by(component, facts, name)]

    def _before(self, component: ComponentDeclaration) -> list[str]:
        """The components whose places are to be known before this one's."""
        facts = self._catalog.get(component.type)
        if facts is None or not facts.nested:
            return self._sources(component)
        return [*self._sources(component), *(one.component for _, one in output_references(component.parameters))]

    def contradictions(self, component: ComponentDeclaration, facts: TypeFacts) -> Iterator[InputError]:
        """An error for each word of its own place by which a component would lie outside its parent."""
        for parent in named_by(component, facts, facts.parent or ""):
            if facts.is_part and not component.import_only:
                yield from self._apart(component, facts, parent)
            for word in facts.words:
                here = as_word(component.parameters.get(word))
                there = self._said_of(parent, word, is_followed=self.followed(component, facts) is not None)
                if here and there and there != here:
                    yield InputError(
                        f"components[{component.id}].parameters.{word}",
                        f"is {here!r}, but its {facts.parent} {parent!r} is in {there!r}: "
                        f"leave it out, because it follows the {facts.parent}",
                    )

    def followed(self, component: ComponentDeclaration, facts: TypeFacts) -> TypeFacts | None:
        """The type of the parent in whose place a part is observed, where that is another than its type's own (S25)."""
        if not facts.in_scope_of_parent:
            return None
        named = named_by(component, facts, facts.parent or "")
        declared = self._components.get(named[0]) if named else None
        above = self._catalog.get(declared.type) if declared is not None else None
        return above if above is not None and above.place != facts.place else None

    def _said_of(self, parent: str, word: str, *, is_followed: bool) -> str:
        """What a parent says of a word of a place; of one that is followed, also where it is no word of its own."""
        known = self._known.get(parent, {}).get(word, "")
        declared = self._components.get(parent)
        is_asked = is_followed and not known and declared is not None
        return as_word(declared.parameters.get(word)) if is_asked and declared is not None else known

    def _apart(self, component: ComponentDeclaration, facts: TypeFacts, parent: str) -> Iterator[InputError]:
        """An error where a part is observed in another scope than its parent: it would wait for that for ever (S25)."""
        declared = self._components.get(parent)
        above = self._catalog.get(declared.type) if declared is not None else None
        is_apart = above is not None and set(above.place) != set(facts.place)
        if above is not None and is_apart and self.followed(component, facts) is None:
            instead = f": declare {parent!r} as {above.vendor_type}" if above.vendor_type else ""
            yield InputError(
                f"components[{component.id}].parameters.{facts.parent}",
                f"names {parent!r}, and {above.type} is observed in another scope than its parts{instead}",
            )

    def parent_path(self, component_id: str) -> str:
        """The names of a component's parents, outermost first."""
        names: list[str] = []
        seen = {component_id}
        parent = self._parent(component_id)
        while parent is not None and parent.id not in seen:
            seen.add(parent.id)
            names.append(name_of(parent, self._catalog.get(parent.type)))
            parent = self._parent(parent.id)
        return "/".join(reversed(names))

    def _parent(self, component_id: str) -> ComponentDeclaration | None:
        component = self._components[component_id]
        facts = self._catalog.get(component.type)
        if facts is None or facts.parent is None:
            return None
        named = named_by(component, facts, facts.parent)
        return self._components.get(named[0]) if named else None


def referenced(value: object, *, by_id: bool = True) -> list[str]:
    """The component ids a reference parameter holds: one, or a list of them; also those whose outputs it refers to.

    ``by_id``: a text that is no reference to an output is a component's id.
    """
    found = []
    for item in value if isinstance(value, list) else [value]:
        reference = output_reference(item)
        if reference is not None:
            found.append(reference.component)
        elif by_id and isinstance(item, str):
            found.append(item)
    return found


def named_by(component: ComponentDeclaration, facts: TypeFacts, parameter: str) -> list[str]:
    """The component ids that a reference parameter of a component holds; the vendor's own ids are none of them."""
    return referenced(component.parameters.get(parameter), by_id=not facts.nested)


def _unplaced(component: ComponentDeclaration, word: str, facts: TypeFacts) -> InputError:
    references = [name for name in facts.references() if name in component.parameters]
    also = f", or on the component its {references[0]} names" if references else ""
    return InputError(
        f"components[{component.id}].parameters.{word}", f"is missing: say where it is, with {word} here{also}"
    )
