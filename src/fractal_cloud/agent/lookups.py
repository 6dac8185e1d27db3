"""What the lookups of one scope find in a cycle (C12): resources that exist already, by their tags and values.

A type that is looked for is listed once for a scope and cycle, beside what is declared; what was found when a
generation was first reconciled is kept until the next deploy. What is made of an answer is in ``filling``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from fractal_cloud.agent.filling import MISSING, Answer, inside, lookup_key
from fractal_cloud.agent.lookup_places import place_of
from fractal_cloud.agent.reading import Snapshot
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.observed import Found
from fractal_cloud.model.reference import FindReference
from fractal_cloud.model.sighting import Condition, Sighting, UnreadItem
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.offer import Query
from fractal_cloud.rules.drift import find_drift
from fractal_cloud.rules.hiding import Hiding, holds_hidden

Place = tuple[str, str]
"""A type, and the place where it is looked for."""


class _NoAnswer(Exception):
    """Why a lookup cannot be answered, in words."""


class Lookups:
    """The lookups of one scope in one cycle."""

    def __init__(self, held: HeldScope, offers: Mapping[str, OfferFacts]) -> None:
        self._held = held
        self._offers = offers
        self._elsewhere: dict[Place, list[Sighting] | CloudError] = {}

    def refresh(self) -> frozenset[str]:
        """Read what is looked for in other places; returns the components for which that shows something new."""
        users = [tracked for tracked in self._held.work.tracked.values() if tracked.finds]
        if not users:
            return frozenset()
        places = {t.uid: {place for one in t.finds if (place := self._other_place(t, one)) is not None} for t in users}
        for place in sorted({place for some in places.values() for place in some}):
            self._elsewhere[place] = self._read(*place)
        prints = {place: _print(found) for place, found in self._elsewhere.items()}
        before, self._held.lookup_prints = self._held.lookup_prints, prints
        return frozenset(uid for uid, some in places.items() if any(before.get(p) != prints[p] for p in some))

    def answer(self, tracked: Tracked, declared: FindReference, lookup: FindReference, snapshot: Snapshot) -> Answer:
        """What a lookup of a component finds; ``lookup``: the declared one with outputs filled in."""
        kept = _kept(tracked, declared)
        try:
            values = self._values(tracked, lookup, snapshot)
        except _NoAnswer as error:
            return Answer(kept, f"{_described(lookup)}: {error}")
        if kept is not None:
            news = "" if values == list(kept) else _news(lookup, values)
            return Answer(kept, news=news)
        return Answer(values) if values else Answer(None, f"{_described(lookup)}: there is none")

    # --- finding

    def _values(self, tracked: Tracked, lookup: FindReference, snapshot: Snapshot) -> list[Any]:
        """The values that are asked for of everything that fits, in an order that does not depend on the list's."""
        facts = self._facts(lookup)
        found = [one for one in self._sightings(tracked, lookup, facts, snapshot) if _fits(one, lookup, facts)]
        values = [_value(one, lookup, facts) for one in found if one.condition is not Condition.DYING]
        return sorted(values, key=lambda value: json.dumps(value, sort_keys=True, default=str))

    def _facts(self, lookup: FindReference) -> OfferFacts:
        facts = self._offers.get(lookup.type)
        if facts is None:
            raise _NoAnswer("no type that this agent serves; install its package where the agent runs")
        if facts.own.provider != self._held.scope.provider:
            raise _NoAnswer(f"is of {facts.own.provider!r}, and a lookup finds only what its own provider has")
        if facts.offer.reads_by_parent:
            raise _NoAnswer("its cloud lists it only inside of others, so that it cannot be looked for")
        hidden = facts.compared.secret | facts.compared.sensitive | facts.compared.write_only
        asked = {*lookup.where, *([lookup.output] if lookup.output else [])}
        if stray := sorted(name for name in asked if name.partition(".")[0] in hidden):
            raise _NoAnswer(f"{stray[0]} may be a secret, and nothing is looked for by it")
        if swept := sorted(lookup.where.keys() & facts.compared.swept):
            raise _NoAnswer(f"{swept[0]} is read one by one, and nothing is looked for by it")
        return facts

    def _sightings(
        self, tracked: Tracked, lookup: FindReference, facts: OfferFacts, snapshot: Snapshot
    ) -> Iterable[Sighting]:
        place = self._other_place(tracked, lookup)
        if place is not None:
            found = self._elsewhere.get(place)
            if found is None:
                found = self._elsewhere[place] = self._read(*place)
            if isinstance(found, CloudError):
                raise _NoAnswer(f"cannot be read: {found.message}")
            return found
        error = snapshot.errors.get(facts.own.type)
        if error is not None:
            raise _NoAnswer(f"cannot be read: {error.message}")
        if snapshot.unread.get(facts.own.type):
            raise _NoAnswer(f"cannot be read: {snapshot.unread[facts.own.type][0].error.message}")
        here = snapshot.sightings.get(facts.own.type)
        if here is None:
            raise _NoAnswer("was not read yet")
        return here.values()

    # --- where

    def _other_place(self, tracked: Tracked, lookup: FindReference) -> Place | None:
        """Where a lookup leads that does not stay in this scope; None where it does, or leads nowhere."""
        place = place_of(self._held, self._offers, tracked, lookup)
        return None if place is None or place == self._held.scope.place else (lookup.type, place)

    def _read(self, component_type: str, place: str) -> list[Sighting] | CloudError:
        """Everything of a type in another place; an item that cannot be understood makes the list unreadable."""
        try:
            listed = self._offers[component_type].offer.sightings(self._held.elsewhere(place), Query())
            items = list(listed)
        except CloudError as error:
            return error
        unread = next((item for item in items if isinstance(item, UnreadItem)), None)
        return unread.error if unread is not None else [item for item in items if isinstance(item, Sighting)]


def remembered(tracked: Tracked, answers: Mapping[str, list[Any]]) -> tuple[Found, ...]:
    """What is remembered of a component's lookups: what this generation found, by now or before."""
    kept = {one.lookup: one for one in tracked.memory.found if one.generation == tracked.generation}
    found = {lookup: Found(lookup=lookup, generation=tracked.generation, values=v) for lookup, v in answers.items()}
    asked = {lookup_key(lookup) for lookup in tracked.finds}
    return tuple(one for key, one in sorted((found | kept).items()) if key in asked)


def _kept(tracked: Tracked, declared: FindReference) -> list[Any] | None:
    """What was found when this generation was first reconciled."""
    key = lookup_key(declared)
    every = (one for one in tracked.memory.found if one.generation == tracked.generation)
    return next((one.values for one in every if one.lookup == key), None)


def _fits(sighting: Sighting, lookup: FindReference, facts: OfferFacts) -> bool:
    """Whether a resource has the tags and values that are asked for."""
    if any(sighting.tags.get(key) != value for key, value in lookup.tags.items()):
        return False
    if not lookup.where:
        return True
    fields = {"name": sighting.name, facts.compared.named_by: sighting.name, **sighting.outputs, **sighting.actual}
    actual = {name: inside(fields, name) for name in lookup.where}
    if any(value is MISSING for value in actual.values()):
        return False
    compared = {name: value for name, value in lookup.where.items() if name in facts.compared.compare}
    compared = {name: value for name, value in compared.items() if name not in facts.compared.never_compared}
    others = {name: value for name, value in lookup.where.items() if name not in compared}
    return not find_drift(facts.compared, compared, actual) and all(actual[n] == v for n, v in others.items())


def _value(sighting: Sighting, lookup: FindReference, facts: OfferFacts) -> Any:
    if not lookup.output:
        return sighting.resource_id
    shown = Hiding(facts.compared).declared(sighting.actual)
    value = inside({"name": sighting.name, **shown, **sighting.outputs}, lookup.output)
    if value is MISSING:
        raise _NoAnswer(f"{sighting.resource_id} has no {lookup.output!r}: name one of its outputs or parameters")
    if holds_hidden(value):
        raise _NoAnswer(f"{lookup.output} may hold a secret, and is not shown")
    return value


def _described(lookup: FindReference) -> str:
    """A lookup in words."""
    said = [f"{key}={value}" for key, value in [*sorted(lookup.tags.items()), *sorted(lookup.where.items())]]
    return f"{lookup.type} with {', '.join(said)}"


def _news(lookup: FindReference, values: list[Any]) -> str:
    """That a lookup would find something else by now: the next deploy takes it."""
    found = ", ".join(map(str, values)) or "nothing"
    return f"{_described(lookup)} finds {found} by now: deploy again to use that"


def _print(found: list[Sighting] | CloudError) -> Any:
    return f"!{found.message}" if isinstance(found, CloudError) else found
