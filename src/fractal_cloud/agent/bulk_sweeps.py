"""Swept parameters that a cloud shows of many resources in one call: read in every cycle for all who declare them.

They cost no budget. What cannot be read is said on the component it concerns, whose last known values stay (S0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from datetime import datetime
from typing import Any

from fractal_cloud.agent.scope import HeldScope, Swept
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.rules import words

Sighted = tuple[Tracked, Sighting]


def swept_names(facts: OfferFacts, tracked: Tracked) -> frozenset[str]:
    """The declared parameters of a component that the list of its type does not show."""
    swept = facts.compared.swept
    if not swept:
        return swept
    return frozenset(name for name in tracked.parameters if name in swept and name not in tracked.ignored)


def sweep_in_bulk(
    held: HeldScope, chosen: Iterable[Sighted], offers: Mapping[str, OfferFacts], pool: Executor, now: datetime
) -> bool:
    """Read what is read of many at once, for all that declare it; True if anything is new."""
    by_type: dict[str, list[Sighted]] = defaultdict(list)
    for tracked, sighting in chosen:
        if _names(offers, tracked):
            by_type[tracked.type].append((tracked, sighting))
    if not by_type:
        return False
    results = pool.map(lambda one: _read(held, offers, *one), by_type.items())
    changed = False
    for pairs, result in zip(by_type.values(), results, strict=True):
        for tracked, sighting in pairs:
            values = result if isinstance(result, CloudError) else result.get(sighting.resource_id)
            values = values if values is not None else Unreadable("the cloud did not show it")
            changed = _note(held, tracked, _names(offers, tracked), values, now) or changed
    return changed


def record_in_bulk(
    held: HeldScope, tracked: Tracked, offers: Mapping[str, OfferFacts], sighting: Sighting, now: datetime
) -> None:
    """A single read that shows all of them: these values are the newest known."""
    names = _names(offers, tracked)
    if names and names <= sighting.actual.keys():
        _note(held, tracked, names, {name: sighting.actual[name] for name in names}, now)


def _names(offers: Mapping[str, OfferFacts], tracked: Tracked) -> frozenset[str]:
    facts = offers[tracked.type]
    in_bulk = facts.offer.swept_in_bulk
    return in_bulk & swept_names(facts, tracked) if in_bulk else in_bulk


def _read(
    held: HeldScope, offers: Mapping[str, OfferFacts], component_type: str, pairs: list[Sighted]
) -> Mapping[str, Mapping[str, Any] | CloudError] | CloudError:
    asked = [(sighting, _names(offers, tracked)) for tracked, sighting in pairs]
    try:
        return dict(offers[component_type].offer.sweep_in_bulk(held.cloud, asked))
    except CloudError as error:
        return error


def _note(
    held: HeldScope, tracked: Tracked, names: frozenset[str], values: Mapping[str, Any] | CloudError, now: datetime
) -> bool:
    """Keep the values, or what the component says of those that could not be read; True if that is news."""
    observed, uid = held.observed, tracked.uid
    known = observed.bulk_swept.get(uid)
    if isinstance(values, CloudError):
        seen = known is not None or not names.isdisjoint(tracked.memory.output_fields)
        note = words.unswept(names, values, seen_before=seen)
        is_news = observed.bulk_unswept.get(uid) != note
        observed.bulk_unswept[uid] = note
        return is_news
    was_unread = observed.bulk_unswept.pop(uid, None) is not None
    observed.bulk_swept[uid] = Swept(dict(values), now, known.at if known is not None else None)
    return was_unread or known is None or known.values != values
