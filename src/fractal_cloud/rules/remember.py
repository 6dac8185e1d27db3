"""From a judgement to the observed state of a component, which is stored and published. Pure.

Times are stamped at publication. What to do with the cloud is decided in ``judge``, and not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from fractal_cloud.model.link import NO_LINKS, published_fields
from fractal_cloud.model.observed import Intent, Observed, Override
from fractal_cloud.model.reference import references
from fractal_cloud.model.sighting import Sighting
from fractal_cloud.model.situation import Presence
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tag_rules import TAGS
from fractal_cloud.model.tags import NO_TAGS
from fractal_cloud.model.tracked import AT_PUBLICATION, Tracked
from fractal_cloud.model.wording import path_text
from fractal_cloud.rules import words
from fractal_cloud.rules.judge import Judgement
from fractal_cloud.rules.links import link_message, link_status
from fractal_cloud.rules.nested.path import root
from fractal_cloud.rules.situate import View, is_bound_to, is_handed_back

_CONFIRMS_MANAGEMENT = frozenset({"S4", "S9", "S11a", "S12"})
"""The rules by which a resource is created, re-adopted or kept in step: the cloud itself has shown that it is ours."""


def observed_after(tracked: Tracked, view: View, judgement: Judgement) -> Observed:
    """The observed state of a component after a judgement; equal to the one before where nothing changed."""
    memory = tracked.memory
    status = judgement.status or memory.status
    if view.presence is Presence.UNREADABLE:
        message = link_message(judgement.message, memory.links)
        return replace(memory, message=message, waits_for=judgement.waits_for, stuck=judgement.stuck)
    if judgement.rule == "S24":
        return replace(memory, status=status, message=link_message(judgement.message, memory.links))
    sighting = view.sighting
    present = sighting is not None
    published = sighting if sighting is not None and _is_its_own(tracked, sighting) else None
    absent = view.presence is Presence.ABSENT
    creating = judgement.stance is Stance.MANAGED and not judgement.carried_out
    intent = _intent(memory, sighting) if creating or not present else None
    return replace(
        memory,
        stance=judgement.stance,
        status=link_status(status, memory.links),
        message=link_message(judgement.message, memory.links),
        owner=sighting.protocol.owner if sighting and not sighting.is_hidden else memory.owner,
        resource_id=published.resource_id if published else memory.resource_id,
        incarnation=published.incarnation if published else memory.incarnation,
        output_fields=_output_fields(tracked, view, judgement),
        observed_generation=tracked.generation if judgement.carried_out else memory.observed_generation,
        established=present or intent is not None or (memory.established and not absent),
        absent_since=_absent_since(memory, view, intent),
        noticed_since=(memory.noticed_since or AT_PUBLICATION) if judgement.noticing else None,
        intent=intent,
        override=_override(tracked, view, judgement),
        waits_for=judgement.waits_for,
        setbacks=judgement.setbacks,
        stuck=judgement.stuck,
        restored=memory.restored and not _is_settled(judgement),
        secrets=_secrets(tracked, judgement) if present else memory.secrets,
    )


def _secrets(tracked: Tracked, judgement: Judgement) -> Mapping[str, str]:
    """Where values of secrets stand: where references are declared in maps, and where they were until something else
    was seen there. Digests stay as long as their parameter is declared.
    """
    known = tracked.memory.secrets
    if not known and not tracked.secrets:
        return known
    found = {path_text(path).removeprefix("."): "" for path, _ in references(tracked.parameters) if len(path) > 1}
    for path, digest in known.items():
        name = root(path)
        if name in tracked.parameters if digest else any(root(differing) == name for differing in judgement.drift):
            found[path] = digest
    return known if found == known else dict(sorted(found.items()))


def _absent_since(memory: Observed, view: View, intent: Intent | None) -> datetime | None:
    """Since when the resource is absent; while a creation of ours is open, its absence is expected and not counted."""
    if view.sighting is not None:
        return None
    is_creation_open = intent is not None and not intent.restored
    if view.presence is not Presence.ABSENT or is_creation_open:
        return memory.absent_since
    return memory.absent_since or AT_PUBLICATION


def _is_its_own(tracked: Tracked, sighting: Sighting) -> bool:
    """Whether what was seen belongs to the component; another resource may bear the name of a deleted one (O19)."""
    return not tracked.deleting or is_bound_to(tracked, sighting)


def _is_settled(judgement: Judgement) -> bool:
    """Whether the state of a restored backup is replaced by what was seen since, and any drift was shown (C9, S12a)."""
    return judgement.rule in _CONFIRMS_MANAGEMENT and judgement.stance is Stance.MANAGED and not judgement.noticing


def _intent(memory: Observed, sighting: Sighting | None) -> Intent | None:
    """The open creation. Once its tags were seen it no longer has to be tagged, even if somebody removes them (S17)."""
    intent = memory.intent
    if intent is None or not intent.tagging or sighting is None or sighting.protocol == NO_TAGS:
        return intent
    return intent.model_copy(update={"tagging": ""})


def _override(tracked: Tracked, view: View, judgement: Judgement) -> Override | None:
    if judgement.stance is not Stance.OVERRIDE:
        return None
    known = tracked.memory.override
    since = known.since if known is not None else AT_PUBLICATION
    answer = judgement.answer
    if answer is not None and answer.breaks_glass and not answer.refusal:
        request = answer.request
        return Override(since=since, by=request.by, reason=request.reason, until=request.until)
    if known is None and judgement.rule == "S7" and words.lost_tagging(tracked):
        return Override(since=since, reason=words.lost_tagging(tracked))
    found = known or Override(since=since)
    if answer is not None and answer.acts and answer.by_memory:
        return found.model_copy(update={"readopted_by": answer.request.by})
    if found.readopted_by is not None and not is_handed_back(tracked, view):
        return found.model_copy(update={"readopted_by": None})  # it was for another resource, or for one that is gone
    return found


def _output_fields(tracked: Tracked, view: View, judgement: Judgement) -> Mapping[str, Any]:
    """The offer's outputs, the actual value of every declared parameter, the drift if there is any (G3), and the keys
    of its links (L3).
    """
    sighting = view.sighting
    if sighting is None:
        gone = view.presence is Presence.ABSENT
        return published_fields(tracked.memory.links) if gone else tracked.memory.output_fields
    actual = sighting.actual
    fields = dict(sighting.outputs)
    if "name" in tracked.parameters:
        fields["name"] = sighting.name
    for name in tracked.parameters:
        if name in actual:
            fields[name] = actual[name]
        elif name in tracked.memory.output_fields:
            fields[name] = tracked.memory.output_fields[name]
    if judgement.tags:
        fields[TAGS] = dict(judgement.tags)
    drift = {name: difference.to_json() for name, difference in sorted(judgement.drift.items())}
    if drift:
        fields["drift"] = drift
    if tracked.memory.links is not NO_LINKS:
        fields |= published_fields(tracked.memory.links)
    return fields
