"""Where lookups lead: the scope of their component, or another place of the same realm (C12).

What is found there is the business of ``lookups``; the types that are looked for in the scope itself are listed by
``reading`` with everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.catalog import GLOBAL_PLACE, as_word
from fractal_cloud.model.reference import FindReference, output_reference
from fractal_cloud.model.tracked import Tracked

_REGIONS: Final = ("region", "location")


def place_of(held: HeldScope, offers: Mapping[str, OfferFacts], tracked: Tracked, lookup: FindReference) -> str | None:
    """The place in which a lookup of a component is answered; None where its type cannot be listed by itself."""
    facts = offers.get(lookup.type)
    if facts is None or facts.offer.reads_by_parent or facts.own.provider != held.scope.provider:
        return None
    words = _words(held, offers[tracked.type], tracked)
    if lookup.region:
        words |= {word: lookup.region for word in facts.own.place if word in _REGIONS}
    return "/".join(words.get(word, "") for word in facts.own.place) or GLOBAL_PLACE


def _words(held: HeldScope, facts: OfferFacts, tracked: Tracked) -> dict[str, str]:
    """The words of a component's place; of a part that is observed where its parent is, what that declares."""
    if held.scope.place != GLOBAL_PLACE:
        return dict(zip(facts.own.place, held.scope.place.split("/"), strict=False))
    above = output_reference(tracked.parameters.get(facts.parent or ""))
    known = held.work.tracked.values() if above is not None and facts.own.place else ()
    is_of = (tracked.live_system_id, above.component if above is not None else "")
    parents = (one for one in known if (one.live_system_id, one.component_id) == is_of)
    said = {**next((one.parameters for one in parents), {}), **tracked.parameters}
    return {word: as_word(said.get(word)) for word in facts.own.place}


def searched_types(held: HeldScope, offers: Mapping[str, OfferFacts]) -> Iterator[str]:
    """The types that lookups search in the scope itself."""
    for tracked in held.work.tracked.values():
        for lookup in tracked.finds:
            if place_of(held, offers, tracked, lookup) == held.scope.place:
                yield lookup.type
