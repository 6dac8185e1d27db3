"""Which components a cycle has to judge where only little changed: those it may affect, and those not at rest.

A component at rest is judged by its declaration, by what is remembered of it, by what was seen of it and of those it
refers to, and by nothing that passes with time. Where none of this changed, its judgement is the same again. In doubt a
component counts as affected: being judged once too often changes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from fractal_cloud.agent.reading import Snapshot
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.rules.identify import referenced
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.setbacks import is_timed
from fractal_cloud.rules.situate import View


def changed_sightings(held: HeldScope, snapshot: Snapshot) -> list[Sighting] | None:
    """What differs from the last read, as it was and as it is; None where one of the two could not see everything.

    Unchanged sightings are the same objects.
    """
    if not snapshot.is_complete or not snapshot.sightings.keys() <= held.observed.seen.keys():
        return None
    found: list[Sighting] = []
    for component_type, after in snapshot.sightings.items():
        before = held.observed.seen[component_type]
        found.extend(seen for key, seen in before.items() if after.get(key) is not seen)
        found.extend(seen for key, seen in after.items() if before.get(key) is not seen)
    return found


def affected(held: HeldScope, offers: Mapping[str, OfferFacts], seen: Iterable[Sighting]) -> set[str]:
    """The components that sightings may be about, and all that refer to one of those, directly or not."""
    named = {(sighting.type, sighting.name) for sighting in seen}
    if not named:
        return set()
    ids = {sighting.resource_id for sighting in seen}
    components = held.work.tracked.values()
    types = {sighting.type for sighting in seen}
    found = [
        t
        for t in components
        if (t.type, t.identity.name) in named
        or t.memory.resource_id in ids
        or any(lookup.type in types for lookup in t.finds)
    ]
    uids = {tracked.uid for tracked in found}
    referring = _referring(components, offers)
    while found:
        tracked = found.pop()
        for other in referring.get((tracked.live_system_id, tracked.component_id), ()):
            if other.uid not in uids:
                uids.add(other.uid)
                found.append(other)
    return uids


def _referring(
    components: Iterable[Tracked], offers: Mapping[str, OfferFacts]
) -> Mapping[tuple[str, str], list[Tracked]]:
    found: dict[tuple[str, str], list[Tracked]] = defaultdict(list)
    for tracked in components:
        for component_id in _referred(tracked, offers[tracked.type]):
            found[tracked.live_system_id, component_id].append(tracked)
    return found


def _referred(tracked: Tracked, facts: OfferFacts) -> Iterator[str]:
    yield from tracked.dependencies
    for name in facts.references:
        yield from referenced(tracked.parameters.get(name))


def needs_recheck(held: HeldScope, tracked: Tracked, view: View, judgement: Judgement) -> bool:
    """Whether a component is judged in every cycle in which anything changed, also where nothing of it did.

    So is what is not plainly there (whether it is created may depend on any resource of its LiveSystem, S15), and what
    depends on time: creations, requests, what is shown first (S12a), what the cloud is at work on.
    """
    return (
        view.sighting is None
        or judgement.in_progress
        or judgement.noticing
        or judgement.step is not None
        or judgement.rule == "S24"
        or tracked.request is not None
        or tracked.memory.intent is not None
        or bool(tracked.open_writes)
        or bool(held.observed.unswept_of(tracked.uid))
        or is_timed(judgement.setbacks)
    )


def can_judge_separately(held: HeldScope) -> bool:
    """Whether some may be judged alone: not while links or deletions tie components together in yet other ways."""
    return not held.work.is_wired and not any(tracked.deleting for tracked in held.work.tracked.values())
