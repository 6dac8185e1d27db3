"""The first phase of a cycle: what is in the scope now, whether its realm is the one that is meant, what became of
resources that are not listed any more.

Reading itself is in ``reading``. Nothing is decided here, and nothing is written to a cloud.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fractal_cloud.agent.change_detection import changed_sightings
from fractal_cloud.agent.cycle_state import CycleState
from fractal_cloud.agent.evaluator import Evaluator
from fractal_cloud.agent.reading import Resolved, Snapshot
from fractal_cloud.agent.scope import AbsentReads
from fractal_cloud.model.errors import CloudError, Unreadable
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.situation import Presence, Trace
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.offer import AnyOffer, DeclaredResource
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules.situate import View, found_elsewhere

_DEEPEST: Final = 8
"""Deeper than any resource lies in others."""


def _declared(evaluator: Evaluator, tracked: Tracked, parent_id: str | None) -> DeclaredResource:
    known_id = evaluator.id_to_confirm(tracked)
    return DeclaredResource(tracked.identity.name, known_id, parent_id, evaluator.declared(tracked))


class Observer:
    """Reads one scope for one cycle. ``unconfirmed``: why its realm is not known to be the one that is meant (S26)."""

    def __init__(self, state: CycleState) -> None:
        self.unconfirmed: CloudError | None = None
        self._state = state
        self._held = state.held
        self._work = state.held.work
        self._context = state.context
        self._evaluator = state.evaluator

    # --- the whole scope

    def read(self) -> tuple[list[Sighting] | None, bool]:
        """Read the scope; returns what differs from the last read, None if that is not known, and whether a sweep
        found anything new.
        """
        snapshot = self._read_all()
        changed = changed_sightings(self._held, snapshot)
        self._held.observed.seen = {name: dict(found) for name, found in snapshot.sightings.items()}
        return changed, self._sweep(snapshot)

    def read_for_plan(self) -> None:
        """Read the scope, and confirm its realm, without a memory of what was read."""
        snapshot = self._read_all()
        self.confirm_realm()
        self._sweep(snapshot)

    def _read_all(self) -> Snapshot:
        evaluator = self._evaluator
        evaluator.snapshot = self._context.reader.read_all(self._held, self._resolve, evaluator.now)
        return evaluator.snapshot

    def _sweep(self, snapshot: Snapshot) -> bool:
        self._state.refresh()
        sighted = self._sighted(self._work.tracked.values())
        return self._context.reader.sweep(self._held, sighted, snapshot, self._evaluator.now)

    def read_created(self, created: list[Tracked]) -> None:
        """Read the types of what was created once more, in bulk, with its swept parameters."""
        evaluator, reader = self._evaluator, self._context.reader
        snapshot = evaluator.snapshot
        self._state.refresh()
        reader.reread(self._held, snapshot, {tracked.type for tracked in created}, self._resolve, evaluator.now)
        self._state.refresh()
        reader.sweep(self._held, self._sighted(created), snapshot, evaluator.now)
        reader.recall(self._held, self._sighted(self._work.tracked.values()), snapshot)
        self._state.refresh()

    def _resolve(self, offer: AnyOffer, snapshot: Snapshot) -> Resolved:
        evaluator = self._evaluator
        evaluator.snapshot = snapshot
        self._state.refresh()
        found = [(tracked, evaluator.parent_id(tracked)) for tracked in self._work.of_type(offer.type)]
        declared = (_declared(evaluator, *one) for one in found) if offer.reads_what_is_declared else ()
        return Resolved(frozenset(parent for _, parent in found if parent is not None), tuple(declared))

    def _sighted(self, components: Iterable[Tracked]) -> list[tuple[Tracked, Sighting]]:
        """The components that declare something to sweep, with what was seen of them."""
        offers = self._context.offers
        chosen = (t for t in components if not offers[t.type].compared.swept.isdisjoint(t.parameters))
        views = ((tracked, self._evaluator.view(tracked)) for tracked in chosen)
        return [(tracked, view.sighting) for tracked, view in views if view.sighting is not None]

    # --- the realm that is reached (S26)

    def confirm_realm(self) -> bool:
        """Confirm, in one call, that what was read is in the realm that is meant; else nothing was read (S0).

        It is asked after the reading and before anything is decided: so nothing is written elsewhere, and nothing
        counts as gone because it was searched for elsewhere. A cycle that finds everything as it was decides nothing.
        """
        try:
            self._held.confirm_realm()
        except CloudError as error:
            self.unconfirmed = error
            self._evaluator.snapshot.lose(error, {tracked.type for tracked in self._work.tracked.values()})
            self._held.forget_readings()
        return self.unconfirmed is None

    # --- what is not listed

    def count_absent_reads(self) -> None:
        """Count this read for those of whom something is concluded only after several reads (S17, S24)."""
        observed, at = self._held.observed, self._context.steadily()
        counts = observed.absent_reads
        for tracked in self._work.tracked.values():
            if tracked.given_up and self._evaluator.view(tracked).error is None:
                observed.reads_since.setdefault(tracked.uid, AbsentReads()).count_one(at)
            is_counted = tracked.memory.intent is not None or self._state.offer_of(tracked).not_found_may_mean_denied
            if is_counted and self._evaluator.view(tracked).presence is Presence.ABSENT:
                counts.setdefault(tracked.uid, AbsentReads()).count_one(at)
            elif counts:
                counts.pop(tracked.uid, None)

    def trace_absent(self) -> None:
        """Ask by their ids for those whose absence matters to others: what is deleted, and what others are in (O17).

        What is in something that is not listed is judged only once it is known what became of that; so the outer ones
        are asked for first.
        """
        for _ in range(_DEEPEST):
            absent = [t for t in self._work.tracked.values() if self._is_to_be_traced(t)]
            if not absent:
                return
            self.trace(absent)

    def _is_to_be_traced(self, tracked: Tracked) -> bool:
        if tracked.uid in self._evaluator.traces:
            return False
        if not tracked.deleting and tracked.uid not in self._evaluator.parents:
            return False
        view = self._evaluator.view(tracked)
        return view.presence is Presence.ABSENT and view.trace is Trace.UNKNOWN

    def trace(self, absent: list[Tracked]) -> None:
        """Find out by direct reads what became of resources that their names do not find."""
        asked = [t for t in absent if self._evaluator.id_to_confirm(t) is not None]
        for tracked, found in zip(asked, self._context.pool.map(self._read_by_id, asked), strict=True):
            self._note_trace(tracked, found)
        self._state.refresh()

    def _read_by_id(self, tracked: Tracked) -> Sighting | CloudError | None:
        try:
            return self._state.offer_of(tracked).read(self._held.cloud, self._evaluator.id_to_confirm(tracked) or "")
        except CloudError as error:
            return error
        except Exception as error:  # noqa: BLE001  # what could not be read is not gone (S0)
            return Unreadable(describe_unexpected(error))

    def _note_trace(self, tracked: Tracked, found: Sighting | CloudError | None) -> None:
        traces = self._evaluator.traces
        if isinstance(found, CloudError):
            traces[tracked.uid] = View(error=found)
        elif found is None:
            traces[tracked.uid] = self._evaluator.without_answer(tracked)
        elif found.name != tracked.identity.name or found.moved_to:
            traces[tracked.uid] = found_elsewhere(found)
        else:
            self._evaluator.snapshot.put(found)
