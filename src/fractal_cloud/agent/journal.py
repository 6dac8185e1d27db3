"""The write journal of one cycle: intents before the writes, outcomes after them (C7)."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from fractal_cloud.agent import accepted
from fractal_cloud.agent.link_handlers import Done, Task
from fractal_cloud.agent.scope import HeldScope
from fractal_cloud.agent.served_types import OfferFacts
from fractal_cloud.agent.writing import Outcome
from fractal_cloud.model.errors import CloudError, GivenUp, Transient, UnderWay
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tag_rules import TAGS
from fractal_cloud.model.tags import OWNER
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.visible_text import visible
from fractal_cloud.model.wire import JournalEntry
from fractal_cloud.rules.hiding import Hiding
from fractal_cloud.rules.judge import Judgement, Step, Verb
from fractal_cloud.rules.situate import View

_VERBS: dict[Verb, Literal["create", "update", "delete", "tag"]] = {
    Verb.CREATE: "create",
    Verb.UPDATE: "update",
    Verb.DELETE: "delete",
    Verb.STAMP: "tag",
    Verb.FINISH: "tag",
    Verb.PUSH: "tag",
    Verb.UNTAG: "tag",
    Verb.TAG: "tag",
    Verb.TRANSFER: "tag",
}


@dataclass(frozen=True, slots=True)
class EntryRef:
    """The entry that an outcome is counted in, and what an equal refusal of the same step would have in common."""

    entry: str = ""
    digest: str = ""


class Journal:
    """Collects what the next report must say about writes."""

    def __init__(self, held: HeldScope, offers: Mapping[str, OfferFacts]) -> None:
        self._held = held
        self._offers = offers
        self._entries: dict[str, JournalEntry] = {}
        self._intended: dict[str, JournalEntry] = {}

    def intend(self, tracked: Tracked, step: Step, sighting: Sighting | None) -> str:
        """Write down what is about to be written; returns the entry's id.

        A creation that the cloud accepted, and that is asked for again by its token, is still the same write.
        """
        known = _accepted(tracked) if step.verb is Verb.CREATE else None
        if known is not None:
            tracked.open_writes = tuple(entry for entry in tracked.open_writes if entry.id != known.id)
            self._entries[known.id] = self._intended[known.id] = known
            return known.id
        entry = JournalEntry(
            id=uuid.uuid4().hex,
            uid=tracked.uid,
            generation=tracked.generation,
            verb=_VERBS[step.verb],
            reason=step.reason,
            resource_id=sighting.resource_id if sighting is not None else None,
            before=_before(step, sighting),
            after=self._after(tracked, step),
            tags=_visible_tags(sighting.tags) if sighting is not None else {},
        )
        self._entries[entry.id] = self._intended[entry.id] = entry
        return entry.id

    def _after(self, tracked: Tracked, step: Step) -> dict[str, object]:
        """What is to be; a creation's parameters are hidden as a read would show them (A8)."""
        if step.verb is not Verb.CREATE:
            return _after(step)
        facts = self._offers.get(tracked.type)
        shown = dict(Hiding(facts.compared).declared(tracked.parameters) if facts is not None else {})
        return {**shown, TAGS: dict(tracked.tags)} if tracked.tags else shown

    def withdraw(self, entry_id: str) -> None:
        """Remove an intent that was not published yet: it is not written."""
        del self._entries[entry_id], self._intended[entry_id]

    def intended(self, entry_id: str) -> JournalEntry:
        """What is about to be written."""
        return self._intended[entry_id]

    def close(self, outcome: Outcome) -> EntryRef:
        """Write down what came of it; returns where."""
        intended = self._intended.pop(outcome.planned.entry_id)
        created = outcome.created
        if outcome.is_given_up:
            return self._leave_open(outcome.planned.tracked, intended, outcome.error, outcome.request_ids)
        request_ids = [*intended.request_ids, *map(visible, outcome.request_ids)]
        is_being_made = created is not None and created.condition is Condition.CREATING
        if isinstance(outcome.error, UnderWay) or is_being_made or outcome.is_pending:
            named = created.resource_id if created is not None else intended.resource_id
            entry = intended.model_copy(update={"request_ids": request_ids, "resource_id": named})
            self._entries[entry.id] = entry
            outcome.planned.tracked.open_writes = (*outcome.planned.tracked.open_writes, entry)
            return EntryRef(entry.id)
        self._entries[intended.id] = intended.model_copy(
            update={
                "outcome": _outcome(outcome),
                "error": outcome.error.message if outcome.error is not None else "",
                "request_ids": request_ids,
                "tags": _visible_tags(outcome.tags or intended.tags),
                "resource_id": created.resource_id if created is not None else intended.resource_id,
            }
        )
        refusal = outcome.planned.tracked.memory.refusal
        return self._count(intended.id, EntryRef(refusal.entry, refusal.digest) if refusal is not None else None)

    def _count(self, entry_id: str, before: EntryRef | None) -> EntryRef:
        """Have an outcome counted in the entry of the one before it, where it is the same refusal of the same step."""
        entry = self._entries[entry_id]
        digest = _digest(entry)
        if before is None or not entry.error or before.digest != digest or not before.entry:
            return EntryRef(entry_id, digest)
        self._entries[entry_id] = entry.model_copy(update={"repeats": before.entry})
        return before

    def _leave_open(
        self, tracked: Tracked, intended: JournalEntry, error: CloudError | None, request_ids: list[str]
    ) -> EntryRef:
        """A call that was given up counts as sent: its intent stays open, and holds the next write back (S24)."""
        message = error.message if error is not None else "it did not return in time"
        entry = intended.model_copy(update={"error": message, "request_ids": list(map(visible, request_ids))})
        self._entries[entry.id] = entry
        tracked.open_writes = (*tracked.open_writes, entry)
        return EntryRef(entry.id)

    def intend_link(self, task: Task, sighting: Sighting | None) -> str:
        """Write down that one half of a link is about to run; returns the entry's id."""
        tracked = task.tracked
        link = {"half": task.half, "linkType": task.handler.link_type, "other": task.other}
        entry = JournalEntry(
            id=uuid.uuid4().hex,
            uid=tracked.uid,
            generation=tracked.generation,
            verb="update",
            reason="link",
            resource_id=tracked.memory.resource_id,
            before={"link": {**link, "settings": task.state.settings, "published": task.state.fields}},
            after={"link": link | {"settings": task.work.settings} if task.work is not None else None},
            tags=_visible_tags(sighting.tags) if sighting is not None else {},
        )
        self._entries[entry.id] = self._intended[entry.id] = entry
        return entry.id

    def close_link(self, done: Done) -> EntryRef:
        """Write down what came of one half of a link; returns where."""
        intended = self._intended.pop(done.task.entry_id)
        if isinstance(done.error, GivenUp):
            return self._leave_open(done.task.tracked, intended, done.error, done.request_ids)
        outcome = "abandoned" if done.abandoned else "failed" if done.problem else "done"
        if isinstance(done.error, Transient) or done.is_faulty:
            outcome = "unknown"
        self._entries[intended.id] = intended.model_copy(
            update={
                "outcome": outcome,
                "error": done.problem,
                "request_ids": list(map(visible, done.request_ids)),
                "tags": _visible_tags(done.tags or intended.tags),
            }
        )
        retry = self._held.backoff.links.get(done.task.key)
        return self._count(intended.id, EntryRef(retry.entry, retry.digest) if retry is not None else None)

    def close_open_writes(self, tracked: Tracked, view: View, judgement: Judgement, *, window_over: bool) -> None:
        """Close what an agent that died left open, now that the resource was read again.

        What was given up may take effect after that reading: it stays open until it shows, or its window is over.
        """
        if not tracked.open_writes or view.error is not None or judgement.rule == "S24":
            return
        kept: list[JournalEntry] = []
        for entry in tracked.open_writes:
            is_link = entry.reason == "link" and "link" in entry.before
            if entry.is_given_up and not window_over and (is_link or not _shows(entry, view, judgement)):
                kept.append(entry)
                continue
            if _is_at_work(entry, view, tracked) or accepted.is_at_work(entry, view):
                kept.append(entry)
                continue
            if is_link:
                message = "the agent died meanwhile: it is done once more"
                self._entries[entry.id] = entry.model_copy(update={"outcome": "unknown", "error": message})
                continue
            done = _shows(entry, view, judgement)
            outcome = "done" if done else "failed"
            error = "" if done else "its answer was lost, and the next reading did not show it"
            named = view.sighting.resource_id if view.sighting is not None else entry.resource_id
            self._entries[entry.id] = entry.model_copy(
                update={"outcome": outcome, "error": error, "resource_id": entry.resource_id or named}
            )
        tracked.open_writes = tuple(kept)

    def fail(self, tracked: Tracked, entry: JournalEntry, why: str) -> None:
        """Close what the cloud accepted and then did not do."""
        tracked.open_writes = tuple(one for one in tracked.open_writes if one.id != entry.id)
        self._entries[entry.id] = entry.model_copy(update={"outcome": "failed", "error": why})

    def drain(self) -> list[JournalEntry]:
        """Everything the next report must say; a published intent is among it again only with its outcome."""
        entries, self._entries = list(self._entries.values()), {}
        return entries


def _accepted(tracked: Tracked) -> JournalEntry | None:
    """The entry of a creation that the cloud accepted, as long as nothing has shown what became of it."""
    if tracked.memory.intent is None:
        return None
    fitting = (one for one in tracked.open_writes if one.verb == "create" and one.request_ids and not one.is_given_up)
    return next(fitting, None)


def _is_at_work(entry: JournalEntry, view: View, tracked: Tracked) -> bool:
    """Whether the cloud is at work on a creation: nothing is known of its outcome yet."""
    if entry.verb != "create" or entry.is_given_up:
        return False
    if view.sighting is not None:
        return view.sighting.condition is Condition.CREATING
    return bool(entry.request_ids) and tracked.memory.intent is not None


def _digest(entry: JournalEntry) -> str:
    named = entry.resource_id if entry.verb != "create" else None  # an accepted creation has one of its own
    parts = [entry.generation, entry.verb, entry.reason, named, entry.before, entry.after]
    text = json.dumps([*parts, entry.outcome, entry.error], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _outcome(outcome: Outcome) -> str:
    if outcome.abandoned or not outcome.written:
        return "abandoned"
    if outcome.error is None:
        return "done"
    return "unknown" if isinstance(outcome.error, Transient) else "failed"


def _shows(entry: JournalEntry, view: View, judgement: Judgement) -> bool:
    """Whether what was intended can be seen."""
    sighting = view.sighting
    if accepted.verb_of(entry) is not None:
        return accepted.is_shown(entry, sighting)
    match entry.verb:
        case "create":
            return sighting is not None
        case "delete":
            return sighting is None
        case "update":
            return sighting is not None and not any(name in judgement.drift for name in entry.after)
        case _:
            return sighting is not None and all(
                sighting.tags.get(key) == value for key, value in entry.after.items() if value is not None
            )


def _visible_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags as people read them in the journal; those of others may hold anything (A6)."""
    return {visible(key): visible(value) for key, value in tags.items()}


def _before(step: Step, sighting: Sighting | None) -> dict[str, object]:
    if step.verb is Verb.UPDATE:
        return {name: difference.actual for name, difference in step.drift.items()}
    if step.verb is Verb.DELETE and sighting is not None:
        return dict(sighting.actual)
    if step.verb is Verb.TRANSFER and sighting is not None and sighting.protocol.owner is not None:
        return {OWNER: sighting.protocol.owner}
    return {}


def _after(step: Step) -> dict[str, object]:
    if step.verb is Verb.UPDATE:
        return {name: difference.declared for name, difference in step.drift.items()}
    added: dict[str, object] = dict(step.add.to_mapping())
    return {**added, **dict.fromkeys(step.remove.to_mapping())}
