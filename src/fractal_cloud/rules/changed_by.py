"""What was changed outside of Fractal Cloud: what is followed, for how long, and in which words it is shown. Pure.

    as declared ──read otherwise──▶ seen ──the cloud's record──▶ known by whom, or not known
                                      └──corrected, or declared so──▶ kept for a while as what was

A difference that a new declaration makes was made by nobody. Whom the cloud names is found out by the offers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from fractal_cloud.model.observed import ChangedBy
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tag_rules import TAGS, tag_key, tag_path
from fractal_cloud.model.tags import MANAGED_BY
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.rules import words
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.nested.path import is_known, root, value_at
from fractal_cloud.rules.setbacks import digest

Changes = tuple[ChangedBy, ...]
MOST: Final = 10
"""How many changes are kept of one component, those that stand first."""
LONGEST_WAIT: Final = timedelta(minutes=30)
"""How long a record that is written late is asked for; CloudTrail writes within 15 minutes, as a rule."""

_AT_REST: Final = frozenset({Status.ACTIVE, Status.MANUAL_OVERRIDE, Status.FAILED})
_OURS: Final = frozenset({Stance.MANAGED, Stance.OVERRIDE})


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was read: now, and the time before; ``source``: the cloud's record of who changes what, if any.

    ``begins``: what is new counts as a change; not after writes of our own in the same cycle. ``swept``: parameters
    that are read one by one, and were read at ``swept_before`` the time before; ``linked``: those that links set.
    """

    now: datetime
    before: datetime | None = None
    source: str = ""
    begins: bool = True
    swept: frozenset[str] = frozenset()
    swept_before: datetime | None = None
    linked: frozenset[str] = field(default_factory=frozenset)


def after_reading(tracked: Tracked, sighting: Sighting | None, judgement: Judgement, moment: Moment) -> Changes:
    """What is known of changes after a read; the same objects where nothing changed."""
    known = tracked.memory.changed_by
    if sighting is None or tracked.deleting or judgement.rule in ("S0", "S24", "C9"):
        return known
    if judgement.stance not in _OURS:
        return ()  # an importer's drift is its owner's business (O5)
    differing = {name: digest(difference.actual) for name, difference in judgement.drift.items()}
    if judgement.stance is Stance.OVERRIDE and not sighting.protocol.is_managed:
        differing[MANAGED_BY] = digest(sighting.protocol.managed_by)
    kept = tuple(_kept(one, differing) for one in known)
    followed = {one.parameter for one in kept if one.stands}
    new = [name for name in sorted(differing) if name not in followed]
    begun = [_begun(name, differing[name], moment) for name in new if _is_change(name, tracked, judgement)]
    begun = [one for one in begun if moment.begins and root(one.parameter) not in moment.linked]
    if not begun and all(one is before for one, before in zip(kept, known, strict=True)):
        return known
    newest_first = sorted((*begun, *kept), key=lambda one: one.seen, reverse=True)
    return tuple(sorted(newest_first, key=lambda one: not one.stands)[:MOST])


def _kept(one: ChangedBy, differing: Mapping[str, str]) -> ChangedBy:
    if not one.stands or differing.get(one.parameter) == one.value:
        return one
    return one.model_copy(update={"stands": False})


def _begun(name: str, value: str, moment: Moment) -> ChangedBy:
    return ChangedBy(
        parameter=name,
        value=value,
        seen=moment.now,
        after=moment.swept_before if root(name) in moment.swept else moment.before,
        state="waiting" if moment.source else "unknown",
        source=moment.source,
    )


def _is_change(name: str, tracked: Tracked, judgement: Judgement) -> bool:
    """Whether a difference comes from outside: neither a declaration nor a write of ours, as far as is remembered."""
    memory = tracked.memory
    if name == MANAGED_BY:
        is_new = memory.stance is Stance.MANAGED and judgement.rule == "S7"
        return is_new and not words.lost_tagging(tracked)
    # What is enforced without being declared stands in the drift alone.
    drift = {one: both.get("actual") for one, both in memory.output_fields.get("drift", {}).items()}
    of_tags = {tag_path(key): value for key, value in memory.output_fields.get(TAGS, {}).items()}
    published = {**drift, **memory.output_fields, **of_tags}
    is_inside = tag_key(name) is None and is_known(published, name)
    if name not in published and not is_inside:  # seen for the first time: it was so before it was anybody's
        return judgement.stance is Stance.OVERRIDE and memory.intent is None
    is_at_rest = memory.stance in _OURS and memory.intent is None and memory.status in _AT_REST
    return is_at_rest and digest(value_at(published, name)) != digest(judgement.drift[name].actual)


def is_waiting(changes: Changes) -> bool:
    """Whether somebody may still be named."""
    return any(one.state == "waiting" for one in changes)


def shown(document: Mapping[str, Any]) -> dict[str, Any]:
    """A stored change as people read it: with the sentence, and without what only recognises it."""
    one = ChangedBy.model_validate(document)
    return {**{name: value for name, value in one.to_json().items() if name != "value"}, "text": text(one)}


def text(one: ChangedBy) -> str:
    """Who changed it and when, in one sentence; who is not known is not named."""
    seen = f"seen by the agent at {words.moment(one.seen)}"
    when = f" at {words.moment(one.at)}" if one.at is not None else ""
    how = ", ".join(part for part in (one.how, one.source) if part)
    is_removed = one.parameter == MANAGED_BY and one.value == digest(None)
    verb = "removed it" if is_removed else "changed it"
    match one.state:
        case "known":
            return f"{one.by} {verb}{when} ({how})"
        case "related":
            return f"{seen}; {one.by} called {one.how}{when} ({one.source}), which does not say what it set"
        case "waiting":
            return f"{seen}; not in {one.source} yet"
        case "denied":
            return f"{seen}; the agent may not read {one.source}"
        case _:
            return seen
