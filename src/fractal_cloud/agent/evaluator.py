"""One scope at one moment: every component beside what was last read of it, ready to be judged.

The cycle, the plan and the guard all ask the same evaluator. It reads nothing and writes nothing by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import structlog

from fractal_cloud.agent.filling import MISSING, Filled, fill, inside
from fractal_cloud.agent.lookups import Lookups
from fractal_cloud.agent.reading import Snapshot
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.secrets import CycleSecrets
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.settings import AgentSettings
from fractal_cloud.model.catalog import part_name
from fractal_cloud.model.errors import AwaitsPerson, CloudError, Unreadable
from fractal_cloud.model.reference import OutputReference, output_reference
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.situation import Hold, Presence, Trace
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import NO_TAGS
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.offers.generated_secrets import is_made_for_another
from fractal_cloud.offers.offer import AnyOffer, LinkFields, Recognition
from fractal_cloud.offers.refusals import describe_unexpected
from fractal_cloud.rules import words
from fractal_cloud.rules.judge import Circumstances, Judgement, Lacking, judge
from fractal_cloud.rules.parts import hold_of, hold_of_deleted
from fractal_cloud.rules.situate import ABSENT, GONE, NEVER, Claims, View, found_elsewhere, pick

log = structlog.get_logger()

_USABLE_OUTSIDE = frozenset({Status.ACTIVE, Status.MANUAL_OVERRIDE, Status.EXTERNALLY_MANAGED, Status.MUTATING})


class Evaluator:
    """Judges the components of one scope against one snapshot of it."""

    def __init__(
        self,
        held: HeldScope,
        snapshot: Snapshot,
        offers: Mapping[str, OfferFacts],
        settings: AgentSettings,
        now: datetime,
        secrets: CycleSecrets | None = None,
    ) -> None:
        self.held = held
        self.secrets = secrets or CycleSecrets(held)
        self.lookups = Lookups(held, offers)
        self.snapshot = snapshot
        self.now = now
        self._offers = offers
        self._settings = settings
        self._limits = settings.limits(held.observed.cycle_seconds)
        self._views: dict[str, View] = {}
        self._filled: dict[str, Filled] = {}
        self._orphans: dict[tuple[str, str], Sighting | None] | None = None
        self.rivals: dict[str, str] = {}
        self.traces: dict[str, View] = {}
        self.failed_views: dict[str, CloudError] = {}
        self.left: set[str] = set()
        self.finished: set[str] = set()

    @property
    def cycle(self) -> timedelta:
        """One settled cycle."""
        return self._settings.cycle

    @property
    def sweep_budget(self) -> int:
        """How many calls of one kind a cycle may make for what a cloud returns only one by one (S23)."""
        return self._settings.sweep_budget

    # Drawn when first asked for: a cycle that finds everything as it was asks for none of them.

    @cached_property
    def _by_id(self) -> dict[tuple[str, str], Tracked]:
        return {(tracked.live_system_id, tracked.component_id): tracked for tracked in self.held.work.tracked.values()}

    @cached_property
    def _by_identity(self) -> dict[tuple[str, str, str, str], Tracked]:
        return {
            (tracked.live_system_id, tracked.type, tracked.identity.parent, tracked.identity.name): tracked
            for tracked in self.held.work.tracked.values()
        }

    @cached_property
    def _declarers(self) -> dict[str, frozenset[str]]:
        return _declarers(self.held.work.tracked.values())

    @cached_property
    def _dependents(self) -> dict[tuple[str, str], list[Tracked]]:
        return _dependents(self.held.work.tracked.values())

    def refresh(self, now: datetime) -> None:
        """Something was read again: every view is derived anew."""
        self.now = now
        self._views.clear()
        self._filled.clear()
        self._orphans = None

    # --- what was seen of a component

    def view(self, tracked: Tracked) -> View:
        """What the snapshot says of one component."""
        view = self._views.get(tracked.uid)
        if view is None:
            try:
                view = self._observed(tracked)
                if view.sighting is not None:
                    known = self.with_tags(tracked, view.sighting)
                    seen = self.hidden(tracked, self.as_declared(tracked, known))
                    view = view if seen is view.sighting else replace(view, sighting=seen)
            except Exception as error:  # noqa: BLE001  # one component's error stays its own (S24)
                failed = self.failed_views[tracked.uid] = Unreadable(f"its offer failed: {describe_unexpected(error)}")
                view = View(error=failed)
            self._views[tracked.uid] = view
        return view

    def as_declared(self, tracked: Tracked, sighting: Sighting) -> Sighting:
        """What was sighted, in the light of what this component declares of it."""
        offer = self._offers[tracked.type].offer
        return offer.as_declared(sighting, tracked.parameters, tracked.memory.output_fields)

    def with_tags(self, tracked: Tracked, sighting: Sighting, parent: Sighting | None = None) -> Sighting:
        """What was sighted, with the protocol's tags of its parent where it is a part (S25).

        ``parent``: a fresher sighting of that, where there is one.
        """
        if not self._offers[tracked.type].traits.is_part:
            return sighting
        above = self.parent(tracked)
        parent = parent or (self.view(above).sighting if above is not None else None)
        return replace(sighting, protocol=parent.protocol if parent is not None else NO_TAGS)

    def offer_of(self, tracked: Tracked) -> AnyOffer:
        """The offer of a component's type."""
        return self._offers[tracked.type].offer

    def hidden(self, tracked: Tracked, sighting: Sighting) -> Sighting:
        """What was sighted without the values of secrets: what is decided, published and journalled is made of it."""
        declared = self.filled(tracked).parameters if tracked.fills else tracked.parameters
        return self.secrets.hidden(tracked, self._offers[tracked.type].compared, sighting, declared)

    def _observed(self, tracked: Tracked) -> View:
        error = self.snapshot.error_of(tracked)
        if error is not None:
            return View(error=error)
        if tracked.identity is not tracked.declared_identity and tracked.memory.resource_id is not None:
            sighting = self.snapshot.sightings.get(tracked.type, {}).get(tracked.memory.resource_id)
            return View(sighting=sighting) if sighting is not None else self._absent(tracked)
        facts = self._offers[tracked.type]
        parent_id: str | None = None
        if facts.parent is not None:
            found = self._parent_id(tracked, facts)
            if isinstance(found, View):
                return found
            parent_id = found
        name = self.name_here(tracked)
        if name is None:
            return self._unnamed_yet(tracked)
        found_here = pick(tracked.live_system_id, self.snapshot.fitting(tracked.type, parent_id, name))
        return self._absent(tracked) if found_here is ABSENT else found_here

    def name_here(self, tracked: Tracked) -> str | None:
        """The name that a component's resource has in the cloud; None while a value of its key is not known (S25)."""
        facts = self._offers[tracked.type].facts
        if not facts.is_keyed:
            return tracked.identity.name
        key = facts.key
        declared = self.declared(tracked)
        values = [declared.get(name) for name in key]
        is_known = all(
            value is not None or name not in tracked.parameters for name, value in zip(key, values, strict=True)
        )
        return part_name(values) if is_known else None

    def _unnamed_yet(self, tracked: Tracked) -> View:
        """What is known of a component while what its name is made of is not there: found by its id alone."""
        sighting = self.snapshot.sightings.get(tracked.type, {}).get(self.id_to_confirm(tracked) or "")
        return View(sighting=sighting) if sighting is not None else self._absent(tracked)

    def _absent(self, tracked: Tracked) -> View:
        """What is known of the resource of a component whose name finds nothing (S19, O17)."""
        traced = self.traces.get(tracked.uid)
        if traced is not None:
            return traced
        resource_id = self.id_to_confirm(tracked)
        if resource_id is None:
            return NEVER
        renamed = self.snapshot.sightings.get(tracked.type, {}).get(resource_id)
        return found_elsewhere(renamed) if renamed is not None else ABSENT

    def id_to_confirm(self, tracked: Tracked) -> str | None:
        """The id by which a direct read finds what is not found by its name."""
        memory = tracked.memory
        if memory.intent is not None:
            return memory.intent.resource_id or self._offers[tracked.type].offer.predicted_id(memory.intent.id)
        return tracked.bound.resource_id if tracked.bound is not None else memory.resource_id

    def parent_id(self, tracked: Tracked) -> str | None:
        """The cloud's id of the resource in whose scope the component's name is unique."""
        facts = self._offers[tracked.type]
        found = self._parent_id(tracked, facts) if facts.parent is not None else None
        return found if isinstance(found, str) else None

    def named_by(self, tracked: Tracked) -> str:
        """The parameter under which a component's declaration says its name."""
        return self._offers[tracked.type].compared.named_by

    def _parent_id(self, tracked: Tracked, facts: OfferFacts) -> str | View:
        """The parent's id, or the view that follows for its child where there is none."""
        parent_name, output = _parent_named(tracked, facts)
        parent = self.parent(tracked)
        if parent is None:
            return self._outside_parent(tracked, parent_name, output)
        view = self.view(parent)
        if view.error is not None:
            kind = AwaitsPerson if view.error.needs_person else Unreadable
            return View(error=kind(f"{parent_name!r}, which it is in, cannot be read: {view.error.message}"))
        if view.fitting:
            return View(error=AwaitsPerson(f"several resources are named like {parent_name!r}, which it is in"))
        found = view.sighting or view.elsewhere
        if found is not None:
            return str(found.outputs.get(output) or found.actual.get(output) or found.resource_id)
        if view.trace is Trace.GONE and (facts.offer.read_needs_parent or facts.traits.is_part):
            return GONE
        if view.trace in (Trace.NEVER, Trace.GONE) and self._is_window_over(parent):
            return self._absent(tracked)
        return View(error=Unreadable(f"{parent_name!r}, which it is in, is not listed, and not proven to be gone"))

    def _outside_parent(self, tracked: Tracked, parent_name: str, output_name: str) -> str | View:
        """The id of a parent that is not in this scope; its own agent says whether it is there."""
        output = self._outside_output(tracked, parent_name, output_name)
        if isinstance(output, str):
            return output
        outside = self.held.work.outside.get((tracked.live_system_id, parent_name))
        if outside is not None and outside.never_created:
            return self._absent(tracked)
        if outside is not None and outside.moved and self.id_to_confirm(tracked) is None:
            return self._absent(tracked)  # its parent stands elsewhere: nothing of it was ever made here (S18)
        return View(error=Unreadable(f"{parent_name!r}, which it is in, is not known to be there or to be gone"))

    def parent(self, tracked: Tracked) -> Tracked | None:
        """The component in whose resource a component's name is unique, where it is in this scope.

        Found by its id, or by its identity where it was handed over to another id since (O16).
        """
        facts = self._offers[tracked.type]
        if facts.parent is None:
            return None
        by_id = self._by_id.get((tracked.live_system_id, _parent_named(tracked, facts)[0]))
        if by_id is not None:
            return by_id
        path, _, name = tracked.identity.parent.rpartition("/")
        parent_type = facts.references.get(facts.parent, ("", ""))[0]
        return self._by_identity.get((tracked.live_system_id, parent_type, path, name))

    def without_answer(self, tracked: Tracked) -> View:
        """What follows where a direct read says that a resource does not exist (O17).

        Where that may mean «not authorised», it is believed only after the window of complete lists without it; where
        a rename changes the id, only if nothing of this LiveSystem's lies about that no component names.
        """
        offer = self._offers[tracked.type].offer
        if offer.not_found_may_mean_denied and not self._is_unseen_long_enough(tracked):
            return ABSENT
        renamed = self._renamed(tracked) if offer.rename_changes_id else None
        return GONE if renamed is None else found_elsewhere(renamed)

    @cached_property
    def parents(self) -> frozenset[str]:
        """The uids of components that others in this scope are in."""
        return frozenset(p.uid for p in map(self.parent, self.held.work.tracked.values()) if p is not None)

    def is_wired_here(self, tracked: Tracked) -> bool:
        """Whether links to a component are its own business though its resource is nobody's: ``wired_by_declarer``.

        One that says ``importOnly`` wants nothing of it touched, and nothing made inside.
        """
        return self._offers[tracked.type].offer.wired_by_declarer and not tracked.import_only

    # --- what a component needs of others

    def _outside_output(self, tracked: Tracked, component_id: str, output: str) -> Any:
        outside = self.held.work.outside.get((tracked.live_system_id, component_id))
        if outside is None or outside.status not in _USABLE_OUTSIDE:
            return None
        return outside.output_fields.get(output)

    def _output_of(self, tracked: Tracked, component_id: str, output: str) -> Any:
        other = self._by_id.get((tracked.live_system_id, component_id))
        if other is None:
            return self._outside_output(tracked, component_id, output)
        view = self.view(other)
        found = view.sighting or view.elsewhere
        return found.outputs.get(output) if found is not None else None

    def filled(self, tracked: Tracked) -> Filled:
        """The declared parameters as they are compared, with outputs of others and what lookups found in them."""
        spelling = self._offers[tracked.type].spelling
        if not tracked.fills and not spelling.changes(tracked.parameters):
            return Filled(tracked.parameters)
        found = self._filled.get(tracked.uid)
        if found is None:
            found = self._fill(tracked) if tracked.fills else Filled(tracked.parameters)
            found = self._filled[tracked.uid] = replace(found, parameters=spelling.of(found.parameters))
        return found

    def _fill(self, tracked: Tracked) -> Filled:
        return fill(
            tracked.parameters,
            self._offers[tracked.type],
            lambda reference: self._value_of(tracked, reference),
            lambda declared, lookup: self.lookups.answer(tracked, declared, lookup, self.snapshot),
            tracked.fills,
        )

    def _value_of(self, tracked: Tracked, reference: OutputReference) -> Any:
        """What another component publishes: outputs first, then actual values; ``MISSING`` while it is not there."""
        other = self._by_id.get((tracked.live_system_id, reference.component))
        if other is None:
            outside = self.held.work.outside.get((tracked.live_system_id, reference.component))
            is_there = outside is not None and outside.status in _USABLE_OUTSIDE
            fields: Mapping[str, Any] = outside.output_fields if outside is not None and is_there else {}
            return inside(fields, reference.field)
        view = self.view(other)
        sighting = view.sighting or view.elsewhere
        if sighting is None:
            return MISSING
        value = inside({"name": sighting.name, **sighting.actual, **sighting.outputs}, reference.field)
        is_made = sighting.condition is not Condition.CREATING
        return value if value not in (None, "") or (value == "" and is_made) else MISSING

    def declared(self, tracked: Tracked) -> Mapping[str, Any]:
        """The declared parameters with references resolved, and those that links set.

        What cannot be resolved yet is left out.
        """
        facts = self._offers[tracked.type]
        references = facts.references
        parameters = self.filled(tracked).parameters
        if not references and not facts.is_wired:
            return parameters
        resolved: dict[str, Any] = dict(facts.offer.linked_parameters(_wired(tracked))) if facts.is_wired else {}
        for name, value in parameters.items():
            if name not in references or name in tracked.fills:
                resolved[name] = value
                continue
            output = references[name][1]
            ids = value if isinstance(value, list) else [value]
            found = [self._output_of(tracked, component_id, output) for component_id in ids]
            if all(item is not None for item in found):
                resolved[name] = found if isinstance(value, list) else found[0]
        return resolved

    def waits_for(self, tracked: Tracked) -> tuple[str, ...]:
        """The dependencies that are not there yet."""
        return tuple(name for name in tracked.dependencies if not self._is_ready(tracked, name))

    def _renamed_dependencies(self, tracked: Tracked) -> dict[str, Sighting]:
        """The dependencies that were found by their ids under another name."""
        others = ((name, self._by_id.get((tracked.live_system_id, name))) for name in tracked.dependencies)
        views = ((name, self.view(other)) for name, other in others if other is not None)
        return {name: view.elsewhere for name, view in views if view.elsewhere is not None}

    def _is_ready(self, tracked: Tracked, component_id: str) -> bool:
        other = self._by_id.get((tracked.live_system_id, component_id))
        if other is None:
            outside = self.held.work.outside.get((tracked.live_system_id, component_id))
            return outside is not None and outside.status in _USABLE_OUTSIDE and not outside.moved
        sighting = self.view(other).sighting
        return (
            sighting is not None
            and not other.deleting
            and other.identity == other.declared_identity  # what cannot move has nothing new put into it (S18)
            and sighting.condition not in (Condition.CREATING, Condition.DYING)
        )

    # --- judging

    def judge(self, tracked: Tracked, view: View | None = None, parent: View | None = None) -> Judgement:
        """What follows for one component, from the snapshot or from a fresher view of it, and of its parent (S25)."""
        try:
            view = view if view is not None else self.view(tracked)
            judgement = judge(tracked, view, self.circumstances(tracked, view, parent))
        except Exception as error:  # one component's error stays its own (S24)
            log.exception("component cannot be judged", live_system=tracked.live_system_id, id=tracked.component_id)
            return unjudged(tracked, error)
        unswept = self.held.observed.unswept_of(tracked.uid)
        if not unswept or view.sighting is None or tracked.deleting:
            return judgement
        return replace(judgement, message=f"{judgement.message}; {unswept}")

    def hold(self, tracked: Tracked, view: View | None = None) -> Hold:
        """What the parent of a part says of writing to it (S25). ``view``: a fresher one of the parent."""
        traits = self._offers[tracked.type].traits
        if not traits.is_part or tracked.import_only:
            return Hold.FREE
        parent = self.parent(tracked)
        if parent is None or (parent.deleting and not tracked.deleting):
            return Hold.UNSETTLED
        judgement = self.judge(parent, view)
        if not parent.deleting:
            return hold_of(judgement)
        others = set(self._living_dependents(parent)) - set(self._parts_of(parent))
        return hold_of_deleted(parent, judgement, others, blocks=traits.blocks_parent_deletion)

    def _parts_of(self, tracked: Tracked) -> tuple[str, ...]:
        """The parts of a component that are deleted like it, and end once it is gone."""
        here = (other for other in self.dependents_here(tracked) if self._offers[other.type].traits.is_part)
        return tuple(other.component_id for other in here if other.deleting and self.parent(other) is tracked)

    def _parts_that_go_along(self, tracked: Tracked) -> tuple[str, ...]:
        """Those parts of a deleted component that need not be deleted before it."""
        blocking = {
            other.component_id
            for other in self.dependents_here(tracked)
            if self._offers[other.type].traits.blocks_parent_deletion
        }
        return tuple(name for name in self._parts_of(tracked) if name not in blocking)

    def circumstances(self, tracked: Tracked, view: View, parent_view: View | None = None) -> Circumstances:
        """Everything the judgement of one component depends on."""
        facts = self._offers[tracked.type]
        identity = tracked.identity.key
        known = self.held.work.known.get(identity)
        absent = view.presence is Presence.ABSENT
        parent = self.parent(tracked) if facts.traits.is_part else None
        above = parent_view or (self.view(parent) if parent is not None else None)
        owner = above.sighting.protocol.owner if above is not None and above.sighting is not None else None
        filled = self.filled(tracked)
        return Circumstances(
            compared=facts.compared,
            traits=facts.traits,
            claims=Claims(
                self._declarers.get(identity, frozenset()),
                known.owner if known else None,
                owner,
                self.hold(tracked, parent_view),
            ),
            now=self.now,
            cycle=self._settings.cycle,
            declared=self.secrets.hiding(tracked, facts.compared).declared(self.declared(tracked)),
            waits_for=self.waits_for(tracked) if absent or view.error is not None else (),
            renamed=self._renamed_dependencies(tracked) if absent else {},
            dependents=self._living_dependents(tracked) if tracked.deleting else (),
            hosted=tuple(self.held.work.hosted.get(tracked.uid, ())) if tracked.deleting else (),
            left_dependents=self._left_dependents(tracked) if tracked.deleting else (),
            orphan=self._orphan(tracked) if absent else None,
            rival=self.rivals.get(tracked.uid),
            window_over=self._is_window_over(tracked),
            is_own_creation=self._is_own_creation(tracked, view),
            limits=self._limits,
            lacking=Lacking("; ".join(filled.errors))
            if filled.errors
            else self.secrets.lacking(tracked, is_there=not absent),
            unfilled=filled.waits,
            unfound=filled.seeks,
            news=filled.news,
            parent=_parent_named(tracked, facts)[0],
            parts=self._parts_that_go_along(tracked) if tracked.deleting else (),
        )

    def _is_own_creation(self, tracked: Tracked, view: View) -> bool | None:
        """Whether what was seen is what the component's open creation made; None while that does not show (S17)."""
        intent, sighting = tracked.memory.intent, view.sighting
        if sighting is not None and sighting.is_hidden:
            return None
        if intent is None or sighting is None or tracked.memory.stance is not Stance.MANAGED:
            return False
        predicted = self._offers[tracked.type].offer.predicted_id(intent.id)
        is_hidden = sighting.condition is Condition.CREATING and sighting.protocol == NO_TAGS
        if predicted is None or sighting.resource_id == predicted:
            return predicted is not None
        return None if is_hidden else False

    def dependents_here(self, tracked: Tracked) -> Sequence[Tracked]:
        """The components of its LiveSystem, in this scope, that depend on a component."""
        return self._dependents.get((tracked.live_system_id, tracked.component_id), ())

    def dependencies_here(self, tracked: Tracked) -> list[Tracked]:
        """The components of its LiveSystem, in this scope, that a component depends on."""
        named = ((tracked.live_system_id, name) for name in tracked.dependencies)
        return [self._by_id[key] for key in named if key in self._by_id]

    def _living_dependents(self, tracked: Tracked) -> tuple[str, ...]:
        here = (other for other in self.dependents_here(tracked) if other.uid not in self.finished)
        living = [other.component_id for other in here if not self._outlasts(other, tracked)]
        return tuple(sorted({*living, *self.held.work.held_by.get(tracked.uid, ())}))

    def _outlasts(self, part: Tracked, tracked: Tracked) -> bool:
        """Whether a part goes with what ends only after this component: to wait for the part would never end (S25).

        A topic's subscription names a function, and a permission of that function names the topic: each of the two
        would wait for a part of the other.
        """
        waiting, seen = [parent for parent in (self._goes_with(part),) if parent is not None], {part.uid}
        while waiting:
            one = waiting.pop()
            if one is tracked:
                return len(seen) > 1
            if one.uid not in seen:
                seen.add(one.uid)
                waiting.extend(other for other in self.dependents_here(one) if other.uid not in self.finished)
                waiting.extend(parent for parent in (self._goes_with(one),) if parent is not None)
        return False

    def _goes_with(self, tracked: Tracked) -> Tracked | None:
        """What a part that is being deleted goes with."""
        is_part = self._offers[tracked.type].traits.is_part and tracked.deleting and not tracked.import_only
        parent = self.parent(tracked) if is_part else None
        return parent if parent is not None and parent.deleting else None

    def _left_dependents(self, tracked: Tracked) -> tuple[str, ...]:
        here = self.dependents_here(tracked)
        left = {other.component_id for other in here if other.uid in self.left}
        return tuple(sorted({*left, *tracked.left_dependents, *self.held.work.left_inside.get(tracked.uid, ())}))

    def _is_window_over(self, tracked: Tracked) -> bool:
        intent = tracked.memory.intent
        if intent is None:
            return True
        offer = self._offers[tracked.type].offer
        recognised = offer.recognition is not Recognition.WINDOW
        if recognised and intent.resource_id is None and not tracked.deleting:
            return True
        if intent.resource_id is not None and offer.has_creation_failed(self.held.cloud, intent.id, intent.resource_id):
            return True
        return self._is_unseen_long_enough(tracked)

    def _is_unseen_long_enough(self, tracked: Tracked) -> bool:
        """Whether S17's window is over, counted from the first list without it: the call may have taken longer."""
        reads = self.held.observed.absent_reads.get(tracked.uid)
        return reads is not None and reads.cover(self._settings.visibility)

    def _orphan(self, tracked: Tracked) -> Sighting | None:
        """A resource of this type that the LiveSystem owns and that none of its components names any more (S15)."""
        if self._orphans is None:
            self._orphans = self._find_orphans()
        return self._orphans.get((tracked.live_system_id, tracked.type))

    def _renamed(self, tracked: Tracked) -> Sighting | None:
        """What this LiveSystem owns, no component names, and may be the component's resource under a new id (O17)."""
        incarnation = tracked.bound.incarnation if tracked.bound is not None else tracked.memory.incarnation
        for orphan in self._unnamed():
            is_of_it = (orphan.protocol.owner, orphan.type) == (tracked.live_system_id, tracked.type)
            if is_of_it and not (incarnation and orphan.incarnation and incarnation != orphan.incarnation):
                return orphan
        return None

    def _find_orphans(self) -> dict[tuple[str, str], Sighting | None]:
        orphans: dict[tuple[str, str], Sighting | None] = {}
        for sighting in self._unnamed():
            orphans.setdefault((sighting.protocol.owner or "", sighting.type), sighting)
        return orphans

    def _unnamed(self) -> Iterator[Sighting]:
        """What LiveSystems with components here own, that none of these names, and that was not left on purpose."""
        tracked = list(self.held.work.tracked.values())
        named = {view.sighting.resource_id for view in map(self.view, tracked) if view.sighting is not None}
        named |= {sighting.resource_id for view in map(self.view, tracked) for sighting in view.fitting}
        named |= {t.memory.resource_id or "" for t in tracked if self.view(t).error is not None}
        named |= {known.resource_id or "" for known in self.held.work.known.values() if known.left_by is not None}
        live_systems = {component.live_system_id for component in tracked}
        for of_type in self.snapshot.sightings.values():
            for sighting in of_type.values():
                is_unnamed = sighting.resource_id not in named and not is_made_for_another(sighting.tags)
                if sighting.protocol.owner in live_systems and is_unnamed:
                    yield sighting


def _parent_named(tracked: Tracked, facts: OfferFacts) -> tuple[str, str]:
    """The component that a component is in, and the output that stands for it; of nested types it says so itself."""
    value = tracked.parameters.get(facts.parent or "", "")
    reference = output_reference(value)
    return (str(value), facts.parent_output) if reference is None else (reference.component, reference.field)


def unjudged(tracked: Tracked, error: Exception) -> Judgement:
    """What follows for a component that could not be judged: it fails alone, and nothing of it is written (S24)."""
    stance = tracked.memory.stance
    status = None if stance.is_read_only else Status.FAILED
    return Judgement("S24", status, stance, words.unjudged(describe_unexpected(error)))


def _wired(tracked: Tracked) -> list[LinkFields]:
    outbound = tracked.memory.links.outbound
    return [LinkFields(state.link_type, other, state.fields) for other, state in outbound.items() if state.fields]


def _declarers(components: Iterable[Tracked]) -> dict[str, frozenset[str]]:
    """Per identity, the LiveSystems that could claim the resource: importOnly and deleted components count as none."""
    alone: dict[str, frozenset[str]] = {}
    found: dict[str, frozenset[str]] = {}
    for tracked in components:
        if not tracked.deleting and not tracked.import_only:
            one = alone.setdefault(tracked.live_system_id, frozenset({tracked.live_system_id}))
            identity = tracked.identity.key
            found[identity] = found[identity] | one if identity in found else one
    return found


def _dependents(components: Collection[Tracked]) -> dict[tuple[str, str], list[Tracked]]:
    found: dict[tuple[str, str], list[Tracked]] = defaultdict(list)
    for tracked in components:
        for name in tracked.dependencies:
            found[tracked.live_system_id, name].append(tracked)
    return found
