"""What becomes of an operator's request: Force Push (G10), glass to be broken (G13), a transfer (O8). Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from fractal_cloud.model.situation import Presence
from fractal_cloud.model.status import Stance
from fractal_cloud.model.tracked import Tracked
from fractal_cloud.model.wire import OperatorRequest, RequestKind
from fractal_cloud.rules.situate import TypeTraits, View


@dataclass(frozen=True, slots=True)
class Answer:
    """``acts``: it is carried out now. ``refusal``: why it is not; either way ``used`` says whether it is used up.

    ``by_memory``: nothing is written to the cloud for it, because tags are frozen there: publishing it carries it out.
    """

    request: OperatorRequest
    acts: bool = False
    refusal: str = ""
    by_memory: bool = False

    @property
    def breaks_glass(self) -> bool:
        """Whether the request puts the component in manual override."""
        return self.request.kind is RequestKind.BREAK

    @property
    def moves_owner(self) -> bool:
        """Whether the request makes another LiveSystem the owner."""
        return self.request.kind is RequestKind.TRANSFER

    @property
    def is_used_up(self) -> bool:
        """A Force Push or a transfer is used up by acting on it; a broken glass only once nothing is left to do."""
        return bool(self.refusal) or not self.acts or not self.breaks_glass or self.by_memory


def answer_request(
    tracked: Tracked,
    view: View,
    traits: TypeTraits,
    *,
    now: datetime,
    cycle: timedelta,
    declarers: Collection[str] = (),
) -> Answer | None:
    """The answer to the component's open request; None if there is none, or nothing can be said yet (S0).

    ``declarers``: the LiveSystems that declare the resource, and may own it.
    """
    request = tracked.request
    if request is None or view.presence is Presence.UNREADABLE:
        return None
    if request.kind is RequestKind.TRANSFER:
        refusal = _outdated(tracked, view, request, now, cycle)
        refusal = refusal or _immovable(tracked, view, traits, request, declarers)
        if not refusal and view.sighting is not None and view.sighting.protocol.reconcile:
            return None  # it waits: the new owner would go on with the handshake, and nobody had seen it before (S12a)
        return Answer(request, acts=not refusal, refusal=refusal)
    refusal = _impossible(tracked, view, traits)
    if request.kind is RequestKind.BREAK:
        if refusal:
            return Answer(request, refusal=refusal)
        managed = view.sighting is not None and view.sighting.protocol.is_managed
        return Answer(request, acts=managed, by_memory=traits.tags_frozen)
    refusal = refusal or _void(tracked, view, request, now, cycle)
    if refusal:
        return Answer(request, refusal=refusal)
    if traits.tags_frozen:  # what is managed is reconciled as it is: there is no tag to put on it
        return Answer(request, acts=tracked.memory.stance is not Stance.MANAGED, by_memory=True)
    return Answer(request, acts=True)


def _impossible(tracked: Tracked, view: View, traits: TypeTraits) -> str:
    if traits.is_part:
        return f"{tracked.type} carries no tags of its own: ask it of what it is a part of"
    if not traits.taggable:
        return f"{tracked.type} cannot carry tags: it is only ever read"
    if tracked.import_only:
        return "the component is importOnly: take importOnly out of its declaration first"
    if view.presence is Presence.SEVERAL:
        ids = ", ".join(sighting.resource_id for sighting in view.fitting)
        return f"several resources are named {tracked.identity.name!r} ({ids}): rename all but one"
    if view.sighting is None:
        return "the resource is absent: only a deploy creates it"
    tags = view.sighting.protocol
    if tags.owner is not None and tags.owner != tracked.live_system_id:
        return f"{tags.owner!r} owns it: only its owner can be pushed"
    if traits.tags_frozen and not (tags.is_managed and tags.owner is not None):
        return "its tags are frozen and not ours: it can never be adopted, and is only read"
    if tags.other_manager is not None and not _is_break(tracked):
        return f"managed-by says {tags.other_manager!r}: remove that tag first, if the resource is yours to take"
    return ""


def _immovable(
    tracked: Tracked, view: View, traits: TypeTraits, request: OperatorRequest, declarers: Collection[str]
) -> str:
    """Why the owner tag is not replaced: only while it is this LiveSystem's, not in override, and declared there."""
    if not traits.taggable or tracked.import_only or view.presence is Presence.SEVERAL:
        return _impossible(tracked, view, traits)
    sighting = view.sighting
    if sighting is None:
        return "the resource is absent: there is nothing to move"
    tags = sighting.protocol
    if tags.owner != tracked.live_system_id:
        now_owner = "nobody" if tags.owner is None else repr(tags.owner)
        return f"{now_owner} owns it by now, and not {tracked.live_system_id!r}: nothing was written"
    if traits.tags_frozen:
        return "its tags are frozen: its owner can never be moved"
    if not traits.owner_moves:
        return f"one call cannot replace the owner of {tracked.type}: move the tag by hand"
    if tags.other_manager is not None:
        return f"managed-by says {tags.other_manager!r}: it is not ours to move"
    if not tags.is_managed or tracked.memory.stance is Stance.OVERRIDE:
        return "it is in manual override: hand it back first, or move the tag by hand"
    if request.to not in declarers:
        return f"{request.to!r} does not declare it, or only imports it: declare it there first"
    return ""


def _is_break(tracked: Tracked) -> bool:
    return tracked.request is not None and tracked.request.kind is RequestKind.BREAK


def _void(tracked: Tracked, view: View, request: OperatorRequest, now: datetime, cycle: timedelta) -> str:
    if tracked.deleting:
        return "the component is being deleted"
    outdated = _outdated(tracked, view, request, now, cycle)
    if outdated:
        return outdated
    sighting = view.sighting
    if sighting is not None and not sighting.protocol.is_managed and _was_removed_after(tracked, request):
        return "managed-by was removed after it was asked for: somebody took the resource over; ask once more"
    return ""


def _outdated(tracked: Tracked, view: View, request: OperatorRequest, now: datetime, cycle: timedelta) -> str:
    """Why it is no longer good: for one generation, one resource and two settled cycles."""
    if request.generation != tracked.generation:
        return "the LiveSystem was deployed again since: ask once more"
    sighting = view.sighting
    if sighting is not None and request.resource_id not in (None, sighting.resource_id):
        return f"it was asked for {request.resource_id}, but the name now finds {sighting.resource_id}: ask once more"
    if now - request.at > 2 * cycle + timedelta(seconds=10):
        return "it was not carried out within two cycles: ask once more"
    return ""


def _was_removed_after(tracked: Tracked, request: OperatorRequest) -> bool:
    override = tracked.memory.override
    if override is not None and tracked.memory.stance is Stance.OVERRIDE:
        return override.since > request.at
    return request.stance is Stance.MANAGED
