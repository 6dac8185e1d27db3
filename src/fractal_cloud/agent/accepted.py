"""What the cloud accepted for an operator's request that is used up by it, and may still refuse (G10, O8).

Nobody tries such a write again: unless it is followed until a read shows what became of it, its refusal is never said.
That its journal entry is open is all that is remembered, so an agent that takes over says it too. What is accepted of a
creation is followed by its intent, and other writes are tried again, and refused then.
"""

from __future__ import annotations

from typing import Final

from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.tags import OWNER
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import JournalEntry
from fractal_cloud.rules.judge import Step, Verb
from fractal_cloud.rules.situate import View

_BY_REASON: Final = {"force-push": Verb.PUSH, "transfer": Verb.TRANSFER}
USED_UP_BY: Final = frozenset(_BY_REASON.values())
"""The verbs whose request is used up by the publication of their intent (S17)."""


def is_pending(step: Step, after: Sighting | None) -> bool:
    """Whether a read right after such a write shows the cloud at work, and not yet what was written."""
    if step.verb not in USED_UP_BY or after is None or after.condition is not Condition.CHANGING:
        return False
    return not _is_done(step.verb, after, step.add.owner)


def verb_of(entry: JournalEntry) -> Verb | None:
    """The verb of an open entry whose write the cloud accepted; None where it is none of these."""
    is_accepted = entry.verb == "tag" and bool(entry.request_ids) and not entry.is_given_up and entry.outcome is None
    return _BY_REASON.get(entry.reason) if is_accepted else None


def is_at_work(entry: JournalEntry, view: View) -> bool:
    """Whether the cloud has yet to say what becomes of such a write."""
    sighting = view.sighting
    is_busy = sighting is not None and sighting.condition is Condition.CHANGING
    return verb_of(entry) is not None and is_busy and not is_shown(entry, sighting)


def is_shown(entry: JournalEntry, sighting: Sighting | None) -> bool:
    """Whether a read shows what such a write was to bring about."""
    verb = verb_of(entry)
    return verb is not None and sighting is not None and _is_done(verb, sighting, entry.after.get(OWNER))


def undone(tracked: Tracked, view: View) -> list[JournalEntry]:
    """The writes that the cloud accepted, and that a read shows were not done."""
    sighting = view.sighting
    if sighting is None:
        return []
    accepted = [entry for entry in tracked.open_writes if verb_of(entry) is not None]
    return [entry for entry in accepted if not is_at_work(entry, view) and not is_shown(entry, sighting)]


def _is_done(verb: Verb, sighting: Sighting, owner: object) -> bool:
    if verb is Verb.TRANSFER:
        return sighting.protocol.owner == owner
    return sighting.protocol.is_managed
