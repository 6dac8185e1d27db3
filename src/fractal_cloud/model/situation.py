"""What is known when the agent decides about one component, and what it decides: two frozen values.

Only what the decision depends on stands here, in its smallest form, so that every situation there is can be listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fractal_cloud.model.status import Stance, Status


class Presence(StrEnum):
    """What a read of the cloud says of the natural identity."""

    UNREADABLE = "unreadable"
    ABSENT = "absent"
    PRESENT = "present"
    SEVERAL = "several"


class Manager(StrEnum):
    """Whose ``managed-by`` is on the resource."""

    OURS = "ours"
    NOBODY = "nobody"
    OTHER = "other"


class Party(StrEnum):
    """Whom an owner tag, or a claim, points at, seen from the component decided about."""

    NOBODY = "nobody"
    ME = "me"
    OTHER = "other"
    CONTESTED = "contested"


class Trace(StrEnum):
    """What is known of a component's resource where its name finds nothing (S19, O17).

    ``NEVER``: none was ever published, and no creation is open. ``GONE``: it is proven that it does not exist.
    ``ELSEWHERE``: its id finds it under another name. ``UNKNOWN``: nobody has asked for it by its id yet.
    """

    NEVER = "never"
    UNKNOWN = "unknown"
    ELSEWHERE = "elsewhere"
    GONE = "gone"


class Hold(StrEnum):
    """What the parent of a part says of writing to the part (S25). The parent's tags are the part's.

    ``FREE``: it is no part. ``OPEN``: the parent is reconciled (S12, S9) or was just created by us. ``NOTICED``: what
    would change of the parent is shown first (S12a). ``UNSETTLED``: nothing can be said yet. ``OTHERS``: the parent is
    another LiveSystem's, or only read. Where both are deleted: ``LEFT``: the parent stays; ``WITH_PARENT``: the part
    goes with it, or is not to go yet; ``BEFORE_PARENT``: the cloud wants it gone first, and nothing else is in the way.
    """

    FREE = "free"
    OPEN = "open"
    OVERRIDE = "override"
    OTHERS = "others"
    NOTICED = "noticed"
    UNSETTLED = "unsettled"
    LEFT = "left"
    WITH_PARENT = "with-parent"
    BEFORE_PARENT = "before-parent"


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a decision may depend on.

    ``heir`` is the LiveSystem last seen as owner, if it still declares the resource; ``claimant`` follows from it.
    ``untouchable``: the type cannot carry tags, or the component is ``importOnly``. ``owes_tags``: it is what this
    component's own creation made, which could not carry tags, and the agent has not begun to put any on it.
    ``was_absent``: the last publication said absent, or what is remembered comes from a backup (C9). ``noticed``: what
    would change was published at least one settled cycle ago. ``tags_frozen``: nobody can change a tag of it after its
    creation, so that ``reconcile`` and the override are what the control plane remembers.
    ``hold``: what the parent says, where it is a part. ``was_held``: its last publication was that its parent is in
    override, or showed what would change (S12a). ``creates_once``: it cannot carry tags and may be created all the same
    (S1b); ``made_here``: this LiveSystem created it before.
    """

    presence: Presence
    untouchable: bool = False
    manager: Manager = Manager.NOBODY
    reconcile: bool = False
    owner: Party = Party.NOBODY
    heir: Party = Party.NOBODY
    claimant: Party = Party.ME
    stance: Stance = Stance.NONE
    redeployed: bool = False
    holds_data: bool = False
    intent_open: bool = False
    was_absent: bool = False
    readoption_by_tag: bool = False
    noticed: bool = False
    drifted: bool = False
    tags_frozen: bool = False
    owes_tags: bool = False
    hold: Hold = Hold.FREE
    was_held: bool = False
    creates_once: bool = False
    made_here: bool = False


class Action(StrEnum):
    """The verb the agent may carry out; everything but ``NOTHING`` and ``NOTICE`` writes to the cloud."""

    NOTHING = "nothing"
    CREATE = "create"
    TAG = "tag"
    NOTICE = "notice"
    RECONCILE = "reconcile"
    READOPT = "readopt"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a situation: the rule that decided, the status to show, the verb allowed, the stance after."""

    rule: str
    status: Status | None
    action: Action
    stance: Stance
    message: str = ""


class Fate(StrEnum):
    """How the deletion of one component ends, or why it has not ended yet."""

    WAIT = "wait"
    GONE = "gone"
    DROP = "drop"
    LEAVE = "leave"
    NOTICE = "notice"
    DELETE = "delete"
