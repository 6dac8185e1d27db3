"""From resources as they were seen to components as they would be declared, such that a deploy finds no difference.

A resource is declared by its natural identity: what cannot be found again by its name is left out, and said so.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fractal_cloud.cli.discovery.identities import Identities, each_once, noun, short_type
from fractal_cloud.cli.discovery.nested_values import MayBeSecretError, NestedValues
from fractal_cloud.cli.discovery.reading import Seen
from fractal_cloud.model.catalog import TypeFacts
from fractal_cloud.model.reference import OutputReference, SecretReference, form_errors, literal, output_reference
from fractal_cloud.model.secret_detection import apparent_secret
from fractal_cloud.offers.parameter_validation import ParameterCheck
from fractal_cloud.offers.plain_data import MAX_DEPTH, MAX_VENDORS_DEPTH, plain_data_errors
from fractal_cloud.offers.secret_stores import GUIDE
from fractal_cloud.rules.drift import places_marked
from fractal_cloud.rules.nested.path import root
from fractal_cloud.rules.nested.shape import shape_of

MAX_ID = 63


@dataclass(frozen=True, slots=True)
class Drafted:
    """One component; ``references`` are the parameters that hold ids of other components, ``notes`` its comments."""

    id: str
    seen: Seen
    parameters: Mapping[str, Any]
    references: Collection[str]
    notes: Sequence[str]


@dataclass(slots=True)
class Draft:
    """A LiveSystem as it would be declared: components, targets before what names them, and what was left out."""

    live_system_id: str
    components: list[Drafted] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def draft(live_system_id: str, seen: Sequence[Seen], wanted: Collection[str]) -> Draft:
    """Declare everything of the wanted types, and of others what those refer to."""
    return _Drafting(live_system_id, each_once(seen), wanted).draft


class _Unfit(Exception):
    """A resource cannot be declared; the message says why."""


class _Drafting:
    def __init__(self, live_system_id: str, seen: Sequence[Seen], wanted: Collection[str]) -> None:
        self.draft = Draft(live_system_id)
        self._many = Counter(map(_identity, seen))
        self._by_output = {
            (one.offer.type, output, str(value)): one
            for one in seen
            for output, value in one.sighting.outputs.items()
            if output in _outputs_referred_to(seen)
        }
        self._wanted = wanted
        self._identities = Identities(seen)
        self._under_way: set[int] = set()
        self._done: dict[tuple[str, str, str], Drafted | _Unfit] = {}
        self._ids: set[str] = set()
        for one in sorted(seen, key=_order(seen)):
            if one.offer.type in wanted and not one.offer.is_provider_default(one.sighting):
                with suppress(_Unfit):
                    self._component(one)

    def _component(self, seen: Seen) -> Drafted:
        """The component of a resource, made when it is first asked for; raises ``_Unfit`` where there can be none."""
        key = (seen.offer.type, seen.place, seen.sighting.resource_id)
        if key not in self._done:
            try:
                self._under_way.add(id(seen))
                made = self._declare(seen)
                self.draft.components.append(made)
                self._done[key] = made
            except _Unfit as reason:
                self.draft.left_out.append(f"{short_type(seen.offer.type)} {seen.sighting.resource_id}: {reason}")
                self._done[key] = reason
            finally:
                self._under_way.discard(id(seen))
        found = self._done[key]
        if isinstance(found, _Unfit):
            raise found
        return found

    def _declare(self, seen: Seen) -> Drafted:
        name, facts = seen.sighting.name, seen.offer.facts()
        other = seen.offer.managed_elsewhere(seen.sighting)
        if other:
            raise _Unfit(f"{other} manages it: change it there, or take it out of that first")
        if not name:
            raise _Unfit("it has no name to find it by; give it one, and discover again")
        if self._many[_identity(seen)] > 1:
            raise _Unfit(f"several are named {name!r}; rename all but one, and discover again")
        notes = [*_ownership_notes(seen, self.draft.live_system_id), *([seen.unread] if seen.unread else [])]
        notes += _never_returned(facts)
        parameters = self._of_vendor(seen, facts, notes) if facts.nested else self._parameters(seen, notes)
        component_id = self._free_id(seen, _stem(seen, facts, parameters))
        if component_id != name and facts.named_by not in parameters and not facts.is_keyed:
            parameters = {facts.named_by: name, **parameters}
        self._drop_invalid(seen, component_id, parameters, notes)
        self._ids.add(component_id)
        references = [] if facts.nested else [name for name in facts.references() if name in parameters]
        return Drafted(component_id, seen, parameters, references, notes)

    def _parameters(self, seen: Seen, notes: list[str]) -> dict[str, Any]:
        facts = seen.offer.facts()
        references = facts.references()
        required = facts.parameter_schema.get("required", ())
        found: dict[str, Any] = {}
        for name in facts.parameter_schema.get("properties", {}):
            value = seen.sighting.actual.get(name)
            if value is None or name == "name" or (name in references and not value):
                continue
            if name not in references:
                found[name] = literal(_without_secrets(seen, name, value, notes))
                continue
            try:
                found[name] = self._component_ids(value, *references[name])
            except _Unfit as reason:
                if name in required:
                    raise
                notes.append(f"{name} is left out: {reason}")
        return found

    def _of_vendor(self, seen: Seen, facts: TypeFacts, notes: list[str]) -> dict[str, Any]:
        """The parameters of a type by the vendor's own name, with references to what is drafted beside it."""
        shape, required = shape_of(facts.parameter_schema), facts.parameter_schema.get("required", ())
        values = NestedValues(self._reference, lambda path: _bound(seen, path, notes))
        as_they_are = {*facts.words, *([] if facts.is_keyed else [facts.named_by])}  # known before anything is made
        found: dict[str, Any] = {}
        for name in facts.parameter_schema.get("properties", {}):
            value = seen.sighting.actual.get(name)
            if value is None or name == "name" or (facts.is_part and name in facts.words):
                continue
            if name == facts.parent:
                found[name] = self._parent(seen, value, *facts.references()[name])
                continue
            try:
                found[name] = (
                    literal(value) if name in as_they_are else values.declared(value, shape.property(name), (name,))
                )
            except MayBeSecretError as reason:
                if name in required:
                    raise _Unfit(f"{reason}, and it cannot be declared without") from None
                notes.append(f"{name} is left out: {reason}")
        found = {name: value for name, value in found.items() if value or not seen.sighting.actual[name]}
        unread = {root(path) for path in places_marked(facts, "writeOnly")}
        for name in required:
            if name not in found and name in unread:
                raise _Unfit(f"it needs {name}, which the cloud never returns: declare it by hand")
        return found

    def _reference(self, text: str) -> Any:
        """A reference to the component whose id or ARN a text is; None where it is none's, or its own."""
        named = self._identities.of(text)
        if named is None or named[0].offer.type not in self._wanted or id(named[0]) in self._under_way:
            return None
        with suppress(_Unfit):
            return str(OutputReference(self._component(named[0]).id, named[1]))
        return None

    def _parent(self, seen: Seen, value: Any, target: str, output: str) -> Any:
        """A reference to what a part belongs to, which comes along, asked for or not."""
        named = self._identities.parent(seen, target, output, value)
        if named is None:
            raise _Unfit(f"{short_type(target)} {value} was not found")
        try:
            return str(OutputReference(self._component(named[0]).id, named[1]))
        except _Unfit:
            raise _Unfit(f"{short_type(target)} {value} is left out") from None

    def _component_ids(self, value: Any, target: str, output: str) -> Any:
        """The ids of the components that stand for the cloud's own ids; they come along, asked for or not."""
        if isinstance(value, (list, tuple)):
            return [self._component_ids(one, target, output) for one in value]
        found = self._by_output.get((target, output, str(value)))
        kind = target.rpartition(".")[2]
        if found is None:
            raise _Unfit(f"{kind} {value} was not found")
        try:
            return self._component(found).id
        except _Unfit:
            raise _Unfit(f"{kind} {value} is left out") from None

    def _free_id(self, seen: Seen, stem: str) -> str:
        """A legal id that no other component has: the name made legal, then with its kind, then with a number."""
        kind = legal_id(_kebab(noun(seen.offer)))
        if stem and stem not in self._ids:
            return stem
        number = 1
        while True:
            suffix = kind if number == 1 else f"{kind}-{number}"
            made = f"{stem[: MAX_ID - len(suffix) - 1].rstrip('-')}-{suffix}" if stem else suffix
            if made not in self._ids:
                return made
            number += 1

    def _drop_invalid(self, seen: Seen, component_id: str, parameters: dict[str, Any], notes: list[str]) -> None:
        """Leave out what the type would refuse; raises where it cannot be left out."""
        facts = seen.offer.facts()
        required = {facts.named_by, *facts.key, *facts.parameter_schema.get("required", ())}
        check = ParameterCheck(facts)
        deepest = MAX_VENDORS_DEPTH if facts.nested else MAX_DEPTH
        while errors := [
            *check.errors(component_id, parameters),
            *form_errors(parameters, free_keys=facts.nested),
            *plain_data_errors(parameters, lines=facts.nested, deepest=deepest),
        ]:
            path, message = errors[0]
            name = str(path[0]) if path else ""
            if name in required or name not in parameters:
                raise _Unfit(f"{name} {message}".strip())
            del parameters[name]
            notes.append(f"{name} is left out: it {message}")


def _without_secrets(seen: Seen, name: str, value: Any, notes: list[str]) -> Any:
    """A value in which references stand for what is secret, or may be: none of it goes into a file (A8)."""
    facts = seen.offer.facts()
    if name not in facts.hidden():
        return value
    is_whole = not facts.parameter_facts(name).get("holdsSecrets")

    def leaf(entry: str, text: Any) -> Any:
        if not isinstance(text, str) or not text or not (is_whole or apparent_secret(entry, text)):
            return text
        where = f"{name}.{entry}" if entry else name
        secret = legal_id("-".join((seen.sighting.name, _kebab(name), entry)))
        notes.append(f"{where} is not written here: bind the secret {secret!r} to its value, see {GUIDE}")
        return SecretReference(secret).to_json()

    if isinstance(value, Mapping):
        return {key: leaf(key, text) for key, text in value.items()}
    return leaf("", value)


def _bound(seen: Seen, path: str, notes: list[str]) -> str:
    """The name of the secret that stands for a value, said in the comments."""
    secret = legal_id("-".join((seen.sighting.name, _kebab(path))))
    notes.append(f"{path} is not written here: bind the secret {secret!r} to its value, see {GUIDE}")
    return secret


def _stem(seen: Seen, facts: TypeFacts, parameters: Mapping[str, Any]) -> str:
    """What an id is made of: the name; of a part, whose name is a key, the id of its parent and what it is."""
    parent = output_reference(parameters.get(facts.parent)) if facts.is_part and facts.parent else None
    if parent is None:
        return legal_id(seen.sighting.name)
    return legal_id(f"{parent.component[: MAX_ID // 2]}-{_kebab(noun(seen.offer))}")


def _never_returned(facts: TypeFacts) -> list[str]:
    names = sorted(places_marked(facts, "writeOnly")) if facts.nested else []
    said = f"the cloud never returns {', '.join(names)}: what is set there is not written here"
    return [said] if names else []


def _identity(seen: Seen) -> tuple[str, str, str | None, str]:
    return seen.offer.type, seen.place, seen.sighting.parent_id, seen.sighting.name


def _outputs_referred_to(seen: Sequence[Seen]) -> set[str]:
    offers = {one.offer.type: one.offer for one in seen}
    return {output for offer in offers.values() for _, output in offer.facts().references().values()}


def _order(seen: Sequence[Seen]) -> Any:
    """By type as they were read, then by place and name: the same cloud makes the same file."""
    types = list(dict.fromkeys(one.offer.type for one in seen))
    return lambda one: (types.index(one.offer.type), one.place, one.sighting.name, one.sighting.resource_id)


def _ownership_notes(seen: Seen, live_system_id: str) -> list[str]:
    """Which resource it is, and whose."""
    tags = seen.sighting.protocol
    notes = [seen.sighting.resource_id] if seen.sighting.resource_id != seen.sighting.name else []
    if tags.owner is not None and tags.owner != live_system_id:
        notes.append(f"fractal-cloud-owner is {tags.owner!r}: this LiveSystem will import it, read only")
    elif seen.offer.tags_frozen and not (tags.is_managed and tags.owner is not None):
        notes.append("its tags are frozen and not ours: it can never be adopted, and is only read")
    elif tags.owner is not None:
        notes.append("fractal-cloud-owner is this LiveSystem")
    elif tags.other_manager is not None:
        notes.append(f"managed-by is {tags.other_manager!r}: Fractal changes nothing here until that tag is gone")
    return notes


def legal_id(name: str) -> str:
    """A name as an id (T9): in small letters, with dashes for what is not allowed; empty where nothing is left."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:MAX_ID].rstrip("-")


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
