"""From what was seen and what is remembered to the small situation that the table decides about. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fractal_cloud.model.errors import CloudError
from fractal_cloud.model.observed import Observed
from fractal_cloud.model.sighting import Condition, Sighting
from fractal_cloud.model.situation import Hold, Manager, Party, Presence, Situation, Trace
from fractal_cloud.model.status import Stance, Status
from fractal_cloud.model.tags import ProtocolTags
from fractal_cloud.model.tracked import Tracked


@dataclass(frozen=True, slots=True)
class View:
    """What the cloud shows of one component: a sighting, several that fit, nothing, or an error.

    ``trace``: where it shows nothing, what is known of the resource that was there; ``elsewhere``: that resource, found
    by its id under another name or in another place.
    """

    sighting: Sighting | None = None
    fitting: tuple[Sighting, ...] = ()
    error: CloudError | None = None
    trace: Trace = Trace.UNKNOWN
    elsewhere: Sighting | None = None

    @property
    def presence(self) -> Presence:
        """The view in one word."""
        if self.error is not None:
            return Presence.UNREADABLE
        if self.sighting is not None:
            return Presence.PRESENT
        return Presence.SEVERAL if self.fitting else Presence.ABSENT


ABSENT = View()
NEVER = View(trace=Trace.NEVER)
GONE = View(trace=Trace.GONE)


def found_elsewhere(sighting: Sighting) -> View:
    """The view of a component whose resource was found by its id, and not by its name."""
    return View(trace=Trace.ELSEWHERE, elsewhere=sighting)


def pick(live_system_id: str, fitting: Sequence[Sighting]) -> View:
    """The one resource that is meant where several fit the identity (S14); the dying give way to the living."""
    living = [sighting for sighting in fitting if sighting.condition is not Condition.DYING] or list(fitting)
    if len(living) == 1:
        return View(sighting=living[0])
    if not living:
        return ABSENT
    mine = [sighting for sighting in living if sighting.protocol.owner == live_system_id]
    if len(mine) == 1:
        return View(sighting=mine[0])
    owned = [sighting for sighting in living if sighting.protocol.is_managed and sighting.protocol.owner is not None]
    if len(owned) == 1:
        return View(sighting=owned[0])
    return View(fitting=tuple(living))


@dataclass(frozen=True, slots=True)
class Claims:
    """Who declares a resource (and could claim it), and who was last seen as its owner; of a part also who owns the
    parent, and what that says of writing to the part (S25).
    """

    declarers: Collection[str] = ()
    last_owner: str | None = None
    parent_owner: str | None = None
    hold: Hold = Hold.FREE

    @property
    def heir(self) -> str | None:
        """The last owner, if it still declares the resource."""
        return self.last_owner if self.last_owner in self.declarers else None

    def heir_as_seen_by(self, live_system_id: str) -> Party:
        """The heir from one LiveSystem's point of view."""
        return party(self.heir, live_system_id)

    def claimant_as_seen_by(self, live_system_id: str) -> Party:
        """The heir; without one the only declarer; with several, nobody: it is contested."""
        if self.heir is not None:
            return party(self.heir, live_system_id)
        if len(self.declarers) > 1:
            return Party.CONTESTED
        return party(next(iter(self.declarers), None), live_system_id)


def party(name: str | None, live_system_id: str) -> Party:
    """Whom a LiveSystem's name points at, from another's (or its own) point of view."""
    if name is None:
        return Party.NOBODY
    return Party.ME if name == live_system_id else Party.OTHER


def manager(tags: ProtocolTags) -> Manager:
    """Whose ``managed-by`` it is."""
    if tags.is_managed:
        return Manager.OURS
    return Manager.NOBODY if tags.managed_by is None else Manager.OTHER


@dataclass(frozen=True, slots=True)
class TypeTraits:
    """What a situation depends on that holds for all components of a type."""

    taggable: bool = True
    holds_data: bool = False
    tags_frozen: bool = False
    owner_moves: bool = True
    is_part: bool = False
    blocks_parent_deletion: bool = False


def situate(
    tracked: Tracked, view: View, claims: Claims, traits: TypeTraits, *, drifted: bool, now: datetime, cycle: timedelta
) -> Situation:
    """The situation of one component, at one moment."""
    seen = view.sighting or view.elsewhere
    tags = seen.protocol if seen is not None else ProtocolTags()
    memory = tracked.memory
    creates_once = tracked.create_once and not (tracked.import_only or traits.taggable or traits.is_part)
    is_noticing = memory.status is Status.MANUAL_OVERRIDE or memory.noticed_since is not None
    return Situation(
        presence=view.presence,
        untouchable=tracked.import_only or not (traits.taggable or traits.is_part),
        manager=manager(tags),
        reconcile=is_handed_back(tracked, view) if traits.tags_frozen else tags.reconcile,
        owner=party(tags.owner, tracked.live_system_id),
        heir=claims.heir_as_seen_by(tracked.live_system_id),
        claimant=claims.claimant_as_seen_by(tracked.live_system_id),
        stance=Stance.NONE if _is_forgotten(memory, view, traits) else memory.stance,
        redeployed=tracked.is_redeployed,
        holds_data=traits.holds_data,
        intent_open=memory.intent is not None and not memory.intent.restored,
        was_absent=memory.absent_since is not None or memory.noticed_since is not None or memory.restored,
        readoption_by_tag=tracked.readoption_by_tag,
        noticed=memory.noticed_since is not None and now - memory.noticed_since >= cycle,
        drifted=drifted,
        tags_frozen=traits.tags_frozen,
        hold=claims.hold,
        was_held=traits.is_part and is_noticing,
        creates_once=creates_once,
        made_here=creates_once and claims.last_owner == tracked.live_system_id,
    )


def is_bound_to(tracked: Tracked, sighting: Sighting) -> bool:
    """Whether a deletion of the component may delete this very resource (O19).

    It may delete the one that was published when the deletion was requested; where none was, what the component's own
    creation makes, else the first one seen since.
    """
    memory, bound = tracked.memory, tracked.bound
    if bound is not None:
        return _is_same(sighting, bound.resource_id, bound.incarnation)
    if memory.intent is not None:
        return memory.intent.resource_id in (None, sighting.resource_id)
    return memory.resource_id is None or _is_same(sighting, memory.resource_id, memory.incarnation)


def _is_same(sighting: Sighting, resource_id: str, incarnation: str) -> bool:
    """Whether a sighting is that resource, and not a later one that bears its id."""
    if sighting.resource_id != resource_id:
        return False
    return not (incarnation and sighting.incarnation) or sighting.incarnation == incarnation


def _is_forgotten(memory: Observed, view: View, traits: TypeTraits) -> bool:
    """Whether nobody knows any more that it may be changed: no tag can say what was done since the backup (C9)."""
    is_frozen = traits.tags_frozen and view.sighting is not None
    return is_frozen and memory.restored and memory.stance is Stance.MANAGED


def is_handed_back(tracked: Tracked, view: View) -> bool:
    """Whether somebody handed back, through the product, the very resource that is seen; it stands for the tag."""
    override, sighting = tracked.memory.override, view.sighting
    if override is None or override.readopted_by is None or sighting is None:
        return False
    return tracked.memory.stance is Stance.OVERRIDE and sighting.resource_id == tracked.memory.resource_id
