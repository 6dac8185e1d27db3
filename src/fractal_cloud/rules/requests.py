"""What becomes of an operator's request: Force Push (G10) and glass broken through the product (G13). Pure."""

from __future__ import annotations

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
    def is_used_up(self) -> bool:
        """A Force Push is used up by acting on it; a broken glass only once nothing is left to do."""
        return bool(self.refusal) or not self.acts or not self.breaks_glass or self.by_memory


def answer_request(
    tracked: Tracked, view: View, traits: TypeTraits, *, now: datetime, cycle: timedelta
) -> Answer | None:
    """The answer to the component's open request; None if there is none, or nothing can be said yet (S0)."""
    request = tracked.request
    if request is None or view.presence is Presence.UNREADABLE:
        return None
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


def _is_break(tracked: Tracked) -> bool:
    return tracked.request is not None and tracked.request.kind is RequestKind.BREAK


def _void(tracked: Tracked, view: View, request: OperatorRequest, now: datetime, cycle: timedelta) -> str:
    if tracked.deleting:
        return "the component is being deleted"
    if request.generation != tracked.generation:
        return "the LiveSystem was deployed again since: ask once more"
    sighting = view.sighting
    if sighting is not None and request.resource_id not in (None, sighting.resource_id):
        return f"it was asked for {request.resource_id}, but the name now finds {sighting.resource_id}: ask once more"
    if now - request.at > 2 * cycle + timedelta(seconds=10):
        return "it was not carried out within two cycles: ask once more"
    if sighting is not None and not sighting.protocol.is_managed and _was_removed_after(tracked, request):
        return "managed-by was removed after it was asked for: somebody took the resource over; ask once more"
    return ""


def _was_removed_after(tracked: Tracked, request: OperatorRequest) -> bool:
    override = tracked.memory.override
    if override is not None and tracked.memory.stance is Stance.OVERRIDE:
        return override.since > request.at
    return request.stance is Stance.MANAGED
