"""What one cycle has to publish, and how memory follows: nothing is remembered here before the control plane has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from fractal_cloud.agent.journal import Journal
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.model.event import EventKind
from fractal_cloud.model.observed import STAMPED, Observed
from fractal_cloud.model.situation import Presence
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import AT_PUBLICATION, Known, Tracked
from fractal_cloud.model.visible_text import visible
from fractal_cloud.model.wire import AgentEvent, ComponentChange, ScopeReport
from fractal_cloud.rules.judge import Judgement, Verb
from fractal_cloud.rules.situate import View


class Publisher(Protocol):
    """Where a cycle publishes: the control plane, under the scope's lease."""

    def publish(self, report: ScopeReport) -> datetime:
        """Publish what changed; returns the time all stamps bear. Raises if the lease is lost or nobody answers."""


class ReportBuilder:
    """Collects events, journal entries and what is known of resources until the next report takes them along.

    ``unpublished`` holds the components whose memory was changed here and has not been published since.
    """

    def __init__(self, held: HeldScope, publisher: Publisher, offers: Mapping[str, OfferFacts] | None = None) -> None:
        self.journal = Journal(held, offers or {})
        self.unpublished: set[str] = set()
        self._held = held
        self._publisher = publisher
        self._events: list[AgentEvent] = []
        self._resources: dict[str, Known] = {}
        self._known_before: dict[str, Known] = {}
        self._stance_before: dict[str, Stance] = {}

    def add_event(self, tracked: Tracked, kind: EventKind, message: str) -> None:
        """Something happened that only the agent can know."""
        self._events.append(AgentEvent(uid=tracked.uid, kind=kind, message=visible(message)))

    def add_event_once(self, tracked: Tracked, kind: EventKind, message: str) -> None:
        """The same, unless it was said before and the component has not been without an error since (S24)."""
        said = self._held.observed.reported.setdefault(tracked.uid, set())
        is_known = message in said or tracked.memory.message.endswith(message)
        said.add(message)
        if not is_known:
            self.add_event(tracked, kind, message)

    def add_used_up(self, tracked: Tracked) -> None:
        """A Force Push was used up by a write that the cloud refused, as is remembered of it (G10).

        Of a transfer the control plane says so itself, by the journal.
        """
        refusal = tracked.memory.refusal
        if refusal is not None and refusal.verb == Verb.PUSH:
            self.add_event(tracked, EventKind.FORCE_PUSH_REFUSED, refusal.message)

    def note_creator(self, tracked: Tracked) -> None:
        """Whoever publishes the intent to create a resource is its heir from then on."""
        identity = tracked.identity.key
        self._known_before.setdefault(identity, self._held.work.known_as(identity))
        self._note_owner(tracked, tracked.live_system_id, None)

    def withdraw_intent(self, tracked: Tracked) -> None:
        """The cloud refused, or was not asked: nothing was made, so nothing is remembered of it."""
        memory = tracked.memory
        before = self._known_before.get(tracked.identity.key)
        if before is not None:
            self._note(tracked, before)
        stance = self._stance_before.get(tracked.uid, memory.stance)
        if _never_was(memory):
            memory, stance = replace(memory, resource_id=None, incarnation=""), Stance.NONE
        tracked.memory = replace(memory, intent=None, stance=stance)
        self.unpublished.add(tracked.uid)

    def withdraw_tagging(self, tracked: Tracked) -> None:
        """The cloud refused, or was not asked: no tag was put on, so it may be tried again (S17)."""
        intent = tracked.memory.intent
        assert intent is not None, "tags are owed by an open creation alone"
        owed = intent.model_copy(update={"tagging": "owed"})
        tracked.memory = replace(tracked.memory, intent=owed)
        self.unpublished.add(tracked.uid)

    def note_resource(self, tracked: Tracked, view: View, judgement: Judgement) -> None:
        """Remember who owns a resource, and who left it in override, under its natural identity."""
        sighting = view.sighting or view.elsewhere
        if sighting is None:
            return
        if view.sighting is not None and sighting.protocol.owner is not None:
            self._note_owner(tracked, sighting.protocol.owner, sighting.resource_id)
        known = self._held.work.known_as(tracked.identity.key)
        if judgement.left and judgement.finished:
            left_by, where = tracked.live_system_id, sighting.resource_id
            overridden = tracked.memory.stance is Stance.OVERRIDE or not sighting.protocol.is_managed
            self._note(tracked, replace(known, left_by=left_by, resource_id=where, overridden=overridden))
        elif known.left_by == tracked.live_system_id and judgement.stance is Stance.MANAGED:
            self._note(tracked, replace(known, left_by=None, overridden=False))

    def forget_gone(self, tracked: Tracked, view: View, judgement: Judgement) -> None:
        """A deletion has ended with nothing left: the control plane forgets the resource, unless others declare it."""
        key = tracked.identity.key
        others = (other for other in self._held.work.tracked.values() if other is not tracked)
        if view.presence is Presence.ABSENT and not judgement.left and all(o.identity.key != key for o in others):
            self._held.work.known.pop(key, None)

    def _note_owner(self, tracked: Tracked, owner: str, resource_id: str | None) -> None:
        known = self._held.work.known_as(tracked.identity.key)
        resource_id = resource_id or known.resource_id
        if (known.owner, known.resource_id) != (owner, resource_id):
            self._note(tracked, replace(known, owner=owner, resource_id=resource_id))
        elif known.resource_id is not resource_id:
            # equal, but of the very text that the sighting is made of
            self._held.work.known[tracked.identity.key] = replace(known, resource_id=resource_id)

    def _note(self, tracked: Tracked, known: Known) -> None:
        identity = tracked.identity.key
        self._held.work.known[identity] = self._resources[identity] = known

    def confirm(self, entry_id: str) -> None:
        """Publish one intent once more, and nothing else; refused as the first time, if anything was asked for since.

        May be called from several threads, while the cycle's own waits for them.
        """
        held = self._held
        entry = self.journal.intended(entry_id)
        report = ScopeReport(scope=held.scope.key, token=held.token, version=held.work.version, journal=[entry])
        self._publisher.publish(report)

    def publish(self, changes: list[ComponentChange], memories: dict[str, Observed]) -> None:
        """Publish everything collected, in one request, or nothing if there is nothing; then remember it."""
        entries = self.journal.drain()
        if not (changes or entries or self._events or self._resources):
            return
        report = ScopeReport(
            scope=self._held.scope.key,
            token=self._held.token,
            version=self._held.work.version,
            changes=changes,
            resources=[known.to_wire(identity) for identity, known in self._resources.items()],
            journal=entries,
            events=self._events,
        )
        at = self._publisher.publish(report)
        self._events, self._resources = [], {}
        for uid, memory in memories.items():
            tracked = self._held.work.tracked[uid]
            if tracked.memory.stance is not memory.stance:
                self._stance_before.setdefault(uid, tracked.memory.stance)
            tracked.memory = stamped(memory, at)
            self.unpublished.discard(uid)


def stamped(memory: Observed, at: datetime) -> Observed:
    """A published memory with the time of its publication in the place of the times still open."""
    changes: dict[str, object] = {since: at for since in STAMPED if getattr(memory, since) is AT_PUBLICATION}
    if memory.override is not None and memory.override.since == AT_PUBLICATION:
        changes["override"] = memory.override.model_copy(update={"since": at})
    return replace(memory, **changes) if changes else memory  # type: ignore[arg-type]  # the keys are fields of it


def _never_was(memory: Observed) -> bool:
    """Whether a creation that the cloud accepted has failed afterwards: nothing of it was ever in use (S4a)."""
    return memory.observed_generation == 0 and memory.stance is Stance.MANAGED and memory.resource_id is not None
