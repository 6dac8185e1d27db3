"""Reading a whole scope: one bulk read per component type, and sweeps of what a cloud returns only one by one.

Reading changes nothing and decides nothing. What could not be read is kept as an error beside what could (S0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from fractal_cloud.agent.bulk_sweeps import record_in_bulk, sweep_in_bulk, swept_names
from fractal_cloud.agent.lookup_places import searched_types
from fractal_cloud.agent.scope import HeldScope, Swept
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.errors import CloudError, Throttled
from fractal_cloud.model.sighting import Sighting, UnreadItem
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.offer import AnyOffer, DeclaredResource, Query
from fractal_cloud.offers.seen_pages import SeenPages
from fractal_cloud.rules import words

Key = tuple[str, str | None, str]


@dataclass(slots=True)
class Snapshot:
    """What one read of a scope showed: sightings by type and id, and errors by type.

    ``unread``: by type, items of lists that cannot be understood (S24).
    """

    sightings: dict[str, dict[str, Sighting]] = field(default_factory=dict)
    errors: dict[str, CloudError] = field(default_factory=dict)
    unread: dict[str, list[UnreadItem]] = field(default_factory=dict)
    _index: dict[Key, list[Sighting]] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything was read, and understood."""
        return not self.errors and not self.unread

    def error_of(self, tracked: Tracked) -> CloudError | None:
        """Why nothing can be said of a component, if so: its type was not read, or an item that may be it."""
        error = self.errors.get(tracked.type)
        if error is not None or tracked.type not in self.unread:
            return error
        name, resource_id = tracked.identity.name, tracked.memory.resource_id
        items = (item for item in self.unread[tracked.type] if item.may_be(name, resource_id))
        return next((item.error for item in items), None)

    def fitting(self, component_type: str, parent_id: str | None, name: str) -> list[Sighting]:
        """All resources that fit an identity."""
        if self._index is None:
            self._index = defaultdict(list)
            for of_type in self.sightings.values():
                for sighting in of_type.values():
                    self._index[sighting.type, sighting.parent_id, sighting.name].append(sighting)
        return self._index.get((component_type, parent_id, name), [])

    def lose(self, error: CloudError, types: Iterable[str]) -> None:
        """Nothing of what was read counts, for the reason given."""
        self.sightings, self.errors = {}, dict.fromkeys(types, error)
        self.forget_index()

    def forget_index(self) -> None:
        """Sightings were put in or taken out: who fits what is found out anew."""
        self._index = None

    def put(self, sighting: Sighting) -> None:
        """Put in a single resource that was read again."""
        self.sightings.setdefault(sighting.type, {})[sighting.resource_id] = sighting
        self.forget_index()

    def drop(self, component_type: str, resource_id: str) -> None:
        """Drop a single resource that was read again, and is gone."""
        self.sightings.get(component_type, {}).pop(resource_id, None)
        self.forget_index()


@dataclass(slots=True)
class _Listed:
    """What one list showed, and what of it could not be understood."""

    found: dict[str, Sighting] = field(default_factory=dict)
    unread: list[UnreadItem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What is known, from what was read so far, of the components of a type: their parents' ids, and themselves.

    Each only where its offer asks for it.
    """

    parent_ids: frozenset[str] = frozenset()
    declared: tuple[DeclaredResource, ...] = ()


Resolve = Callable[[AnyOffer, Snapshot], Resolved]


class Reader:
    """Reads scopes for one agent."""

    def __init__(
        self,
        offers: Mapping[str, OfferFacts],
        pool: Executor,
        sweep_budget: int,
    ) -> None:
        self._offers = offers
        self._pool = pool
        self._sweep_budget = sweep_budget

    def read_all(self, held: HeldScope, resolve: Resolve, now: datetime) -> Snapshot:
        """Everything of every declared type in the scope, fresh; one bulk read per type, in parallel."""
        snapshot = Snapshot()
        types = {tracked.type for tracked in held.work.tracked.values()} | set(searched_types(held, self._offers))
        offers = [self._offers[component_type].offer for component_type in sorted(types)]
        self._read(held, snapshot, [offer for offer in offers if not offer.reads_by_parent], resolve, now)
        self._read(held, snapshot, [offer for offer in offers if offer.reads_by_parent], resolve, now)
        return snapshot

    def reread(
        self, held: HeldScope, snapshot: Snapshot, types: Iterable[str], resolve: Resolve, now: datetime
    ) -> None:
        """Read some types once more, in bulk, into a snapshot that exists already."""
        self._read(
            held, snapshot, [self._offers[component_type].offer for component_type in sorted(types)], resolve, now
        )

    def _read(
        self, held: HeldScope, snapshot: Snapshot, offers: list[AnyOffer], resolve: Resolve, now: datetime
    ) -> None:
        queries = {offer.type: self._query_for(held, offer, snapshot, resolve) for offer in offers}
        if len(offers) == 1:
            results: Iterable[_Listed | CloudError] = [self._list(held, offers[0], queries[offers[0].type], now)]
        else:
            results = self._pool.map(lambda offer: self._list(held, offer, queries[offer.type], now), offers)
        for offer, result in zip(offers, results, strict=True):
            for known in (snapshot.errors, snapshot.unread, snapshot.sightings):
                known.pop(offer.type, None)
            if isinstance(result, CloudError):
                snapshot.errors[offer.type] = result
                continue
            snapshot.sightings[offer.type] = result.found
            if result.unread:
                snapshot.unread[offer.type] = result.unread
        snapshot.forget_index()

    def _query_for(self, held: HeldScope, offer: AnyOffer, snapshot: Snapshot, resolve: Resolve) -> Query:
        is_searched = any(offer.type == one.type for t in held.work.tracked.values() for one in t.finds)
        names = frozenset(t.identity.name for t in held.work.of_type(offer.type) if not is_searched)
        asks = offer.reads_by_parent or offer.reads_what_is_declared
        known = resolve(offer, snapshot) if asks else Resolved()
        recall = SeenPages(held.observed.seen.get(offer.type, {}), held.observed.pages.get(offer.type, {}))
        live_systems = frozenset(tracked.live_system_id for tracked in held.work.tracked.values())
        return Query(names, known.parent_ids, recall, live_systems, known.declared)

    def _list(self, held: HeldScope, offer: AnyOffer, query: Query, now: datetime) -> _Listed | CloudError:
        until = held.backoff.throttled(offer.type, now)
        if until is not None:
            return Throttled(f"the cloud asked for fewer calls: reading again at {until:%H:%M:%S}")
        observed = held.observed
        known = observed.seen.get(offer.type, {})
        observed.pages.pop(offer.type, None)  # what is known of a list that is not read to its end stands for nothing
        listed = _Listed()
        try:
            for item in offer.sightings(held.cloud, query):
                if isinstance(item, UnreadItem):
                    listed.unread.append(item)
                    continue
                is_known = known.get(item.resource_id) is item
                listed.found[item.resource_id] = item if is_known else query.seen_pages.intern(item)
        except CloudError as error:
            if isinstance(error, Throttled):
                held.backoff.throttle(offer.type, now, error.after_seconds)
            return error
        held.backoff.throttles.pop(offer.type, None)
        held.observed.pages[offer.type] = query.seen_pages.pages
        return listed

    def sweep(self, held: HeldScope, chosen: list[tuple[Tracked, Sighting]], snapshot: Snapshot, now: datetime) -> bool:
        """Read swept parameters of components that declare some, within the budget per type; True if any value is new.

        What is in override, asked for, imported or freshly deployed is read whole in every cycle; the rest in turns.
        """
        changed = sweep_in_bulk(held, chosen, self._offers, self._pool, now)
        by_type: dict[str, list[tuple[Tracked, Sighting]]] = defaultdict(list)
        for tracked, sighting in chosen:
            if self._alone(tracked):
                by_type[tracked.type].append((tracked, sighting))
        budgets: dict[str, int] = {}
        for component_type, candidates in by_type.items():
            turn = self._whose_turn(held, component_type, candidates, budgets)
            results = self._pool.map(lambda pair: self._sweep_one(held, *pair), turn)
            for (tracked, _), values in zip(turn, results, strict=True):
                if isinstance(values, CloudError):
                    changed = self._note_unswept(held, tracked, values) or changed
                    continue
                known = held.observed.swept.get(tracked.uid)
                was_unswept = held.observed.unswept.pop(tracked.uid, None) is not None
                changed = changed or was_unswept or known is None or known.values != values
                held.observed.swept[tracked.uid] = Swept(values, now, known.at if known is not None else None)
        self.recall(held, chosen, snapshot)
        return changed

    def record_swept(self, held: HeldScope, tracked: Tracked, sighting: Sighting, now: datetime) -> None:
        """A single read showed everything: its swept parameters are the newest known."""
        record_in_bulk(held, tracked, self._offers, sighting, now)
        names = self._alone(tracked)
        if names:
            values = {name: sighting.actual[name] for name in names if name in sighting.actual}
            known = held.observed.swept.get(tracked.uid)
            held.observed.swept[tracked.uid] = Swept(values, now, known.at if known is not None else None)
            held.observed.unswept.pop(tracked.uid, None)

    def _alone(self, tracked: Tracked) -> frozenset[str]:
        """The declared parameters of a component that must be read one by one."""
        facts = self._offers[tracked.type]
        names = swept_names(facts, tracked)
        return names - facts.offer.swept_in_bulk if names else names

    def _whose_turn(
        self,
        held: HeldScope,
        component_type: str,
        candidates: list[tuple[Tracked, Sighting]],
        budgets: dict[str, int],
    ) -> list[tuple[Tracked, Sighting]]:
        """Who is swept now; ``budgets`` holds what is left per service, which several types may share."""
        offer = self._offers[component_type].offer
        service = offer.service or component_type
        first = [pair for pair in candidates if _comes_first(held, *pair)]
        rest = [pair for pair in candidates if not _comes_first(held, *pair)]
        budget = budgets.get(service, self._sweep_budget)
        budget -= sum(offer.sweep_calls(self._alone(tracked)) for tracked, _ in first)
        start = held.observed.sweep_turn.get(component_type, 0) % max(len(rest), 1)
        turn = []
        for pair in rest[start:] + rest[:start]:
            cost = offer.sweep_calls(self._alone(pair[0]))
            if cost > budget:
                break
            budget -= cost
            turn.append(pair)
        budgets[service] = budget
        held.observed.sweep_turn[component_type] = start + len(turn)
        return first + turn

    def _sweep_one(self, held: HeldScope, tracked: Tracked, sighting: Sighting) -> dict[str, Any] | CloudError:
        offer = self._offers[tracked.type].offer
        try:
            return dict(offer.sweep(held.cloud, sighting, self._alone(tracked)))
        except CloudError as error:
            return error  # its last values stay; existence and tags were read, so this is no reason to hold back

    def _note_unswept(self, held: HeldScope, tracked: Tracked, error: CloudError) -> bool:
        """Keep what the component says of parameters that could not be read; True if that is news."""
        names = self._alone(tracked)
        seen = tracked.uid in held.observed.swept or not names.isdisjoint(tracked.memory.output_fields)
        note = words.unswept(names, error, seen_before=seen)
        is_news = held.observed.unswept.get(tracked.uid) != note
        held.observed.unswept[tracked.uid] = note
        return is_news

    def recall(self, held: HeldScope, chosen: list[tuple[Tracked, Sighting]], snapshot: Snapshot) -> None:
        """Put what was last swept beside what the bulk read returned."""
        for tracked, sighting in chosen:
            tables = (held.observed.swept, held.observed.bulk_swept)
            values = {k: v for table in tables if (one := table.get(tracked.uid)) for k, v in one.values.items()}
            if any(sighting.actual.get(name) != value for name, value in values.items()):
                snapshot.put(replace(sighting, actual={**sighting.actual, **values}))


def _comes_first(held: HeldScope, tracked: Tracked, sighting: Sighting) -> bool:
    memory = tracked.memory
    return (
        memory.stance is not Stance.MANAGED
        or not sighting.protocol.is_managed
        or sighting.protocol.reconcile
        or memory.observed_generation < tracked.generation
        or (tracked.uid not in held.observed.swept and memory.intent is not None)
    )
